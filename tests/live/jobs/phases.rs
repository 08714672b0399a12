//! Phases and probes of the user: functions of real programs become spans around the I/O that they do, whether the program is
//! launched or runs already, dynamic or static, C or C++; and catalogs made for a library count its calls and bytes.

use crate::common::live::{self, Data, Running, Traced};
use crate::common::{programs, sql};
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::{Kind, Layer, flag};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a source in `tests/programs` in a way of its own.
fn compile(compiler: &str, flags: &[&str], source: &str, to: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let mut command = Command::new(compiler);
    command.args(["-g", "-D_GNU_SOURCE", "-o"]).arg(to).arg(&source).args(flags);
    let out = command.output().unwrap();
    assert!(out.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&out.stderr));
    to.to_owned()
}

/// What a program printed about itself, before the report.
fn truth(traced: &Traced) -> Value {
    serde_json::from_str(traced.stdout.lines().next().unwrap()).unwrap()
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap()
}

/// The report on a dataset.
fn report(dir: &Path) -> Value {
    let out = live::tracer().arg("report").arg(dir).arg("--json").output().unwrap();
    serde_json::from_slice(&out.stdout).unwrap()
}

/// The system calls of a process inside calls of a function, and bytes that they moved: read, written.
fn inside(data: &Data, pid: i64, op: &str) -> (i64, i64) {
    let calls = data.layer(Layer::Syscall).filter(|s| i64::from(s.pid) == pid);
    let calls: Vec<&Span> = calls.filter(|s| data.ancestors(s).any(|a| a.op == op)).collect();
    let sum = |kind| calls.iter().filter(|s| s.kind == kind).filter_map(|s| s.bytes).sum();
    (sum(Kind::Read), sum(Kind::Write))
}

/// Compares the phases of a run of `phases` with its own counts.
fn agrees(data: &Data, truth: &Value, ops: &[&str]) {
    let pid = number(&truth["pid"]);
    for op in ops {
        let expected = &truth["phases"][op];
        let calls: Vec<&Span> = data.calls(op).filter(|s| i64::from(s.pid) == pid).collect();
        assert_eq!(calls.len() as i64, number(&expected["calls"]), "calls of {op}");
        assert!(calls.iter().all(|s| (s.layer, s.kind) == (Layer::App, Kind::Other)));
        assert_eq!(inside(data, pid, op), (number(&expected["read"]), number(&expected["written"])), "bytes in {op}");
    }
}

#[test]
fn phases_of_a_launched_program_enclose_what_it_counts_itself() {
    let work = live::scratch();
    let dir = work.path().join("out");
    fs::create_dir(&dir).unwrap();
    let ops = ["step", "save", "load", "tree", "escape"];
    let options: Vec<&str> = ["main"].iter().chain(&ops).flat_map(|op| ["--phase", op]).collect();
    let traced = live::trace(work.path(), &options, &[programs::build("phases").as_path(), &dir]);
    let data = traced.data().lossless();
    let truth = truth(&traced);
    let pid = number(&truth["pid"]) as i32;
    agrees(&data, &truth, &ops);

    // All of it is inside main, whose id everything below it carries.
    let main = data.calls("main").find(|s| s.pid == pid).unwrap();
    assert_eq!((main.parent_id, main.root_id, main.depth, main.layer_top), (None, main.span_id, 0, true));
    for span in data.spans.iter().filter(|s| s.root_id == main.span_id && s.span_id != main.span_id) {
        let parent = data.parent(span).unwrap();
        assert_eq!((span.depth, span.pid), (parent.depth + 1, pid));
        assert!(parent.start_ns <= span.start_ns && span.start_ns + span.dur_ns <= parent.start_ns + parent.dur_ns);
    }
    let own: i64 = data.spans.iter().filter(|s| s.root_id == main.span_id).map(|s| s.self_ns).sum();
    assert_eq!(own, main.net_ns());

    // Four levels of one function.
    let levels: Vec<usize> = data.calls("tree").map(|s| data.ancestors(s).filter(|a| a.op == "tree").count()).collect();
    assert_eq!(levels.iter().sum::<usize>(), 1 + 2 + 3);

    // What jumped out never returned, all else did.
    let unfinished: Vec<&str> = data.spans.iter().filter(|s| s.flags & flag::UNFINISHED != 0).map(|s| s.op).collect();
    assert_eq!(unfinished, ["escape"]);

    // The child is in no phase but its own.
    let child = data.calls("save").find(|s| s.pid != pid).unwrap();
    assert_eq!((child.parent_id, inside(&data, i64::from(child.pid), "save")), (None, (0, 4096)));

    let report = report(&traced.dir);
    for phase in report["phases"].as_array().unwrap().iter().filter(|p| p["op"] != "main" && p["op"] != "save") {
        let expected = &truth["phases"][phase["op"].as_str().unwrap()];
        assert_eq!(phase["calls"], expected["calls"], "{phase}");
        let syscall = phase["layers"].as_array().unwrap().iter().find(|l| l["layer"] == "syscall").unwrap();
        assert_eq!(syscall["written"]["sum"].as_i64().unwrap_or(0), number(&expected["written"]), "{phase}");
        assert_eq!(syscall["read"]["sum"].as_i64().unwrap_or(0), number(&expected["read"]), "{phase}");
    }
    assert!(traced.report.contains("\nPhases: "), "{}", traced.report);
    sql::compare(&traced.dir);
}

#[test]
fn phases_of_a_static_program_are_found_by_its_name() {
    let work = live::scratch();
    let program = compile("cc", &["-O1", "-static"], "phases.c", &work.path().join("static_phases"));
    // A shell in between is a program, too, and not the one that is meant.
    let command = format!("exec {} {}", program.display(), work.path().display());
    let options = ["--phase", "step@static_phases", "--phase", &format!("load@{}", program.display())];
    let traced = live::trace(work.path(), &options, &["sh", "-c", &command]);
    let data = traced.data().lossless();
    agrees(&data, &truth(&traced), &["step", "load"]);
    let attached: Vec<&str> = data.coverage.iter().filter(|c| c.layer == Layer::App).map(|c| c.status).collect();
    assert_eq!(attached, ["attached", "attached"]);
}

#[test]
fn phases_of_a_running_program_are_seen_from_their_next_call_on() {
    let work = live::scratch();
    let running = Running::spawn(Command::new(programs::build("phases")).arg(work.path()).arg("60"));
    let steps = work.path().join("steps");
    live::until("the first steps", || fs::read_to_string(&steps).is_ok_and(|n| n.trim().parse::<u32>().is_ok()));
    let dataset = work.path().join("run.iotrace");
    let mut tracer = live::tracer();
    tracer.args(["--phase", "step", "--phase", "load@phases", "--phase", "main", "--duration", "2s", "-o"]);
    let out = tracer.arg(&dataset).args(["-p", &running.pid().to_string()]).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let data = Data::read(&dataset).lossless();

    // main was entered long before.
    assert_eq!(data.calls("main").count(), 0);
    let mut calls: Vec<&Span> = data.calls("step").collect();
    calls.sort_by_key(|s| s.start_ns);
    // The last one may have been open when the trace ended.
    calls.pop();
    assert!(calls.len() > 5, "{} steps", calls.len());
    let below = |step: &Span, op: &str| data.calls(op).filter(|s| data.ancestors(s).any(|a| a == step)).count();
    let blocks: Vec<usize> = calls.iter().map(|step| below(step, "pwrite64")).collect();
    assert!(blocks.windows(2).all(|pair| pair[1] == pair[0] % 3 + 1), "{blocks:?}");
    for (step, blocks) in calls.iter().zip(&blocks) {
        assert_eq!((step.flags, step.parent_id, below(step, "load")), (0, None, 1));
        assert_eq!(below(step, "read"), blocks + 1);
    }
}

#[test]
fn exceptions_and_jumps_leave_phases_and_do_no_harm() {
    let work = live::scratch();
    let program = compile("c++", &["-O2"], "throws.cpp", &work.path().join("throws"));
    let ops = ["main", "sim::put", "sim::Solver::step", "sim::Solver::run", "sim::save", "sim::hidden"];
    let options: Vec<&str> = ops.iter().flat_map(|op| ["--phase", op]).collect();
    let traced = live::trace(work.path(), &options, &[program.as_path(), work.path()]);
    // It caught its exceptions, and was not ended by one.
    assert_eq!(traced.stdout.lines().next(), Some("3"), "{}", traced.stderr);
    let data = traced.data().lossless();

    // Each call of put, with the phases around it and the blocks that it wrote, in order.
    let mut puts: Vec<&Span> = data.calls("sim::put").collect();
    puts.sort_by_key(|s| s.start_ns);
    let about = |put: &&Span| -> (String, i64) {
        let around: Vec<&str> = data.ancestors(put).map(|a| a.op.trim_start_matches("sim::")).collect();
        let writes = data.calls("write").filter(|s| data.parent(s).is_some_and(|p| p == *put));
        (around.join(" "), writes.filter_map(|s| s.bytes).sum::<i64>() / 4096)
    };
    let expected = [
        ("Solver::step main", 1),
        ("Solver::step main", 1),
        ("Solver::step main", 2),
        ("main", 1),
        ("Solver::step main", 3),
        ("Solver::step main", 1),
        ("Solver::run main", 3),
        ("Solver::step Solver::run main", 2),
        ("Solver::run main", 3),
        ("Solver::step Solver::run main", 1),
        ("Solver::step Solver::run main", 1),
        ("hidden main", 1),
    ];
    let expected: Vec<(String, i64)> = expected.map(|(around, blocks)| (around.to_owned(), blocks)).to_vec();
    assert_eq!(puts.iter().map(about).collect::<Vec<_>>(), expected);

    let left = |op: &str| data.calls(op).filter(|s| s.flags & flag::UNFINISHED != 0).count();
    assert_eq!((data.calls("sim::Solver::step").count(), left("sim::Solver::step")), (5, 2));
    assert_eq!((left("main"), left("sim::put"), left("sim::save"), left("sim::hidden")), (0, 0, 0, 0));
    // Both instances of the template, each with all its calls: the last one is a jump.
    let saves: Vec<&Span> = data.calls("sim::save").collect();
    assert_eq!(saves.len(), 2);
    for save in saves {
        let below: Vec<&str> =
            data.layer(Layer::Stdio).filter(|s| data.parent(s) == Some(save)).map(|s| s.op).collect();
        assert_eq!(below.len(), 3, "{below:?}");
    }
}

#[test]
fn a_phase_that_is_not_there_is_named() {
    let work = live::scratch();
    let program = compile("cc", &["-O1", "-s"], "phases.c", &work.path().join("stripped"));
    let options = ["--phase", "step", "--phase", "no_such@libc.so", "--phase", "f@libnever.so"];
    let traced = live::trace(work.path(), &options, &[program.as_path(), work.path()]);
    let data = traced.data();
    for (symbol, expected) in [
        ("step", "/stripped is stripped of the names of its functions"),
        ("no_such", "libc.so.6 is stripped of the names of its functions"),
        ("f", "no traced process mapped a file libnever.so"),
    ] {
        let row = data.coverage.iter().find(|c| c.layer == Layer::App && c.symbol == symbol).unwrap();
        assert_eq!(row.status, "absent");
        assert!(row.reason.as_deref().unwrap().contains(expected), "{row:?}");
        let warning = traced.stderr.lines().find(|line| line.contains("warning") && line.contains(expected)).unwrap();
        assert!(warning.contains(symbol), "{warning}");
    }
    assert!(report(&traced.dir)["phases"].as_array().unwrap().is_empty());
}

#[test]
fn a_phase_that_is_open_at_the_end_is_written() {
    let work = live::scratch();
    let program = programs::build("phases");
    let command = [program.as_os_str(), work.path().as_os_str(), "2".as_ref()];
    let traced = live::trace(work.path(), &["--phase", "main", "--phase", "step", "--duration", "1s"], &command);
    let data = traced.data().lossless();
    let main = data.calls("main").next().unwrap();
    assert_eq!(main.flags, flag::UNFINISHED);
    // It lasts until the hooks are taken away: no call of its thread is outside.
    let end = data.spans.iter().filter(|s| s.tid == main.tid).map(|s| s.start_ns + s.dur_ns).max().unwrap();
    assert!(main.start_ns + main.dur_ns >= end, "{main:?} ends before {end}");
    let steps: Vec<&Span> = data.calls("step").collect();
    assert!(steps.len() > 5 && steps.iter().all(|s| s.parent_id == Some(main.span_id)));
}

/// Records of phases are lost here, by the thousand; what is left must still be right.
#[test]
fn loss_never_puts_a_call_into_a_phase_that_is_over() {
    let work = live::scratch();
    let source = work.path().join("many.c");
    let text = "
        #include <fcntl.h>
        #include <signal.h>
        #include <sys/wait.h>
        #include <unistd.h>
        __attribute__((noinline)) void idle(void) { __asm__ volatile(\"\"); }
        __attribute__((noinline)) void one(int fd, long n) { idle(); pwrite(fd, \"x\", 1, n); idle(); }
        __attribute__((noinline)) void all(int fd) { for (long n = 0; n < 40000; n++) one(fd, n); __asm__ volatile(\"\"); }
        int main(int argc, char **argv) {
            pid_t tracer = getppid();
            for (int n = 0; n < 2; n++) fork();
            // While the first process works, no process reads.
            if (getppid() == tracer) kill(tracer, SIGSTOP);
            all(open(argv[argc - 1], O_CREAT | O_WRONLY, 0600));
            if (getppid() == tracer) kill(tracer, SIGCONT);
            while (wait(NULL) > 0) {}
            return 0;
        }";
    fs::write(&source, text).unwrap();
    let program = compile("cc", &["-O1"], source.to_str().unwrap(), &work.path().join("many"));
    let options = ["--ring-size", "1M", "--layers", "syscall", "--phase", "all", "--phase", "one", "--phase", "idle"];
    let traced = live::trace(work.path(), &options, &[program.as_path(), &work.path().join("out")]);
    let data = traced.data();
    let lost: i64 = data.losses.iter().map(|l| l.count).sum();
    // A reader that gets no time reads late.
    let elsewhere: Vec<_> = data.losses.iter().filter(|l| !["ring", "late"].contains(&l.place)).collect();
    assert!(lost > 0 && elsewhere.is_empty(), "{lost} lost; {elsewhere:?}");
    let one = |s: &&Span| s.op == "one";
    let mut writes: BTreeMap<i64, usize> = BTreeMap::new();
    for write in data.calls("pwrite64") {
        let parent = data.parent(write).unwrap();
        assert!(["one", "all"].contains(&parent.op), "{parent:?}");
        *writes.entry(parent.span_id).or_default() += usize::from(parent.op == "one");
    }
    assert!(writes.values().all(|n| *n <= 1), "two calls of pwrite in one phase that makes one");
    for idle in data.calls("idle") {
        let parent = data.parent(idle).unwrap();
        assert!(parent.start_ns <= idle.start_ns && idle.start_ns + idle.dur_ns <= parent.start_ns + parent.dur_ns);
    }
    // When the beginning of `all` was lost too, they may have been written before its end, and then have that parent.
    let inferred = |s: &Span| s.parent_id.is_none() && s.flags & flag::INFERRED_PARENT != 0;
    assert!(data.spans.iter().filter(one).all(|s| inferred(s) || data.parent(s).is_some_and(|p| p.op == "all")));
}

/// The library of store.h and a program that uses it.
fn store(work: &Path) -> (PathBuf, PathBuf) {
    let library = compile("cc", &["-O1", "-shared", "-fPIC"], "store.c", &work.join("libstore.so"));
    let (place, path) = (format!("-L{}", work.display()), format!("-Wl,-rpath,{}", work.display()));
    let flags = ["-O1", "-fno-builtin", &place, "-lstore", &path];
    (library, compile("cc", &flags, "use_store.c", &work.join("use_store")))
}

/// Traces `use_store` with a catalog that was made for its library, and compares with what it counts itself.
fn generated(options: &[&str], layer: Layer) {
    let work = live::scratch();
    let (library, program) = store(work.path());
    let catalog = work.path().join("store.toml");
    let mut generate = live::tracer();
    let out =
        generate.args(["probes", "generate"]).arg(&library).args(options).arg("-o").arg(&catalog).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));

    let added = ["--probes", catalog.to_str().unwrap()];
    let traced = live::trace(work.path(), &added, &[program.as_path(), work.path()]);
    let data = traced.data().lossless();
    let truth = truth(&traced);
    let totals = Data::totals(data.layer(layer));
    let calls: BTreeMap<String, i64> = totals.iter().map(|(op, t)| (op.clone(), t.calls)).collect();
    let expected = truth["calls"].as_object().unwrap().iter().map(|(op, n)| (op.clone(), number(n)));
    assert_eq!(calls, expected.collect());
    let moved = |kind| data.layer(layer).filter(|s| s.kind == kind).filter_map(|s| s.bytes).sum::<i64>();
    assert_eq!((moved(Kind::Read), moved(Kind::Write)), (number(&truth["read"]), number(&truth["written"])));
    assert_eq!(totals.values().map(|t| t.errors).sum::<i64>(), number(&truth["failed"]));

    // The handle that an open returned leads every call to the file.
    let records = work.path().join("records.dat");
    for op in ["store_put", "store_get_doubles", "store_flush", "store_close"] {
        assert!(data.calls(op).all(|s| data.path(s) == Some(&records)), "{op}");
    }
    assert_eq!(data.calls("store_open").filter(|s| data.path(s) == Some(&records)).count(), 2);
    let put = data.calls("store_put").filter(|s| s.errno == 0).max_by_key(|s| s.start_ns).unwrap();
    assert_eq!((put.offset, put.req_bytes), (Some(19 * 4096), Some(2048)));
    // And below it is what it did.
    let write = data.calls("fwrite").filter(|s| data.parent(s).is_some_and(|p| p.op == "store_put"));
    assert_eq!(write.filter_map(|s| s.bytes).sum::<i64>(), number(&truth["written"]));
    assert!(data.coverage.iter().any(|c| c.layer == layer && c.status == "attached" && c.symbol == "store_put"));
}

#[test]
fn a_catalog_made_from_debug_information_counts_what_the_program_counts() {
    generated(&[], Layer::App);
}

#[test]
fn a_catalog_made_from_a_header_counts_what_the_program_counts() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/store.h");
    generated(&["--header", header.to_str().unwrap(), "--layer", "netcdf"], Layer::Netcdf);
}

#[test]
fn parts_of_a_parallel_program_are_phases() {
    const RANKS: i32 = 2;
    let work = live::scratch();
    let out = work.path().join("out");
    let ranks = RANKS.to_string();
    let program = programs::build("demo");
    let mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", &ranks].map(Path::new);
    let options = ["--phase", "hdf5", "--phase", "mpiio@demo", "--phase", "posix"];
    let traced = live::trace(work.path(), &options, &[&mpirun[..], &[program.as_path(), &out]].concat());
    let data = traced.data().lossless();
    let mut in_all: BTreeMap<&str, i64> = BTreeMap::new();
    for rank in 0..RANKS {
        let truth: Value = serde_json::from_slice(&fs::read(out.join(format!("truth.{rank}.json"))).unwrap()).unwrap();
        for (phase, layer) in [("hdf5", Layer::Hdf5), ("mpiio", Layer::Mpiio)] {
            let call: Vec<&Span> = data.calls(phase).filter(|s| s.rank == Some(rank)).collect();
            assert_eq!(call.len(), 1);
            assert_eq!((call[0].layer, call[0].parent_id, call[0].flags), (Layer::App, None, 0));
            // The calls that it made itself: with no other library between.
            let made = data.layer(layer).filter(|s| s.layer_top && s.root_id == call[0].span_id && s.depth == 1);
            let counts = truth[phase].as_object().unwrap();
            let expected: BTreeMap<String, i64> = counts.iter().map(|(op, n)| (op.clone(), number(n))).collect();
            let seen: BTreeMap<String, i64> = Data::totals(made).into_iter().map(|(op, t)| (op, t.calls)).collect();
            assert_eq!(seen, expected, "{phase} of rank {rank}");
            *in_all.entry(phase).or_default() += expected.values().sum::<i64>();
        }
        let posix = data.calls("posix").find(|s| s.rank == Some(rank)).unwrap();
        assert_eq!(inside(&data, i64::from(posix.pid), "posix").1, number(&truth["posix_bytes_written"]));
    }
    let report = report(&traced.dir);
    let phase = |op: &str| report["phases"].as_array().unwrap().iter().find(|p| p["op"] == op).unwrap().clone();
    let layer = |op: &str| phase(op)["layers"].as_array().unwrap().iter().find(|l| l["layer"] == op).unwrap().clone();
    assert_eq!(phase("hdf5")["calls"], RANKS);
    assert_eq!(layer("hdf5")["calls"], in_all["hdf5"]);
    assert_eq!(layer("mpiio")["calls"], in_all["mpiio"]);
    // The program's own calls are still those of the libraries, and not the phases around them.
    let called = report["amplification"]["write"]["by_called"].as_array().unwrap();
    // MPI maps files of its own, too.
    let called: Vec<&str> = called.iter().filter_map(|c| c["layer"].as_str()).filter(|l| *l != "vfs").collect();
    assert_eq!(called, ["hdf5", "mpiio", "stdio", "syscall"]);
    sql::compare(&traced.dir);
}
