//! Fixed programs: what each kind of change makes of a described program, and that it compiles and runs as before.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};

use crate::replay_code::advise::advise;
use crate::replay_code::calls::{Arg, parts};
use crate::replay_code::program::Program;
use crate::replay_code::ranks::{Expr, Group, Step, Value, group};
use crate::replay_code::{Advise, Language, Wish, description, write_all};

/// Four ranks write and read the parts of a matrix, each by itself.
pub(super) fn described(interface: &str, work: &Path) -> (Program, Vec<Group>) {
    let text = format!(
        "interface = '{interface}'\nranks = 4\nfile = 'field.dat'\n[[variable]]\nname = 'field'\ndims = [64, 32]\n\
         decomposition = [2, 2]\npattern = ['write', 'read']\n"
    );
    let description = work.join("field.toml");
    std::fs::write(&description, text).unwrap();
    let program = description::read(&description, 1000).unwrap();
    let groups = group(&program.ranks);
    (program, groups)
}

/// A command of Open MPI, under the name that says whose it is where that is there.
fn openmpi(command: &str) -> String {
    let full = format!("{command}.openmpi");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = std::env::split_paths(&path).any(|dir| dir.join(&full).is_file());
    if there { full } else { command.to_owned() }
}

/// Writes the program, compiles it and runs it; its text, and the file that it leaves.
fn ran(program: &Program, groups: &[Group], output: &Path) -> (String, Vec<u8>) {
    ran_in(Language::C, program, groups, output)
}

/// The same in a language.
pub(super) fn ran_in(language: Language, program: &Program, groups: &[Group], output: &Path) -> (String, Vec<u8>) {
    let text = built(language, program, groups, output);
    let ran = run(output, &[output.as_os_str()]);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()));
    (text, std::fs::read(output.join("field.dat")).unwrap())
}

/// Writes the program in a language and compiles it; its text.
pub(super) fn built(language: Language, program: &Program, groups: &[Group], output: &Path) -> String {
    let wish =
        Wish { language, layer: None, files: &[], keep_time: false, advise: Advise::Nothing, limit: 1000, output };
    write_all(Path::new("field.toml"), &wish, program, (groups, None)).unwrap();
    let (compiler, source) = match language {
        Language::C => (format!("CC={}", openmpi("mpicc")), "replay.c"),
        Language::Fortran => (format!("FC={}", openmpi("mpif90")), "replay.f90"),
    };
    let made = Command::new("make").arg("-C").arg(output).arg(compiler).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&[made.stdout, made.stderr].concat()));
    std::fs::read_to_string(output.join(source)).unwrap()
}

/// Runs the program in a directory, with 4 ranks.
pub(super) fn run(output: &Path, args: &[&OsStr]) -> Output {
    let ranks = ["--allow-run-as-root", "--oversubscribe", "-np", "4"];
    Command::new(openmpi("mpirun")).args(ranks).arg(output.join("replay")).args(args).output().unwrap()
}

/// Each argument of this kind, of calls outside and inside of loops.
fn each(steps: &mut [Step], kind: Arg, change: &mut dyn FnMut(&mut Expr)) {
    for step in steps {
        match step {
            Step::Call { function, args, .. } => {
                let at = parts(*function).and_then(|(row, _)| row.args.iter().position(|arg| *arg == kind));
                at.and_then(|at| args.get_mut(at)).into_iter().for_each(&mut *change);
            }
            Step::Loop { body, .. } => each(body, kind, change),
        }
    }
}

fn set(groups: &mut [Group], kind: Arg, value: i64) {
    for group in groups {
        each(&mut group.steps, kind, &mut |arg| arg.base = Value::Same(value));
    }
}

#[test]
fn independent_transfers_of_all_ranks_become_collective() {
    let work = tempfile::tempdir().unwrap();
    let (mut program, mut groups) = described("mpiio", work.path());
    let (plain, bytes) = ran(&program, &groups, &work.path().join("plain"));
    assert!(plain.contains("MPI_File_write_at(") && !plain.contains("_at_all"), "{plain}");
    let notes = advise(&mut program, &mut groups, &["independent-strided"]);
    assert_eq!(notes, ["`independent-strided`: transfers that all ranks make are collective."]);
    let (fixed, same) = ran(&program, &groups, &work.path().join("fixed"));
    for (op, number) in [("write_at", 0), ("read_at", 0), ("write_at_all", 1), ("read_at_all", 1)] {
        assert_eq!(fixed.matches(&format!(" MPI_File_{op}(")).count(), number, "{op}: {fixed}");
    }
    assert!(bytes == same && bytes.len() == 64 * 32 * 8);
    // Nothing is left to change.
    let again = advise(&mut program, &mut groups, &["collective-broken"]);
    assert_eq!(again, ["`collective-broken`: not in the calls of this program."]);
}

#[test]
fn transfers_of_hdf5_become_collective() {
    let work = tempfile::tempdir().unwrap();
    let (mut program, mut groups) = described("hdf5", work.path());
    advise(&mut program, &mut groups, &["collective-broken"]);
    let mut transfers = Vec::new();
    each(&mut groups[0].steps, Arg::Collective, &mut |arg| transfers.push(arg.base.clone()));
    assert_eq!(transfers, [Value::Same(1), Value::Same(1)]);
    let (fixed, _) = ran(&program, &groups, &work.path().join("fixed"));
    assert!(fixed.contains("&OBJECTS[0], 8, 1,"), "{fixed}");
}

/// It would wait for ranks that do not call it.
#[test]
fn transfers_of_some_ranks_stay_independent() {
    let work = tempfile::tempdir().unwrap();
    let unchanged = ["`independent-strided`: not in the calls of this program."];
    let (mut program, mut alone) = described("mpiio", work.path());
    set(&mut alone, Arg::Communicator, 1);
    let before = alone.clone();
    assert_eq!(advise(&mut program, &mut alone, &["independent-strided"]), unchanged);
    assert_eq!(alone, before);
    let (mut program, groups) = described("mpiio", work.path());
    let mut parted: Vec<Group> =
        [vec![0, 1], vec![2, 3]].map(|ranks| Group { ranks, steps: groups[0].steps.clone() }).into();
    let before = parted.clone();
    assert_eq!(advise(&mut program, &mut parted, &["independent-strided"]), unchanged);
    assert_eq!(parted, before);
    // Loops that are longer on some ranks.
    let (mut program, mut groups) = described("mpiio", work.path());
    for step in &mut groups[0].steps {
        if let Step::Loop { count, .. } = step {
            *count = Value::Table(vec![32, 32, 32, 31]);
        }
    }
    assert_eq!(advise(&mut program, &mut groups, &["independent-strided"]), unchanged);
}

#[test]
fn files_are_flushed_when_they_are_closed_and_not_with_each_write() {
    let work = tempfile::tempdir().unwrap();
    let (mut program, mut groups) = described("posix", work.path());
    let synchronous = i64::from(nix::libc::O_RDWR | nix::libc::O_CREAT | nix::libc::O_SYNC);
    set(&mut groups, Arg::OpenFlags, synchronous);
    let (plain, bytes) = ran(&program, &groups, &work.path().join("plain"));
    assert!(plain.contains("O_RDWR | O_CREAT | O_SYNC") && !plain.contains("fsync"), "{plain}");
    let notes = advise(&mut program, &mut groups, &["sync-writes"]);
    assert!(notes[0].contains("flushed before they are closed"), "{notes:?}");
    let (fixed, same) = ran(&program, &groups, &work.path().join("fixed"));
    assert!(fixed.contains("O_RDWR | O_CREAT,") && !fixed.contains("SYNC"), "{fixed}");
    let flush = fixed.find("fsync(fd[0])").unwrap();
    assert!(flush < fixed.find("close(fd[0])").unwrap() && fixed.rfind("pread(").unwrap() < flush, "{fixed}");
    assert_eq!(bytes, same);
    // O_DSYNC is the lower bit of O_SYNC; files that had neither are not flushed.
    let (mut program, mut groups) = described("posix", work.path());
    assert_eq!(
        advise(&mut program, &mut groups, &["sync-writes"]),
        ["`sync-writes`: not in the calls of this program."]
    );
    set(&mut groups, Arg::OpenFlags, i64::from(nix::libc::O_WRONLY | nix::libc::O_DSYNC));
    assert!(advise(&mut program, &mut groups, &["sync-writes"])[0].contains("not opened with O_SYNC"));
}

#[test]
fn hints_of_several_findings_are_one_set() {
    let work = tempfile::tempdir().unwrap();
    let (mut program, mut groups) = described("mpiio", work.path());
    let notes = advise(&mut program, &mut groups, &["data-sieving", "one-writer"]);
    assert!(notes.iter().all(|note| note.contains(": hints ")), "{notes:?}");
    let (fixed, _) = ran(&program, &groups, &work.path().join("fixed"));
    assert!(fixed.contains("MPI_MODE_CREATE | MPI_MODE_RDWR, hints(1)"), "{fixed}");
    for hint in ["\"romio_ds_read\", \"disable\"", "\"romio_ds_write\", \"disable\"", "\"cb_config_list\", \"*:1\""] {
        assert!(fixed.contains(&format!("\t{{1, {hint}}},")), "{hint}: {fixed}");
    }
    // Those that the program gave stay.
    let (mut program, mut groups) = described("mpiio", work.path());
    program.hints.push(vec![("cb_buffer_size".into(), "1048576".into())]);
    set(&mut groups, Arg::Hints, 1);
    advise(&mut program, &mut groups, &["data-sieving"]);
    let own: Vec<&str> = program.hints[0].iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(own, ["cb_buffer_size", "romio_ds_read", "romio_ds_write"]);
    each(&mut groups[0].steps, Arg::Hints, &mut |arg| assert_eq!(arg.base, Value::Same(1)));
    // System calls have none.
    let (mut program, mut groups) = described("posix", work.path());
    assert_eq!(advise(&mut program, &mut groups, &["one-writer"]), ["`one-writer`: not in the calls of this program."]);
}

#[test]
fn switches_are_set_where_the_library_has_them() {
    let work = tempfile::tempdir().unwrap();
    let rules = ["hdf5-metadata", "hdf5-chunk-cache", "fill-values"];
    for (interface, changed) in
        [("hdf5", [true; 3]), ("netcdf", [false, false, true]), ("mpiio", [false; 3]), ("posix", [false; 3])]
    {
        let (mut program, mut groups) = described(interface, work.path());
        let notes = advise(&mut program, &mut groups, &rules);
        for ((note, rule), changed) in notes.iter().zip(rules).zip(changed) {
            assert_eq!(!note.ends_with("not in the calls of this program."), changed, "{interface} {rule}: {note}");
        }
        let (text, _) = ran(&program, &groups, &work.path().join(interface));
        for ((switch, value), changed) in
            [("COLLECTIVE_METADATA", 1), ("CHUNK_CACHE", 64 << 20), ("NO_FILL", 1)].into_iter().zip(changed)
        {
            assert_eq!(text.contains(&format!("#define {switch} {value}\n")), changed, "{interface} {switch}");
        }
    }
}

#[test]
fn rules_that_change_nothing_have_a_line_too() {
    let work = tempfile::tempdir().unwrap();
    let (mut program, mut groups) = described("posix", work.path());
    let before = groups.clone();
    let notes = advise(&mut program, &mut groups, &["dirty-throttling"]);
    assert_eq!(notes, ["`dirty-throttling`: nothing that the program could do otherwise by itself."]);
    assert_eq!(groups, before);
}
