//! What each hook adds to a call: the same program untraced, traced, and under its peers.

use anyhow::Result;

use super::Bench;
use super::turns::{Turns, table};
use super::ways::{WAYS, Way, Ways};

/// A call of `tests/programs/costs.c`, the layers whose hooks it meets, and a description.
pub struct Cost {
    pub call: &'static str,
    pub layers: &'static str,
    what: &'static str,
    /// What else it is compared with than strace and an untraced process.
    peers: &'static [Way],
    /// Where bpftrace looks: at the begin and the end, and the key that pairs them.
    probes: [&'static str; 3],
}

const NO_PROBES: [&str; 3] = [""; 3];

const COSTS: &[Cost] = &[
    Cost {
        call: "pread",
        layers: "syscall",
        what: "pread of 1 byte in cache",
        peers: &[Way::Floor, Way::FloorBeside, Way::Stamps, Way::Bpftrace, Way::Histogram, Way::PerfTrace],
        probes: ["tracepoint:syscalls:sys_enter_pread64", "tracepoint:syscalls:sys_exit_pread64", "tid"],
    },
    Cost { call: "getppid", layers: "syscall", what: "call that is not recorded", peers: &[], probes: NO_PROBES },
    Cost { call: "open", layers: "syscall", what: "open and close", peers: &[], probes: NO_PROBES },
    Cost {
        call: "fwrite",
        layers: "stdio",
        what: "fwrite into the buffer",
        peers: &[Way::Floor, Way::FloorBeside, Way::Stamps, Way::Bpftrace, Way::Histogram],
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
        peers: &[Way::Floor, Way::FloorBeside, Way::Bpftrace, Way::Histogram],
        probes: ["tracepoint:block:block_rq_issue", "tracepoint:block:block_rq_complete", "args->sector"],
    },
    Cost {
        call: "direct",
        layers: "syscall,block",
        what: "direct read of 4 KiB: with its call",
        peers: &[Way::Floor, Way::FloorBeside],
        probes: NO_PROBES,
    },
];

impl Cost {
    fn has(&self, way: Way) -> bool {
        [Way::Alone, Way::Traced, Way::Summed, Way::Beside, Way::Strace].contains(&way) || self.peers.contains(&way)
    }

    /// A script of bpftrace that does this at the end of each call of the program it starts.
    pub fn script(&self, end: &str) -> String {
        let [begin, over, key] = self.probes;
        // Requests end in interrupts, whichever task runs.
        let whose = if key == "tid" { "/pid == cpid/" } else { "" };
        let end = end.replace("KEY", key);
        format!(
            "{begin} {whose} {{ @at[{key}] = nsecs; }} {over} /@at[{key}]/ {{ {end}; delete(@at[{key}]); }} END {{ clear(@at); }}"
        )
    }
}

pub fn run(bench: &Bench) -> Result<String> {
    let ways = Ways::new(bench)?;
    let of = |row: usize| {
        let cost: &Cost = &COSTS[row];
        let peers = WAYS.map(|(way, _)| way).into_iter().filter(|way| cost.has(*way));
        std::iter::once(Way::Alone).chain(peers).collect()
    };
    let turns = Turns::measure(bench.rounds, COSTS.len(), of, |row, way| ways.time(&COSTS[row], way))?;
    Ok(all(&turns) + &floors(&turns))
}

fn all(turns: &Turns<Way>) -> String {
    let rows: Vec<Vec<String>> = COSTS
        .iter()
        .enumerate()
        .map(|(row, cost)| {
            let alone = format!("{:.0}", turns.median(row, Way::Alone));
            let cells = WAYS.map(|(way, _)| {
                let (ns, ratio) = turns.against(row, way, Way::Alone);
                if turns.has(row, way) { format!("{ns:.0} ({ratio:.2})") } else { String::new() }
            });
            [cost.what.to_owned(), cost.layers.to_owned(), alone].into_iter().chain(cells).collect()
        })
        .collect();
    let heads: Vec<&str> = ["call", "layers", "untraced"].into_iter().chain(WAYS.map(|(_, name)| name)).collect();
    table("Added to one call, in ns, and in brackets the ratio to the untraced program; medians", &heads, &rows)
}

/// What is added against what the least adds, traced and beside a traced process.
fn floors(turns: &Turns<Way>) -> String {
    let rows: Vec<Vec<String>> = COSTS
        .iter()
        .enumerate()
        .filter(|(row, _)| turns.has(*row, Way::Floor))
        .map(|(row, cost)| {
            let added = |way| turns.against(row, way, Way::Alone).0;
            let times = |way, floor| format!("{:.2}", added(way) / added(floor));
            let ratios = [(Way::Traced, Way::Floor), (Way::Summed, Way::Floor), (Way::Beside, Way::FloorBeside)];
            let ratios = ratios.map(|(way, floor)| times(way, floor));
            [cost.what.to_owned(), cost.layers.to_owned()].into_iter().chain(ratios).collect()
        })
        .collect();
    let heads = ["call", "layers", "traced", "with --aggregate", "beside a traced process"];
    table("How many times the floor that is; beside: the floor of another process", &heads, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_one_of_the_program() {
        let source = include_str!("../../../tests/programs/costs.c");
        assert!(COSTS.iter().all(|cost| source.contains(&format!("{{\"{}\", call_", cost.call))));
    }

    #[test]
    fn every_layer_with_a_floor_has_programs() {
        let source = include_str!("../../bench/floor.bpf.c");
        for cost in COSTS.iter().filter(|cost| cost.has(Way::Floor)) {
            assert!(cost.layers.split(',').all(|layer| source.contains(&format!("{layer}_"))), "{}", cost.layers);
        }
    }
}
