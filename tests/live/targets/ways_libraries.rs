//! Every way a library gets into a process: loaded late, twice, replaced, deleted, rewritten, or linked into the program.

use crate::common::live::{self, Data, Running};
use crate::common::programs;
use crate::common::ways::{self, Attached, Counts};
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::Layer;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The library that the system's programs use.
fn system_library() -> PathBuf {
    let out = Command::new("ldconfig").arg("-p").output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let line = text.lines().find(|l| l.trim_start().starts_with("libhdf5_openmpi.so.")).unwrap();
    PathBuf::from(line.rsplit(" => ").next().unwrap())
}

/// The files that `late_h5` makes are created and closed as often.
fn creates_and_closes(data: &Data, dir: &Path, files: usize) {
    let counts = Counts::of(data);
    for n in 0..files {
        let path = dir.join(format!("{n}.h5"));
        for op in ["H5Fcreate", "H5Fclose"] {
            assert_eq!(counts.get(op, &path), 1, "{op} of {}", path.display());
        }
    }
}

#[test]
fn a_launched_program_that_loads_a_library_loses_no_call() {
    let work = live::scratch();
    // A file that no tracer has seen, so that it is classified anew.
    let library = work.path().join("libhdf5.so");
    fs::copy(ways::wheel_library("h5py.libs"), &library).unwrap();
    let mut command = vec![PathBuf::from("env"), library_path("h5py.libs"), programs::build("late_h5")];
    command.extend([library.clone(), work.path().into(), "20".into()]);
    let data = live::trace(work.path(), &[], &command).data().lossless();
    creates_and_closes(&data, work.path(), 20);
    let targets: BTreeSet<&str> =
        data.coverage.iter().filter(|c| c.layer == Layer::Hdf5).map(|c| c.target.as_str()).collect();
    assert_eq!(targets, [library.to_str().unwrap()].into());
}

/// The files that a run has left for the next ones as those that have nothing to probe, by inode.
fn remembered(cache: &Path) -> BTreeSet<u64> {
    let text = fs::read_to_string(cache.join("nothing-to-probe.json")).unwrap();
    let files: Value = serde_json::from_str(text.split_once('\n').unwrap().1).unwrap();
    files.as_array().unwrap().iter().map(|file| file["ino"].as_u64().unwrap()).collect()
}

#[test]
fn a_library_that_is_written_anew_after_a_run_found_nothing_in_it_is_traced() {
    let work = live::scratch();
    let (library, cache) = (work.path().join("library.so"), work.path().join("cache"));
    fs::copy("/lib/x86_64-linux-gnu/libm.so.6", &library).unwrap();
    let (inode, written) = {
        let metadata = fs::metadata(&library).unwrap();
        (metadata.ino(), metadata.modified().unwrap())
    };
    // What was changed just now is not remembered.
    std::thread::sleep(Duration::from_secs(3));
    let run = |name: &str, command: &[PathBuf]| {
        let dir = work.path().join(name);
        fs::create_dir(&dir).unwrap();
        let data = live::trace_by(live::tracer_with_cache(&cache), &dir, &[], command).data().lossless();
        let attached = data.coverage.iter().filter(|c| (c.layer, c.status) == (Layer::Hdf5, "attached"));
        let attached: BTreeSet<String> = attached.map(|c| format!("{} {}", c.target, c.symbol)).collect();
        (data, attached)
    };
    let maps = format!("import ctypes; ctypes.CDLL({:?})", library.to_str().unwrap());
    let (_, attached) = run("nothing", &[ways::python(), "-c".into(), maps.into()]);
    assert!(attached.is_empty() && remembered(&cache).contains(&inode), "{attached:?}");

    // The same inode, and no later by its own account.
    fs::write(&library, fs::read(ways::wheel_library("h5py.libs")).unwrap()).unwrap();
    fs::File::options().write(true).open(&library).unwrap().set_modified(written).unwrap();
    assert_eq!(fs::metadata(&library).unwrap().ino(), inode);
    let mut verdicts = Vec::new();
    for name in ["second", "third"] {
        let dir = work.path().join(format!("{name}-files"));
        fs::create_dir(&dir).unwrap();
        let mut command = vec![PathBuf::from("env"), library_path("h5py.libs"), programs::build("late_h5")];
        command.extend([library.clone(), dir.clone(), "20".into()]);
        let (data, attached) = run(name, &command);
        creates_and_closes(&data, &dir, 20);
        verdicts.push(attached);
    }
    assert!(verdicts[0].iter().any(|verdict| verdict.ends_with(" H5Fcreate")), "{verdicts:?}");
    assert_eq!(verdicts[0], verdicts[1]);
}

/// `LD_LIBRARY_PATH` with what the library of a package needs itself.
fn library_path(package: &str) -> PathBuf {
    format!("LD_LIBRARY_PATH={}", ways::wheel_library(package).parent().unwrap().display()).into()
}

/// The calls of `files` files of which the first ones may be missing, because `not_held` has them.
fn few_missing(data: &Data, dir: &Path, files: usize) {
    let counts = Counts::of(data);
    let seen = (0..files).filter(|n| counts.get("H5Fcreate", &dir.join(format!("{n}.h5"))) == 1);
    let seen: Vec<usize> = seen.collect();
    assert!(!seen.is_empty(), "nothing was seen");
    // From the first one on all are there.
    let from = seen[0];
    assert_eq!(seen, (from..files).collect::<Vec<_>>());
    for n in from..files {
        assert_eq!(counts.get("H5Fclose", &dir.join(format!("{n}.h5"))), 1);
    }
    // The library brings another one along, which is as late.
    assert!(data.losses.iter().all(|l| (l.place, l.count) == ("not_held", 1)), "{:?}", data.losses);
    let layers: BTreeSet<_> = data.losses.iter().filter_map(|l| l.layer).collect();
    assert_eq!(layers, [Layer::Hdf5, Layer::Mpiio, Layer::Mpi].into());
    // What the kernel sees is whole from the beginning.
    for n in 0..files {
        let path = dir.join(format!("{n}.h5"));
        assert!(counts.get("openat", &path) > 0 && counts.get("close", &path) > 0, "{n}");
    }
}

#[test]
fn a_library_loaded_after_the_attach_is_traced_within_moments() {
    const FILES: usize = 500;
    let work = live::scratch();
    fs::write(work.path().join("wait"), "").unwrap();
    let mut command = Command::new(programs::build("late_h5"));
    let mut program = Running::spawn(command.arg(system_library()).arg(work.path()).arg(FILES.to_string()));
    let tracer = Attached::to(work.path(), &[], ways::waits(work.path()));
    ways::go(work.path());
    assert!(program.wait().success());
    few_missing(&tracer.data(), work.path(), FILES);
}

#[test]
fn an_extension_module_imported_after_the_attach_is_traced() {
    const WRITES: usize = 500;
    let work = live::scratch();
    let mut command = Command::new(ways::python());
    command.arg(ways::script("late_import.py")).arg(work.path()).arg(WRITES.to_string());
    let mut program = Running::spawn(&mut command);
    let tracer = Attached::to(work.path(), &[], ways::waits(work.path()));
    ways::go(work.path());
    assert!(program.wait().success());
    let data = tracer.data();
    let path = work.path().join("late.h5");
    let counts = Counts::of(&data);
    // The library is mapped long before Python has read the modules around it.
    for (op, calls) in [("H5Fcreate", 1), ("H5Dcreate2", 1), ("H5Dwrite", WRITES)] {
        assert_eq!(counts.get(op, &path), calls, "{op}");
    }
    let losses: Vec<_> = data.losses.iter().map(|l| (l.layer, l.place, l.count)).collect();
    assert_eq!(losses, [(Some(Layer::Hdf5), "not_held", 1)]);
}

/// How many links of user probes does a tracer hold? Counted in the kernel's description of its descriptors.
fn links(tracer: u32) -> usize {
    let entries = fs::read_dir(format!("/proc/{tracer}/fdinfo")).into_iter().flatten().flatten();
    let infos = entries.filter_map(|e| fs::read_to_string(e.path()).ok());
    infos.filter(|info| info.lines().any(|l| l.starts_with("link_type:") && l.contains("uprobe"))).count()
}

#[test]
fn a_process_that_ends_while_its_libraries_are_attached_to_keeps_its_calls() {
    let work = live::scratch();
    // So many libraries that the first probes are there long before the last ones.
    let source = "import h5py, netCDF4, os, pathlib, sys, time
there = pathlib.Path(sys.argv[1])
(there / 'pid').write_text(str(os.getpid()))
while not (there / 'go').exists(): time.sleep(0.01)
(there / 'last').write_text('written')";
    let mut program = Running::spawn(Command::new(ways::python()).args(["-c", source]).arg(work.path()));
    let pid = ways::waits(work.path());
    let dataset = work.path().join("run.iotrace");
    let mut command = live::tracer();
    let mut guard = Running::spawn(command.arg("-o").arg(&dataset).args(["-p", &pid.to_string()]));
    let tracer = live::child_of(guard.pid());
    // The first link may be one that only tries what the kernel allows.
    live::until("the first probes", || links(tracer) > 1);
    live::send(tracer, Signal::SIGSTOP);
    ways::go(work.path());
    assert!(program.wait().success());
    live::send(tracer, Signal::SIGCONT);
    assert!(guard.wait().success());
    let data = Data::read(&dataset).lossless();
    let counts = Counts::of(&data);
    for op in ["openat", "write", "close"] {
        assert_eq!(counts.get(op, &work.path().join("last")), 1, "{op}");
    }
}

#[test]
fn two_copies_of_a_library_in_one_process() {
    let work = live::scratch();
    let command = [ways::python(), ways::script("two_hdf5.py"), work.path().into()];
    let traced = live::trace(work.path(), &[], &command);
    let truth: Value = serde_json::from_str(traced.stdout.lines().next().unwrap()).unwrap();
    let data = traced.data().lossless();
    let counts = Counts::of(&data);
    for (file, calls) in truth.as_object().unwrap() {
        for op in ["H5Dwrite", "H5Dread"] {
            let seen = counts.get(op, &work.path().join(file));
            assert_eq!(Some(seen as u64), calls[op].as_u64(), "{op} of {file}");
        }
        let opened = ["H5Fcreate", "H5Fopen"].map(|op| counts.get(op, &work.path().join(file)));
        assert_eq!(opened, [1, 1], "{file}");
    }
    let attached = data.coverage.iter().filter(|c| (c.layer, c.status) == (Layer::Hdf5, "attached"));
    let targets: BTreeSet<PathBuf> = attached.map(|c| PathBuf::from(&c.target)).collect();
    assert_eq!(targets, ["h5py.libs", "netcdf4.libs"].map(ways::wheel_library).into());
}

/// `looper`, linked with a C library of its own that is `DIR/libc.so.6`.
fn looper_with_own_libc(dir: &Path, seconds: &str) -> Command {
    let loader = "/lib64/ld-linux-x86-64.so.2";
    let mut command = Command::new(loader);
    command.arg("--library-path").arg(dir).arg(programs::build("looper"));
    command.args([dir, &dir.join("truth")]).arg(seconds);
    command
}

/// The C library, on an inode of its own.
fn own_libc(path: &Path) {
    let new = path.with_extension("new");
    fs::copy("/lib/x86_64-linux-gnu/libc.so.6", &new).unwrap();
    fs::rename(new, path).unwrap();
}

#[test]
fn a_library_that_was_deleted_or_replaced_is_found_in_the_process() {
    for replaced in [false, true] {
        let work = live::scratch();
        let dir = work.path();
        let libc = dir.join("libc.so.6");
        own_libc(&libc);
        let mut looper = Running::spawn(looper_with_own_libc(dir, "8").stdout(Stdio::null()));
        live::until("looper", || live::truth(&dir.join("truth")).pwrites > 5);
        if replaced {
            own_libc(&libc);
        } else {
            fs::remove_file(&libc).unwrap();
        }
        let tracer = Attached::to(dir, &[], looper.pid());
        let before = live::truth(&dir.join("truth"));
        assert!(looper.wait().success());
        let after = live::truth(&dir.join("truth"));
        let data = tracer.data().lossless();
        // One call may have been under way when the truth was read.
        let calls = data.calls("fwrite").count() as i64;
        let least = after.fwrites - before.fwrites;
        assert!(least > 10 && calls >= least - 1, "{calls} of {least}, replaced: {replaced}");
        let attached = data.coverage.iter().filter(|c| (c.layer, c.status) == (Layer::Stdio, "attached"));
        assert_eq!(attached.map(|c| c.target.as_str()).collect::<BTreeSet<_>>(), [libc.to_str().unwrap()].into());
    }
}

#[test]
fn after_an_upgrade_new_processes_are_traced_in_the_new_file() {
    let work = live::scratch();
    let dir = work.path().join("lib");
    fs::create_dir(&dir).unwrap();
    let libc = dir.join("libc.so.6");
    own_libc(&libc);
    // Replaced as a package manager does it, and written over as `cp` does it.
    let looper = format!("{:?}", looper_with_own_libc(&dir, "0.2")).replace('"', "'");
    let script = format!(
        "set -e; cd {0}; {looper}; cat truth > 1; cp libc.so.6 new; mv new libc.so.6; {looper}; cat truth > 2; \
         cat /lib/x86_64-linux-gnu/libc.so.6 > libc.so.6; {looper}; cat truth > 3",
        dir.display()
    );
    let data = live::trace(work.path(), &[], &["sh", "-c", &script]).data().lossless();
    for n in ["1", "2", "3"] {
        let truth = live::truth(&dir.join(n));
        let calls = data.calls("fwrite").filter(|s| s.pid == truth.pid as i32).count() as i64;
        assert!(truth.fwrites > 3);
        assert_eq!(calls, truth.fwrites, "run {n}");
    }
}

/// `stdio_mix`, linked in some way: its truth and what was recorded.
fn stdio_mix(work: &Path, program: &str) -> (String, Value, Data) {
    let dir = work.join("mix");
    fs::create_dir(&dir).unwrap();
    let traced = live::trace(work, &[], &[programs::build(program).as_path(), &dir]);
    let truth = serde_json::from_str(traced.stdout.lines().next().unwrap()).unwrap();
    (traced.report.clone(), truth, traced.data().lossless())
}

#[test]
fn the_c_library_in_a_static_program_is_traced() {
    let work = live::scratch();
    let (_, truth, data) = stdio_mix(work.path(), "stdio_static");
    let calls: i64 = truth["calls"].as_object().unwrap().values().map(|n| n.as_i64().unwrap()).sum();
    assert_eq!(data.layer(Layer::Stdio).filter(|s| s.layer_top).count() as i64, calls);
    let moved = |kind| data.layer(Layer::Stdio).filter(|s| s.kind == kind).filter_map(|s| s.bytes).sum::<i64>();
    assert_eq!(Some(moved(iotrace_bpf::vocabulary::Kind::Read)), truth["read"].as_i64());
    assert_eq!(Some(moved(iotrace_bpf::vocabulary::Kind::Write)), truth["written"].as_i64());
}

#[test]
fn a_static_program_without_symbols_is_a_gap_in_coverage() {
    let work = live::scratch();
    let program = programs::build("stdio_stripped");
    let (report, _, data) = stdio_mix(work.path(), "stdio_stripped");
    assert_eq!(data.layer(Layer::Stdio).count(), 0);
    let verdict = data.coverage.iter().find(|c| c.target == program.to_str().unwrap()).unwrap();
    assert_eq!((verdict.layer, verdict.status, verdict.symbol.as_str()), (Layer::App, "refused", ""));
    let reason = verdict.reason.as_deref().unwrap();
    assert!(reason.contains("static program without symbols"), "{reason}");
    assert!(report.contains(reason) && report.contains(&format!("not seen into {}", program.display())), "{report}");
    // The kernel sees as much as of the one with symbols.
    let dir = work.path().join("mix");
    ways::as_strace_sees(&data, work.path(), &dir, |dir| vec![program.clone(), dir.into()]);
}

#[test]
fn a_c_library_that_is_the_programs_loader_is_traced() {
    let work = live::scratch();
    let cache = work.path().join("cache");
    let program = programs::build("soak_musl");
    // A program that was changed just now would not be remembered.
    std::thread::sleep(Duration::from_secs(3));
    // Twice in a run, and once more in a run after it: the program itself has nothing to probe.
    for (run, starts) in [("first", 2), ("second", 1)] {
        let dir = work.path().join(run);
        fs::create_dir(&dir).unwrap();
        let start = |n| format!(r#"mkdir "$1/{n}" && "$0" "$1/{n}" 1 30"#);
        let script = (0..starts).map(start).collect::<Vec<_>>().join(" && ");
        let command = ["sh".as_ref(), "-c".as_ref(), script.as_ref(), program.as_os_str(), dir.as_os_str()];
        let traced = live::trace_by(live::tracer_with_cache(&cache), &dir, &[], &command);
        let truths = traced.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let truths: Vec<u64> = truths.filter_map(|truth| truth["calls"]["fwrite"].as_u64()).collect();
        assert_eq!(truths.len(), starts, "{}", traced.stdout);
        let data = traced.data().lossless();
        let own = |s: &&Span| data.processes[&s.process_ix].exe.as_ref().is_some_and(|exe| exe.ends_with("/soak_musl"));
        let calls = |op| data.calls(op).filter(own).count();
        assert_eq!(calls("fwrite") as u64, truths.iter().sum::<u64>(), "{run}");
        // Each of the rounds and of the children opens two streams.
        assert_eq!(calls("fopen"), calls("fclose"), "{run}");
    }
}

/// No mapping that can be executed is made: what no question names is found when the process is looked through as a whole.
#[test]
fn a_mapping_that_becomes_executable_later_is_traced() {
    let work = live::scratch();
    let library = work.path().join("libstore.so");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-shared", "-fPIC", "-fcf-protection=none", "-o"]).arg(&library).arg(sources.join("store.c"));
    assert!(cc.status().unwrap().success());
    // As linkers lay it out, the text is in the file where it is in memory.
    let symbols = Command::new("nm").arg("-D").arg(&library).output().unwrap().stdout;
    let symbols = String::from_utf8(symbols).unwrap();
    let line = symbols.lines().find(|l| l.ends_with(" store_version")).unwrap();
    let offset = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
    let catalog = work.path().join("store.toml");
    let header = sources.join("store.h");
    let mut generate = live::tracer();
    generate.args(["probes", "generate", "--layer", "netcdf", "--header"]).arg(header).arg(&library);
    assert!(generate.arg("-o").arg(&catalog).status().unwrap().success());

    let options = ["--probes", catalog.to_str().unwrap()];
    let (program, offset) = (programs::build("late_exec"), offset.to_string());
    let command = [program.as_path(), &library, offset.as_ref(), "80".as_ref()];
    let data = live::trace(work.path(), &options, &command).data();
    let calls: Vec<_> = data.calls("store_version").collect();
    assert!((1..=80).contains(&calls.len()), "{} of 80 calls", calls.len());
    assert!(calls.iter().all(|call| call.layer == Layer::Netcdf), "{:?}", calls[0]);
}
