//! What each hook adds to a call: the same program untraced, traced, and under its peers, by turns.

mod ways;

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use self::ways::{Bench, WAYS, Way};
use crate::{Tree, setup, shell};

/// A call of `tests/programs/costs.c`, the layers whose hooks it meets, and what that is in words.
struct Cost {
    call: &'static str,
    layers: &'static str,
    what: &'static str,
    /// What else it is compared with than strace and an untraced process.
    peers: &'static [Way],
    /// Where bpftrace looks: at the begin and the end, and what tells one from another.
    probes: [&'static str; 3],
}

const NO_PROBES: [&str; 3] = [""; 3];
const BPFTRACE: &[Way] = &[Way::Bpftrace, Way::Histogram];

const COSTS: &[Cost] = &[
    Cost {
        call: "pread",
        layers: "syscall",
        what: "pread of 1 byte in cache",
        peers: &[Way::Floor, Way::Stamps, Way::Bpftrace, Way::Histogram, Way::PerfTrace],
        probes: ["tracepoint:syscalls:sys_enter_pread64", "tracepoint:syscalls:sys_exit_pread64", "tid"],
    },
    Cost { call: "getppid", layers: "syscall", what: "call that is not recorded", peers: &[], probes: NO_PROBES },
    Cost { call: "open", layers: "syscall", what: "open and close", peers: &[], probes: NO_PROBES },
    Cost {
        call: "fwrite",
        layers: "stdio",
        what: "fwrite into the buffer",
        peers: &[Way::Stamps, Way::Bpftrace, Way::Histogram],
        probes: [
            "uprobe:/lib/x86_64-linux-gnu/libc.so.6:fwrite",
            "uretprobe:/lib/x86_64-linux-gnu/libc.so.6:fwrite",
            "tid",
        ],
    },
    Cost { call: "fault", layers: "vfs", what: "page fault on a mapped file", peers: &[], probes: NO_PROBES },
    Cost {
        call: "direct",
        layers: "block",
        what: "direct read of 4 KiB: block only",
        peers: BPFTRACE,
        probes: ["tracepoint:block:block_rq_issue", "tracepoint:block:block_rq_complete", "args->sector"],
    },
    Cost {
        call: "direct",
        layers: "syscall,block",
        what: "direct read of 4 KiB: with its call",
        peers: &[],
        probes: NO_PROBES,
    },
];

impl Cost {
    fn has(&self, way: Way) -> bool {
        [Way::Alone, Way::Traced, Way::Summed, Way::Beside, Way::Strace].contains(&way) || self.peers.contains(&way)
    }

    /// A script of bpftrace that does this at the end of each call of the program it starts.
    fn script(&self, end: &str) -> String {
        let [begin, over, key] = self.probes;
        // Requests end in interrupts, whoever runs.
        let whose = if key == "tid" { "/pid == cpid/" } else { "" };
        let end = end.replace("KEY", key);
        format!(
            "{begin} {whose} {{ @at[{key}] = nsecs; }} {over} /@at[{key}]/ {{ {end}; delete(@at[{key}]); }} END {{ clear(@at); }}"
        )
    }
}

/// Prints a table of times and ratios. All ways take turns in each round, so that what else the machine does meets all of them.
pub fn run(tree: &Tree, rounds: u16, dir: &Path) -> Result<()> {
    if !shell::is_root() {
        bail!("tracing needs root; run: sudo -E env PATH=\"$PATH\" cargo xtask bench");
    }
    setup::packages(setup::PACKAGES)?;
    setup::packages(setup::PEERS)?;
    crate::build_tracer()?;
    let work = dir.join(format!("iotrace-bench-{}", std::process::id()));
    fs::create_dir(&work).with_context(|| format!("cannot make {}", work.display()))?;
    let result = measure(tree, rounds, &work);
    fs::remove_dir_all(&work).with_context(|| format!("cannot remove {}", work.display()))?;
    print!("{}", table(&result?));
    Ok(())
}

/// The times in ns by number of the row of `COSTS` and way, one for each round.
type Times = BTreeMap<(usize, Way), Vec<f64>>;

fn measure(tree: &Tree, rounds: u16, work: &Path) -> Result<Times> {
    let bench = Bench::new(tree, work)?;
    let mut times = Times::new();
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for (row, cost) in COSTS.iter().enumerate() {
            for way in std::iter::once(Way::Alone).chain(WAYS.map(|(way, _)| way).into_iter().filter(|w| cost.has(*w)))
            {
                times.entry((row, way)).or_default().push(bench.time(cost, way)?);
            }
        }
    }
    Ok(times)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// What a way adds in ns, and its ratio to the untraced program: medians over the rounds, each against its own round.
fn added(times: &Times, row: usize, way: Way) -> (f64, f64) {
    let of = |way| times.get(&(row, way)).map(Vec::as_slice).unwrap_or_default();
    let pairs = || of(way).iter().zip(of(Way::Alone));
    let added: Vec<f64> = pairs().map(|(with, without)| with - without).collect();
    let ratios: Vec<f64> = pairs().map(|(with, without)| with / without).collect();
    (median(&added), median(&ratios))
}

fn table(times: &Times) -> String {
    let mut text = String::from(
        "\nWhat is added to one call, in ns, and in brackets the ratio to the untraced program; medians\n\n| call | layers | untraced |",
    );
    for (_, name) in WAYS {
        text += &format!(" {name} |");
    }
    text += &format!("\n|---|---|---|{}\n", "---|".repeat(WAYS.len()));
    for (row, cost) in COSTS.iter().enumerate() {
        let alone = median(times.get(&(row, Way::Alone)).map(Vec::as_slice).unwrap_or_default());
        text += &format!("| {} | {} | {alone:.0} |", cost.what, cost.layers);
        for (way, _) in WAYS {
            if cost.has(way) {
                let (ns, ratio) = added(times, row, way);
                text += &format!(" {ns:.0} ({ratio:.2}) |");
            } else {
                text += " |";
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_one_round() {
        let mut times = Times::new();
        times.insert((0, Way::Alone), vec![100.0, 200.0, 400.0]);
        times.insert((0, Way::Traced), vec![150.0, 300.0, 600.0]);
        let (ns, ratio) = added(&times, 0, Way::Traced);
        assert!((ns - 100.0).abs() < 1e-9 && (ratio - 1.5).abs() < 1e-9, "{ns} {ratio}");
    }

    #[test]
    fn every_call_is_one_of_the_program() {
        let source = include_str!("../../../tests/programs/costs.c");
        assert!(COSTS.iter().all(|cost| source.contains(&format!("{{\"{}\", call_", cost.call))));
    }
}
