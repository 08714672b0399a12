//! Keys that do the same on every screen, as the help shows them.

/// Key, what it does.
pub type Binding = (&'static str, &'static str);

/// On every screen.
pub const EVERYWHERE: &[Binding] = &[
    ("as on the tabs", "screens"),
    ("Tab S-Tab", "next, previous table"),
    ("arrows hjkl", "select; h l: sort by another column"),
    ("PgUp PgDn g G", "page, first row, last row; C-u C-d: half a page"),
    ("Enter", "look into the selected row"),
    ("Esc Backspace", "back; then: end reading"),
    ("d", "all of the selected row"),
    ("/", "filter calls"),
    ("n N F3", "search rows: the next, the one before, for what"),
    ("s F6 < > I", "sort: menu, column left, right, reverse"),
    ("z", "freeze the figures (tracing and recording go on)"),
    ("[ ] { }", "window: a tenth, a whole one back, forth"),
    ("+ - =", "window: half as long, twice as long, everything"),
    (":", "window: go to a time (12.5s, 90s, 2m)"),
    ("mouse", "click, again: look into; drag on a chart over time: window"),
    ("R", "start or stop recording a dataset"),
    ("W", "--flight: write what is kept in memory"),
    ("x", "export the selection as a dataset"),
    ("S y", "SQL behind this table, behind the selected row (copied)"),
    ("u", "bytes: KiB or kB"),
    ("T", "colours: for dark, for light backgrounds, 16, none"),
    ("o", "only rows with calls"),
    ("e", "this table alone on the screen"),
    ("w", "keep sort, units, grouping and colours for the next time"),
    ("O", "output of the command: larger, hidden, a part"),
    ("!", "type a line to the command (Ctrl-D: the end of its input)"),
    ("L", "messages"),
    ("? F1", "this help"),
    ("q Ctrl-C", "quit (asks while recording); Q: without asking"),
    ("Ctrl-C", "while a command runs: interrupt it"),
];
