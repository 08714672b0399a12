//! Every table of a dataset, written and read back: by us, by `DuckDB` and by pandas.

use std::fmt::Debug;
use std::path::Path;
use std::process::Command;

use crate::datasets::sample::{Sample, sample};
use anyhow::Result;
use iotrace_bpf::export::{Dataset, DatasetWriter, Options, TABLES, Table};
use iotrace_bpf::rows::{Row, Span};
use tempfile::TempDir;

/// Writes the sample and gives the number of rows of every table.
fn write(path: &Path, sample: &Sample) -> Vec<(&'static str, u64)> {
    let options = Options { path, host: "node1", force: false, owner: None, views: "" };
    let mut writer = DatasetWriter::create(options).unwrap();
    macro_rules! push {
        ($($table:ident: $row:ident),+) => {
            $(for row in &sample.$table {
                writer.push(Row::$row(row.clone().into())).unwrap();
            })+
        };
    }
    push!(spans: Span, block: Block, block_links: BlockLink, block_bytes: BlockBytes, rpc: Rpc, files: File, file_paths: FilePath, paths: CallPath,
        handles: Handle, objects: Object, processes: Process, threads: Thread, mounts: Mount, rollup: Rollup, file_rollup: FileRollup, hist: Hist, stacks: Stack,
        metrics: Metric, losses: Loss, coverage: Coverage, meta: Meta);
    writer.finish().unwrap().rows
}

fn comes_back<T: Table + Debug + PartialEq>(dataset: &Dataset, written: &[T]) {
    let mut read = Vec::new();
    let each = |row: T| -> Result<()> {
        read.push(row);
        Ok(())
    };
    dataset.rows(each).unwrap();
    assert_eq!(read, written, "{}", T::NAME);
}

#[test]
fn every_table_comes_back_as_written() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t.iotrace");
    let sample = sample();
    let rows = write(&path, &sample);
    assert_eq!(rows.iter().map(|(table, _)| *table).collect::<Vec<_>>(), TABLES);
    assert!(rows.iter().all(|(_, rows)| *rows > 0), "a table without a sample: {rows:?}");
    let dataset = Dataset::open(&path).unwrap();
    comes_back(&dataset, &sample.spans);
    comes_back(&dataset, &sample.block);
    comes_back(&dataset, &sample.block_links);
    comes_back(&dataset, &sample.block_bytes);
    comes_back(&dataset, &sample.rpc);
    comes_back(&dataset, &sample.files);
    comes_back(&dataset, &sample.file_paths);
    comes_back(&dataset, &sample.paths);
    comes_back(&dataset, &sample.handles);
    comes_back(&dataset, &sample.objects);
    comes_back(&dataset, &sample.processes);
    comes_back(&dataset, &sample.threads);
    comes_back(&dataset, &sample.mounts);
    comes_back(&dataset, &sample.rollup);
    comes_back(&dataset, &sample.file_rollup);
    comes_back(&dataset, &sample.hist);
    comes_back(&dataset, &sample.stacks);
    comes_back(&dataset, &sample.metrics);
    comes_back(&dataset, &sample.losses);
    comes_back(&dataset, &sample.coverage);
    comes_back(&dataset, &sample.meta);
    assert_eq!(dataset.warnings(), []);
}

/// Prints `table rows` and, per column, its name and what `DuckDB` and pandas take it for.
const PYTHON: &str = r#"
import sys, duckdb, pandas
path, tables = sys.argv[1], sys.argv[2:]
for table in tables:
    glob = f"{path}/{table}-*.parquet"
    rows = duckdb.sql(f"SELECT count(*) FROM '{glob}'").fetchall()[0][0]
    frame = pandas.read_parquet(f"{path}/{table}-00002.parquet")
    assert len(frame) == rows, (table, len(frame), rows)
    hosts = duckdb.sql(f"SELECT DISTINCT host FROM '{glob}'").fetchall()
    assert hosts == [("node1",)], (table, hosts)
    print(table, rows)
    for name, kind, *_ in duckdb.sql(f"DESCRIBE SELECT * FROM '{glob}'").fetchall():
        nulls = duckdb.sql(f"SELECT count(*) FROM '{glob}' WHERE \"{name}\" IS NULL").fetchall()[0][0]
        assert nulls == frame[name].isna().sum(), (table, name, nulls)
        dtype = "category" if frame[name].dtype == "category" else frame[name].dtype.kind
        print(" ", name, kind, dtype, f"{nulls} null" if nulls else "", sep="\t")
"#;

fn python(script: &str, arguments: &[&str]) -> String {
    let python = concat!(env!("CARGO_MANIFEST_DIR"), "/target/venv/bin/python");
    assert!(Path::new(python).exists(), "{python} is missing: run cargo xtask test");
    let output = Command::new(python).arg("-c").arg(script).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn duckdb_and_pandas_see_the_same_tables() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t.iotrace");
    write(&path, &sample());
    let arguments = [&[path.to_str().unwrap()], TABLES.as_slice()].concat();
    insta::assert_snapshot!(python(PYTHON, &arguments));
}

#[test]
fn duckdb_finds_every_table_of_a_trace_without_rows() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t.iotrace");
    let options = Options { path: &path, host: "node1", force: false, owner: None, views: "" };
    drop(DatasetWriter::create(options).unwrap());
    let query = r#"
import sys, duckdb
for table in sys.argv[2:]:
    print(table, duckdb.sql(f"SELECT count(*), count(host) FROM '{sys.argv[1]}/{table}-*.parquet'").fetchall()[0])
"#;
    let arguments = [&[path.to_str().unwrap()], TABLES.as_slice()].concat();
    let expected: Vec<_> = TABLES.iter().map(|table| format!("{table} (0, 0)")).collect();
    assert_eq!(python(query, &arguments).lines().collect::<Vec<_>>(), expected);
}

#[test]
fn duckdb_reads_the_values_of_nullable_and_delta_columns() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t.iotrace");
    let sample = sample();
    write(&path, &sample);
    let query = r#"
import sys, duckdb
glob = f"{sys.argv[1]}/spans-*.parquet"
columns = "span_id, parent_id, start_ns, \"offset\", ret, layer, kind, op, layer_top::INT"
for row in duckdb.sql(f"SELECT {columns} FROM '{glob}' ORDER BY span_id").fetchall():
    print(*row)
"#;
    let shown = |value: Option<i64>| value.map_or_else(|| "None".to_owned(), |v| v.to_string());
    let expected: Vec<_> = sample
        .spans
        .iter()
        .map(|s| {
            let (parent, offset, ret) = (shown(s.parent_id), shown(s.offset), shown(s.ret));
            let Span { span_id, start_ns, layer, op, layer_top, .. } = s;
            let (kind, top) = (s.kind.name(), u8::from(*layer_top));
            format!("{span_id} {parent} {start_ns} {offset} {ret} {layer} {kind} {op} {top}")
        })
        .collect();
    assert_eq!(python(query, &[path.to_str().unwrap()]).lines().collect::<Vec<_>>(), expected);
}
