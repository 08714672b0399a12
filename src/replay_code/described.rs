//! What the trace has about the files that are selected: paths, handles, objects.

use std::collections::HashSet;

use anyhow::{Result, ensure};
use glob::Pattern;

use crate::HashMap;
use crate::analysis::trace::source::Source;
use crate::replay_code::names::is_system;
use crate::rows::{self, Handle, Span};
use crate::vocabulary::{Kind, Layer};

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

/// Paths and files that calls of a layer are about.
pub type Used = HashSet<(Layer, Option<i32>, Option<i32>)>;

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
    pub begins: HashMap<i32, i64>,
    pub ranks: usize,
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

    pub fn used(&self, used: &Used, of: Layer) -> Vec<String> {
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
    pub fn is_own(&self, span: &Span, layer: Layer) -> bool {
        span.layer == layer && span.layer_top && !span.op.contains('.') && self.concerns(span)
    }
}

pub fn describe(source: &mut dyn Source, choice: &Choice<'_>) -> Result<Described> {
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
