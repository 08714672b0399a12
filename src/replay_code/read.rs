//! A dataset as a program: what is selected, in which order each rank made its calls.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use anyhow::{Result, bail, ensure};
use glob::Pattern;

use crate::HashMap;
use crate::analysis::nesting::Nesting;
use crate::analysis::source::Source;
use crate::replay_code::calls::{BARRIER, function, of};
use crate::replay_code::names::{below, is_system};
use crate::replay_code::program::{Call, File, Node, Object, Program, Think};
use crate::replay_code::rank::Rank;
use crate::rows::{self, Handle, Span};
use crate::vocabulary::{Kind, Layer, flag};

/// The layers that programs are generated for, the highest first.
pub const LAYERS: [Layer; 5] = [Layer::Netcdf, Layer::Pnetcdf, Layer::Hdf5, Layer::Mpiio, Layer::Syscall];
/// Calls of a rank that are kept until all that began before them are read: more than a row group has.
const WINDOW: usize = 1 << 17;
/// Handles around a handle.
const NESTED_MAX: usize = 64;
/// Opens and files that are kept in memory.
const DESCRIBED_MAX: usize = 1 << 22;

/// What is asked for.
pub struct Choice<'a> {
    pub layer: Option<Layer>,
    /// Only files whose path fits one of these.
    pub files: &'a [Pattern],
    /// Calls of a rank outside of loops.
    pub limit: usize,
}

/// What the trace has about files and handles that are selected.
pub struct Described {
    pub layer: Layer,
    pub handles: HashMap<i32, Handle>,
    /// Paths that calls name.
    paths: HashMap<i32, String>,
    /// Path and first size of files.
    files: HashMap<i32, (String, i64)>,
    objects: HashMap<i32, rows::Object>,
    /// Handles of MPI-IO by the handles of libraries that opened them.
    mpiio: HashMap<i32, i32>,
    /// Where the data of objects begins in their files, as far as calls show it.
    begins: HashMap<i32, i64>,
    ranks: usize,
}

/// Layers whose calls name datasets and not offsets.
pub const fn has_objects(layer: Layer) -> bool {
    matches!(layer, Layer::Hdf5 | Layer::Netcdf | Layer::Pnetcdf)
}

impl Described {
    /// The path that a call names, or that of the file that it is about.
    pub fn path(&self, path_id: Option<i32>, file_id: Option<i32>) -> Option<&str> {
        let named = path_id.and_then(|id| self.paths.get(&id));
        named.or_else(|| Some(&self.files.get(&file_id?)?.0)).map(String::as_str)
    }

    pub fn size(&self, file_id: Option<i32>) -> Option<i64> {
        Some(self.files.get(&file_id?)?.1)
    }

    pub fn object(&self, id: Option<i32>) -> Option<&rows::Object> {
        self.objects.get(&id?)
    }

    /// The handle of MPI-IO of a handle, its own or that of the library below.
    pub fn mpiio(&self, handle_id: Option<i32>) -> Option<&Handle> {
        let id = handle_id?;
        self.handles.get(self.mpiio.get(&id).unwrap_or(&id)).filter(|handle| handle.layer == Layer::Mpiio)
    }

    /// The handle of the file that an object was opened in.
    pub fn container(&self, handle_id: Option<i32>) -> Option<i32> {
        let mut id = handle_id?;
        for _ in 0..NESTED_MAX {
            let handle = self.handles.get(&id)?;
            let parent = handle.parent_handle_id.and_then(|parent| self.handles.get(&parent));
            match parent.filter(|parent| parent.layer == handle.layer) {
                Some(parent) => id = parent.handle_id,
                None => break,
            }
        }
        Some(id)
    }

    /// The element of its object with which a transfer begins, where a call below shows it: it has as many bytes.
    pub fn position(&self, object: &rows::Object, below: Option<i64>) -> Option<i64> {
        let size = i64::from(object.elem_size?);
        let bytes = below?.checked_sub(*self.begins.get(&object.object_id)?)?;
        bytes.checked_div(size).filter(|at| *at >= 0 && at.checked_mul(size) == Some(bytes))
    }

    fn used(&self, used: &Used, of: Layer) -> Vec<String> {
        let of_layer = used.iter().filter(|(layer, ..)| *layer == of);
        of_layer.filter_map(|(_, path, file)| self.path(*path, *file)).map(str::to_owned).collect()
    }

    pub const fn rank_count(&self) -> usize {
        self.ranks
    }

    /// Whether a call is about a selected file.
    fn concerns(&self, span: &Span) -> bool {
        span.handle_id.map_or_else(
            || span.path_id.is_some_and(|id| self.paths.contains_key(&id)),
            |id| self.handles.contains_key(&id),
        ) || span.async_id.is_some() && span.layer == Layer::Mpiio && span.kind == Kind::Wait
    }

    /// Whether a call is one that is replayed, or would be if there were a row for it.
    fn is_own(&self, span: &Span, layer: Layer) -> bool {
        span.layer == layer && span.layer_top && !span.op.contains('.') && self.concerns(span)
    }
}

/// What ranks share: the files and hints that they were given.
#[derive(Default)]
pub struct Shared {
    pub files: Vec<(String, Found)>,
    index: HashMap<String, usize>,
    pub hints: Vec<Vec<(String, String)>>,
    pub ops: Vec<&'static str>,
    objects: Vec<Object>,
    object_index: HashMap<Object, i64>,
    /// Numbers of objects that text is written to, or read from.
    pub text: BTreeSet<i64>,
    pub buffer: i64,
    pub calls: BTreeMap<String, i64>,
    pub left_out: BTreeMap<String, i64>,
    pub notes: BTreeSet<String>,
}

/// The first call that named a file, and what the file was then.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    at_ns: i64,
    bytes: Option<i64>,
}

impl Shared {
    /// With numbers for these files in natural order, so that names which count are numbers which count.
    fn of(mut paths: Vec<String>) -> Self {
        paths.sort_by_cached_key(|path| natural(path));
        paths.dedup();
        let index = paths.iter().cloned().zip(0..).collect();
        let files = paths.into_iter().map(|path| (path, Found { at_ns: i64::MAX, bytes: None })).collect();
        Self { files, index, ..Self::default() }
    }

    /// The number of a file. `found`: its bytes, where this call does not make it.
    pub fn file(&mut self, path: &str, at_ns: i64, found: Option<i64>) -> i64 {
        let next = self.files.len();
        let at = *self.index.entry(path.to_owned()).or_insert(next);
        if at == next {
            self.files.push((path.to_owned(), Found { at_ns, bytes: found }));
        } else if let Some((_, known)) = self.files.get_mut(at)
            && at_ns < known.at_ns
        {
            *known = Found { at_ns, bytes: found };
        }
        at as i64
    }

    /// The number of a function's name.
    pub fn op(&mut self, op: &'static str) -> usize {
        let at = self.ops.iter().position(|known| *known == op).unwrap_or_else(|| {
            self.ops.push(op);
            self.ops.len() - 1
        });
        at
    }

    pub fn object(&mut self, object: &Object) -> i64 {
        if let Some(at) = self.object_index.get(object) {
            return *at;
        }
        let at = self.objects.len() as i64;
        self.object_index.insert(object.clone(), at);
        self.objects.push(object.clone());
        at
    }

    /// The number of a set of hints, from 1.
    pub fn hints(&mut self, hints: &[(String, String)]) -> i64 {
        let at = self.hints.iter().position(|known| known == hints).unwrap_or_else(|| {
            self.hints.push(hints.to_vec());
            self.hints.len() - 1
        });
        at as i64 + 1
    }
}

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
    let mut streams: Vec<Stream> = (0..ranks).map(|rank| Stream::new(rank, choice.limit)).collect();
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

fn program(layer: Layer, ranks: Vec<Vec<Node>>, (handles, requests): (i64, i64), shared: Shared) -> Program {
    let paths: Vec<String> = shared.files.iter().map(|(path, _)| path.clone()).collect();
    let files = below(&paths).into_iter().zip(shared.files);
    let files = files.map(|(name, (path, found))| File { path, name, found: found.bytes }).collect();
    Program {
        layer,
        ranks,
        files,
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

fn describe(source: &mut dyn Source, choice: &Choice<'_>) -> Result<Described> {
    let selected = |path: &str| {
        if choice.files.is_empty() {
            !is_system(path)
        } else {
            choice.files.iter().any(|pattern| pattern.matches(path))
        }
    };
    let mut described = Described {
        layer: Layer::Syscall,
        handles: HashMap::default(),
        paths: HashMap::default(),
        files: HashMap::default(),
        objects: HashMap::default(),
        mpiio: HashMap::default(),
        begins: HashMap::default(),
        ranks: 0,
    };
    let bounded = |len: usize| {
        ensure!(
            len < DESCRIBED_MAX,
            "more than {DESCRIBED_MAX} files or opens are selected; select fewer (--file PATTERN)"
        );
        Ok(())
    };
    source.files(&mut |file| {
        let path = file.first_path.as_ref().or(file.path.as_ref());
        if let Some(path) = path.filter(|path| matches!(file.role, "data" | "temp") && selected(path)) {
            bounded(described.files.len())?;
            described.files.insert(file.file_id, (path.clone(), file.size_first.unwrap_or(0).max(0)));
        }
        Ok(())
    })?;
    source.paths(&mut |path| {
        if selected(&path.path) {
            bounded(described.paths.len())?;
            described.paths.insert(path.path_id, path.path.clone());
        }
        Ok(())
    })?;
    source.handles(&mut |handle| {
        let is_directory =
            handle.layer == Layer::Syscall && handle.mode.is_some_and(|mode| mode & nix::libc::O_DIRECTORY != 0);
        if !is_directory && handle.file_id.is_some_and(|id| described.files.contains_key(&id)) {
            bounded(described.handles.len())?;
            described.handles.insert(handle.handle_id, handle.clone());
        }
        Ok(())
    })?;
    source.objects(&mut |object| {
        if object.file_id.is_some_and(|id| described.files.contains_key(&id)) {
            bounded(described.objects.len())?;
            described.objects.insert(object.object_id, object.clone());
        }
        Ok(())
    })?;
    described.mpiio = below_libraries(&described.handles);
    Ok(described)
}

/// The handles of MPI-IO that libraries opened for theirs.
fn below_libraries(handles: &HashMap<i32, Handle>) -> HashMap<i32, i32> {
    let mut found = HashMap::default();
    for handle in handles.values().filter(|handle| handle.layer == Layer::Mpiio) {
        let mut above = handle.parent_handle_id;
        for _ in 0..NESTED_MAX {
            let Some(id) = above else { break };
            found.insert(id, handle.handle_id);
            above = handles.get(&id).and_then(|handle| handle.parent_handle_id);
        }
    }
    found
}

/// Calls by layer and process; of collective ones the count is by `None`.
type Counted = BTreeMap<(Option<Layer>, i32), i64>;
/// Paths and files that calls of a layer are about.
type Used = HashSet<(Layer, Option<i32>, Option<i32>)>;

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
        Some(layer) if there.is_empty() => bail!(
            "there are no single calls of layer {layer} on selected files: the trace was recorded with --aggregate or \
             without the layer, or all files are in system directories (select them: --file PATTERN)"
        ),
        Some(layer) => bail!("there are no calls of layer {layer} on selected files, only of {}", names()),
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

/// What sorts numbers in names by their value.
fn natural(path: &str) -> Vec<(String, u64, String)> {
    let mut parts = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, number) = rest.split_at(digits);
        let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        let (number, left) = number.split_at(end);
        parts.push((text.to_owned(), number.parse().unwrap_or(u64::MAX), number.to_owned()));
        rest = left;
    }
    parts
}

/// The calls of a rank in the order in which they began.
struct Stream {
    window: BTreeMap<(i64, i64), Span>,
    rank: Rank,
    /// When the last call ended, and when it began.
    last: Option<(i64, i64)>,
}

impl Stream {
    fn new(number: usize, limit: usize) -> Self {
        Self { window: BTreeMap::new(), rank: Rank::new(number, limit), last: None }
    }

    fn add(&mut self, span: &Span, described: &Described, shared: &mut Shared) -> Result<()> {
        self.window.insert((span.start_ns, span.span_id), span.clone());
        if self.window.len() > WINDOW
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
                .insert("Some calls lasted so long that they may be replayed later than they were made.".into());
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

/// Numbers for handles and the like: of those that are free the smallest.
#[derive(Default)]
pub struct Slots {
    by_id: HashMap<i64, i64>,
    free: BTreeSet<i64>,
    next: i64,
}

impl Slots {
    pub fn get(&self, id: i64) -> Option<i64> {
        self.by_id.get(&id).copied()
    }

    pub fn take(&mut self, id: i64) -> i64 {
        self.release(id);
        let slot = self.free.pop_first().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        self.by_id.insert(id, slot);
        slot
    }

    pub fn release(&mut self, id: i64) -> Option<i64> {
        let slot = self.by_id.remove(&id)?;
        self.free.insert(slot);
        Some(slot)
    }

    /// All that are taken, the earliest first.
    pub fn ids(&self) -> Vec<i64> {
        let mut ids: Vec<i64> = self.by_id.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    pub const fn most(&self) -> i64 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_in_order() {
        let shared = Shared::of(["/d/10", "/d/9", "/d/a", "/d/9"].map(str::to_owned).to_vec());
        let names: Vec<&str> = shared.files.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(names, ["/d/9", "/d/10", "/d/a"]);
    }

    #[test]
    fn the_smallest_free_variable_is_taken() {
        let mut slots = Slots::default();
        assert_eq!([7, 8, 9].map(|id| slots.take(id)), [0, 1, 2]);
        assert_eq!(slots.release(8), Some(1));
        assert_eq!((slots.take(11), slots.take(12), slots.most()), (1, 3, 4));
        assert_eq!((slots.get(8), slots.ids()), (None, vec![7, 9, 11, 12]));
    }
}
