//! `--aggregate`: what is summed up in the kernel equals what programs count themselves, what single calls add up to, what fio
//! counts and what the kernel counts of a device.

use crate::common::live::{self, Traced};
use crate::common::{programs, sql};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn summed<S: AsRef<std::ffi::OsStr>>(work: &Path, options: &[&str], command: &[S]) -> Traced {
    let traced = live::trace(work, &[&["--aggregate"], options].concat(), command);
    let data = traced.data();
    assert!(data.lost().is_empty(), "{:?} {}", data.lost(), traced.stderr);
    // Requests are those of the whole node, and some may be in their devices when the trace ends.
    assert!(data.spans.is_empty() && data.block.iter().all(|request| request.dur_ns.is_none()));
    assert_eq!(data.meta["aggregate"], "yes");
    traced
}

/// What the command printed, before the report.
fn first_line(stdout: &str) -> &str {
    stdout.lines().next().unwrap()
}

fn program_counts(traced: &Traced) -> Value {
    serde_json::from_str(first_line(&traced.stdout)).unwrap()
}

/// Sums of a function: calls, bytes, errors, calls in bins of durations, of sizes.
fn of(dir: &Path, condition: &str) -> BTreeMap<String, [i64; 5]> {
    let bins = |list: &str| format!("sum(coalesce(list_sum({list}), 0))::BIGINT");
    let sql = format!(
        "SELECT op, sum(calls)::BIGINT AS calls, sum(bytes)::BIGINT AS bytes, sum(errors)::BIGINT AS errors, {} AS timed, {} AS sized
         FROM file_rollup LEFT JOIN files USING (host, file_id) WHERE {condition} GROUP BY op",
        bins("durations"),
        bins("sizes")
    );
    let number = |row: &Value, name: &str| row[name].as_i64().unwrap();
    let figures = |row: &Value| ["calls", "bytes", "errors", "timed", "sized"].map(|name| number(row, name));
    sql::query(dir, &sql).iter().map(|row| (row["op"].as_str().unwrap().to_owned(), figures(row))).collect()
}

#[test]
fn threads_that_call_all_at_once_are_counted_one_by_one() {
    let work = live::scratch();
    let dir = work.path().join("data");
    fs::create_dir(&dir).unwrap();
    let program = programs::build("summed");
    let command = [program.as_os_str(), dir.as_os_str(), "8".as_ref(), "50000".as_ref(), "0".as_ref()];
    // Every call goes through the kernel's sums.
    let traced = summed(work.path(), &["--max-overhead", "none"], &command);
    let truth: Value = program_counts(&traced);
    let own = format!("pid = {} AND path LIKE '{}/%'", truth["pid"], dir.display());
    let seen = of(&traced.dir, &own);
    let calls = |op: &str| truth[op][0].as_i64().unwrap();
    let bytes = |op: &str| truth[op][1].as_i64().unwrap();
    let failed = truth["failed"].as_i64().unwrap();
    assert_eq!(seen["fwrite"], [calls("fwrite"), bytes("fwrite"), 0, calls("fwrite"), calls("fwrite")]);
    let read = calls("pread64");
    assert_eq!(seen["pread64"], [read, bytes("pread64"), failed, read, read - failed]);
    // What the kernel wrote for the streams is what they were given.
    assert_eq!(seen["write"][1], bytes("fwrite") + 65536);
    // Each stream has its own file, and all calls on it are its own.
    let files = sql::query(
        &traced.dir,
        &format!(
            "SELECT path, sum(calls)::BIGINT AS n FROM file_rollup JOIN files USING (host, file_id) WHERE op = 'fwrite' AND {own} GROUP BY path"
        ),
    );
    assert_eq!(files.len(), 8);
    assert!(files.iter().all(|row| row["n"] == json!(50000)), "{files:?}");
    // What is not the streams' own time is that of the system calls on their files: all are made inside.
    let spent = |what: &str, layer: &str| {
        let sql = format!(
            "SELECT sum({what})::BIGINT AS ns FROM file_rollup JOIN files USING (host, file_id)
             WHERE layer = '{layer}' AND path LIKE '{}/stream.%'",
            dir.display()
        );
        sql::query(&traced.dir, &sql)[0]["ns"].as_i64().unwrap()
    };
    assert!(spent("self_ns", "stdio") > 0);
    assert_eq!(spent("dur_ns - self_ns", "stdio"), spent("dur_ns", "syscall"));
    // The longest call of each sum is in the last bin that is not empty.
    let odd = sql::query(
        &traced.dir,
        "SELECT op, max_ns, durations FROM file_rollup WHERE calls > 0
         AND list_max(list_transform(durations, lambda n, i: if(n > 0, i, 0))) <> least(greatest(floor(log2(max_ns)) - 6, 0), 31) + 1",
    );
    assert!(odd.is_empty(), "{odd:?}");
    // The sums of all are those in the other tables, too.
    let rollup = sql::query(
        &traced.dir,
        &format!("SELECT sum(calls)::BIGINT AS n FROM rollup_bins WHERE op = 'pread64' AND pid = {}", truth["pid"]),
    );
    let hist =
        sql::query(&traced.dir, "SELECT sum(n)::BIGINT AS n FROM hist WHERE op = 'pread64' AND what = 'latency'");
    let all = sql::query(&traced.dir, "SELECT sum(calls)::BIGINT AS n FROM file_rollup WHERE op = 'pread64'");
    assert!(rollup[0]["n"].as_i64().unwrap() >= read);
    assert_eq!(hist[0]["n"], all[0]["n"]);
}

#[test]
fn what_finds_no_room_in_the_kernel_is_counted_all_the_same() {
    let work = live::scratch();
    let dir = work.path().join("data");
    fs::create_dir(&dir).unwrap();
    let program = programs::build("summed");
    let command = [program.as_os_str(), dir.as_os_str(), "1".as_ref(), "0".as_ref(), "60000".as_ref()];
    let traced = summed(work.path(), &["--layers", "syscall"], &command);
    let truth: Value = program_counts(&traced);
    let seen = of(&traced.dir, &format!("pid = {} OR other", truth["pid"]));
    let files = truth["files"].as_i64().unwrap();
    // The file that is shared, what the program prints, and what its start opens come on top.
    assert_eq!(seen["write"][1], files * 10 + 65536 + first_line(&traced.stdout).len() as i64 + 1, "{seen:?}");
    assert_eq!(seen["unlink"][0], files);
    // The loader looks for libraries in many places.
    let opened = seen["openat"][0] - seen["openat"][2];
    assert!((files..files + 20).contains(&opened), "{seen:?}");
    assert!((files..files + 20).contains(&seen["close"][0]), "{seen:?}");
}

/// The figures that do not depend on time, by Darshan's names, of files below a directory.
fn counters(run: &Path, below: &Path) -> BTreeMap<String, f64> {
    let sql = format!(
        "SELECT path, counter, sum(value)::DOUBLE AS value FROM darshan
         WHERE path LIKE '{}/%' AND counter NOT LIKE '%\\_F\\_%' ESCAPE '\\' GROUP BY ALL HAVING sum(value) <> 0",
        below.display()
    );
    let name = |row: &Value| {
        let path = Path::new(row["path"].as_str().unwrap()).strip_prefix(below).unwrap().display().to_string();
        format!("{path} {}", row["counter"].as_str().unwrap())
    };
    sql::query(run, &sql).iter().map(|row| (name(row), row["value"].as_f64().unwrap())).collect()
}

/// A run: counters of the files, sizes of all calls by function and bucket, and the output of the program.
struct Run {
    counters: BTreeMap<String, f64>,
    sizes: Vec<Value>,
    program_counts: String,
}

/// Runs a command twice, with single calls and without; the counters of both on files below a directory that each has of its own.
fn both(options: &[&str], command: impl Fn(&Path) -> Vec<PathBuf>) -> [Run; 2] {
    [false, true].map(|aggregate| {
        let work = live::scratch();
        let dir = work.path().join("data");
        fs::create_dir(&dir).unwrap();
        let traced = if aggregate {
            summed(work.path(), options, &command(&dir))
        } else {
            let traced = live::trace(work.path(), options, &command(&dir));
            let data = traced.data();
            assert!(data.lost().is_empty(), "{:?} {}", data.lost(), traced.stderr);
            traced
        };
        let sizes = "SELECT layer, op, bucket, sum(n)::BIGINT AS n FROM hist WHERE what = 'size' AND layer <> 'block'
                     GROUP BY ALL ORDER BY ALL";
        Run {
            counters: counters(&traced.dir, &dir),
            sizes: sql::query(&traced.dir, sizes),
            program_counts: traced.stdout,
        }
    })
}

#[test]
fn darshans_counters_are_those_of_single_calls_and_of_the_program() {
    let program = programs::build("patterns");
    let [one, other] = both(&[], |dir| vec![program.clone(), dir.to_owned()]);
    let (single, summed) = (one.counters, other.counters);
    let truth: BTreeMap<String, Value> = serde_json::from_str(first_line(&other.program_counts)).unwrap();
    assert!(one.sizes.len() > 10);
    assert_eq!(other.sizes, one.sizes);
    for (name, program_counts) in &truth {
        let (file, kind) = name.split_once(' ').unwrap();
        let kind = if kind == "read" { "READ" } else { "WRITE" };
        let bytes = if kind == "READ" { "BYTES_READ" } else { "BYTES_WRITTEN" };
        for module in ["POSIX", "STDIO"] {
            let value = |counter: &str| summed.get(&format!("{file} {module}_{counter}")).copied();
            let Some(calls) = value(&format!("{kind}S")) else { continue };
            if module == "POSIX" && summed.contains_key(&format!("{file} STDIO_{kind}S")) {
                continue; // what the stream made of it
            }
            assert!(
                (calls - program_counts["calls"].as_f64().unwrap()).abs() < 0.5,
                "{name}: {calls} calls, {program_counts}"
            );
            assert!(
                (value(bytes).unwrap_or(0.0) - program_counts["bytes"].as_f64().unwrap()).abs() < 0.5,
                "{name}: {program_counts}"
            );
            assert!(
                (value(&format!("CONSEC_{kind}S")).unwrap_or(0.0) - program_counts["consecutive"].as_f64().unwrap())
                    .abs()
                    < 0.5,
                "{name}: {program_counts}"
            );
        }
    }
    assert!(truth.len() > 8 && summed.len() > 100, "{summed:?}");
    // Of random places every distance is another one, and only the most frequent of a second are recorded.
    let program_counts = |counters: BTreeMap<String, f64>| -> BTreeMap<String, f64> {
        counters.into_iter().filter(|(name, _)| !(name.contains("_random ") && name.contains("_STRIDE"))).collect()
    };
    assert_eq!(differing(&program_counts(summed), &program_counts(single)), []);
}

/// Counters that two runs do not have alike.
fn differing<'a>(
    summed: &'a BTreeMap<String, f64>,
    single: &'a BTreeMap<String, f64>,
) -> Vec<(&'a str, Option<f64>, Option<f64>)> {
    let names: BTreeSet<&String> = summed.keys().chain(single.keys()).collect();
    let both = names.into_iter().map(|name| (name.as_str(), summed.get(name).copied(), single.get(name).copied()));
    both.filter(|(_, summed, single)| summed != single).collect()
}

#[test]
fn a_parallel_program_comes_to_the_same_in_every_layer() {
    let program = programs::build("demo");
    let mpirun = programs::openmpi("mpirun");
    let command = |dir: &Path| {
        let mpirun = [&mpirun, "--allow-run-as-root", "--oversubscribe", "-np", "2"].map(PathBuf::from);
        [&mpirun[..], &[program.clone(), dir.join("out")]].concat()
    };
    let [mut single, mut summed] = both(&[], command).map(|run| run.counters);
    // How the library splits what it is given into system calls may depend on which rank comes first.
    for counters in [&mut single, &mut summed] {
        counters.retain(|name, _| {
            let moved = name.ends_with("_BYTES_WRITTEN") || name.ends_with("_BYTES_READ");
            // The library's own metadata has more sizes than are distinguished in a second.
            let frequent = name.contains(" MPIIO_ACCESS") || name.contains(" MPIIO_STRIDE");
            moved || !name.contains(" POSIX_") && !frequent
        });
    }
    for layer in [
        "H5F_OPENS",
        "H5D_BYTES_WRITTEN",
        "MPIIO_COLL_OPENS",
        "MPIIO_BYTES_WRITTEN",
        "POSIX_BYTES_WRITTEN",
        "STDIO_WRITES",
    ] {
        assert!(summed.keys().any(|name| name.ends_with(layer)), "{layer}: {summed:?}");
    }
    assert_eq!(differing(&summed, &single), []);
}

#[test]
fn operations_are_fios_own_and_requests_the_devices() {
    let work = live::scratch();
    let mut jobs = "[global]\nbs=4k\nsize=2m\nallow_file_create=0\nend_fsync=0\n".to_owned();
    let engines = [
        ("io_uring", "io\\_uring.%", "iodepth=16\ndirect=1"),
        ("libaio", "aio.%", "iodepth=16\ndirect=1"),
        ("psync", "p%64", ""),
        ("sync", "%", ""),
    ];
    for (engine, _, options) in engines {
        let file = work.path().join(engine);
        fs::write(&file, vec![7; 2 << 20]).unwrap();
        jobs +=
            &format!("[{engine}]\nstonewall\nfilename={}\nioengine={engine}\nrw=randrw\n{options}\n", file.display());
    }
    fs::write(work.path().join("jobs.fio"), jobs).unwrap();
    let output = work.path().join("fio.json");
    let output_to = format!("--output={}", output.display());
    let file = work.path().join("jobs.fio");
    let traced = summed(
        work.path(),
        &["--layers", "syscall,block"],
        &["fio", "--output-format=json", &output_to, file.to_str().unwrap()],
    );
    let text = fs::read_to_string(&output).unwrap();
    let program_counts: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    for job in program_counts["jobs"].as_array().unwrap() {
        let name = job["jobname"].as_str().unwrap();
        let (_, pattern, _) = engines.iter().find(|(engine, ..)| *engine == name).unwrap();
        let sql = format!(
            "SELECT kind, sum(calls)::BIGINT AS calls, sum(bytes)::BIGINT AS bytes FROM file_rollup JOIN files USING (host, file_id)
             WHERE path = '{}' AND op LIKE '{pattern}' ESCAPE '\\' AND kind IN ('read', 'write') GROUP BY kind",
            work.path().join(name).display()
        );
        let seen: BTreeMap<String, (i64, i64)> = sql::query(&traced.dir, &sql)
            .iter()
            .map(|row| {
                (
                    row["kind"].as_str().unwrap().to_owned(),
                    (row["calls"].as_i64().unwrap(), row["bytes"].as_i64().unwrap()),
                )
            })
            .collect();
        let own = |kind: &str| (job[kind]["total_ios"].as_i64().unwrap(), job[kind]["io_bytes"].as_i64().unwrap());
        assert_eq!((seen["read"], seen["write"]), (own("read"), own("write")), "{name}");
    }
    // Sixteen at a time, they take no longer than the process that made them lived.
    let overlapping = sql::query(
        &traced.dir,
        "SELECT sum(f.dur_ns)::BIGINT AS dur_ns, any_value(p.end_ns - p.start_ns)::BIGINT AS life_ns
         FROM file_rollup f JOIN processes p USING (host, process_ix)
         WHERE f.op LIKE 'io\\_uring.%' ESCAPE '\\' OR f.op LIKE 'aio.%' GROUP BY process_ix",
    );
    assert_eq!(overlapping.len(), 2);
    for row in overlapping {
        let [took, life] = ["dur_ns", "life_ns"].map(|name| row[name].as_i64().unwrap());
        assert!((1..=life).contains(&took), "{took} ns in {life}");
    }
    // The two direct jobs go to the device as they are.
    let direct: i64 = ["io_uring", "libaio"]
        .iter()
        .map(|name| {
            let job =
                program_counts["jobs"].as_array().unwrap().iter().find(|job| job["jobname"] == json!(name)).unwrap();
            job["read"]["io_bytes"].as_i64().unwrap() + job["write"]["io_bytes"].as_i64().unwrap()
        })
        .sum();
    let requests = sql::query(
        &traced.dir,
        "SELECT sum(calls)::BIGINT AS calls, sum(bytes)::BIGINT AS bytes FROM file_rollup
         WHERE layer = 'block' AND op IN ('read', 'write') AND process_ix IS NOT NULL",
    );
    assert!(requests[0]["bytes"].as_i64().unwrap() >= direct, "{requests:?} of {direct}");
    let report = live::tracer().arg("report").arg(&traced.dir).output().unwrap();
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(report.contains("sums by process, file, layer and operation") && report.contains("block"), "{report}");
}

#[test]
fn the_whole_node_is_summed_up_unless_it_is_recorded() {
    let work = live::scratch();
    let dir = work.path().join("data");
    fs::create_dir(&dir).unwrap();
    let program = programs::build("summed");
    let run = |options: &[&str]| {
        let mut tracer = live::tracer();
        tracer
            .args(["--system", "--layers", "syscall"])
            .args(options)
            .arg("--")
            .arg(&program)
            .arg(&dir)
            // So many that no other process of the node comes before it among the functions that are shown.
            .args(["1", "100000", "0"]);
        let output = tracer.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let text_out = run(&[]);
    assert!(text_out.contains("recorded  sums by process") && text_out.contains("pread64"), "{text_out}");
    let text_out = run(&["--aggregate=no"]);
    assert!(!text_out.contains("recorded  sums by process") && text_out.contains("pread64"), "{text_out}");
}
