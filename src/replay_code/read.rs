//! A dataset as a program: what is selected, in which order each rank made its calls.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail, ensure};

use crate::HashMap;
use crate::analysis::nesting::Nesting;
use crate::analysis::trace::source::Source;
use crate::base::usage::{self, list};
use crate::replay_code::calls::{BARRIER, function, of};
use crate::replay_code::described::{Choice, Described, Used, describe, has_objects};
use crate::replay_code::names::below;
use crate::replay_code::program::{Call, File, Node, Program, Think};
use crate::replay_code::rank::Rank;
use crate::replay_code::shared::Shared;
use crate::rows::Span;
use crate::vocabulary::{Kind, Layer, flag};

/// The layers that programs are generated for, the highest first.
pub const LAYERS: [Layer; 5] = [Layer::Netcdf, Layer::Pnetcdf, Layer::Hdf5, Layer::Mpiio, Layer::Syscall];
/// Calls that are kept until all that began before them are read: of a rank more than a row group has, of many ranks
/// fewer.
const WINDOW: usize = 1 << 17;
const WINDOW_LEAST: usize = 1 << 12;
const WINDOW_OF_ALL: usize = 1 << 19;

/// # Errors
/// When the dataset cannot be read, has no such calls, or more of them than the limits allow.
pub fn read(source: &mut dyn Source, choice: &Choice<'_>) -> Result<Program> {
    let mut described = describe(source, choice)?;
    let (counted, used) = count(source, &described)?;
    let layer = highest(&counted, choice)?;
    described.layer = layer;
    if has_objects(layer) {
        described.begins = begins(source, &described)?;
    }
    let processes = rank_processes(source, &counted, layer)?;
    let ranks = processes.values().max().map_or(0, |rank| rank + 1);
    described.ranks = ranks;
    let mut shared = Shared::of(described.used(&used, layer));
    let barriers = layer == Layer::Syscall && has_barriers(&counted, &processes, ranks, &mut shared);
    let window = (WINDOW_OF_ALL / ranks.max(1)).clamp(WINDOW_LEAST, WINDOW);
    let mut streams: Vec<Stream> = (0..ranks).map(|rank| Stream::new(rank, window, choice.limit)).collect();
    source.spans(&mut |span| {
        let Some(stream) = processes.get(&span.process_ix).and_then(|rank| streams.get_mut(*rank)) else {
            return Ok(());
        };
        let waits = barriers && span.layer == Layer::Mpiio && span.layer_top && span.coll_id.is_some();
        // Calls below show where in the file the data of a library's call is.
        let below = has_objects(layer) && is_transfer(span);
        if waits || below || described.is_own(span, layer) {
            stream.add(span, &described, &mut shared)?;
        }
        Ok(())
    })?;
    let (mut nodes, mut handles, mut requests) = (Vec::new(), 0, 0);
    for stream in streams {
        let rank = stream.finish(&described, &mut shared)?;
        handles = handles.max(rank.handles.most());
        requests = requests.max(rank.requests.most());
        nodes.push(rank.finish());
    }
    ensure!(nodes.iter().any(|nodes| !nodes.is_empty()), "no call of layer {layer} can be replayed");
    Ok(program(layer, nodes, (handles, requests), shared))
}

/// The directories on the way to a file.
fn parents(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('/').map(|(at, _)| &name[..at])
}

fn program(layer: Layer, ranks: Vec<Vec<Node>>, (handles, requests): (i64, i64), shared: Shared) -> Program {
    let paths: Vec<String> = shared.files.iter().map(|(path, _)| path.clone()).collect();
    let files = below(&paths).into_iter().zip(shared.files);
    let mut files: Vec<File> = files.map(|(name, (path, found))| File { path, name, found: found.bytes }).collect();
    // A directory that others lie in is made with them.
    let parents: BTreeSet<String> = files.iter().flat_map(|file| parents(&file.name)).map(str::to_owned).collect();
    for file in files.iter_mut().filter(|file| parents.contains(&file.name)) {
        file.found = None;
    }
    Program {
        layer,
        ranks,
        files,
        communicators: shared.communicators,
        switches: BTreeMap::new(),
        ops: shared.ops,
        objects: shared.objects,
        text: shared.text,
        hints: shared.hints,
        handles,
        requests,
        buffer: shared.buffer,
        calls: shared.calls,
        left_out: shared.left_out,
        notes: shared.notes,
    }
}

/// Calls by layer and process; of collective ones the count is by `None`.
type Counted = BTreeMap<(Option<Layer>, i32), i64>;

fn count(source: &mut dyn Source, described: &Described) -> Result<(Counted, Used)> {
    let (mut counted, mut used) = (Counted::new(), Used::new());
    source.spans(&mut |span| {
        if span.coll_id.is_some() && span.layer == Layer::Mpiio && span.layer_top {
            *counted.entry((None, span.process_ix)).or_default() += 1;
        }
        if described.is_own(span, span.layer) && of(span.layer, span.op).next().is_some() {
            *counted.entry((Some(span.layer), span.process_ix)).or_default() += 1;
            let file = span.handle_id.and_then(|id| described.handles.get(&id)?.file_id);
            used.insert((span.layer, span.path_id, span.path_id.map_or(file, |_| None)));
            used.insert((span.layer, span.path2_id, None));
        }
        Ok(())
    })?;
    Ok((counted, used))
}

/// The least offset of system calls that move the data of an object alone: of as many bytes as the call around them.
fn begins(source: &mut dyn Source, described: &Described) -> Result<HashMap<i32, i64>> {
    let mut begins = HashMap::<i32, i64>::default();
    let mut nesting = Nesting::<Option<(i32, i64)>>::default();
    source.spans(&mut |span| {
        let above = nesting.above(span).flatten();
        if is_transfer(span)
            && let (Some((object, bytes)), Some(offset)) = (above, span.offset)
            && span.bytes == Some(bytes)
        {
            let least = begins.entry(object).or_insert(offset);
            *least = (*least).min(offset);
        }
        let own = (described.is_own(span, described.layer)).then(|| span.object_id.zip(span.bytes)).flatten();
        nesting.enter(span, own.or(above));
        Ok(())
    })?;
    Ok(begins)
}

/// A system call that moves data.
fn is_transfer(span: &Span) -> bool {
    span.layer == Layer::Syscall
        && matches!(span.kind, Kind::Read | Kind::Write)
        && span.bytes.is_some_and(|bytes| bytes > 0)
}

fn highest(counted: &Counted, choice: &Choice<'_>) -> Result<Layer> {
    let there: BTreeSet<Layer> = counted.keys().filter_map(|(layer, _)| *layer).collect();
    let has = |layer: &Layer| there.contains(layer);
    let names = || there.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match choice.layer {
        Some(layer) if has(&layer) => Ok(layer),
        _ if there.is_empty() && !choice.files.is_empty() => {
            let patterns = list(choice.files);
            usage::bail!(
                "there are no single calls on files that fit {patterns} (--file PATTERN), or the trace was recorded with \
                 --aggregate"
            )
        }
        Some(layer) if there.is_empty() => bail!(
            "there are no single calls of layer {layer} on selected files: the trace was recorded with --aggregate or \
             without the layer, or all files are in system directories (select them: --file PATTERN)"
        ),
        Some(layer) => usage::bail!("there are no calls of layer {layer} on selected files, only of {}", names()),
        None => match LAYERS.into_iter().find(has) {
            Some(layer) => Ok(layer),
            None => bail!(
                "there are no single calls on selected files: the trace was recorded with --aggregate, or all files are \
                 in system directories (select them: --file PATTERN)"
            ),
        },
    }
}

/// The processes that make the calls, with the ranks of the generated program: those of MPI where there are any.
fn rank_processes(source: &mut dyn Source, counted: &Counted, layer: Layer) -> Result<BTreeMap<i32, usize>> {
    let mut ranks = BTreeMap::new();
    source.processes(&mut |process| {
        ranks.insert(process.process_ix, process.rank);
        Ok(())
    })?;
    let active: Vec<i32> = counted.keys().filter(|(of, _)| *of == Some(layer)).map(|(_, process)| *process).collect();
    let rank = |process: &i32| ranks.get(process).copied().flatten();
    let known: BTreeSet<i32> = active.iter().filter_map(rank).collect();
    if known.is_empty() {
        return Ok(active.into_iter().enumerate().map(|(at, process)| (process, at)).collect());
    }
    let dense: BTreeMap<i32, usize> = known.into_iter().enumerate().map(|(at, rank)| (rank, at)).collect();
    Ok(active.iter().filter_map(|process| Some((*process, *dense.get(&rank(process)?)?))).collect())
}

/// Whether collective calls of the layer above become barriers: where all ranks made as many.
fn has_barriers(counted: &Counted, processes: &BTreeMap<i32, usize>, ranks: usize, shared: &mut Shared) -> bool {
    let mut calls = vec![0_i64; ranks];
    for (process, rank) in processes {
        calls[*rank] += counted.get(&(None, *process)).copied().unwrap_or(0);
    }
    let first = calls.first().copied().unwrap_or(0);
    let same = calls.iter().all(|calls| *calls == first);
    if !same {
        let note = "Collective calls were not made by all ranks equally often: there are no barriers in their places.";
        shared.notes.insert(note.into());
    }
    same && first > 0 && ranks > 1
}

/// The calls of a rank in the order in which they began.
struct Stream {
    window: BTreeMap<(i64, i64), Span>,
    kept: usize,
    rank: Rank,
    /// When the last call ended, and when it began.
    last: Option<(i64, i64)>,
}

impl Stream {
    fn new(number: usize, kept: usize, limit: usize) -> Self {
        Self { window: BTreeMap::new(), kept, rank: Rank::new(number, limit), last: None }
    }

    fn add(&mut self, span: &Span, described: &Described, shared: &mut Shared) -> Result<()> {
        self.window.insert((span.start_ns, span.span_id), span.clone());
        if self.window.len() > self.kept
            && let Some((_, first)) = self.window.pop_first()
        {
            self.make(&first, described, shared)?;
        }
        Ok(())
    }

    fn finish(mut self, described: &Described, shared: &mut Shared) -> Result<Rank> {
        while let Some((_, first)) = self.window.pop_first() {
            self.make(&first, described, shared)?;
        }
        Ok(self.rank)
    }

    /// The offset of the first system call below a call that moves as many bytes.
    fn below(&self, span: &Span) -> Option<i64> {
        let inside = self.window.range((span.start_ns, 0)..=(span.end_ns().max(span.start_ns), i64::MAX));
        let same = |other: &&Span| {
            other.root_id == span.root_id && other.kind == span.kind && is_transfer(other) && other.bytes == span.bytes
        };
        inside.map(|(_, other)| other).find(same).and_then(|other| other.offset)
    }

    fn make(&mut self, span: &Span, described: &Described, shared: &mut Shared) -> Result<()> {
        if span.layer == Layer::Syscall && has_objects(described.layer) {
            return Ok(());
        }
        let (ended, began) = self.last.unwrap_or((span.start_ns, span.start_ns));
        if span.start_ns < began {
            shared
                .notes
                .insert("Some calls lasted so long, or are so far apart in the dataset, that they may be replayed later than they were made.".into());
        }
        let think = Think::of(span.start_ns.saturating_sub(ended).max(0));
        if span.layer != described.layer {
            return self.rank.push(Call { function: function(BARRIER, 0), args: Vec::new(), think });
        }
        self.last = Some((span.end_ns().max(ended), span.start_ns.max(began)));
        if span.errno != 0 || span.flags & flag::UNFINISHED != 0 {
            *shared.left_out.entry(format!("{} that failed or did not return", span.op)).or_default() += 1;
            return Ok(());
        }
        let name = span.op.to_owned();
        let below = has_objects(described.layer).then(|| self.below(span)).flatten();
        let made = self.rank.call(span, (think, below), described, shared)?;
        let counts = if made { &mut shared.calls } else { &mut shared.left_out };
        *counts.entry(name).or_default() += 1;
        Ok(())
    }
}
