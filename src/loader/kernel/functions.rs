//! Probes on functions inside the kernel: which of them are there, and the best kind of probe that this kernel allows.

use crate::catalog::{Family, Row};
use crate::rows::Coverage;
use crate::skel::IotraceProgs;
use crate::vocabulary::Layer;
use libbpf_rs::{KprobeMultiOpts, KprobeOpts, Link};
use std::collections::HashSet;

/// Where the kernel lists its functions and those of its modules.
const SYMBOLS: &str = "/proc/kallsyms";

/// The programs that are attached to functions.
pub const PROGRAMS: [&str; 4] = ["iot_kprobe_multi", "iot_kretprobe_multi", "iot_kprobe", "iot_kretprobe"];

/// Which functions of the catalog this text of /proc/kallsyms (address, type, name, module) has.
fn present<'a>(text: &str, wanted: &HashSet<&'a str>) -> HashSet<&'a str> {
    let name = |line: &str| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let code = words.next().is_some_and(|kind| matches!(kind, "t" | "T"));
        words.next().filter(|_| code).and_then(|name| wanted.get(name).copied())
    };
    text.lines().filter_map(name).collect()
}

type Function = (u64, Row);

/// Both ends of several functions at once.
fn many(progs: &IotraceProgs<'_>, functions: &[Function]) -> Result<Vec<Link>, String> {
    let opts = |retprobe| KprobeMultiOpts {
        symbols: functions.iter().map(|(_, row)| row.symbol.to_owned()).collect(),
        cookies: functions.iter().map(|(spec, _)| *spec).collect(),
        retprobe,
        ..Default::default()
    };
    let text = |e: libbpf_rs::Error| format!("{e:#}");
    // The return first: an entry without its return would leave its frame open.
    let leave = progs.iot_kretprobe_multi.attach_kprobe_multi_with_opts(opts(true)).map_err(text)?;
    let enter = progs.iot_kprobe_multi.attach_kprobe_multi_with_opts(opts(false)).map_err(text)?;
    Ok(vec![leave, enter])
}

/// Both ends of one.
fn single(progs: &IotraceProgs<'_>, (spec, row): &Function) -> Result<Vec<Link>, String> {
    let opts = || KprobeOpts { cookie: *spec, ..Default::default() };
    let text = |e: libbpf_rs::Error| format!("{e:#}");
    let leave = progs.iot_kretprobe.attach_kprobe_with_opts(true, row.symbol, opts()).map_err(text)?;
    let enter = progs.iot_kprobe.attach_kprobe_with_opts(false, row.symbol, opts()).map_err(text)?;
    Ok(vec![leave, enter])
}

fn verdict(row: &Row, status: &'static str, outcome: Result<&'static str, String>) -> Coverage {
    Coverage {
        layer: row.layer,
        target: "kernel".into(),
        symbol: row.symbol.to_owned(),
        tier: outcome.as_ref().ok().copied(),
        status,
        reason: outcome.err(),
        offset: None,
        insn: None,
    }
}

fn selected<'a>(rows: &'a [Row], layers: &'a [Layer]) -> impl Iterator<Item = Function> + 'a {
    let rows = rows.iter().enumerate().map(|(spec, row)| (spec as u64, *row));
    rows.filter(move |(_, row)| row.family == Family::Kernel && layers.contains(&row.layer))
}

/// Verdicts where the kernel did not even load the programs.
pub fn refused(rows: &[Row], layers: &[Layer], why: &str) -> Vec<Coverage> {
    selected(rows, layers).map(|(_, row)| verdict(&row, "refused", Err(why.to_owned()))).collect()
}

/// Attaches to the functions of these layers that the kernel has: to many at once where that is allowed, else one by one.
pub fn attach(progs: &IotraceProgs<'_>, rows: &[Row], layers: &[Layer]) -> (Vec<Link>, Vec<Coverage>) {
    let all: Vec<Function> = selected(rows, layers).collect();
    let wanted = all.iter().map(|(_, row)| row.symbol).collect();
    let there = std::fs::read_to_string(SYMBOLS).map(|text| present(&text, &wanted));
    let (mut links, mut verdicts) = (Vec::new(), Vec::new());
    let is_there = |row: &Row| there.as_ref().is_ok_and(|there| there.contains(row.symbol));
    let (present, absent): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, row)| is_there(row));
    let why = match &there {
        Ok(_) => "this kernel, with the modules that are loaded, has no such function".to_owned(),
        Err(e) => format!("{SYMBOLS}: {e}"),
    };
    verdicts.extend(absent.iter().map(|(_, row)| verdict(row, "absent", Err(why.clone()))));
    // One refused function fails the whole link: halve until it stands alone.
    let mut todo = vec![present.as_slice()];
    while let Some(part) = todo.pop() {
        match (many(progs, part), part) {
            (_, []) => {}
            (Ok(both), _) => {
                links.extend(both);
                verdicts.extend(part.iter().map(|(_, row)| verdict(row, "attached", Ok("kprobe.multi"))));
            }
            (Err(multi), [one]) => match single(progs, one) {
                Ok(both) => {
                    links.extend(both);
                    verdicts.push(verdict(&one.1, "attached", Ok("kprobe")));
                }
                Err(single) => {
                    let why = format!("this kernel allows no probe on it: kprobe.multi: {multi}; kprobe: {single}");
                    verdicts.push(verdict(&one.1, "refused", Err(why)));
                }
            },
            (Err(_), _) => {
                let (a, b) = part.split_at(part.len() / 2);
                todo.extend([a, b]);
            }
        }
    }
    (links, verdicts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_in_the_kernel_and_its_modules() {
        let text = "ffffffff81000000 T vfs_read\nffffffff81000010 t ext4_sync_file\t[ext4]\n\
                    ffffffff81000020 D vfs_write\nffffffff81000030 T vfs_readlink\n";
        let wanted = HashSet::from(["vfs_read", "vfs_write", "ext4_sync_file", "xfs_file_fsync"]);
        assert_eq!(present(text, &wanted), HashSet::from(["vfs_read", "ext4_sync_file"]));
    }
}
