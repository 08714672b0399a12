//! What a trace has of a program that decides which settings are worth a try.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use nix::sys::stat::{major, minor};

use crate::HashMap;
use crate::catalog::{OMPIO, ROMIO};
use crate::export::report::{Report, Source};
use crate::replay_code::is_system;
use crate::rows::{File, Process};
use crate::vocabulary::{Kind, Layer};

/// So many files are dropped from the page cache between runs, and looked at for their kind.
const FILES: usize = 10_000;
/// Programs that run a script: that is what users take for the program.
const INTERPRETERS: &[&str] =
    &["python", "perl", "ruby", "Rscript", "R", "julia", "bash", "sh", "dash", "java", "node"];
/// Variables whose values decide.
const VARIABLES: &[&str] = &["PYTHONUNBUFFERED", "GFORTRAN_UNBUFFERED_ALL", "PNETCDF_HINTS"];

/// A program as one of its traces shows it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProgramProfile {
    /// What was found, with the seconds that fixing it would save.
    pub rules: Vec<(&'static str, Option<(f64, f64)>)>,
    pub ranks: usize,
    /// Which implementations of MPI-IO serve it.
    pub romio: bool,
    pub ompio: bool,
    pub pnetcdf: bool,
    /// It calls HDF5, `NetCDF` or `PnetCDF`.
    pub libraries: bool,
    pub fortran: bool,
    pub lustre: bool,
    /// Devices of files that findings name, by number, with the KiB that the kernel reads ahead of each now.
    pub devices: BTreeMap<String, u64>,
    pub variables: BTreeMap<String, String>,
    /// The program of the ranks, else that of the process with most time in system calls; of an interpreter the script.
    pub program: Option<PathBuf>,
    /// Extensions of its data files, without dots.
    pub types: BTreeSet<String>,
    /// Data files that it read or wrote, as it names them.
    pub used: Vec<String>,
    /// Those that it read, as this node names them.
    pub read: Vec<PathBuf>,
}

impl ProgramProfile {
    pub fn found(&self, rule: &str) -> bool {
        self.rules.iter().any(|(found, _)| *found == rule)
    }

    /// What fixing would save, as the findings predict it.
    pub fn gain(&self, rules: &[&str]) -> Option<(f64, f64)> {
        self.rules.iter().find(|(rule, gain)| rules.contains(rule) && gain.is_some()).and_then(|(_, gain)| *gain)
    }
}

/// What a dataset and its report tell.
///
/// # Errors
/// When it cannot be read.
pub fn of(source: &mut dyn Source, report: &Report) -> Result<ProgramProfile> {
    let gain = |low: Option<f64>, high: Option<f64>| low.zip(high);
    let findings = &report.findings.findings;
    let called = |layer: Layer| report.layers.iter().any(|row| row.layer == layer.name() && row.calls > 0);
    let mut profile = ProgramProfile {
        rules: findings.iter().map(|found| (found.rule, gain(found.gain_low_s, found.gain_high_s))).collect(),
        ranks: report.header.ranks,
        pnetcdf: called(Layer::Pnetcdf),
        libraries: [Layer::Pnetcdf, Layer::Netcdf, Layer::Hdf5].into_iter().any(called),
        ..ProgramProfile::default()
    };
    let values = VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
    profile.variables = values.collect();
    source.handles(&mut |handle| {
        profile.romio |= handle.implementation == Some(ROMIO);
        profile.ompio |= handle.implementation == Some(OMPIO);
        Ok(())
    })?;
    let named: BTreeSet<&String> = findings.iter().flat_map(|finding| &finding.evidence.files).collect();
    let mut devices = BTreeSet::new();
    let mut files = BTreeMap::<i32, File>::new();
    source.files(&mut |file| {
        profile.fortran |= base(file.path.as_deref()).starts_with("libgfortran.so");
        profile.lustre |= file.fstype.as_deref() == Some("lustre");
        if file.path.as_ref().is_some_and(|path| named.contains(path)) {
            devices.insert(file.dev);
        }
        let own = file.role == "data" && file.path.as_deref().is_some_and(|path| !is_system(path));
        if own && files.len() < FILES {
            files.insert(file.file_id, file.clone());
        }
        Ok(())
    })?;
    profile.devices = devices.into_iter().filter_map(read_ahead).collect();
    let calls = Calls::read(source, &files)?;
    profile.program = program(source, &calls.time)?;
    calls.add_to(&mut profile, &files);
    Ok(profile)
}

fn base(path: Option<&str>) -> &str {
    path.and_then(|path| path.rsplit('/').next()).unwrap_or_default()
}

/// What one pass over the calls has.
#[derive(Default)]
struct Calls {
    /// Of each process, in system calls.
    time: HashMap<i32, i64>,
    /// Files that data was moved of, and those that were read.
    used: BTreeSet<i32>,
    read: BTreeSet<i32>,
}

impl Calls {
    fn read(source: &mut dyn Source, files: &BTreeMap<i32, File>) -> Result<Self> {
        let mut calls = Self::default();
        source.spans(&mut |span| {
            if span.layer != Layer::Syscall || !span.layer_top {
                return Ok(());
            }
            let sum = calls.time.entry(span.process_ix).or_default();
            *sum = sum.saturating_add(span.dur_ns);
            let moves = span.bytes.is_some_and(|bytes| bytes > 0);
            if let Some(id) = span.file_id.filter(|id| moves && files.contains_key(id)) {
                calls.used.insert(id);
                if span.kind == Kind::Read {
                    calls.read.insert(id);
                }
            }
            Ok(())
        })?;
        Ok(calls)
    }

    /// Its files, but for the program, which an interpreter reads.
    fn add_to(&self, profile: &mut ProgramProfile, files: &BTreeMap<i32, File>) {
        let program = profile.program.clone();
        let here = |file: &File| file.host_path.as_ref().or(file.path.as_ref()).map(PathBuf::from);
        let of = |ids: &BTreeSet<i32>| {
            let all: Vec<&File> = ids.iter().filter_map(|id| files.get(id)).collect();
            all.into_iter().filter(|file| here(file) != program).collect::<Vec<_>>()
        };
        let extension = |file: &&File| Some(here(file)?.extension()?.to_str()?.to_lowercase());
        let used = of(&self.used);
        profile.types = used.iter().filter_map(extension).collect();
        profile.used = used.iter().filter_map(|file| file.path.clone()).collect();
        profile.read = of(&self.read).into_iter().filter_map(here).collect();
    }
}

/// The device that reads ahead for a directory.
pub fn device_of(dir: &Path) -> BTreeMap<String, u64> {
    let dev = std::fs::metadata(dir).map(|meta| meta.dev());
    let numbers = dev.map(|dev| (major(dev) << 20 | minor(dev)) as i64);
    numbers.ok().and_then(read_ahead).into_iter().collect()
}

/// The number of the device that reads ahead for a file system, and how much: that of the whole disk for a partition.
fn read_ahead(dev: i64) -> Option<(String, u64)> {
    let number = format!("{}:{}", dev >> 20, dev & 0xf_ffff);
    let disk = std::fs::read_to_string(format!("/sys/dev/block/{number}/../dev")).map(|disk| disk.trim().to_owned());
    let numbers = [Some(number), disk.ok()];
    numbers.into_iter().flatten().find_map(|number| {
        let kib = std::fs::read_to_string(ahead_file(&number)).ok()?.trim().parse().ok()?;
        Some((number, kib))
    })
}

/// The setting of a device, of NFS and FUSE as well (`Documentation/ABI/testing/sysfs-class-bdi`).
pub fn ahead_file(number: &str) -> PathBuf {
    Path::new("/sys/class/bdi").join(number).join("read_ahead_kb")
}

fn program(source: &mut dyn Source, time: &HashMap<i32, i64>) -> Result<Option<PathBuf>> {
    let mut best: Option<((bool, i64), Process)> = None;
    source.processes(&mut |process| {
        let weight = (process.rank.is_some(), time.get(&process.process_ix).copied().unwrap_or(0));
        if best.as_ref().is_none_or(|(before, _)| weight > *before) {
            best = Some((weight, process.clone()));
        }
        Ok(())
    })?;
    Ok(best.and_then(|(_, process)| program_of(&process)))
}

fn program_of(process: &Process) -> Option<PathBuf> {
    let exe = process.exe.as_ref().map(PathBuf::from)?;
    let name = base(process.exe.as_deref());
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if !INTERPRETERS.contains(&name) {
        return Some(exe);
    }
    let script = process.cmdline.iter().skip(1).find(|word| !word.starts_with('-'));
    Some(script.and_then(|script| Path::new(script).canonicalize().ok()).unwrap_or(exe))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn process(exe: &str, cmdline: &[&str]) -> Process {
        Process {
            process_ix: 0,
            pid: 1,
            ppid: 0,
            start_ns: 0,
            end_ns: None,
            exe: Some(exe.to_owned()),
            cmdline: cmdline.iter().map(|word| (*word).to_owned()).collect(),
            uid: 0,
            user: None,
            cgroup: None,
            container: None,
            container_name: None,
            container_image: None,
            unit: None,
            rank: None,
            world_size: None,
            job_id: None,
            step_id: None,
            exit_code: None,
        }
    }

    #[test]
    fn the_program_of_an_interpreter_is_its_script() {
        let script = tempfile::NamedTempFile::with_suffix(".py").unwrap();
        let path = script.path().canonicalize().unwrap();
        let shown = path.to_str().unwrap();
        let of = |exe, cmdline: &[&str]| program_of(&process(exe, cmdline)).unwrap();
        assert_eq!(of("/usr/bin/python3.11", &["python3", "-u", shown, "data"]), path);
        assert_eq!(of("/home/a/sim", &["./sim", shown]), Path::new("/home/a/sim"));
        // A module, or a script that is gone.
        assert_eq!(of("/usr/bin/python3.11", &["python3", "-c", "pass"]), Path::new("/usr/bin/python3.11"));
    }

    #[test]
    fn a_partition_is_read_ahead_by_its_disk() {
        // No device at all.
        assert_eq!(device_of(Path::new("/proc")), BTreeMap::new());
        assert_eq!(ahead_file("8:0"), Path::new("/sys/class/bdi/8:0/read_ahead_kb"));
    }
}
