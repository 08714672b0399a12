//! The sections of a report, in their order: what each is called, when it is there, and how it is made.

use crate::base::usage;
use crate::export::report::Report;
use crate::export::report::render::style::Line;
use crate::export::report::render::table::Table;
use crate::export::report::render::{Look, tables, text};
use crate::vocabulary::Layer;

/// A section.
pub struct Section {
    /// For `--section`.
    pub name: &'static str,
    /// For `--help`, and what a wrong name is answered with.
    pub about: &'static str,
    /// Is it there without `--section`?
    pub usual: fn(&Report) -> bool,
    pub title: fn(&Report) -> String,
    pub table: fn(&Report) -> Table<'_>,
    /// What text shows in place of the table.
    pub text: Option<fn(&Report, &Look) -> Vec<Line>>,
}

const fn never(_: &Report) -> bool {
    false
}

const fn always(_: &Report) -> bool {
    true
}

/// The section that needs a pass over the calls for itself, and nothing of the others.
pub const FINDINGS: &str = "findings";

/// In the order of the report.
pub const SECTIONS: [Section; 25] = [
    Section {
        name: "run",
        about: "what ran, when, where, and what tracing cost",
        usual: always,
        title: |_| "Run".to_owned(),
        table: text::run::table,
        text: Some(text::run::lines),
    },
    Section {
        name: FINDINGS,
        about: "what is wrong, and the seconds that it costs",
        usual: always,
        title: |_| "Findings".to_owned(),
        table: text::findings::table,
        text: Some(text::findings::lines),
    },
    Section {
        name: "time",
        about: "time in calls by layer and wait",
        usual: |report| !report.time.is_empty(),
        title: text::time::title,
        table: text::time::table,
        text: Some(text::time::lines),
    },
    Section {
        name: "files",
        about: "calls, time and bytes by file",
        usual: |report| !report.files.is_empty(),
        title: tables::files::title,
        table: tables::files::table,
        text: None,
    },
    Section {
        name: "functions",
        about: "calls, time and bytes by function",
        usual: |report| report.layers.iter().any(|layer| layer.layer != Layer::Block.name()),
        title: |_| "Functions, by their own time".to_owned(),
        table: tables::functions::functions,
        text: None,
    },
    Section {
        name: "ranks",
        about: "calls, bytes and time by rank, or by process",
        usual: |report| report.ranks.rows.len() > 1,
        title: tables::ranks::title,
        table: tables::ranks::table,
        text: None,
    },
    Section {
        name: "phases",
        about: "what each layer did inside the program's phases",
        usual: |report| !report.phases.is_empty(),
        title: |_| "Phases: outermost calls of each layer inside them, on the same thread".to_owned(),
        table: tables::phases::table,
        text: None,
    },
    Section {
        name: "nodes",
        about: "the nodes, and how far their clocks are apart",
        usual: |report| report.nodes.len() > 1,
        title: tables::nodes::title,
        table: tables::nodes::table,
        text: None,
    },
    Section {
        name: "collectives",
        about: "collective MPI-IO calls by function and file",
        usual: |report| !report.collectives.is_empty(),
        title: |_| "Collective calls".to_owned(),
        table: tables::collectives::table,
        text: None,
    },
    Section {
        name: "aggregators",
        about: "the ranks that made system calls in collective calls",
        usual: |report| report.collectives.iter().any(|row| row.is_transfer() && row.aggregators() > 0),
        title: |_| "Aggregators: ranks that read or wrote in collective calls".to_owned(),
        table: tables::collectives::aggregators,
        text: None,
    },
    Section {
        name: "sizes",
        about: "reads and writes by size, and how they follow each other",
        usual: |report| !report.sizes.is_empty(),
        title: |_| "Sizes of reads and writes, and how they follow each other".to_owned(),
        table: tables::sizes::table,
        text: None,
    },
    Section {
        name: "errors",
        about: "failed calls by error and directory",
        usual: |report| !report.errors.is_empty(),
        title: tables::errors::title,
        table: tables::errors::table,
        text: None,
    },
    Section {
        name: "devices",
        about: "requests by device, of all programs",
        usual: |report| !report.devices.is_empty(),
        title: |_| "Devices: requests of all programs".to_owned(),
        table: tables::devices::table,
        text: None,
    },
    Section {
        name: "stacks",
        about: "where slow calls were made (--stacks)",
        usual: |report| !report.slow_stacks.is_empty(),
        title: |_| "Stacks of slow calls".to_owned(),
        table: text::stacks::table,
        text: Some(text::stacks::lines),
    },
    Section {
        name: "speed",
        about: "functions against earlier runs (--baseline)",
        usual: |report| !report.speed.is_empty(),
        title: tables::speed::title,
        table: tables::speed::table,
        text: None,
    },
    Section {
        name: "slowest",
        about: "the slowest calls, down to the device",
        usual: never,
        title: |_| "Slowest calls".to_owned(),
        table: text::slowest::table,
        text: Some(text::slowest::lines),
    },
    Section {
        name: "layers",
        about: "calls, bytes and time by layer",
        usual: never,
        title: |_| "Layers: calls, bytes and inclusive time of outermost calls; own time of all".to_owned(),
        table: tables::functions::layers,
        text: None,
    },
    Section {
        name: "waiting",
        about: "what system calls spent their time on",
        usual: never,
        title: |_| "Where system calls spent their time".to_owned(),
        table: tables::waiting::table,
        text: None,
    },
    Section {
        name: "amplification",
        about: "bytes asked for against bytes of each layer below",
        usual: never,
        title: |_| "Amplification: bytes asked for by the program, and what layers below moved for them".to_owned(),
        table: tables::amplification::table,
        text: None,
    },
    Section {
        name: "bandwidth",
        about: "size and bandwidth of calls by process and file",
        usual: never,
        title: |_| "Bandwidth of system calls that moved bytes, by process and file (v_bandwidth has all)".to_owned(),
        table: tables::bandwidth::table,
        text: None,
    },
    Section {
        name: "composition",
        about: "how long each layer takes a program of several threads",
        usual: never,
        title: |_| {
            "Composition: of parts side by side the longest, parts one after the other added; throughputs added"
                .to_owned()
        },
        table: tables::composition::table,
        text: None,
    },
    Section {
        name: "lookups",
        about: "paths that were looked for in vain",
        usual: never,
        title: tables::lookups::title,
        table: tables::lookups::table,
        text: None,
    },
    Section {
        name: "handles",
        about: "how files were opened, library by library",
        usual: never,
        title: |_| "Handles".to_owned(),
        table: tables::handles::table,
        text: None,
    },
    Section {
        name: "losses",
        about: "events that were lost, by cause",
        usual: never,
        title: |_| "Losses".to_owned(),
        table: text::coverage::losses,
        text: None,
    },
    Section {
        name: "coverage",
        about: "which layers were seen, and by which probes",
        usual: always,
        title: |_| "Coverage".to_owned(),
        table: text::coverage::table,
        text: Some(text::coverage::lines),
    },
];

/// The section of that name.
///
/// # Errors
/// Names all sections when there is none.
pub fn section(name: &str) -> Result<&'static Section, String> {
    SECTIONS.iter().find(|section| section.name == name).ok_or_else(|| {
        let names: Vec<_> = SECTIONS.iter().map(|section| section.name).collect();
        format!("no such section{}; sections are: all, {}", usage::hint(name, &names), names.join(", "))
    })
}
