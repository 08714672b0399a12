//! What the program asked for, by the layer that it called, and what became of it.

use crate::base::text::{bytes, escape};
use crate::export::report::render::mark;
use crate::export::report::render::table::{Cell, Column, Table, Value};
use crate::export::report::{Bytes, Called, Chain, ClassBytes, Report, Step};
use crate::vocabulary::{LAYERS, Layer};

fn step(chain: &Chain, layer: Layer) -> Option<&Step> {
    chain.steps.iter().find(|step| step.layer == layer.name() && step.not_covered.is_none())
}

fn whole(chain: &Chain, layer: Layer) -> bool {
    step(chain, layer).is_none_or(|step| step.complete)
}

/// A line for each layer that the program called, and the sums, reads before writes.
pub fn table(report: &Report) -> Table<'_> {
    let chains = [("read", &report.amplification.read), ("write", &report.amplification.write)];
    // Layers that move bytes for other layers; those that only the program calls show in what was asked.
    let moves = |c: &Called, layer: Layer| c.layer != layer.name() && c.moved.contains_key(layer.name());
    let between: Vec<Layer> = LAYERS
        .into_iter()
        .filter(|layer| *layer < Layer::Syscall)
        .filter(|layer| chains.iter().any(|(_, chain)| chain.by_called.iter().any(|c| moves(c, *layer))))
        .collect();
    let mut head = vec![
        Column::name("kind", "", 0),
        Column::name("called", "called", 0),
        Column::number("calls", "calls", 4),
        Column::number("asked", "asked", 0),
    ];
    head.extend(between.iter().map(|layer| Column::number(layer.name(), layer.name(), 3)));
    head.extend([
        Column::number("syscall", "syscall", 0),
        Column::number("syscall_to_asked", "to asked", 0),
        Column::number("device", "device", 0),
        Column::number("device_to_asked", "to asked", 0),
    ]);
    let (mut rows, mut foot) = (Vec::new(), Vec::new());
    for (kind, chain) in chains {
        if chain.asked_calls > 0 || chain.steps.iter().any(|step| step.calls > 0) {
            add((&mut rows, &mut foot), kind, chain, &between);
        }
    }
    Table { head, rows: rows.into(), most: usize::MAX, foot, ..Table::default() }
}

fn add((rows, foot): (&mut Vec<Vec<Cell>>, &mut Vec<String>), kind: &str, chain: &Chain, between: &[Layer]) {
    let times = |layer, value| Cell::of(value, Value::Times).sure(whole(chain, layer) && chain.asked_complete);
    let device = |n: i64| Cell::from(Value::Bytes(n)).sure(whole(chain, Layer::Block));
    let linked = chain.by_called.iter().fold(0i64, |sum, c| sum.saturating_add(c.device));
    for c in &chain.by_called {
        let cell = |layer: &Layer| {
            Cell::from(c.moved.get(layer.name()).copied().unwrap_or_default()).sure(whole(chain, *layer))
        };
        let mut cells = vec![Cell::name(kind), Cell::name(c.layer), Value::Count(c.asked_calls).into()];
        cells.push(Cell::from(c.asked).sure(chain.asked_complete));
        cells.extend(between.iter().map(cell));
        cells.extend([cell(&Layer::Syscall), times(Layer::Syscall, c.syscall_to_asked)]);
        cells.extend([device(c.device), times(Layer::Block, c.device_to_asked)]);
        rows.push(cells);
    }
    let all = |layer: &Layer| {
        let bytes = step(chain, *layer).map_or(Bytes::default(), |step| step.bytes);
        Cell::from(bytes).sure(whole(chain, *layer))
    };
    let mut cells = vec![Cell::name(kind), Cell::name("all"), Value::Count(chain.asked_calls).into()];
    cells.push(Cell::from(chain.asked).sure(chain.asked_complete));
    cells.extend(between.iter().map(all));
    cells.extend([all(&Layer::Syscall), times(Layer::Syscall, step(chain, Layer::Syscall).and_then(|s| s.to_asked))]);
    // Requests of other programs are no amplification of this one.
    let to_asked = chain.asked.sum.filter(|n| *n > 0 && linked > 0).map(|n| linked as f64 / n as f64);
    cells.extend([device(linked), times(Layer::Block, to_asked)]);
    rows.push(cells);
    if let Some(block) = step(chain, Layer::Block) {
        let class = |c: &ClassBytes| format!("{} {} ({})", escape(c.class), bytes(c.bytes), c.requests);
        let classes: Vec<_> = block.classes.iter().map(class).collect();
        let unlinked = block.bytes.sum.unwrap_or(0).saturating_sub(linked);
        let rest = match unlinked {
            n if n > 0 => format!("; linked to no call: {} (mapped files, other programs)", bytes(n)),
            _ => String::new(),
        };
        let classes = mark(block.complete, classes.join(", "));
        foot.push(format!("{kind} requests of all programs by class (number): {classes}{rest}"));
    }
}
