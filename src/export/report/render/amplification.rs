//! What the program asked for and what became of it, as text.

use crate::export::report::render::{known, mark};
use crate::export::report::{Bytes, Called, Chain, ClassBytes};
use crate::text::Set::{Name, Right};
use crate::text::{Column, bytes, escape, ratio, table};
use crate::vocabulary::{LAYERS, Layer};

/// One direction: a line for each layer that the program called, the sums, and the requests by class.
pub fn text(name: &str, chain: &Chain, out: &mut String, width: usize) {
    let asked = mark(chain.asked_complete, known(chain.asked));
    let mut title = match chain.asked_calls {
        0 => format!("{name} amplification: the program itself asked for nothing"),
        n => format!("{name} amplification: the program asked for {asked} in {n} calls"),
    };
    match chain.asked.unknown_calls {
        0 => {}
        n => title += &format!(" (unknown for {n}: taken from the calls below)"),
    }
    *out += &format!("\n{title}\n");
    let step = |layer: Layer| chain.steps.iter().find(|step| step.layer == layer.name() && step.not_covered.is_none());
    // Layers that move bytes for other layers; those that only the program calls show in what was asked.
    let between: Vec<Layer> = LAYERS
        .into_iter()
        .filter(|layer| *layer < Layer::Syscall)
        .filter(|layer| chain.by_called.iter().any(|c| c.layer != layer.name() && c.moved.contains_key(layer.name())))
        .collect();
    let mut head: Vec<Column> = vec![("called", Name, 0), ("calls", Right, 4), ("asked", Right, 0)];
    head.extend(between.iter().map(|layer| (layer.name(), Right, 3)));
    let rest = [("syscall", Right, 0), ("to asked", Right, 0), ("device", Right, 0), ("to asked", Right, 0)];
    head.extend(rest);
    let whole = |layer: Layer| step(layer).is_none_or(|step| step.complete);
    let times = |layer: Layer, value: Option<f64>| {
        mark(whole(layer) && chain.asked_complete, value.map_or("-".to_owned(), ratio))
    };
    let called = |c: &Called| {
        let cell = |layer: &Layer| mark(whole(*layer), known(c.moved.get(layer.name()).copied().unwrap_or_default()));
        let mut cells = vec![c.layer.to_owned(), c.asked_calls.to_string()];
        cells.push(mark(chain.asked_complete, known(c.asked)));
        cells.extend(between.iter().map(cell));
        cells.extend([cell(&Layer::Syscall), times(Layer::Syscall, c.syscall_to_asked)]);
        let device = if c.device == 0 { "-".to_owned() } else { bytes(c.device) };
        cells.extend([mark(whole(Layer::Block), device), times(Layer::Block, c.device_to_asked)]);
        cells
    };
    let mut rows: Vec<_> = chain.by_called.iter().map(called).collect();
    let all = |layer: &Layer| mark(whole(*layer), known(step(*layer).map_or(Bytes::default(), |step| step.bytes)));
    let linked = chain.by_called.iter().fold(0i64, |sum, c| sum.saturating_add(c.device));
    let mut cells = vec!["all".to_owned(), chain.asked_calls.to_string(), asked];
    cells.extend(between.iter().map(all));
    let syscall_to_asked = step(Layer::Syscall).and_then(|step| step.to_asked);
    cells.extend([all(&Layer::Syscall), times(Layer::Syscall, syscall_to_asked)]);
    // Requests of other programs are no amplification of this one.
    let device_to_asked = chain.asked.sum.filter(|n| *n > 0 && linked > 0).map(|n| linked as f64 / n as f64);
    let device = if linked == 0 { "-".to_owned() } else { bytes(linked) };
    cells.extend([mark(whole(Layer::Block), device), times(Layer::Block, device_to_asked)]);
    rows.push(cells);
    *out += &table(&head, &rows, width, 2);
    if let Some(block) = step(Layer::Block) {
        let class = |c: &ClassBytes| format!("{} {} ({})", escape(c.class), bytes(c.bytes), c.requests);
        let classes: Vec<_> = block.classes.iter().map(class).collect();
        *out += &format!("  device, by class (requests): {}\n", mark(block.complete, classes.join(", ")));
        let unlinked = block.bytes.sum.unwrap_or(0).saturating_sub(linked);
        if unlinked > 0 {
            *out += &format!("  of it not linked to a call: {} (mapped files, other programs)\n", bytes(unlinked));
        }
    }
    for step in &chain.steps {
        if let Some(reason) = &step.not_covered {
            *out += &format!("  {:<9} not covered: {}\n", step.layer, escape(reason));
        }
    }
}
