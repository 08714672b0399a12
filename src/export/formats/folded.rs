//! Calls inside calls with a weight, as programs that draw flame graphs read them: `program;hdf5 H5Dwrite;syscall pwrite64 1200`.

use std::io::Write;

use anyhow::{Context, Result, bail};

use crate::HashMap;
use crate::analysis::nesting::Nesting;
use crate::analysis::trace::source::Source;
use crate::export::formats::Weight;
use crate::rows::{PARTS, Span};
use crate::vocabulary::{Layer, flag};

/// Stacks that are kept apart; those that come later count for their caller.
const STACKS_MAX: usize = 1 << 20;

/// A frame: the one around it, and its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Frame {
    Program(String),
    Call(Layer, &'static str),
    /// What a system call waited for.
    Part(&'static str),
}

/// All stacks: a node for each, with the number of the one around it.
#[derive(Default)]
struct Stacks {
    nodes: Vec<(Option<u32>, Frame, i64)>,
    index: HashMap<(Option<u32>, Frame), u32>,
}

impl Stacks {
    fn node(&mut self, around: Option<u32>, frame: Frame) -> Option<u32> {
        if let Some(at) = self.index.get(&(around, frame.clone())) {
            return Some(*at);
        }
        if self.nodes.len() >= STACKS_MAX {
            return around;
        }
        let at = self.nodes.len() as u32;
        self.index.insert((around, frame.clone()), at);
        self.nodes.push((around, frame, 0));
        Some(at)
    }

    fn add(&mut self, node: Option<u32>, weight: i64) {
        if let Some((_, _, sum)) = node.and_then(|at| self.nodes.get_mut(at as usize)) {
            *sum = sum.saturating_add(weight.max(0));
        }
    }

    fn line(&self, at: usize) -> String {
        let mut frames = Vec::new();
        let mut next = Some(at as u32);
        while let Some((around, frame, _)) = next.and_then(|at| self.nodes.get(at as usize)) {
            frames.push(match frame {
                Frame::Program(name) => plain(name),
                Frame::Call(layer, op) => format!("{layer} {op}"),
                Frame::Part(part) => format!("wait {part}"),
            });
            next = *around;
        }
        frames.reverse();
        frames.join(";")
    }
}

/// A name without what means something in the format, or acts on a terminal.
fn plain(name: &str) -> String {
    crate::base::text::escape(name).replace([';', '\n'], "_")
}

/// Writes a line for each stack with a weight, in the order of their names.
pub fn write(source: &mut dyn Source, weight: Weight, out: &mut dyn Write) -> Result<()> {
    let programs = programs(source)?;
    let mut stacks = Stacks::default();
    let mut nesting = Nesting::<Option<u32>>::default();
    let mut calls = 0_i64;
    source.spans(&mut |span| {
        calls += 1;
        let above = nesting.above(span).flatten();
        let around = above.or_else(|| {
            let name = programs.get(&span.process_ix).cloned().unwrap_or_else(|| span.pid.to_string());
            stacks.node(None, Frame::Program(name))
        });
        let node = stacks.node(around, Frame::Call(span.layer, span.op));
        nesting.enter(span, node);
        weigh(&mut stacks, span, weight, node);
        Ok(())
    })?;
    if calls == 0 {
        bail!("the dataset has no single calls to make stacks of: it was recorded with --aggregate, or is empty");
    }
    let weighed = stacks.nodes.iter().enumerate().filter(|(_, (_, _, sum))| *sum > 0);
    let mut lines: Vec<String> = weighed.map(|(at, (_, _, sum))| format!("{} {sum}", stacks.line(at))).collect();
    lines.sort_unstable();
    lines.iter().try_for_each(|line| writeln!(out, "{line}")).context("cannot write the stacks")
}

fn weigh(stacks: &mut Stacks, span: &Span, weight: Weight, node: Option<u32>) {
    let system = span.layer == Layer::Syscall && span.layer_top;
    // What another thread waits for is in the call that waits.
    let spends = span.flags & flag::ASYNC == 0;
    match weight {
        Weight::Time if spends => stacks.add(node, span.self_ns),
        Weight::Calls => stacks.add(node, 1),
        Weight::Bytes if system => stacks.add(node, span.bytes.unwrap_or(0)),
        Weight::Wait if system && spends => {
            for ((part, ..), ns) in PARTS.iter().zip(span.parts().into_iter().flatten()) {
                if *part != "cpu" && ns > 0 {
                    let leaf = stacks.node(node, Frame::Part(part));
                    stacks.add(leaf, ns);
                }
            }
        }
        _ => {}
    }
}

/// Names of programs by process: the last part of the path.
fn programs(source: &mut dyn Source) -> Result<HashMap<i32, String>> {
    let mut names = HashMap::default();
    source.processes(&mut |process| {
        if let Some(exe) = &process.exe {
            let name = exe.rsplit('/').next().unwrap_or(exe);
            names.insert(process.process_ix, name.to_owned());
        }
        Ok(())
    })?;
    Ok(names)
}
