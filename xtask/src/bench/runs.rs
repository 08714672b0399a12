//! What tracing adds to whole runs of programs: how long they take untraced, traced, and under strace.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;

use super::memory::Disk;
use super::other::Other;
use super::turns::{Turns, table};
use super::{Bench, calls_and_losses, measured, number};
use crate::programs;

/// How a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Alone,
    Traced,
    /// `--aggregate`.
    Summed,
    /// Another process with the same libraries is traced.
    Beside,
    Strace,
    /// Not a time: bytes of the dataset for each call in it.
    Bytes,
    /// Not a time: calls that are missing in it.
    Lost,
}

/// Where the files of a program are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    /// The disk of `--dir`.
    Disk,
    /// A disk in memory, as fast in each run: what differs is what tracing adds.
    Memory,
    /// A file system in memory without a disk: of loops of one call, which would wait for the disk most of the time.
    Pages,
}

/// A program, as lines for a shell in an empty directory.
struct Run {
    what: &'static str,
    on: On,
    /// What it needs, once; and before each run.
    prepare: &'static str,
    before: &'static str,
    command: &'static str,
    /// By its own clock: what a call takes, in ns, which it prints behind these labels, and how many calls there are of each.
    /// Otherwise by the clock of the shell that starts it.
    own: Option<(&'static [&'static str], f64)>,
    /// The program whose libraries another process has that is traced.
    beside: Option<&'static str>,
    /// strace is worth a comparison, and can be waited for.
    strace: bool,
    /// How many times as long as untraced it may take.
    goals: &'static [(Way, f64)],
}

/// What most are.
const PLAIN: Run = Run {
    what: "",
    on: On::Memory,
    prepare: "",
    before: "",
    command: "",
    own: None,
    beside: None,
    strace: false,
    goals: &[],
};

/// `CHECKPOINT`, `COLLECTIVES`, `DEMO`, `FGETC`, `H5LOOP`, `IORLIKE`, `RECORDS`, `REDUCE`: our own programs;
/// `MPIRUN`: two processes, `MPIRUN4`: four.
const RUNS: &[Run] = &[
    Run {
        what: "parallel HDF5 checkpoints, 2 ranks, 1 GiB, flushed, on the disk of `--dir`",
        on: On::Disk,
        before: "rm -f data.h5; sync",
        command: "MPIRUN CHECKPOINT data.h5 128",
        ..PLAIN
    },
    Run {
        what: "parallel HDF5 checkpoints, 2 ranks, 1 GiB, flushed",
        before: "rm -f data.h5; sync",
        command: "MPIRUN CHECKPOINT data.h5 128",
        ..PLAIN
    },
    Run {
        what: "parallel HDF5, MPI-IO, POSIX and stdio, 2 ranks, small calls",
        before: "rm -rf out; sync",
        command: "MPIRUN DEMO out 20",
        ..PLAIN
    },
    Run {
        what: "serial HDF5, 20 000 H5Dwrite and H5Dread of 16 KiB",
        on: On::Pages,
        before: "rm -f loop.h5; sync",
        command: "H5LOOP loop.h5 20000",
        own: Some((&["write", "read"], 20_000.0)),
        beside: Some("H5LOOP"),
        goals: &[(Way::Traced, 1.8), (Way::Beside, 1.1)],
        ..PLAIN
    },
    Run {
        what: "PnetCDF, 2 ranks, 20 000 collective writes of 512 bytes",
        on: On::Pages,
        before: "rm -f collective.nc; sync",
        command: "MPIRUN COLLECTIVES collective.nc 20000",
        own: Some((&["put"], 20_000.0)),
        beside: Some("COLLECTIVES"),
        goals: &[(Way::Traced, 1.5), (Way::Beside, 1.1)],
        ..PLAIN
    },
    Run {
        what: "MPI without I/O, 2 ranks, a million reductions",
        on: On::Pages,
        command: "MPIRUN REDUCE 1000000",
        own: Some((&["reduce"], 1_000_000.0)),
        beside: Some("REDUCE"),
        goals: &[(Way::Traced, 1.1), (Way::Beside, 1.1)],
        ..PLAIN
    },
    Run {
        what: "MPI-IO as IOR does it, 4 ranks, 5000 writes and reads of 4 KiB each",
        on: On::Pages,
        before: "rm -f ior.data; sync",
        command: "MPIRUN4 IORLIKE mpiio ior.data 5000",
        own: Some((&["write", "read"], 5000.0)),
        beside: Some("IORLIKE"),
        goals: &[(Way::Beside, 1.1)],
        ..PLAIN
    },
    Run {
        what: "HDF5 as IOR does it, 4 ranks, 3000 writes and reads of 16 KiB each",
        on: On::Pages,
        before: "rm -f ior.h5; sync",
        command: "MPIRUN4 IORLIKE hdf5 ior.h5 3000",
        own: Some((&["write", "read"], 3000.0)),
        beside: Some("IORLIKE"),
        goals: &[(Way::Traced, 1.45), (Way::Beside, 1.1)],
        ..PLAIN
    },
    Run {
        what: "fgetc in its first second, a million bytes",
        on: On::Pages,
        prepare: "head -c 2000000 /dev/zero > bytes.data",
        command: "FGETC bytes.data 3",
        own: Some((&["first"], 1_000_000.0)),
        beside: Some("FGETC"),
        goals: &[(Way::Traced, 3.0), (Way::Beside, 1.1)],
        ..PLAIN
    },
    Run {
        what: "fgetc after that, a million bytes",
        on: On::Pages,
        prepare: "head -c 2000000 /dev/zero > bytes.data",
        command: "FGETC bytes.data 3",
        own: Some((&["after"], 1_000_000.0)),
        beside: Some("FGETC"),
        goals: &[(Way::Traced, 1.1), (Way::Beside, 1.1)],
        ..PLAIN
    },
    Run {
        what: "2 million records of 64 bytes through stdio",
        before: "rm -f records.data; sync",
        command: "RECORDS records.data",
        goals: &[(Way::Traced, 1.3)],
        ..PLAIN
    },
    Run {
        what: "fio, 4 KiB random reads, direct, depth 16, 1 GiB",
        prepare: "fio --name=a --size=256m --rw=write --bs=1m --end_fsync=1 --filename=fio.data",
        command: "fio --name=a --ioengine=libaio --direct=1 --bs=4k --rw=randread --iodepth=16 --norandommap \
                  --size=256m --io_size=1g --filename=fio.data",
        goals: &[(Way::Traced, 1.5)],
        ..PLAIN
    },
    Run {
        what: "tar x of /usr/include",
        prepare: "tar -C /usr -cf include.tar include",
        before: "rm -rf include; sync",
        command: "tar -xf include.tar",
        goals: &[(Way::Traced, 1.05)],
        strace: true,
        ..PLAIN
    },
    Run {
        what: "python3 of Debian imports 60 modules, 10 times",
        command: "for i in 1 2 3 4 5 6 7 8 9 10; do /usr/bin/python3 -c 'import argparse, ast, asyncio, base64, bz2, calendar, \
                  cmd, code, codecs, collections, concurrent.futures, configparser, csv, ctypes, datetime, decimal, \
                  difflib, dis, doctest, email.message, fileinput, fractions, ftplib, functools, getpass, gettext, glob, \
                  gzip, hashlib, heapq, html.parser, http.client, imaplib, inspect, ipaddress, json, logging.config, \
                  lzma, mailbox, mimetypes, multiprocessing.pool, optparse, pathlib, pdb, pickletools, platform, \
                  plistlib, pprint, random, shelve, smtplib, sqlite3, ssl, statistics, tarfile, tempfile, timeit, \
                  unittest, urllib.request, uuid, xml.dom.minidom, xml.etree.ElementTree, zipfile'; done",
        goals: &[(Way::Traced, 1.1)],
        strace: true,
        ..PLAIN
    },
];

/// Prints what the command took, in ns, and ends with its status. bash reads its clock without another process.
const TIMED: &str = "a=$EPOCHREALTIME; { COMMAND; } >command.out; s=$?; b=$EPOCHREALTIME; echo took $(( (${b/./} - ${a/./}) * 1000 )); exit $s";

/// The columns: a way, its name, the way whose times it is compared with.
const COLUMNS: [(Way, &str); 4] = [
    (Way::Traced, "traced"),
    (Way::Summed, "with --aggregate"),
    (Way::Beside, "beside a traced process"),
    (Way::Strace, "strace -f"),
];

pub fn run(bench: &Bench) -> Result<String> {
    let own = [
        ("CHECKPOINT", bench.compile("checkpoint", &programs::openmpi("mpicc"), &["hdf5-openmpi"])?),
        ("COLLECTIVES", bench.compile("collectives", &programs::openmpi("mpicc"), &["pnetcdf"])?),
        ("H5LOOP", bench.compile("h5_loop", "cc", &["hdf5-serial"])?),
        ("IORLIKE", bench.compile("ior_like", &programs::openmpi("mpicc"), &["hdf5-openmpi"])?),
        ("FGETC", bench.compile("fgetc", "cc", &[])?),
        ("REDUCE", bench.compile("reduce", &programs::openmpi("mpicc"), &[])?),
        ("RECORDS", bench.compile("records", "cc", &[])?),
        ("DEMO", bench.program("demo")?),
        // Before the shorter name.
        ("MPIRUN4", format!("{} --allow-run-as-root --oversubscribe -np 4", programs::openmpi("mpirun"))),
        ("MPIRUN", format!("{} --allow-run-as-root --oversubscribe -np 2", programs::openmpi("mpirun"))),
    ];
    let script = |line: &str| own.iter().fold(line.to_owned(), |line, (name, is)| line.replace(name, is));
    let memory = Disk::make(&bench.work)?;
    let dir = |run: &Run| match run.on {
        On::Disk => bench.work.clone(),
        On::Memory => memory.dir.clone(),
        On::Pages => memory.pages.clone(),
    };
    for run in RUNS {
        shell(&dir(run), run.prepare)?;
        // The first run of all finds its files and libraries, and its blocks on the disk, as none after it does.
        shell(&dir(run), run.before)?;
        shell(&dir(run), &script(run.command))?;
    }
    let ways = |row: usize| {
        let run = RUNS.get(row);
        let strace = run.is_some_and(|run| run.strace).then_some(Way::Strace);
        let beside = run.and_then(|run| run.beside).map(|_| Way::Beside);
        let always = [Way::Alone, Way::Traced, Way::Bytes, Way::Lost, Way::Summed];
        always.into_iter().chain(beside).chain(strace).collect()
    };
    let turns = Turns::measure(bench.rounds, RUNS.len(), ways, |row, way| {
        let run = RUNS.get(row).context("no such run")?;
        match way {
            // Of the recording that was just made.
            Way::Bytes => return Ok(bench.recorded_bytes()? as f64 / calls_and_losses(&bench.report()?).0),
            Way::Lost => return Ok(calls_and_losses(&bench.report()?).1),
            _ => {}
        }
        shell(&dir(run), run.before)?;
        let other = run.beside.filter(|_| way == Way::Beside);
        let _other = other.map(|program| Other::with_libraries(bench, &script(program))).transpose()?;
        let timed = script(&TIMED.replace("COMMAND", run.command));
        let line = ["bash", "-c", &timed];
        let mut command = match way {
            Way::Traced => bench.recording(&["--"]),
            Way::Summed => bench.recording(&["--aggregate", "--"]),
            Way::Strace => Command::new("strace"),
            _ => Command::new("env"),
        };
        if way == Way::Strace {
            command.args(["-f", "-o", "/dev/null"]);
        }
        let took = measured(command.args(line).current_dir(dir(run)), "took")?;
        let Some((labels, calls)) = run.own else { return Ok(took) };
        let out = dir(run).join("command.out");
        let out = fs::read_to_string(&out).with_context(|| out.display().to_string())?;
        let each = labels.iter().map(|label| number(&out, label).with_context(|| format!("no '{label}' in {out:?}")));
        Ok(each.sum::<Result<f64>>()? * calls)
    })?;
    Ok(added(&turns) + &goals(&turns))
}

fn added(turns: &Turns<Way>) -> String {
    let row = |(row, run): (usize, &Run)| -> Vec<String> {
        let times = COLUMNS.map(|(way, _)| {
            let (ns, ratio) = turns.against(row, way, Way::Alone);
            if turns.has(row, way) { format!("{:+.0} ({ratio:.3})", ns / 1e6) } else { String::new() }
        });
        let alone = format!("{:.0}", turns.median(row, Way::Alone) / 1e6);
        let rest = [format!("{:.1}", turns.median(row, Way::Bytes)), format!("{:.0}", turns.median(row, Way::Lost))];
        [run.what.to_owned(), alone].into_iter().chain(times).chain(rest).collect()
    };
    let rows: Vec<Vec<String>> = RUNS.iter().enumerate().map(row).collect();
    let heads: Vec<&str> = ["run", "untraced"]
        .into_iter()
        .chain(COLUMNS.map(|(_, name)| name))
        .chain(["bytes per call on disk", "lost"])
        .collect();
    let title = "Added to a whole run, all layers of the default, in ms, and in brackets the ratio to the untraced run; medians. Of loops of one call, the time of the loop by the program's own clock. Files are on a disk in memory but where `--dir` is given, those of such loops in memory without a disk";
    table(title, &heads, &rows)
}

fn goals(turns: &Turns<Way>) -> String {
    let row = |(row, run): (usize, &Run)| -> Vec<Vec<String>> {
        let goal = |(way, goal): &(Way, f64)| {
            let name = COLUMNS.iter().find(|(of, _)| of == way).map_or("", |(_, name)| name);
            let (_, ratio) = turns.against(row, *way, Way::Alone);
            [run.what, name, &format!("{goal}"), &format!("{ratio:.3}"), verdict(ratio, *goal)]
                .map(str::to_owned)
                .to_vec()
        };
        run.goals.iter().map(goal).collect()
    };
    let rows: Vec<Vec<String>> = RUNS.iter().enumerate().flat_map(row).collect();
    table("Goals: how many times as long as untraced, at most", &["run", "way", "goal", "ratio", ""], &rows)
}

fn verdict(ratio: f64, goal: f64) -> &'static str {
    if ratio <= goal { "met" } else { "**missed**" }
}

fn shell(dir: &Path, line: &str) -> Result<()> {
    let out = Command::new("sh").args(["-c", line]).current_dir(dir).output().context("cannot start sh")?;
    if !out.status.success() {
        bail!("{line} failed: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_that_was_not_measured_is_missed() {
        assert_eq!(
            [1.0, 1.1, 1.2, f64::NAN].map(|ratio| verdict(ratio, 1.1)),
            ["met", "met", "**missed**", "**missed**"]
        );
    }

    #[test]
    fn what_runs_beside_a_traced_process_has_a_goal() {
        for run in RUNS {
            assert_eq!(run.beside.is_some(), run.goals.iter().any(|(way, _)| *way == Way::Beside), "{}", run.what);
        }
    }

    #[test]
    fn the_time_is_printed_without_the_output_of_the_command() {
        let line = TIMED.replace("COMMAND", "echo took 5").replace("command.out", "/dev/null");
        let out = Command::new("bash").args(["-c", &line]).output().unwrap();
        let stdout = String::from_utf8_lossy(&out.stdout).into_owned();
        let took = super::super::number(&stdout, "took").unwrap();
        assert!(stdout.lines().count() == 1 && took > 5.0 && took < 60e9, "{stdout}");
    }
}
