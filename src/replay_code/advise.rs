//! The fixed variant of a program (`--advise`): what findings advise, where a generated program can do it.

use crate::replay_code::calls::{Arg, Does, Row, function, named, parts};
use crate::replay_code::described::has_objects;
use crate::replay_code::program::Program;
use crate::replay_code::ranks::{Expr, Group, Step, Value};
use crate::vocabulary::Layer;

/// Bytes of a transfer that small ones become.
const LARGEST: i64 = 1 << 20;

/// What is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fix {
    /// Independent transfers of all ranks become collective ones.
    Collective,
    /// Flushes in a loop become one behind it.
    FlushOnce,
    /// Files are opened without `O_SYNC`, and flushed when they are closed.
    FlushAtClose,
    /// Consecutive transfers in a loop become larger ones.
    Buffer,
    Hints(&'static [(&'static str, &'static str)]),
    /// A switch in the functions that the program includes.
    Switch(&'static str, i64),
}

/// The rules of findings, what is changed for them, and a line of text about that.
const FIXES: &[(&str, Fix, &str)] = &[
    ("independent-strided", Fix::Collective, "transfers that all ranks make are collective"),
    ("collective-broken", Fix::Collective, "transfers that all ranks make are collective"),
    ("sync-per-record", Fix::FlushOnce, "flushes in loops are one flush behind the loop"),
    (
        "sync-writes",
        Fix::FlushAtClose,
        "files are not opened with O_SYNC or O_DSYNC, and flushed before they are closed",
    ),
    ("small-transfers", Fix::Buffer, "consecutive transfers in loops are put together, up to 1 MiB"),
    ("partial-page-overwrite", Fix::Buffer, "consecutive transfers in loops are put together, up to 1 MiB"),
    (
        "data-sieving",
        Fix::Hints(&[("romio_ds_read", "disable"), ("romio_ds_write", "disable")]),
        "hints switch data sieving off",
    ),
    (
        "one-writer",
        Fix::Hints(&[("cb_config_list", "*:1")]),
        "hints ask for an aggregator on each node (cb_config_list)",
    ),
    ("hdf5-metadata", Fix::Switch("COLLECTIVE_METADATA", 1), "operations on metadata of HDF5 are collective"),
    ("hdf5-chunk-cache", Fix::Switch("CHUNK_CACHE", 64 << 20), "the chunk cache of HDF5 has 64 MiB"),
    ("fill-values", Fix::Switch("NO_FILL", 1), "datasets are not filled before they are written"),
];

/// Switches that every program has; 0: as it was.
pub const SWITCHES: [&str; 3] = ["COLLECTIVE_METADATA", "CHUNK_CACHE", "NO_FILL"];

/// Changes a program as findings of these rules advise; for each rule what was changed.
pub fn advise(program: &mut Program, groups: &mut [Group], rules: &[&str]) -> Vec<String> {
    let mut notes = Vec::new();
    for rule in rules {
        let Some((_, fix, change)) = FIXES.iter().find(|(of, ..)| of == rule) else {
            notes.push(format!("`{rule}`: nothing that the program could do otherwise by itself."));
            continue;
        };
        let changed = apply(*fix, program, groups);
        notes.push(if changed {
            format!("`{rule}`: {change}.")
        } else {
            format!("`{rule}`: not in the calls of this program.")
        });
    }
    notes
}

fn apply(fix: Fix, program: &mut Program, groups: &mut [Group]) -> bool {
    let mut changed = false;
    match fix {
        // Ranks in several groups make different calls: a collective one could wait for ever.
        Fix::Collective if groups.len() != 1 || !opened_by_all(&groups[0].steps) => {}
        Fix::Collective => {
            for group in groups {
                changed |= collective(&mut group.steps, &mut program.ops);
            }
        }
        // So could flushes of MPI-IO and HDF5.
        Fix::FlushOnce if groups.len() != 1 && program.layer != Layer::Syscall => {}
        Fix::FlushOnce => {
            for group in groups {
                changed |= flush_once(&mut group.steps);
            }
        }
        Fix::FlushAtClose => {
            for group in groups {
                changed |= flush_at_close(&mut group.steps);
            }
        }
        Fix::Buffer => {
            for group in groups {
                changed |= buffer(&mut group.steps, &mut program.buffer);
            }
        }
        Fix::Hints(hints) => {
            let own = |list: &[(&str, &str)]| {
                list.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect::<Vec<_>>()
            };
            program.hints.iter_mut().for_each(|set| set.extend(own(hints)));
            program.hints.push(own(hints));
            let new = program.hints.len() as i64;
            for group in groups {
                changed |= hint(&mut group.steps, new);
            }
        }
        Fix::Switch(name, value) if program.layer == Layer::Hdf5 || name == "NO_FILL" && has_objects(program.layer) => {
            changed = program.switches.insert(name, value).is_none();
        }
        Fix::Switch(..) => {}
    }
    changed
}

/// Calls `each` with every call that all ranks make equally often.
fn visit(steps: &mut [Step], each: &mut dyn FnMut(&'static Row, &mut usize, &mut [Expr])) {
    for step in steps {
        match step {
            Step::Call { function, args, .. } => {
                if let Some((row, _)) = parts(*function) {
                    each(row, function, args);
                }
            }
            Step::Loop { count: Value::Same(_), body, .. } => visit(body, each),
            Step::Loop { .. } => {}
        }
    }
}

fn position(row: &Row, arg: Arg) -> Option<usize> {
    row.args.iter().position(|own| *own == arg)
}

fn opened_by_all(steps: &[Step]) -> bool {
    let (mut all, mut opens) = (true, false);
    visit(&mut steps.to_vec(), &mut |row, _, args| {
        if let Some(at) = position(row, Arg::Communicator) {
            opens = true;
            all &= args.get(at).is_some_and(|arg| arg.base == Value::Same(0));
        }
    });
    all && opens
}

fn collective(steps: &mut [Step], ops: &mut Vec<String>) -> bool {
    let mut changed = false;
    visit(steps, &mut |row, code, args| {
        if let Some(arg) = position(row, Arg::Collective).and_then(|at| args.get_mut(at)) {
            changed |= arg.base != Value::Same(1);
            *arg = Expr { base: Value::Same(1), steps: Vec::new() };
        }
        let Some((_, op)) = parts(*code) else { return };
        let all =
            ops.get(op).and_then(|op| row.ops.iter().find(|other| other.strip_suffix("_all") == Some(op.as_str())));
        if let (Layer::Mpiio, Some(all)) = (row.layer, all) {
            ops.push((*all).to_owned());
            *code = *code - function(0, op) + function(0, ops.len() - 1);
            changed = true;
        }
    });
    changed
}

fn is_flush(code: usize) -> bool {
    const FLUSHES: [&str; 4] = ["fsync", "fdatasync", "MPI_File_sync", "H5Fflush"];
    parts(code).is_some_and(|(row, _)| row.ops.iter().any(|op| FLUSHES.contains(op)))
}

fn flush_once(steps: &mut Vec<Step>) -> bool {
    let mut changed = false;
    let mut at = 0;
    while at < steps.len() {
        if let Some(Step::Loop { body, .. }) = steps.get_mut(at) {
            let mut flushes = Vec::new();
            take_flushes(body, &mut flushes);
            changed |= !flushes.is_empty();
            let behind = at + 1;
            at += flushes.len();
            steps.splice(behind..behind, flushes);
        }
        at += 1;
    }
    steps.retain(|step| !matches!(step, Step::Loop { body, .. } if body.is_empty()));
    changed
}

/// Takes the flushes out of a body; those of a handle that is another one with each repetition stay.
fn take_flushes(body: &mut Vec<Step>, flushes: &mut Vec<Step>) {
    body.retain_mut(|step| match step {
        Step::Call { function, args, .. } if is_flush(*function) && args.iter().all(|arg| arg.steps.is_empty()) => {
            if !flushes.contains(step) {
                flushes.push(step.clone());
            }
            false
        }
        Step::Call { .. } => true,
        Step::Loop { body, .. } => {
            take_flushes(body, flushes);
            !body.is_empty()
        }
    });
}

fn flush_at_close(steps: &mut Vec<Step>) -> bool {
    let mut changed = false;
    visit(steps, &mut |row, _, args| {
        if let Some(Expr { base: Value::Same(flags), .. }) =
            position(row, Arg::OpenFlags).and_then(|at| args.get_mut(at))
        {
            let without = *flags & !i64::from(nix::libc::O_SYNC | nix::libc::O_DSYNC);
            changed |= *flags != without;
            *flags = without;
        }
    });
    if changed && let Some(fsync) = named("fsync") {
        flush_before_close(steps, function(fsync, 0));
    }
    changed
}

fn flush_before_close(steps: &mut Vec<Step>, fsync: usize) {
    let mut at = 0;
    while at < steps.len() {
        match &mut steps[at] {
            Step::Loop { body, .. } => flush_before_close(body, fsync),
            Step::Call { function, args, .. } => {
                if parts(*function).is_some_and(|(row, _)| row.does == Does::Closes && row.layer == Layer::Syscall) {
                    let flush = Step::Call { function: fsync, args: args.clone(), think_ns: 0 };
                    steps.insert(at, flush);
                    at += 1;
                }
            }
        }
        at += 1;
    }
}

fn hint(steps: &mut [Step], set: i64) -> bool {
    let mut changed = false;
    visit(steps, &mut |row, _, args| {
        if let Some(arg) = position(row, Arg::Hints).and_then(|at| args.get_mut(at)) {
            changed = true;
            if arg.base == Value::Same(0) {
                arg.base = Value::Same(set);
            }
        }
    });
    changed
}

fn buffer(steps: &mut Vec<Step>, most: &mut i64) -> bool {
    let mut changed = false;
    let old = std::mem::take(steps);
    for mut step in old {
        if let Some(larger) = put_together(&step, most) {
            steps.extend(larger);
            changed = true;
            continue;
        }
        if let Step::Loop { body, .. } = &mut step {
            changed |= buffer(body, most);
        }
        steps.push(step);
    }
    changed
}

/// A loop of transfers that follow each other as larger ones, and what is left.
fn put_together(step: &Step, most: &mut i64) -> Option<Vec<Step>> {
    let Step::Loop { depth, count: Value::Same(count), body } = step else { return None };
    let [Step::Call { function, args, think_ns }] = body.as_slice() else { return None };
    let (row, _) = parts(*function)?;
    let at = |arg| position(row, arg);
    let (requested, moved) = (at(Arg::Requested)?, at(Arg::Moved)?);
    let Value::Same(bytes) = args.get(requested)?.base else { return None };
    if bytes <= 0 || args.get(moved)?.base != Value::Same(bytes) {
        return None;
    }
    let follows = args.iter().enumerate().all(|(number, arg)| {
        let own = arg.steps.iter().find(|(of, _)| of == depth).map(|(_, step)| step);
        if Some(number) == at(Arg::Offset) { own == Some(&Value::Same(bytes)) } else { own.is_none() }
    });
    let together = (*count).min(LARGEST / bytes);
    if !follows || together < 2 {
        return None;
    }
    let (loops, left) = (count / together, count % together);
    let call = |times: i64, from: i64, in_loop: bool| {
        let mut args = args.clone();
        for number in [requested, moved] {
            args[number].base = Value::Same(bytes * times);
        }
        if let Some(offset) = at(Arg::Offset).and_then(|number| args.get_mut(number)) {
            offset.steps.retain(|(of, _)| of != depth);
            if in_loop {
                offset.steps.insert(0, (*depth, Value::Same(bytes * times)));
            }
            offset.base = offset.base.plus(from);
        }
        Step::Call { function: *function, args, think_ns: think_ns.saturating_mul(times) }
    };
    *most = (*most).max(bytes * together);
    let mut steps = Vec::new();
    if loops > 1 {
        steps.push(Step::Loop { depth: *depth, count: Value::Same(loops), body: vec![call(together, 0, true)] });
    } else {
        steps.push(call(together, 0, false));
    }
    if left > 0 {
        steps.push(call(left, bytes * together * loops, false));
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(value: i64) -> Expr {
        Expr { base: Value::Same(value), steps: Vec::new() }
    }

    fn growing(base: Value, step: i64) -> Expr {
        Expr { base, steps: vec![(0, Value::Same(step))] }
    }

    fn call(op: &str, args: Vec<Expr>) -> Step {
        Step::Call { function: function(named(op).unwrap(), 0), args, think_ns: 3 }
    }

    fn repeated(count: i64, body: Vec<Step>) -> Step {
        Step::Loop { depth: 0, count: Value::Same(count), body }
    }

    #[test]
    fn consecutive_writes_are_put_together() {
        let by_rank = Value::Affine { base: 0, step: 7 };
        let write = |bytes: i64, offset: Expr| call("pwrite64", vec![same(0), same(bytes), same(bytes), offset]);
        let mut steps = vec![repeated(2500, vec![write(1000, growing(by_rank.clone(), 1000))])];
        let mut most = 1000;
        assert!(buffer(&mut steps, &mut most));
        assert_eq!(most, 1_048_000);
        let [Step::Loop { count: Value::Same(2), body, .. }, Step::Call { args, think_ns: 1212, .. }] =
            steps.as_slice()
        else {
            panic!("{steps:?}")
        };
        let [Step::Call { args: larger, .. }] = body.as_slice() else { panic!("{body:?}") };
        assert_eq!(larger[3], growing(by_rank, 1_048_000));
        assert_eq!((&args[1], &args[3].base), (&same(404_000), &Value::Affine { base: 2_096_000, step: 7 }));

        let mut strided = vec![repeated(2500, vec![write(1000, growing(Value::Same(0), 4000))])];
        assert!(!buffer(&mut strided, &mut most));
    }

    #[test]
    fn flushes_leave_loops() {
        let write = call("write", vec![same(0), same(10), same(10)]);
        let flush = call("fsync", vec![same(0)]);
        let mut steps = vec![repeated(9, vec![write.clone(), flush.clone()]), flush.clone()];
        assert!(flush_once(&mut steps));
        assert_eq!(steps, [repeated(9, vec![write]), flush.clone(), flush]);
    }

    #[test]
    fn every_rule_is_one() {
        for (rule, ..) in FIXES {
            assert!(crate::analysis::findings::rules::RULES.iter().any(|known| known.id == *rule), "{rule}");
        }
    }
}
