//! `docs/metrics.md` names the metrics that the code has, with type, unit and labels, and no others.
use iotrace_bpf::metrics::families::{ALL, Type};
use iotrace_bpf::node::figures::FIGURES;
use std::fs;

fn text(name: &str) -> String {
    fs::read_to_string(format!("{}/docs/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn the_text_describes_every_metric_of_the_code_and_no_other() {
    let lines = text("metrics.md");
    // Cells of the tables of six columns.
    let rows = lines.lines().filter_map(|l| {
        let cells: Vec<String> = l.strip_prefix("| `")?.split('|').map(|c| c.trim().replace('`', "")).collect();
        (cells.len() == 7).then(|| cells[..4].to_vec())
    });
    let kind = |kind: Type| match kind {
        Type::Counter => "counter",
        Type::Gauge => "gauge",
        Type::Histogram => "histogram",
        Type::Info => "info",
    };
    let code = ALL
        .iter()
        .map(|(f, _)| vec![f.name.to_owned(), kind(f.kind).to_owned(), f.unit.to_owned(), f.labels.to_owned()])
        .collect::<Vec<_>>();
    assert_eq!(rows.collect::<Vec<_>>(), code);
}

#[test]
fn the_figures_of_the_node_have_the_same_names_in_the_dataset() {
    let schema = text("schema.md");
    for figure in FIGURES {
        let name = figure.name();
        assert!(ALL.iter().any(|(f, _)| f.name == format!("iotrace_{name}")), "{name}");
        assert!(schema.contains(&format!("| `{name}` |")), "docs/schema.md lacks {name}");
    }
}
