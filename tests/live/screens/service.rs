//! Running as a service: one dataset after the other without a gap, by the unit in dist/, and with no more capabilities
//! than it gives.

use crate::common::live::{self, Data, Running, datasets};
use crate::common::machine::group::Group;
use crate::common::tools::prometheus::get;
use crate::common::{programs, sql};
use crate::screens::metrics::address;
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::{Kind, Layer, flag};
use nix::sys::signal::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const UNIT: &str = "dist/iotrace-bpf.service";
/// Users that nothing else belongs to: the tracer's, and that of what it traces.
const TRACER: u32 = 64_321;
const OTHER: u32 = 64_322;
/// System calls that the kernel has a process make for probes in it, and takes past filters since Linux 6.14. Before that the
/// tracer has no return probes of its own behind a filter: see `loader::calibrate`.
const FOR_PROBES: [&str; 2] = ["uretprobe", "uprobe"];

/// What the queries of docs/service.md give over the datasets in a directory, in `DuckDB`: of each the sum of a column.
fn documented_sums(dir: &Path, columns: [&str; 2]) -> [i64; 2] {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/service.md")).unwrap();
    let queries: Vec<&str> = text.split("```sql\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(queries.len(), columns.len());
    [0, 1].map(|at| {
        // Without the limit, which would leave rows out.
        let query = queries[at].trim_end().trim_end_matches(';').trim_end_matches("LIMIT 20");
        let script = "import duckdb, sys; print(duckdb.sql(f'SELECT sum({sys.argv[2]})::BIGINT FROM ({sys.argv[1]}\\n)').fetchall()[0][0])";
        let mut python = Command::new(sql::python());
        let out = python.args(["-c", script, query, columns[at]]).current_dir(dir).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap().trim().parse().unwrap()
    })
}

#[test]
fn every_call_is_in_one_of_the_datasets() {
    const ROUNDS: i64 = 8;
    const CALLS: i64 = 20_000;
    let work = live::scratch();
    let from = work.path().join("from");
    fs::File::create(&from).unwrap().set_len(CALLS as u64).unwrap();
    let all = work.path().join("all");
    // One descriptor is open all the time; the processes come and go.
    let script = format!(
        "exec 9>\"$0/log\"; for i in $(seq {ROUNDS}); do dd if=\"$0/from\" of=\"$0/to\" bs=1 count={CALLS} \
         conv=notrunc,fsync status=none; echo round >&9; sleep 0.7; done"
    );
    let mut tracer = live::tracer();
    tracer.args(["--layers", "syscall,block", "--ring-size", "256M", "--rotate-time", "1s", "-o"]).arg(&all);
    let out = tracer.args(["--", "sh", "-c", &script]).arg(work.path()).output().unwrap();
    let text_out = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{text_out}");
    assert!(text_out.ends_with(&format!("iotrace-bpf: datasets in {}\n", all.display())), "{text_out}");

    let dirs = datasets(&all);
    assert!(dirs.len() >= 4, "{dirs:?}");
    let mut seen: BTreeMap<(&str, PathBuf), i64> = BTreeMap::new();
    let (mut ids, mut requests, mut spread) = (BTreeSet::new(), BTreeSet::new(), 0);
    let (mut outermost, mut written) = (0, 0);
    for dir in &dirs {
        let data = Data::read(dir).lossless();
        data.resolves();
        sql::compare(dir);
        for span in &data.spans {
            assert!(ids.insert(span.span_id), "twice: {span:?}");
            outermost += i64::from(span.layer_top);
            if span.kind == Kind::Write && span.layer_top && span.file_id.is_some() {
                written += span.bytes.unwrap_or(0);
            }
            if let Some(path) = data.path(span) {
                *seen.entry((span.op, path.to_owned())).or_default() += 1;
            }
        }
        assert!(data.block.iter().all(|b| requests.insert(b.req_id)), "a request is there twice");
        spread += i64::from(data.calls("write").count() > 0);
    }
    // What the program did, by its own arguments.
    let on = |op: &'static str, name: &str| seen.get(&(op, work.path().join(name))).copied().unwrap_or(0);
    assert_eq!((on("read", "from"), on("write", "to")), (ROUNDS * CALLS, ROUNDS * CALLS));
    assert_eq!((on("fsync", "to"), on("write", "log")), (ROUNDS, ROUNDS));
    assert!(spread > 2, "all is in {spread} of {} datasets", dirs.len());
    // The same of all together, without this program.
    assert_eq!(documented_sums(&all, ["calls", "bytes"]), [outermost, written]);
    assert!(written >= ROUNDS * CALLS);

    // So does the report on the directory.
    let report = Command::new(env!("CARGO_BIN_EXE_iotrace-bpf")).args(["report", "--json"]).arg(&all).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    let layers = report["layers"].as_array().unwrap();
    let syscalls = layers.iter().find(|layer| layer["layer"] == "syscall").unwrap();
    assert_eq!(syscalls["calls"], outermost);
}

/// The value of a line of the unit.
fn unit(key: &str) -> String {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(UNIT)).unwrap();
    let line = text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix('='));
    line.unwrap_or_else(|| panic!("no {key}")).to_owned()
}

/// `setpriv` for the tracer's user with the capabilities of the unit, and these.
fn as_service(more: &[&str]) -> Vec<String> {
    assert_eq!(unit("AmbientCapabilities"), unit("CapabilityBoundingSet"));
    let given = unit("AmbientCapabilities");
    let names = given.split(' ').chain(more.iter().copied()).map(|c| c.trim_start_matches("CAP_").to_lowercase());
    let set = std::iter::once("-all".to_owned()).chain(names.map(|c| format!("+{c}"))).collect::<Vec<_>>().join(",");
    let id = TRACER.to_string();
    let words = ["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups", "--no-new-privs", "--bounding-set", &set];
    words.into_iter().chain(["--inh-caps", &set, "--ambient-caps", &set]).map(str::to_owned).collect()
}

/// `filtered`, for what the unit's filter of system calls lets through. What the kernel has a process do for return probes and
/// for probes (`uretprobe`, `uprobe`) is not in it: older systemd has no such names.
fn filtered(work: &Path) -> Vec<String> {
    let sets = Command::new("systemd-analyze").args(["syscall-filter", "--no-pager"]).output().unwrap();
    let allowed = unit("SystemCallFilter");
    let mut allowed = calls_of(&String::from_utf8(sets.stdout).unwrap(), allowed.split(' '));
    allowed.retain(|name| !FOR_PROBES.contains(&name.as_str()));
    assert_eq!((unit("SystemCallErrorNumber"), unit("SystemCallArchitectures")), ("EPERM".into(), "native".into()));
    let mut cc = Command::new("cc");
    let defined = cc.args(["-E", "-dM", "-include", "sys/syscall.h", "-x", "c", "/dev/null"]).output().unwrap();
    let defined = String::from_utf8(defined.stdout).unwrap();
    let numbers = defined.lines().filter_map(|line| line.strip_prefix("#define __NR_")?.split_once(' '));
    // As systemd does, without those that this machine does not have.
    let numbers: Vec<&str> = numbers.filter(|(name, _)| allowed.contains(*name)).map(|(_, number)| number).collect();
    assert!(numbers.len() > 200, "{numbers:?}");
    vec![installed(work, &programs::build("filtered")).display().to_string(), numbers.join(",")]
}

/// A directory for the tracer's user, which is a part of one that everybody may look into.
fn place(work: &Path, name: &str, owner: u32) -> PathBuf {
    fs::set_permissions(work, PermissionsExt::from_mode(0o755)).unwrap();
    let dir = work.join(name);
    fs::create_dir(&dir).unwrap();
    chown(&dir, Some(owner), Some(owner)).unwrap();
    dir
}

/// A program where everybody may execute it.
fn installed(work: &Path, program: &Path) -> PathBuf {
    let copy = work.join(program.file_name().unwrap());
    fs::copy(program, &copy).unwrap();
    fs::set_permissions(&copy, PermissionsExt::from_mode(0o755)).unwrap();
    copy
}

/// `looper` of another user than the tracer's; it is at work.
fn looper(work: &Path) -> (Running, PathBuf, PathBuf) {
    let dir = place(work, "theirs", OTHER);
    let truth = dir.join("truth");
    let id = OTHER.to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]).arg(installed(work, &programs::build("looper")));
    let running = Running::spawn(command.args([&dir, &truth]).arg("200"));
    live::until("looper", || live::truth(&truth).ready && live::truth(&truth).pwrites > 5);
    (running, dir, truth)
}

/// The numbers of the records that looper wrote with `pwrite`, in the order of time.
fn records(data: &Data, dir: &Path) -> Vec<i64> {
    let path = dir.join("looper.dat");
    let mut calls: Vec<&Span> = data.calls("pwrite64").filter(|s| data.path(s) == Some(&path)).collect();
    // The last one may be cut by the end of the trace.
    calls.retain(|s| s.flags & flag::UNFINISHED == 0);
    calls.sort_by_key(|s| s.start_ns);
    assert!(calls.iter().all(|s| (s.bytes, s.errno) == (Some(4096), 0)));
    calls.iter().map(|s| s.offset.unwrap() / 4096).collect()
}

fn none_is_missing(numbers: &[i64]) {
    assert!(numbers.len() > 10, "{numbers:?}");
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
}

/// No layer is refused anything, except what this kernel refuses root.
fn nothing_is_refused(data: &Data, as_root: &Data) {
    let refused = |data: &Data| -> BTreeSet<(String, String)> {
        let all = data.coverage.iter().filter(|c| c.status == "refused");
        all.map(|c| (c.layer.name().to_owned(), c.symbol.clone())).collect()
    };
    assert_eq!(refused(data), refused(as_root));
    let tiers = |data: &Data| -> BTreeSet<_> {
        data.coverage.iter().filter(|c| c.status == "attached").map(|c| (c.layer.name(), c.tier)).collect()
    };
    assert_eq!(tiers(data), tiers(as_root));
}

#[test]
fn a_process_of_another_user_is_traced_with_the_capabilities_of_the_unit() {
    let work = live::scratch();
    let (looper, dir, truth) = looper(work.path());
    let tracer = installed(work.path(), Path::new(env!("CARGO_BIN_EXE_iotrace-bpf")));
    let out = place(work.path(), "ours", TRACER);
    let pid = looper.pid().to_string();
    let trace = |prefix: &[String], output: &Path| {
        let mut command = Command::new("timeout");
        command.args(["--signal=KILL", "240"]).args(prefix).arg(&tracer).args(["-p", &pid, "--duration", "3s", "-o"]);
        let before = live::truth(&truth).pwrites;
        let ended = command.arg(output).output().unwrap();
        let text_out = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(0), "{text_out}");
        let data = Data::read(output).lossless();
        let numbers = records(&data, &dir);
        none_is_missing(&numbers);
        assert!(numbers[0] >= before && numbers[numbers.len() - 1] <= live::truth(&truth).pwrites);
        // What only /proc knows of another user's process: what it executes, and what it had open.
        let process = data.processes.values().find(|p| p.pid == looper.pid() as i32).unwrap();
        assert!(process.exe.as_deref().unwrap().ends_with("/looper"));
        assert_eq!(process.uid, OTHER as i32);
        // Its libraries, too.
        let text = dir.join("looper.txt");
        assert!(data.calls("fwrite").filter(|s| data.path(s) == Some(&text)).count() > 10);
        (data, text_out)
    };
    let (as_root, _) = trace(&[], &work.path().join("root.iotrace"));
    // `-p` stops no process, so that the unit does not need the right to make others go on.
    let (data, text_out) = trace(&as_service(&[]), &out.join("run.iotrace"));
    nothing_is_refused(&data, &as_root);
    assert!(!text_out.contains("without CAP_"), "{text_out}");
    // Nor does the filter of the unit stop anything, probes in libraries included.
    let behind = [as_service(&[]), filtered(work.path())].concat();
    let (data, text_out) = trace(&behind, &out.join("filtered.iotrace"));
    nothing_is_refused(&data, &as_root);
    assert!(!text_out.contains("without CAP_"), "{text_out}");
    // The tracer has measured probes in itself, return probes included, but where a filter would have ended it for them.
    let measured =
        |data: &Data| data.meta["calibration"].contains(" ns, ") && !data.meta["calibration"].contains("not ");
    let release = nix::sys::utsname::uname().unwrap().release().to_string_lossy().into_owned();
    let ended = ["6.11", "6.12", "6.13"].iter().any(|affected| release.starts_with(affected));
    assert_eq!((measured(&as_root), measured(&data)), (true, !ended), "{}", data.meta["calibration"]);
}

#[test]
fn a_command_is_traced_with_the_capabilities_of_the_unit_and_gets_none() {
    let work = live::scratch();
    let tracer = installed(work.path(), Path::new(env!("CARGO_BIN_EXE_iotrace-bpf")));
    let program = installed(work.path(), &programs::build("stdio_mix"));
    let out = place(work.path(), "ours", TRACER);
    let script = "cat /proc/self/status > \"$0/status\"; exec \"$1\" \"$0\"";
    let trace = |prefix: &[String], name: &str| {
        let mut command = Command::new("timeout");
        command.args(["--signal=KILL", "240"]).args(prefix).arg(&tracer).arg("-o").arg(out.join(name));
        let files = out.join(format!("{name}.files"));
        fs::create_dir(&files).unwrap();
        chown(&files, Some(TRACER), Some(TRACER)).unwrap();
        command.args(["--", "sh", "-c", script]).arg(&files).arg(&program);
        let ended = command.output().unwrap();
        let text_out = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(0), "{text_out}");
        let data = Data::read(&out.join(name)).lossless();
        // It was held while its libraries got probes: nothing of what it counts itself is missing.
        let truth: serde_json::Value =
            serde_json::from_slice(ended.stdout.split(|b| *b == b'\n').next().unwrap()).unwrap();
        let its =
            data.processes.values().find(|p| p.exe.as_deref().is_some_and(|exe| exe.ends_with("/stdio_mix"))).unwrap();
        let stdio: Vec<&Span> = data.layer(Layer::Stdio).filter(|s| s.process_ix == its.process_ix).collect();
        let calls = truth["calls"].as_object().unwrap().values().filter_map(serde_json::Value::as_i64).sum::<i64>();
        let moved = |kind| stdio.iter().filter(|s| s.kind == kind).filter_map(|s| s.bytes).sum::<i64>();
        let seen = [stdio.iter().filter(|s| s.layer_top).count() as i64, moved(Kind::Read), moved(Kind::Write)];
        assert_eq!(seen.map(Some), [Some(calls), truth["read"].as_i64(), truth["written"].as_i64()]);
        (data, text_out, fs::read_to_string(files.join("status")).unwrap())
    };
    let (as_root, ..) = trace(&[], "root.iotrace");
    let (data, text_out, status) = trace(&as_service(&["CAP_SYS_ADMIN"]), "run.iotrace");
    nothing_is_refused(&data, &as_root);
    assert!(!text_out.contains("without CAP_"), "{text_out}");
    let line = |key: &str| status.lines().find(|l| l.starts_with(key)).unwrap().split_whitespace().nth(1).unwrap();
    for set in ["CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(line(set), "0000000000000000", "{set}");
    }
    assert_eq!(line("Uid:"), TRACER.to_string());
}

/// Runs a command in a mount namespace of its own, where the tracer is installed as the unit has it, with this configuration.
fn installed_as_unit(work: &Path, config: &str) -> Command {
    let upper = |name: &str| {
        let dir = work.join(name);
        fs::create_dir_all(&dir).unwrap();
        fs::create_dir_all(work.join(format!("{name}.work"))).unwrap();
        dir
    };
    let (bin, etc) = (upper("bin"), upper("etc"));
    let tracer = bin.join("iotrace-bpf");
    if !tracer.exists() {
        fs::copy(env!("CARGO_BIN_EXE_iotrace-bpf"), &tracer).unwrap();
    }
    fs::write(etc.join("iotrace-bpf.toml"), config).unwrap();
    let over = |dir: &str, upper: &Path| {
        let upper = upper.display();
        format!("mount -t overlay overlay -o lowerdir={dir},upperdir={upper},workdir={upper}.work {dir} && ")
    };
    let script = over("/usr/local/bin", &bin) + &over("/etc", &etc) + "exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh"]);
    command
}

/// The example with another place, and changed more often.
fn config(output: &Path) -> String {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("dist/iotrace-bpf.toml")).unwrap();
    let changed = |l: &&str| l.starts_with("output ") || l.starts_with("rotate-time ");
    assert_eq!(text.lines().filter(changed).count(), 2);
    let rest: Vec<&str> = text.lines().filter(|l| !changed(l)).collect();
    format!("{}\noutput = '{}'\nrotate-time = '1s'\n", rest.join("\n"), output.display())
}

#[test]
fn the_unit_is_sound() {
    let work = live::scratch();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(UNIT);
    let run = |command: &mut Command| {
        let out = command.output().unwrap();
        let text_out =
            [out.stdout, out.stderr].map(|text_out| String::from_utf8_lossy(&text_out).into_owned()).concat();
        assert!(out.status.success(), "{text_out}");
        text_out
    };
    let text_out = run(installed_as_unit(work.path(), "").args(["systemd-analyze", "verify"]).arg(&path));
    assert_eq!(text_out, "");
    // Of 100: the less the better.
    let security = ["security", "--offline=true", "--threshold=35", "--no-pager"];
    run(Command::new("systemd-analyze").args(security).arg(&path));
    // Those of the tree, which is exported without capabilities.
    let hive = ["service", "timer"].map(|kind| path.with_file_name(format!("iotrace-bpf-hive.{kind}")));
    let verified = run(installed_as_unit(work.path(), "").args(["systemd-analyze", "verify"]).args(&hive));
    assert_eq!(verified, "");
    let security = ["security", "--offline=true", "--threshold=20", "--no-pager"];
    run(Command::new("systemd-analyze").args(security).arg(&hive[0]));

    // What the sandbox forbids the tracer does not do: its system calls are of the sets that are allowed, it makes no socket
    // but local ones, and no memory that is writable and executable.
    let log = work.path().join("strace");
    let (looper, ..) = looper(work.path());
    let mut strace = Command::new("timeout");
    strace.args(["--signal=KILL", "240", "strace", "-f", "-qq", "-o"]).arg(&log).arg(env!("CARGO_BIN_EXE_iotrace-bpf"));
    strace.args([
        "-p",
        &looper.pid().to_string(),
        "--duration",
        "3s",
        "--rotate-time",
        "1s",
        "--keep-size",
        "2M",
        "-o",
    ]);
    run(strace.arg(work.path().join("all")));
    assert!(datasets(&work.path().join("all")).len() > 1);
    let allowed = unit("SystemCallFilter");
    let sets = run(Command::new("systemd-analyze").args(["syscall-filter", "--no-pager"]));
    let allowed = calls_of(&sets, allowed.split(' '));
    let log = fs::read_to_string(log).unwrap();
    let calls: Vec<(&str, &str)> = log.lines().filter_map(|l| l.split_once(' ')?.1.trim().split_once('(')).collect();
    let calls: Vec<_> =
        calls.into_iter().filter(|(name, _)| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')).collect();
    assert!(calls.iter().any(|(name, _)| *name == "bpf") && calls.len() > 1000);
    // Of the calls for probes, which the filter of `filtered` does not have either, `strace` may know only the number.
    let allowed = |name: &str| allowed.contains(name) || name == "syscall_0x14f" || FOR_PROBES.contains(&name);
    let forbidden: BTreeSet<&str> = calls.iter().map(|(name, _)| *name).filter(|name| !allowed(name)).collect();
    assert_eq!(forbidden, BTreeSet::new());
    assert!(calls.iter().all(|(name, args)| !name.starts_with("socket") || args.starts_with("AF_UNIX")));
    assert!(!calls.iter().any(|(_, args)| args.contains("PROT_WRITE") && args.contains("PROT_EXEC")));
}

/// The system calls of these sets and names, by the list that `systemd-analyze syscall-filter` prints.
fn calls_of<'a>(sets: &str, names: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for name in names {
        if !name.starts_with('@') {
            all.insert(name.to_owned());
            continue;
        }
        let members = sets.lines().skip_while(|l| *l != name).skip(1).take_while(|l| l.starts_with(' '));
        let members: Vec<&str> = members.map(str::trim).filter(|l| !l.starts_with('#')).collect();
        assert!(!members.is_empty(), "no set {name}");
        all.extend(calls_of(sets, members.into_iter()));
    }
    all
}

#[test]
fn behind_the_filter_and_below_the_memory_of_the_unit_nothing_is_missing() {
    let work = live::scratch();
    let filtered = filtered(work.path());
    // It does stop what is not in it.
    let stopped = Command::new(&filtered[0]).args([&filtered[1], "chroot", "/", "true"]).output().unwrap();
    assert!(String::from_utf8_lossy(&stopped.stderr).contains("Operation not permitted"), "{stopped:?}");

    let (_looper, dir, truth) = looper(work.path());
    let output = place(work.path(), "state", TRACER).join("datasets");
    let most = unit("MemoryMax").strip_suffix('G').unwrap().parse::<u64>().unwrap() << 30;
    let group = Group::below_memory("service", most);
    let limited = group.as_ref().map_or_else(
        || {
            eprintln!("no controller for memory can be used: the limit is that of the process's data");
            vec!["prlimit".to_owned(), format!("--data={most}")]
        },
        |group| group.script("exec \"$0\" \"$@\"").to_vec(),
    );
    let stderr = work.path().join("stderr");
    let mut command = installed_as_unit(work.path(), &config(&output));
    command.args(limited).args(as_service(&[])).args(filtered).args(unit("ExecStart").split(' '));
    command.args(["--metrics", "127.0.0.1:0"]).stdout(Stdio::null()).stderr(fs::File::create(&stderr).unwrap());
    let mut tracer = Running::spawn(&mut command);
    let page = || get(address(&stderr), "/metrics", "text/plain").unwrap().1;
    live::until("calls of the program", || page().contains("op=\"pwrite64\""));
    let status = fs::read_to_string(format!("/proc/{}/status", tracer.pid())).unwrap();
    assert!(status.contains("\nSeccomp:\t2\n") && status.contains("\nNoNewPrivs:\t1\n"), "{status}");
    let before = live::truth(&truth).pwrites;
    live::until("four datasets", || datasets_in(&output) >= 4);
    let page = page();
    let mut lost = page.lines().filter(|line| line.starts_with("iotrace_lost_events") && !line.contains("request_end"));
    assert!(lost.all(|line| line.ends_with(" 0")), "{page}");
    let after = live::truth(&truth).pwrites;
    live::send(tracer.pid(), Signal::SIGTERM);
    assert!(tracer.wait().success(), "{}", fs::read_to_string(&stderr).unwrap());

    let mut numbers = Vec::new();
    for dataset in datasets(&output) {
        let data = Data::read(&dataset).lossless();
        data.resolves();
        numbers.extend(records(&data, &dir));
    }
    none_is_missing(&numbers);
    assert!(numbers[0] <= before && after <= numbers[numbers.len() - 1] + 1, "{before}, {numbers:?}, {after}");
    let memory = group.as_ref().and_then(Group::most_memory);
    assert!(memory.is_none_or(|memory| (1 << 20..most).contains(&memory)), "{memory:?}");
}

#[test]
fn the_service_rotates_ends_and_starts_again() {
    let work = live::scratch();
    let (_looper, dir, _) = looper(work.path());
    let state = place(work.path(), "state", TRACER);
    let output = state.join("datasets");
    let config = config(&output);
    let start = || {
        let mut command = installed_as_unit(work.path(), &config);
        command.args(as_service(&[])).args(unit("ExecStart").split(' '));
        let running =
            Running::spawn(command.stdout(Stdio::null()).stderr(fs::File::create(work.path().join("stderr")).unwrap()));
        let before = datasets_in(&output);
        live::until("three datasets", || {
            let text_out = fs::read_to_string(work.path().join("stderr")).unwrap();
            assert!(!text_out.contains("Error") && !text_out.contains("cannot"), "{text_out}");
            datasets_in(&output) >= before + 3
        });
        running
    };
    let stop = |mut running: Running, signal| {
        live::send(running.pid(), signal);
        running.wait()
    };
    assert!(stop(start(), Signal::SIGTERM).success());
    let first = datasets(&output);
    let mut numbers = Vec::new();
    for dataset in &first {
        let data = Data::read(dataset).lossless();
        data.resolves();
        // Each can be looked at by itself.
        let replay = ["replay", dataset.to_str().unwrap(), "--batch", "-n", "1"];
        let shown = Command::new(env!("CARGO_BIN_EXE_iotrace-bpf")).args(replay).output().unwrap();
        assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
        numbers.extend(records(&data, &dir));
    }
    none_is_missing(&numbers);

    // Killed, it leaves what it wrote; started again, it goes on beside that.
    let is_open = |p: &PathBuf| p.to_str().unwrap().ends_with(".inprogress");
    let running = start();
    live::until("an open part", || datasets(datasets(&output).last().unwrap()).iter().any(is_open));
    let killed = stop(running, Signal::SIGKILL);
    assert!(!killed.success());
    let second = datasets(&output);
    assert_eq!(second[..first.len()], first[..]);
    let cut = &second[second.len() - 1];
    let parts = || -> BTreeSet<PathBuf> { datasets(cut).into_iter().collect() };
    let before = parts();
    assert!(before.iter().any(is_open));
    assert!(stop(start(), Signal::SIGTERM).success());
    assert_eq!(datasets(&output)[..second.len()], second[..]);
    assert_eq!(parts(), before);
    for dataset in &datasets(&output)[second.len()..] {
        Data::read(dataset).lossless().resolves();
    }
}

/// How many datasets there are.
fn datasets_in(dir: &Path) -> usize {
    fs::read_dir(dir).map_or(0, Iterator::count)
}
