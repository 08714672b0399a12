//! `iotrace-bpf export`: what other programs read has the rows of the dataset.

use crate::common::sql;
use crate::common::synthetic::flushes::flushes;
use crate::common::synthetic::trace::Trace;
use assert_cmd::Command;
use iotrace_bpf::export::{DatasetWriter, Options, VIEWS};
use iotrace_bpf::vocabulary::{Kind, Layer};
use std::path::{Path, PathBuf};
use std::process::Output;

fn export(dir: &Path, args: &[&str]) -> Output {
    Command::cargo_bin("iotrace-bpf").unwrap().arg("export").arg(dir).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn parallel() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mpi_hdf5")
}

/// What Python answers to a script about two paths.
fn python(script: &str, paths: [&Path; 2]) -> String {
    let out = std::process::Command::new(sql::python()).arg("-c").arg(script).args(paths).output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    text(&out.stdout).trim().to_owned()
}

#[test]
fn duckdb_reads_the_same_rows_from_csv_and_parquet() {
    let work = tempfile::tempdir().unwrap();
    let to = work.path().join("csv");
    let out = export(&parallel(), &["--to", "csv", "-o", to.to_str().unwrap()]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let script = "import duckdb, glob, os, sys
names = sorted({os.path.basename(p).rsplit('-', 1)[0] for p in glob.glob(sys.argv[1] + '/*.parquet')})
def rows(of):
    return duckdb.sql(f'SELECT COLUMNS(*)::VARCHAR FROM {of} ORDER BY ALL').fetchall()
for name in names:
    parquet = rows(f\"'{sys.argv[1]}/{name}-*.parquet'\")
    csv = rows(f\"read_csv('{sys.argv[2]}/{name}.csv', all_varchar=true, header=true, nullstr='')\")
    blank = lambda rows: [tuple(v if v != '' else None for v in row) for row in rows]
    assert sorted(map(str, blank(parquet))) == sorted(map(str, blank(csv))), (name, parquet[:1], csv[:1])
print(len(names))";
    let tables: usize = python(script, [&parallel(), &to]).parse().unwrap();
    assert!(tables > 10, "{tables}");
    let one = export(&parallel(), &["--to", "csv", "--table", "meta"]);
    assert!(text(&one.stdout).starts_with("host,key,value\n"), "{}", text(&one.stdout));
}

#[test]
fn pandas_reads_a_stream_of_arrow() {
    let work = tempfile::tempdir().unwrap();
    let to = work.path().join("spans.arrow");
    let out = export(&parallel(), &["--to", "arrow", "--table", "spans", "-o", to.to_str().unwrap()]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let script = "import duckdb, pyarrow as pa, sys
stream = pa.ipc.open_stream(sys.argv[2]).read_all()
spans = duckdb.sql(f\"SELECT count(*), sum(dur_ns)::BIGINT FROM '{sys.argv[1]}/spans-*.parquet'\").fetchall()[0]
assert (stream.num_rows, sum(stream['dur_ns'].to_pylist())) == spans, spans
print(stream.to_pandas()['op'].nunique())";
    assert!(python(script, [&parallel(), &to]).parse::<usize>().unwrap() > 5);
}

#[test]
fn stacks_weigh_what_their_calls_do() {
    let work = tempfile::tempdir().unwrap();
    let log = work.path().join("log.iotrace");
    flushes(&log, 20);
    let folded = |dir: &Path, weight: &str| {
        let out = export(dir, &["--to", "folded", "--weight", weight]);
        assert!(out.status.success(), "{}", text(&out.stderr));
        let lines = text(&out.stdout);
        let stack = |line: &str| line.rsplit_once(' ').map(|(stack, n)| (stack.to_owned(), n.parse::<i64>().unwrap()));
        lines.lines().filter_map(stack).collect::<Vec<_>>()
    };
    assert_eq!(folded(&log, "calls").iter().map(|(_, n)| *n).collect::<Vec<_>>(), [20]);
    let time = folded(&log, "time");
    assert!(time.len() == 1 && time[0].0.ends_with(";syscall fsync") && time[0].1 == 100_000_000, "{time:?}");
    // Of a parallel program: layers inside each other, and all of their time.
    let time = folded(&parallel(), "time");
    let nested = |(stack, _): &(String, i64)| stack.contains(";hdf5 H5Dwrite;mpiio ") && stack.contains(";syscall ");
    assert!(time.iter().any(nested), "{time:?}");
    let script = "import duckdb, sys
print(duckdb.sql(f\"SELECT sum(self_ns)::BIGINT FROM '{sys.argv[1]}/spans-*.parquet' WHERE flags & 4 = 0\").fetchall()[0][0])";
    let all: i64 = python(script, [&parallel(), &log]).parse().unwrap();
    assert_eq!(time.iter().map(|(_, n)| n).sum::<i64>(), all);
    let waits = folded(&parallel(), "wait");
    assert!(waits.iter().all(|(stack, _)| stack.rsplit(';').next().unwrap().starts_with("wait ")), "{waits:?}");
}

/// Frames with what they weigh together with those inside them, as `name (n`.
fn drawn_by_inferno(folded: &str) -> Vec<String> {
    let mut options = inferno::flamegraph::Options::default();
    options.min_width = 0.0;
    "of it".clone_into(&mut options.count_name);
    let mut svg = Vec::new();
    inferno::flamegraph::from_lines(&mut options, folded.lines(), &mut svg).unwrap();
    let svg = text(&svg);
    let titles = svg.split("<title>").skip(1).map(|rest| rest.split("</title>").next().unwrap());
    let plain = titles.map(|title| title.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"));
    let mut frames: Vec<_> = plain.map(|title| title.split(" of it").next().unwrap().replace(',', "")).collect();
    frames.sort();
    frames
}

/// The same by addition.
fn added(folded: &str) -> Vec<String> {
    let mut frames = std::collections::BTreeMap::<Vec<&str>, i64>::new();
    for line in folded.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let stack: Vec<_> = stack.split(';').collect();
        for depth in 0..=stack.len() {
            *frames.entry(stack[..depth].to_vec()).or_default() += weight.parse::<i64>().unwrap();
        }
    }
    let name = |stack: &[&str]| stack.last().map_or("all", |name| *name).replace(',', "");
    let mut frames: Vec<_> = frames.into_iter().map(|(stack, sum)| format!("{} ({sum}", name(&stack))).collect();
    frames.sort();
    frames
}

/// Checks that inferno draws what is written, and all of it.
fn is_drawn(dir: &Path, weight: &str, all: i64) {
    let out = export(dir, &["--to", "folded", "--weight", weight]);
    let folded = text(&out.stdout);
    let frames = drawn_by_inferno(&folded);
    assert_eq!(frames, added(&folded), "{weight}");
    assert!(frames.contains(&format!("all ({all}")), "{weight}: {all} {frames:?}");
}

#[test]
fn a_program_that_draws_flame_graphs_reads_the_same_weights() {
    let script = "import duckdb, sys
print(*duckdb.sql(f'''SELECT (sum(self_ns) FILTER (flags & 4 = 0))::BIGINT, count(*),
  (sum(bytes) FILTER (layer = 'syscall' AND layer_top))::BIGINT FROM '{sys.argv[1]}/spans-*.parquet' ''').fetchall()[0])";
    let sums = python(script, [&parallel(), &parallel()]);
    for (weight, sum) in ["time", "calls", "bytes"].into_iter().zip(sums.split_whitespace()) {
        is_drawn(&parallel(), weight, sum.parse().unwrap());
    }
    // Of waits, where the calls have them: 300 on a CPU, 500 for the journal, and the rest asleep.
    let work = tempfile::tempdir().unwrap();
    let dir = work.path().join("waits.iotrace");
    let mut trace = Trace::default();
    for n in 0..3 {
        let call = trace.call(1, None, (Layer::Syscall, "fsync", Kind::Sync), n * 2000, 1000);
        let span = trace.edit(call);
        (span.cpu_ns, span.runq_ns, span.journal_ns) = (Some(300), Some(0), Some(500));
    }
    let options = Options { path: &dir, host: "node1", force: false, owner: None, views: VIEWS };
    let mut writer = DatasetWriter::create(options).unwrap();
    trace.finish().into_iter().for_each(|row| writer.push(row).unwrap());
    writer.finish().unwrap();
    is_drawn(&dir, "wait", 3 * 700);
}

/// The release of speedscope that `cargo xtask test` fetches.
fn speedscope() -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target");
    let named = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("speedscope-");
    let mut all = std::fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().path());
    let package =
        all.find(named).unwrap_or_else(|| panic!("no speedscope in {}: run `cargo xtask test`", target.display()));
    package.join("package")
}

/// Its table of functions in a browser: of each what it weighs, alone and with all inside it.
#[test]
fn speedscope_shows_the_same_weights() {
    let work = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/html/speedscope.py");
    for weight in ["time", "calls"] {
        let out = export(&parallel(), &["--to", "folded", "--weight", weight]);
        let folded = work.path().join(weight);
        std::fs::write(&folded, &out.stdout).unwrap();
        let mut command = std::process::Command::new(sql::python());
        let shown = command.arg(&script).arg(speedscope()).arg(&folded).output().unwrap();
        assert!(shown.status.success(), "{}", text(&shown.stderr));
        let weights =
            text(&out.stdout).lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<i64>().unwrap()).sum::<i64>();
        let (functions, all) =
            text(&shown.stdout).trim().split_once(' ').map(|(n, all)| (n.to_owned(), all.to_owned())).unwrap();
        assert!(functions.parse::<usize>().unwrap() > 50 && all == weights.to_string(), "{weight}: {functions} {all}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    for what in ["csv --table spans", "arrow --table spans", "folded", "perfetto"] {
        let tracer = env!("CARGO_BIN_EXE_iotrace-bpf");
        // Nothing reads: the first write fails.
        let script =
            format!("{{ sleep 0.2; '{tracer}' export '{}' --to {what}; echo $? >&2; }} | true", parallel().display());
        let out = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(text(&out.stderr), "0\n", "{what}");
    }
}

#[test]
fn wrong_wishes_are_named() {
    let aggregate = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/aggregate");
    for (code, dir, args, why) in [
        (2, parallel(), vec!["--to", "csv"], "give a directory for all tables"),
        (2, parallel(), vec!["--to", "arrow"], "one table: --table spans"),
        (
            2,
            parallel(),
            vec!["--to", "csv", "--table", "span"],
            "no table span (did you mean \"spans\"?); tables are: spans",
        ),
        (125, parallel(), vec!["--to", "csv", "-o", "/"], "cannot create /"),
        (2, parallel(), vec!["--to", "folded", "--table", "spans"], "leave --table out"),
        (2, parallel(), vec!["--to", "perfetto", "--table", "spans"], "leave --table out"),
        (125, aggregate.clone(), vec!["--to", "folded"], "recorded with --aggregate"),
        (125, aggregate, vec!["--to", "perfetto"], "recorded with --aggregate"),
        (125, "/nowhere".into(), vec!["--to", "folded"], "/nowhere"),
    ] {
        let out = export(&dir, &args);
        assert!(out.status.code() == Some(code) && text(&out.stderr).contains(why), "{args:?}: {}", text(&out.stderr));
    }
}
