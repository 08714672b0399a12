//! The files that took the most time, the layers that touched them and the handles they were used through.

use std::collections::{BTreeMap, HashSet};

use anyhow::Result;
use roaring::RoaringBitmap;
use serde::Serialize;

use crate::HashMap;
use crate::analysis::calls::{Bytes, Figures};
use crate::analysis::heavy::Heavy;
use crate::analysis::only::Only;
use crate::analysis::trace::losses::Quality;
use crate::analysis::trace::source::Source;
use crate::rows::{File, FileRollup, Handle, Span};
use crate::vocabulary::{KINDS, Layer, flag};

/// Files in the report.
const TOP: usize = 20;
/// Kinds of handle or objects shown below one handle.
const HANDLES_MAX: usize = 40;
/// Nesting of handles that is followed.
const DEPTH_MAX: usize = 32;
/// So many files have figures of their own at most, those that took the most time: a day of a node has millions.
const KEPT: usize = 65_536;

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileRow {
    /// Of several nodes: the one whose file it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    pub file_id: i32,
    /// `None`: the trace does not hold the file's name.
    pub path: Option<String>,
    /// `data`, `stdio`, `temp`, `lib` or `proc`.
    pub role: &'static str,
    /// In system calls; where none were seen, in the layer with the most.
    pub time_ns: i64,
    /// Top to bottom. Outermost calls of each layer.
    pub layers: Vec<FileLayer>,
    pub handles: Vec<HandleNode>,
    pub complete: bool,
}

/// Files that programs are made of and look at to start: loaded code, `/proc` and `/sys`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LibraryFiles {
    pub files: usize,
    /// As in [`FileRow::time_ns`].
    pub time_ns: i64,
}

/// What one layer did with a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileLayer {
    pub layer: &'static str,
    pub calls: i64,
    pub time_ns: i64,
    pub read: Bytes,
    pub written: Bytes,
    pub errors: i64,
    /// Calls by kind.
    pub kinds: BTreeMap<&'static str, i64>,
    pub complete: bool,
}

/// Handles of one shape: same layer and object, below the same kind of handle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HandleNode {
    pub layer: &'static str,
    /// Class and name of the object it stands for.
    pub object: Option<String>,
    pub count: i64,
    pub children: Vec<HandleNode>,
    /// Further shapes below that are not listed.
    pub more: usize,
}

/// What one layer did with a file, while it is summed up.
#[derive(Default)]
struct OfLayer {
    figures: Figures,
    kinds: [i64; KINDS.len()],
}

/// The figures of a file by layer. Most files have one.
type Layers = Vec<(Layer, OfLayer)>;

/// The figures of all files.
pub struct Finished {
    /// Those with the most time, libraries last.
    pub rows: Vec<FileRow>,
    pub libraries: LibraryFiles,
    /// Files that calls touched.
    pub files: usize,
    /// One in which no more time was spent than that may be missing in `rows`.
    pub unseen_file_ns: Option<i64>,
    /// How many opens of MPI-IO each implementation served.
    pub mpiio: BTreeMap<&'static str, i64>,
}

/// Sums up by file and layer.
pub struct Files {
    figures: Heavy<Layers>,
    all: RoaringBitmap,
    libraries: RoaringBitmap,
    /// There are not many.
    of_libraries: HashMap<i32, Layers>,
}

impl Files {
    /// What files the source has that are no data.
    pub fn new(source: &mut dyn Source) -> Result<Self> {
        Self::with_room(source, KEPT)
    }

    fn with_room(source: &mut dyn Source, room: usize) -> Result<Self> {
        let mut libraries = RoaringBitmap::new();
        source.files(&mut |file| {
            let id = file.file_id as u32;
            let _ = if is_library(file.role) { libraries.insert(id) } else { libraries.remove(id) };
            Ok(())
        })?;
        Ok(Self { figures: Heavy::new(room), all: RoaringBitmap::new(), libraries, of_libraries: HashMap::default() })
    }

    /// The figures of a file in a layer, where a call takes so long; none of files that are not counted.
    fn of(&mut self, file: i32, layer: Layer, time: i64) -> Option<&mut OfLayer> {
        self.all.insert(file as u32);
        let layers = if self.libraries.contains(file as u32) {
            Some(self.of_libraries.entry(file).or_default())
        } else {
            self.figures.of(file, time)
        };
        layers.map(|layers| of_layer(layers, layer))
    }

    pub fn span(&mut self, span: &Span) {
        let (Some(file), true) = (span.file_id, span.layer_top) else { return };
        let Some(of) = self.of(file, span.layer, span.inclusive_ns()) else { return };
        of.figures.merge(&Figures::of(span));
        of.kinds[span.kind as usize] += 1;
    }

    /// Calls that were summed up.
    pub fn sums(&mut self, row: &FileRollup) {
        let Some(of) = row.file_id.and_then(|file| self.of(file, row.layer, row.dur_ns)) else { return };
        of.figures.merge(&Figures::of_sum(row));
        let kind = &mut of.kinds[row.kind as usize];
        *kind = kind.saturating_add(row.calls);
    }

    /// The top files, the first of them with their handles, libraries last; roles and paths are filled in later, see
    /// [`described`].
    pub fn finish(
        mut self,
        source: &mut dyn Source,
        quality: &Quality,
        only: &Only,
        most: Option<usize>,
    ) -> Result<Finished> {
        let files = self.all.len() as usize;
        let libraries = LibraryFiles {
            files: self.of_libraries.len(),
            time_ns: self.of_libraries.values().fold(0, |sum, layers| sum.saturating_add(time_ns(layers))),
        };
        if self.figures.recount() {
            let known = std::mem::take(&mut self.of_libraries);
            source.spans(&mut |span| {
                if span.flags & flag::SUMMED == 0 && only.span(span) {
                    self.span(span);
                }
                Ok(())
            })?;
            source.sums(&mut |row| {
                if only.sums(row) {
                    self.sums(row);
                }
                Ok(())
            })?;
            self.of_libraries = known;
        }
        let data = self.figures.iter().map(|(id, layers)| (false, std::cmp::Reverse(time_ns(layers)), id));
        let of_libraries = self.of_libraries.iter().map(|(id, layers)| (true, std::cmp::Reverse(time_ns(layers)), *id));
        let mut top: Vec<_> = data.chain(of_libraries).collect();
        top.sort_unstable();
        top.truncate(most.unwrap_or(TOP));
        // The last one shown of those that are no libraries; without any, whatever was let go is missing.
        let last = top.iter().rfind(|(library, ..)| !library).map_or(0, |(_, time, _)| time.0);
        let at_most = self.figures.let_go_at_most();
        let unseen_file_ns = (at_most > last).then_some(at_most);
        let row = |(library, _, id)| {
            let layers = if library { self.of_libraries.remove(&id) } else { self.figures.take(id) };
            Some(row(id, layers?, quality))
        };
        let mut rows: Vec<FileRow> = top.into_iter().filter_map(row).collect();
        let shown: HashSet<i32> = rows.iter().take(TOP).map(|row| row.file_id).collect();
        let mut handles = HashMap::<i32, Handle>::default();
        let mut served = HashMap::<i32, &'static str>::default();
        source.handles(&mut |handle| {
            handles.remove(&handle.handle_id);
            served.extend(handle.implementation.map(|by| (handle.handle_id, by)));
            if handle.file_id.is_some_and(|id| shown.contains(&id)) {
                handles.insert(handle.handle_id, handle.clone());
            }
            Ok(())
        })?;
        let mut mpiio = BTreeMap::new();
        for by in served.into_values() {
            *mpiio.entry(by).or_default() += 1;
        }
        let mut objects: HashMap<i32, Option<String>> =
            handles.values().filter_map(|h| h.object_id).map(|id| (id, None)).collect();
        source.objects(&mut |object| {
            if let Some(name) = objects.get_mut(&object.object_id) {
                *name = Some(format!("{} {}", object.class, object.name));
            }
            Ok(())
        })?;
        for row in rows.iter_mut().take(TOP) {
            row.handles = forest(row.file_id, &handles, &objects);
        }
        Ok(Finished { rows, libraries, files, unseen_file_ns, mpiio })
    }
}

impl FileRow {
    /// Not what a user means by a file.
    pub fn is_library(&self) -> bool {
        is_library(self.role)
    }
}

fn is_library(role: &str) -> bool {
    matches!(role, "lib" | "proc")
}

/// The figures of a layer. Room for one at a time: most have one.
fn of_layer(layers: &mut Layers, layer: Layer) -> &mut OfLayer {
    let at = layers.iter().position(|(known, _)| *known == layer).unwrap_or_else(|| {
        layers.reserve_exact(1);
        layers.push((layer, OfLayer::default()));
        layers.len() - 1
    });
    &mut layers[at].1
}

/// The time of its system calls, or of the layer that took most where there are none.
fn time_ns(layers: &[(Layer, OfLayer)]) -> i64 {
    let syscall = layers.iter().find(|(layer, _)| *layer == Layer::Syscall).map(|(_, f)| f.figures.inclusive_ns);
    syscall.unwrap_or_else(|| layers.iter().map(|(_, f)| f.figures.inclusive_ns).max().unwrap_or(0))
}

fn row(file_id: i32, mut layers: Layers, quality: &Quality) -> FileRow {
    layers.sort_by_key(|(layer, _)| *layer);
    let time_ns = time_ns(&layers);
    let layer = |(layer, f): (Layer, OfLayer)| FileLayer {
        layer: layer.name(),
        calls: f.figures.calls,
        time_ns: f.figures.inclusive_ns,
        read: f.figures.read.moved,
        written: f.figures.written.moved,
        errors: f.figures.errors,
        kinds: KINDS.iter().zip(f.kinds).filter(|(_, n)| *n > 0).map(|(kind, n)| (kind.name(), n)).collect(),
        complete: quality.complete(layer),
    };
    let layers = layers.into_iter().map(layer).collect();
    FileRow {
        host: None,
        file_id,
        path: None,
        role: "data",
        time_ns,
        layers,
        handles: Vec::new(),
        complete: quality.all(),
    }
}

/// What a file is called last, and what it is for.
#[derive(Debug, Clone)]
pub struct Described {
    pub path: Option<String>,
    pub role: &'static str,
}

/// The last word on each file asked for.
pub fn described(source: &mut dyn Source, wanted: impl IntoIterator<Item = i32>) -> Result<HashMap<i32, Described>> {
    let mut files: HashMap<i32, Option<Described>> = wanted.into_iter().map(|id| (id, None)).collect();
    source.files(&mut |File { file_id, path, first_path, role, .. }| {
        if let Some(known) = files.get_mut(file_id) {
            *known = Some(Described { path: path.clone().or_else(|| first_path.clone()), role });
        }
        Ok(())
    })?;
    Ok(files.into_iter().filter_map(|(id, known)| Some((id, known?))).collect())
}

/// The handles of a file as trees, equal shapes merged.
fn forest(file: i32, handles: &HashMap<i32, Handle>, objects: &HashMap<i32, Option<String>>) -> Vec<HandleNode> {
    let own = |id: i32| handles.get(&id).filter(|h| h.file_id == Some(file));
    let mut below = BTreeMap::<Option<i32>, Vec<&Handle>>::new();
    for handle in handles.values().filter(|h| h.file_id == Some(file)) {
        let parent = handle.parent_handle_id.filter(|id| *id != handle.handle_id && own(*id).is_some());
        below.entry(parent).or_default().push(handle);
    }
    let roots = below.remove(&None).unwrap_or_default();
    merge(roots, &mut below, objects, 0).0
}

/// Nodes for these handles and what is below them, and how many shapes are left out.
fn merge(
    handles: Vec<&Handle>,
    below: &mut BTreeMap<Option<i32>, Vec<&Handle>>,
    objects: &HashMap<i32, Option<String>>,
    depth: usize,
) -> (Vec<HandleNode>, usize) {
    let mut shapes = BTreeMap::<(Layer, Option<String>), (i64, Vec<&Handle>)>::new();
    for handle in handles {
        let object =
            handle.object_id.map(|id| objects.get(&id).cloned().flatten().unwrap_or_else(|| format!("object #{id}")));
        let shape = shapes.entry((handle.layer, object)).or_default();
        shape.0 += 1;
        if depth < DEPTH_MAX {
            shape.1.extend(below.remove(&Some(handle.handle_id)).unwrap_or_default());
        }
    }
    let mut shapes: Vec<_> = shapes.into_iter().collect();
    shapes.sort_by_key(|((layer, object), (count, _))| (object.is_some(), *layer, std::cmp::Reverse(*count)));
    let more = shapes.len().saturating_sub(HANDLES_MAX);
    shapes.truncate(HANDLES_MAX);
    let mut node = |((layer, object), (count, inner)): ((Layer, _), (i64, Vec<&Handle>))| {
        let (children, more) = merge(inner, below, objects, depth + 1);
        HandleNode { layer: layer.name(), object, count, children, more }
    };
    (shapes.into_iter().map(&mut node).collect(), more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::FileKey;
    use crate::rows::{Row, span_id};
    use crate::vocabulary::Kind;

    fn span(thread: u32, seq: u32, start_ns: i64) -> Span {
        let id = span_id(thread, seq);
        Span { layer_top: true, ..Span::new(id, (Layer::Syscall, "read", Kind::Read), 0, (start_ns, 10)) }
    }

    /// The files of a report that has room for so many.
    fn report(rows: &mut Vec<Row>, room: usize) -> (usize, Option<i64>, Vec<FileRow>, LibraryFiles) {
        let mut files = Files::with_room(rows, room).unwrap();
        for row in &*rows {
            if let Row::Span(span) = row {
                files.span(span);
            }
        }
        let found = files.finish(rows, &Quality::default(), &Only::default(), None).unwrap();
        (found.files, found.unseen_file_ns, found.rows, found.libraries)
    }

    #[test]
    fn of_more_files_than_there_is_room_for_the_top_ones_are_shown_as_they_are() {
        let mut rows = Vec::new();
        for n in 0..5000_i32 {
            // Each tenth is of those that take time, again and again; all others come once, and some are libraries.
            let id = if n % 10 == 0 { 1 + n % 300 } else { 1000 + n };
            let dur_ns = if id < 1000 { 10_000 + i64::from(id) } else { 500 };
            let call = Span { file_id: Some(id), dur_ns, ..span(1, n as u32, i64::from(n)) };
            rows.push(Row::Span(Box::new(call)));
            let role = if id % 7 == 0 { "lib" } else { "data" };
            rows.push(Row::File(Box::new(File { role, ..File::placeholder(id, FileKey::default()) })));
        }
        let all = report(&mut rows, KEPT);
        assert_eq!((all.0, all.1, all.2.len()), (4530, None, TOP));
        assert!(all.2.iter().all(|file| file.layers[0].calls > 10));
        assert_eq!(report(&mut rows, 200), all);
        // So few that it is not certain which they are.
        let few = report(&mut rows, 20);
        assert!(few.1.is_some_and(|ns| ns > 10_000) && (few.0, few.3) == (all.0, all.3), "{:?}", few.1);
        // What is shown of them is exact all the same.
        let shown = few.2.iter().filter_map(|file| Some((file, all.2.iter().find(|f| f.file_id == file.file_id)?)));
        assert!(shown.into_iter().all(|(few, all)| few == all));
    }
}
