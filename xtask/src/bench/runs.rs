//! What tracing adds to whole runs of programs: how long they take untraced, traced, and under strace.

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

use super::memory::Disk;
use super::turns::{Turns, table};
use super::{Bench, calls_and_losses, said};
use crate::programs;

/// How a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Alone,
    Traced,
    /// `--aggregate`.
    Summed,
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
}

/// A program, as lines for a shell in an empty directory.
struct Run {
    what: &'static str,
    on: On,
    /// What it needs, once; and before each run.
    prepare: &'static str,
    before: &'static str,
    command: &'static str,
    /// strace is worth a comparison, and can be waited for.
    strace: bool,
}

/// `CHECKPOINT`, `COLLECTIVES`, `DEMO`, `H5LOOP`, `RECORDS`: our own programs; `MPIRUN`: two processes.
const RUNS: &[Run] = &[
    Run {
        what: "parallel HDF5 checkpoints, 2 ranks, 1 GiB, flushed, on the disk of `--dir`",
        on: On::Disk,
        prepare: "",
        before: "rm -f data.h5; sync",
        command: "MPIRUN CHECKPOINT data.h5 128",
        strace: false,
    },
    Run {
        what: "parallel HDF5 checkpoints, 2 ranks, 1 GiB, flushed",
        on: On::Memory,
        prepare: "",
        before: "rm -f data.h5; sync",
        command: "MPIRUN CHECKPOINT data.h5 128",
        strace: false,
    },
    Run {
        what: "parallel HDF5, MPI-IO, POSIX and stdio, 2 ranks, small calls",
        on: On::Memory,
        prepare: "",
        before: "rm -rf out; sync",
        command: "MPIRUN DEMO out 20",
        strace: false,
    },
    Run {
        what: "serial HDF5, 20 000 H5Dwrite and H5Dread of 16 KiB",
        on: On::Memory,
        prepare: "",
        before: "rm -f loop.h5; sync",
        command: "H5LOOP loop.h5 20000",
        strace: false,
    },
    Run {
        what: "PnetCDF, 2 ranks, 20 000 collective writes of 512 bytes",
        on: On::Memory,
        prepare: "",
        before: "rm -f collective.nc; sync",
        command: "MPIRUN COLLECTIVES collective.nc 20000",
        strace: false,
    },
    Run {
        what: "2 million records of 64 bytes through stdio",
        on: On::Memory,
        prepare: "",
        before: "rm -f records.data; sync",
        command: "RECORDS records.data",
        strace: false,
    },
    Run {
        what: "fio, 4 KiB random reads, direct, depth 16, 1 GiB",
        on: On::Memory,
        prepare: "fio --name=a --size=256m --rw=write --bs=1m --end_fsync=1 --filename=fio.data",
        before: "",
        command: "fio --name=a --ioengine=libaio --direct=1 --bs=4k --rw=randread --iodepth=16 --norandommap \
                  --size=256m --io_size=1g --filename=fio.data",
        strace: false,
    },
    Run {
        what: "tar x of /usr/include",
        on: On::Memory,
        prepare: "tar -C /usr -cf include.tar include",
        before: "rm -rf include; sync",
        command: "tar -xf include.tar",
        strace: true,
    },
    Run {
        what: "python3 imports 60 modules, 10 times",
        on: On::Memory,
        prepare: "",
        before: "",
        command: "for i in 1 2 3 4 5 6 7 8 9 10; do python3 -c 'import argparse, ast, asyncio, base64, bz2, calendar, \
                  cmd, code, codecs, collections, concurrent.futures, configparser, csv, ctypes, datetime, decimal, \
                  difflib, dis, doctest, email.message, fileinput, fractions, ftplib, functools, getpass, gettext, glob, \
                  gzip, hashlib, heapq, html.parser, http.client, imaplib, inspect, ipaddress, json, logging.config, \
                  lzma, mailbox, mimetypes, multiprocessing.pool, optparse, pathlib, pdb, pickletools, platform, \
                  plistlib, pprint, random, shelve, smtplib, sqlite3, ssl, statistics, tarfile, tempfile, timeit, \
                  unittest, urllib.request, uuid, xml.dom.minidom, xml.etree.ElementTree, zipfile'; done",
        strace: true,
    },
];

/// Says what the command took, in ns, and ends with its status. bash reads its clock without another process.
const TIMED: &str = "a=$EPOCHREALTIME; { COMMAND; } >command.out; s=$?; b=$EPOCHREALTIME; echo took $(( (${b/./} - ${a/./}) * 1000 )); exit $s";

/// The columns: a way, its name, the way whose times it is compared with.
const COLUMNS: [(Way, &str); 3] =
    [(Way::Traced, "traced"), (Way::Summed, "with --aggregate"), (Way::Strace, "strace -f")];

pub fn run(bench: &Bench) -> Result<String> {
    let own = [
        ("CHECKPOINT", bench.compile("checkpoint", &programs::openmpi("mpicc"), &["hdf5-openmpi"])?),
        ("COLLECTIVES", bench.compile("collectives", &programs::openmpi("mpicc"), &["pnetcdf"])?),
        ("H5LOOP", bench.compile("h5_loop", "cc", &["hdf5-serial"])?),
        ("RECORDS", bench.compile("records", "cc", &[])?),
        ("DEMO", bench.program("demo")?),
        ("MPIRUN", format!("{} --allow-run-as-root --oversubscribe -np 2", programs::openmpi("mpirun"))),
    ];
    let script = |line: &str| own.iter().fold(line.to_owned(), |line, (name, is)| line.replace(name, is));
    let memory = Disk::make(&bench.work)?;
    let dir = |run: &Run| if run.on == On::Disk { bench.work.clone() } else { memory.dir.clone() };
    for run in RUNS {
        shell(&dir(run), run.prepare)?;
        // The first run of all finds its files and libraries, and its place on the disk, as none after it does.
        shell(&dir(run), run.before)?;
        shell(&dir(run), &script(run.command))?;
    }
    let ways = |row: usize| {
        let strace = RUNS.get(row).is_some_and(|run| run.strace).then_some(Way::Strace);
        [Way::Alone, Way::Traced, Way::Bytes, Way::Lost, Way::Summed].into_iter().chain(strace).collect()
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
        let timed = script(&TIMED.replace("COMMAND", run.command));
        let line = ["bash", "-c", &timed];
        let mut command = match way {
            Way::Alone => Command::new("env"),
            Way::Traced => bench.recording(&["--"]),
            Way::Summed => bench.recording(&["--aggregate", "--"]),
            _ => Command::new("strace"),
        };
        if way == Way::Strace {
            command.args(["-f", "-o", "/dev/null"]);
        }
        said(command.args(line).current_dir(dir(run)), "took")
    })?;
    let rows: Vec<Vec<String>> = RUNS
        .iter()
        .enumerate()
        .map(|(row, run)| {
            let times = COLUMNS.map(|(way, _)| {
                let (ns, ratio) = turns.against(row, way, Way::Alone);
                if turns.has(row, way) { format!("{:+.0} ({ratio:.3})", ns / 1e6) } else { String::new() }
            });
            let alone = format!("{:.0}", turns.median(row, Way::Alone) / 1e6);
            let rest =
                [format!("{:.1}", turns.median(row, Way::Bytes)), format!("{:.0}", turns.median(row, Way::Lost))];
            [run.what.to_owned(), alone].into_iter().chain(times).chain(rest).collect()
        })
        .collect();
    let heads: Vec<&str> = ["run", "untraced"]
        .into_iter()
        .chain(COLUMNS.map(|(_, name)| name))
        .chain(["bytes per call on disk", "lost"])
        .collect();
    let title = "Added to a whole run, all layers of the default, in ms, and in brackets the ratio to the untraced run; medians. Files are on a disk in memory but where `--dir` is said";
    Ok(table(title, &heads, &rows))
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
    fn the_time_is_said_without_the_output_of_the_command() {
        let line = TIMED.replace("COMMAND", "echo took 5").replace("command.out", "/dev/null");
        let out = Command::new("bash").args(["-c", &line]).output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        let took = super::super::number(&said, "took").unwrap();
        assert!(said.lines().count() == 1 && took > 5.0 && took < 60e9, "{said}");
    }
}
