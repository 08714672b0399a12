//! `docs/schema.md` names the tables and columns that the code has, with their types, and no others.
use std::collections::BTreeMap;

use arrow_schema::DataType;
use iotrace_bpf::export::{Encoding, TABLES, Table, VIEWS, schema};
use iotrace_bpf::rows::{
    Block, BlockBytes, BlockLink, CallPath, Coverage, File, FilePath, FileRollup, Handle, Hist, Loss, Meta, Metric,
    Mount, Object, Process, Rollup, Rpc, Span, Stack, Thread,
};

/// One column: name, type, whether it may be null, encoding.
type Line = [String; 4];
type Tables = BTreeMap<String, Vec<Line>>;

const HEAD: [&str; 4] = ["column", "type", "null", "encoding"];

fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Int8 => "int8".into(),
        DataType::Int16 => "int16".into(),
        DataType::Int32 => "int32".into(),
        DataType::Int64 => "int64".into(),
        DataType::Float64 => "double".into(),
        DataType::Boolean => "bool".into(),
        DataType::Utf8 => "string".into(),
        DataType::Dictionary(key, value) if **key == DataType::Int32 && **value == DataType::Utf8 => "category".into(),
        DataType::List(item) => format!("list of {}", type_name(item.data_type())),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(sides) if sides.len() == 2 => {
                format!("map of {} to {}", type_name(sides[0].data_type()), type_name(sides[1].data_type()))
            }
            other => panic!("a map of {other}"),
        },
        other => panic!("docs/schema.md has no name for {other}: give it one, here and there"),
    }
}

fn add<T: Table>(tables: &mut Tables) {
    // `host` stands before the columns that a table chooses the encoding of.
    let chosen = T::columns().into_iter().map(|c| c.encoding);
    let lines = schema::<T>()
        .fields()
        .iter()
        .zip(std::iter::once(Encoding::Dict).chain(chosen))
        .map(|(field, encoding)| {
            let encoding = match encoding {
                Encoding::Delta | Encoding::Time => "delta",
                Encoding::Plain => "plain",
                Encoding::Dict => "dict",
            };
            let null = if field.is_nullable() { "yes" } else { "no" };
            [field.name().clone(), type_name(field.data_type()), null.into(), encoding.into()]
        })
        .collect();
    tables.insert(T::NAME.into(), lines);
}

fn of_the_code() -> Tables {
    let mut tables = Tables::new();
    add::<Span>(&mut tables);
    add::<Block>(&mut tables);
    add::<BlockLink>(&mut tables);
    add::<BlockBytes>(&mut tables);
    add::<Rpc>(&mut tables);
    add::<File>(&mut tables);
    add::<FilePath>(&mut tables);
    add::<CallPath>(&mut tables);
    add::<Handle>(&mut tables);
    add::<Object>(&mut tables);
    add::<Process>(&mut tables);
    add::<Thread>(&mut tables);
    add::<Mount>(&mut tables);
    add::<Rollup>(&mut tables);
    add::<FileRollup>(&mut tables);
    add::<Hist>(&mut tables);
    add::<Stack>(&mut tables);
    add::<Metric>(&mut tables);
    add::<Loss>(&mut tables);
    add::<Coverage>(&mut tables);
    add::<Meta>(&mut tables);
    tables
}

/// The cells of a line of a Markdown table.
fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    // A bar inside a cell is escaped; no column that is compared has one.
    Some(inner.replace("\\|", "/").split('|').map(|c| c.trim().trim_matches('`').to_owned()).collect())
}

/// The tables below headings like "### `spans`": of each the first Markdown table, whose head must be `HEAD`.
fn of_the_text(text: &str) -> Tables {
    let mut tables = Tables::new();
    let name_of = |line: &str| Some(line.strip_prefix("### `")?.strip_suffix('`')?.to_owned());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(name) = name_of(line) else { continue };
        while lines.next_if(|l| cells(l).is_none() && !l.starts_with('#')).is_some() {}
        let mut rows = std::iter::from_fn(|| lines.next_if(|l| cells(l).is_some())).filter_map(cells);
        let head = rows.next().unwrap_or_default();
        assert!(head.iter().take(4).eq(HEAD.iter()), "{name}: the first table must begin with {HEAD:?}, not {head:?}");
        let columns = rows.skip(1).map(|row| {
            assert_eq!(row.len(), HEAD.len() + 1, "{name}: a line has other cells than the head: {row:?}");
            [0, 1, 2, 3].map(|at| row[at].clone())
        });
        let columns = columns.collect();
        assert!(tables.insert(name.clone(), columns).is_none(), "{name} is described twice");
    }
    tables
}

#[test]
fn the_text_describes_every_column_of_the_code_and_no_other() {
    let code = of_the_code();
    let mut names = TABLES.map(str::to_owned);
    names.sort();
    assert!(code.keys().eq(&names), "a table of export::TABLES is missing in this test");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/schema.md");
    let text = of_the_text(&std::fs::read_to_string(path).unwrap());
    assert!(text.keys().eq(code.keys()), "tables: the text has {:?}, the code {:?}", text.keys(), code.keys());
    for (table, lines) in &code {
        let written = &text[table];
        for (line, write) in lines.iter().zip(written) {
            assert_eq!(write, line, "docs/schema.md, {table}: left the text, right the code ({HEAD:?})");
        }
        let left = |of: &[Line], from: usize| of.iter().skip(from).map(|l| l[0].clone()).collect::<Vec<_>>();
        assert_eq!(left(written, lines.len()), [""; 0], "{table}: only the text has these");
        assert_eq!(left(lines, written.len()), [""; 0], "{table}: only the code has these");
    }
}

#[test]
fn a_column_that_the_text_lacks_is_noticed() {
    let text = "### `meta`\n\n| column | type | null | encoding | meaning |\n|---|---|---|---|---|\n\
                | `host` | category | no | dict | of \\| and |\n\nx\n";
    let tables = of_the_text(text);
    assert_eq!(tables["meta"], [["host", "category", "no", "dict"].map(str::to_owned)]);
    assert_ne!(tables["meta"], of_the_code()["meta"]);
}

#[test]
fn every_view_is_named() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/schema.md")).unwrap();
    let made = VIEWS.lines().filter_map(|line| line.strip_prefix("CREATE OR REPLACE VIEW ")?.split_once(' '));
    let named: Vec<_> = made.map(|(name, _)| name).filter(|name| name.starts_with("v_")).collect();
    assert!(named.len() > 30);
    let missing: Vec<_> = named.iter().filter(|name| !text.contains(&format!("\n| `{name}` |"))).collect();
    assert_eq!(missing, [] as [&&str; 0]);
}
