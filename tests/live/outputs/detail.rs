//! `--detail`: in aggregate mode, slow calls with all inside them, and those of chosen ranks and files, are recorded one by one;
//! sums stay what they are, and where there is no room the rows show that.

use crate::common::live::{self, Data, Traced};
use crate::common::{programs, sql, ways};
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::flag;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn printed(traced: &Traced) -> Value {
    serde_json::from_str(traced.stdout.lines().next().unwrap()).unwrap()
}

/// `detailed` with these arguments, and what was recorded of it.
fn detailed(work: &Path, options: &[&str], mode: &str, paths: &[&str], calls: u64) -> (Traced, Data) {
    let files = paths.iter().map(|p| work.join(p).into_os_string());
    let program = [programs::build("detailed").into_os_string(), mode.into()];
    let command: Vec<_> = program.into_iter().chain(files).chain([calls.to_string().into()]).collect();
    let traced = live::trace(work, options, &command);
    let data = traced.data();
    (traced, data)
}

/// Calls of a function, outermost or not, by the sums.
fn summed(dir: &Path, condition: &str) -> i64 {
    let sql = format!(
        "SELECT coalesce(sum(calls + nested_calls), 0)::BIGINT AS n FROM file_rollup LEFT JOIN files USING (host, file_id) WHERE {condition}"
    );
    sql::query(dir, &sql)[0]["n"].as_i64().unwrap()
}

/// A call and what is inside it: name, bytes, and the same of its children.
fn shape(data: &Data, span: &Span) -> String {
    let mut inside: Vec<&Span> = data.spans.iter().filter(|s| s.parent_id == Some(span.span_id)).collect();
    inside.sort_by_key(|s| s.span_id);
    let inside: Vec<String> = inside.into_iter().map(|s| shape(data, s)).collect();
    format!("{} {:?} {:?} {inside:?}", span.op, span.bytes, data.path(span))
}

#[test]
fn a_slow_call_is_recorded_with_all_that_is_inside_it() {
    let work = live::scratch();
    let options = ["--sockets", "--detail", "slow=stdio:250ms"];
    let (traced, data) = detailed(work.path(), &options, "slow", &["file"], 2000);
    assert!(data.lost().is_empty(), "{:?} {}", data.lost(), traced.stderr);
    assert_eq!((&*data.meta["aggregate"], &*data.meta["detail"]), ("yes", "slow=stdio:250ms"));
    // The one call that took so long: it read four times.
    let outermost: Vec<&Span> = data.spans.iter().filter(|s| s.parent_id.is_none()).collect();
    let [fread] = outermost[..] else { panic!("{outermost:#?}") };
    assert_eq!((fread.op, fread.bytes), ("fread", Some(4)));
    assert!(fread.dur_ns >= 250_000_000);
    let inside: Vec<&Span> = data.spans.iter().filter(|s| s.parent_id == Some(fread.span_id)).collect();
    assert!(inside.iter().all(|s| s.op == "read" && s.bytes == Some(1)), "{inside:#?}");
    assert_eq!((inside.len(), data.spans.len()), (4, 5));
    assert_eq!(fread.self_ns, fread.net_ns() - inside.iter().map(|s| s.net_ns()).sum::<i64>());
    // All calls are in the sums, those that are recorded, too.
    let own = format!("path = '{}'", work.path().join("file").display());
    assert_eq!(
        summed(&traced.dir, &format!("op = 'pread64' AND {own}")),
        printed(&traced)["pread64"].as_i64().unwrap()
    );
    assert_eq!(summed(&traced.dir, "op = 'fread'"), 1);
    // Nothing is counted twice.
    let sql = "WITH printed AS (SELECT layer, op, sum(n)::BIGINT AS n FROM hist
                               WHERE what = 'latency' AND layer <> 'block' GROUP BY ALL),
                    summed AS (SELECT layer, op, sum(calls)::BIGINT AS n FROM file_rollup WHERE layer <> 'block' GROUP BY ALL)
               SELECT layer, op, printed.n AS printed, summed.n AS summed FROM printed FULL JOIN summed USING (layer, op)
               WHERE printed.n IS DISTINCT FROM summed.n";
    assert_eq!(sql::query(&traced.dir, sql), Vec::<Value>::new());
    // The report counts nothing twice, has what was recorded, and shows the call.
    assert!(traced.report.contains("single calls of slow=stdio:250ms"), "{}", traced.report);
    let report = live::tracer().args(["report", "--json"]).arg(&traced.dir).output().unwrap();
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let layer = report["layers"].as_array().unwrap().iter().find(|l| l["layer"] == "stdio").unwrap();
    let op = layer["ops"].as_array().unwrap().iter().find(|o| o["op"] == "fread").unwrap();
    assert_eq!(op["calls"], 1);
    assert_eq!(report["slowest"].as_array().unwrap().len(), 1);

    // What single calls are when all are recorded, of a second run.
    let again = live::scratch();
    let (_, single) = detailed(again.path(), &["--sockets"], "slow", &["file"], 2000);
    let slow = single.spans.iter().find(|s| s.op == "fread").unwrap();
    let nameless = |text: String| {
        text.split("pipe:")
            .map(|part| part.trim_start_matches(|c: char| "[0123456789]".contains(c)).to_owned())
            .collect::<String>()
    };
    assert_eq!(nameless(shape(&data, fread)), nameless(shape(&single, slow)));
}

#[test]
fn calls_without_room_in_the_table_are_counted() {
    let work = live::scratch();
    // Without devices, whose requests may end where the kernel runs no program: nothing else is lost.
    let options = ["--sockets", "--layers", "stdio,syscall", "--detail", "slow=stdio:200ms"];
    let (traced, data) = detailed(work.path(), &options, "inner", &["file"], 1000);
    // Both slow calls, with what is inside them: that the first one had more than can be remembered mutes no process.
    let freads: Vec<&Span> = data.spans.iter().filter(|s| s.op == "fread").collect();
    assert_eq!(freads.len(), 2, "{:?}", data.losses);
    let inside = |fread: &Span| data.spans.iter().filter(|s| s.parent_id == Some(fread.span_id)).count() as i64;
    let lost: i64 = data.losses.iter().map(|l| l.count).sum();
    let process = freads[0].process_ix;
    assert!(data.losses.iter().all(|l| l.place == "detail" && l.process_ix == Some(process)), "{:?}", data.losses);
    // What the program asked of the pipes is recorded or counted as missing.
    let all = printed(&traced)["read"].as_i64().unwrap();
    let reads = [inside(freads[0]), inside(freads[1])];
    assert_eq!(reads[0] + reads[1] + lost, all);
    assert!(reads.iter().all(|n| *n >= 100) && lost > 0, "{reads:?} of {all}");
    let of_pipes = format!("pid = {} AND op = 'read' AND path LIKE 'pipe:%'", freads[0].pid);
    assert_eq!(summed(&traced.dir, &of_pipes), all);
    // No figure of the sums is in doubt for that.
    let report = live::tracer().args(["report", "--json"]).arg(&traced.dir).output().unwrap();
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["complete"], true);
}

#[test]
fn quick_calls_beside_a_slow_one_are_not_recorded() {
    let work = live::scratch();
    // The slow read is one of four in a call that is not to be looked at.
    let (traced, data) =
        detailed(work.path(), &["--sockets", "--detail", "slow=syscall:500ms"], "slow", &["file"], 2000);
    assert!(data.lost().is_empty(), "{:?} {}", data.lost(), traced.stderr);
    let reads: Vec<&Span> = data.spans.iter().filter(|s| s.layer.name() == "syscall").collect();
    assert!(reads.iter().all(|s| s.dur_ns >= 500_000_000), "{reads:#?}");
    let [read] = reads.iter().filter(|s| s.op == "read").collect::<Vec<_>>()[..] else { panic!("{reads:#?}") };
    // With the call around it.
    assert_eq!(data.parent(read).map(|s| s.op), Some("fread"));
}

#[test]
fn slow_calls_that_a_signal_or_the_end_of_the_trace_ends_are_recorded() {
    let work = live::scratch();
    let options = ["--sockets", "--detail", "slow=syscall:200ms", "--duration", "3s"];
    let command =
        [programs::build("detailed").into_os_string(), "signal".into(), work.path().join("file").into(), "100".into()];
    let traced = live::trace(work.path(), &options, &command);
    assert_eq!(traced.code, Some(128 + 14), "{}", traced.stderr);
    let data = Data::read(&traced.dir);
    let reads: Vec<_> =
        data.spans.iter().filter(|s| s.op == "read").map(|s| (s.errno, s.flags & flag::UNFINISHED != 0)).collect();
    assert_eq!(reads, [(4, false), (0, true)], "{:#?}", data.spans);
}

#[test]
fn a_chosen_file_is_recorded_and_another_is_not() {
    let work = live::scratch();
    let (traced, data) = detailed(work.path(), &["--detail", "file=*/wanted"], "files", &["wanted", "other"], 500);
    assert!(data.lost().is_empty(), "{:?} {}", data.lost(), traced.stderr);
    let calls = printed(&traced)["pwrite64"].as_i64().unwrap();
    let path = |name: &str| Some(work.path().join(name));
    let count = |name: &str| {
        let on =
            |s: &&Span| s.op == "pwrite64" && data.path(s).map(Path::to_path_buf) == path(name) && s.bytes == Some(10);
        data.spans.iter().filter(on).count() as i64
    };
    assert_eq!((count("wanted"), count("other")), (calls, 0));
    assert!(data.spans.iter().all(|s| data.path(s).map(Path::to_path_buf) == path("wanted")));
    let sums = |name: &str| {
        let path = work.path().join(name);
        summed(&traced.dir, &format!("op = 'pwrite64' AND path = '{}'", path.display()))
    };
    // The first one wrote once more, before.
    assert_eq!((sums("wanted"), sums("other")), (calls + 1, calls));
}

#[test]
fn a_chosen_rank_is_recorded_and_the_others_are_not() {
    let work = live::scratch();
    let mpirun =
        [&programs::openmpi("mpirun"), "--allow-run-as-root", "--oversubscribe", "-np", "2"].map(PathBuf::from);
    let command = [&mpirun[..], &[programs::build("demo"), work.path().join("out")]].concat();
    let traced = live::trace(work.path(), &["--detail", "rank=1"], &command);
    let data = traced.data();
    assert!(data.lost().is_empty(), "{:?} {}", data.lost(), traced.stderr);
    assert!(!data.spans.is_empty() && data.spans.iter().all(|s| s.rank == Some(1)));
    let known = |s: &Span| {
        s.handle_id.is_none_or(|id| data.handles.contains_key(&id))
            && s.file_id.is_none_or(|id| data.files.contains_key(&id))
    };
    assert!(data.spans.iter().all(known));
    // Every call of the layers that a program uses when it has begun, one by one and in the sums.
    let sql = "SELECT layer, op, sum(calls + nested_calls)::BIGINT AS n FROM file_rollup
               WHERE rank = 1 AND layer IN ('hdf5', 'mpiio') GROUP BY layer, op";
    let sums: BTreeMap<String, i64> = sql::query(&traced.dir, sql)
        .iter()
        .map(|row| (row["op"].as_str().unwrap().to_owned(), row["n"].as_i64().unwrap()))
        .collect();
    let mut single: BTreeMap<String, i64> = BTreeMap::new();
    for span in data.spans.iter().filter(|s| ["hdf5", "mpiio"].contains(&s.layer.name())) {
        *single.entry(span.op.to_owned()).or_default() += 1;
    }
    assert!(single.contains_key("H5Dwrite") && single.keys().any(|op| op.starts_with("MPI_File_")), "{single:?}");
    assert_eq!(single, sums);
    // Down to the system calls, each in the call that made it.
    let below = |s: &&Span| s.op == "pwrite64" && data.ancestors(s).any(|a| a.op == "H5Dwrite");
    assert!(data.spans.iter().any(|s| below(&s)));
}

#[test]
fn without_room_sums_stay_right_and_losses_name_the_processes() {
    let work = live::scratch();
    // Two processes at once, of which one writes much more, and a tracer that is stopped now and then.
    let program = programs::build("detailed");
    let script = "\"$0\" files \"$1/a\" \"$1/b\" 300000 & \"$0\" files \"$1/c\" \"$1/d\" 200 &
        until [ -s \"$1/b\" ]; do sleep 0.01; done
        for i in 1 2 3 4 5; do sleep 0.15; kill -STOP $PPID; sleep 0.15; kill -CONT $PPID; done; wait";
    let command = ["sh".as_ref(), "-c".as_ref(), script.as_ref(), program.as_os_str(), work.path().as_os_str()];
    let options = ["--layers", "syscall", "--detail", "file=*/[abcd]", "--ring-size", "1M"];
    let traced = live::trace(work.path(), &options, &command);
    let data = traced.data();
    let truths: Vec<Value> = traced.stdout.lines().take(2).map(|l| serde_json::from_str(l).unwrap()).collect();
    let mut missing = BTreeMap::new();
    for truth in &truths {
        let pid = truth["pid"].as_i64().unwrap();
        let calls = 2 * truth["pwrite64"].as_i64().unwrap();
        // The first one of each process comes before its file is known to be wanted.
        assert_eq!(summed(&traced.dir, &format!("op = 'pwrite64' AND pid = {pid}")), calls + 1);
        let process = data.processes.values().find(|p| i64::from(p.pid) == pid).unwrap().process_ix;
        let single =
            data.spans.iter().filter(|s| s.process_ix == process && s.op == "pwrite64" && s.bytes == Some(10)).count()
                as i64;
        let lost: i64 = data.losses.iter().filter(|l| l.process_ix == Some(process)).map(|l| l.count).sum();
        missing.insert(calls, (single, lost));
    }
    let ring: i64 = data.losses.iter().filter(|l| l.place == "ring").map(|l| l.count).sum();
    assert!(data.losses.iter().all(|l| ["detail", "ring"].contains(&l.place)), "{:?}", data.losses);
    let (quiet, loud) = (missing[&400], missing[&600_000]);
    assert!(loud.1 > 0, "{missing:?}");
    // Those that are recorded and those that are counted as not recorded are all.
    assert_eq!(loud.0 + loud.1 + quiet.0 + quiet.1 + ring, 600_400, "{missing:?}, ring {ring}");
    // The one that wrote little is not made to pay for the other: for most of the time that one is muted.
    assert!(quiet.0 >= 200, "{missing:?}");
}

#[test]
fn the_process_that_waits_most_is_recorded_and_then_the_next_one() {
    let work = live::scratch();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/turns.py");
    let both = r#""$0" "$1" first sync read & "$0" "$1" second read sync; wait"#;
    let both = format!("cd '{}'; {both}", work.path().display());
    let command = ["sh".into(), "-c".into(), both, text(&ways::python()), text(&script)];
    let traced = live::trace(work.path(), &["--detail", "critical"], &command);
    let data = traced.data();
    assert_eq!(&*data.meta["detail"], "critical");
    let [first, second] = ["first", "second"].map(|name| {
        let path = work.path().join(name);
        let of = |op: &str| {
            let calls = data.calls(op).filter(|s| data.path(s) == Some(&path)).count() as i64;
            (calls, summed(&traced.dir, &format!("op = '{op}' AND path = '{}'", path.display())))
        };
        let (syncs, reads) = (of("fsync"), of("pread64"));
        // It was recorded while it waited, and then or before not. The sums have all.
        assert!(syncs.0 > 0 && syncs.0 <= syncs.1, "{name}: {syncs:?}");
        assert!(reads.0 < reads.1, "{name}: {reads:?}");
        let sync = data.calls("fsync").find(|s| data.path(s) == Some(&path)).unwrap();
        sync.process_ix.to_string()
    });
    let sql = "SELECT label, value FROM metrics WHERE name = 'critical_process' ORDER BY t_ns";
    let rows = sql::query(&traced.dir, sql);
    assert!(rows.iter().all(|row| row["value"].as_f64().unwrap() >= 0.01), "{rows:?}");
    let mut chosen: Vec<&str> = rows.iter().map(|row| row["label"].as_str().unwrap()).collect();
    chosen.dedup();
    assert!(chosen.ends_with(&[&first, &second]), "{chosen:?}: {first}, then {second}");
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
