//! What a call is about: its file, its handle, its object; and what it does to them.

use crate::base::paths::{Rooted, absolute, last_component, lossy_path};
use crate::catalog::libraries::hdf5::Effect;
use crate::catalog::{self, Family, Role};
use crate::correlate::calls::call::succeeded;
use crate::correlate::calls::stack::Node;
use crate::correlate::libraries::hdf5::{self, Hdf5};
use crate::correlate::libraries::hints::Hints;
use crate::correlate::libraries::mpiio;
use crate::correlate::libraries::netcdf::NetCdf;
use crate::correlate::resources::call_paths::Named;
use crate::correlate::resources::files::Files;
use crate::correlate::resources::handles::{Closing, Handles, Name, New};
use crate::correlate::resources::objects::{ObjectPath, Objects, Scope};
use crate::correlate::resources::processes::Owner;
use crate::correlate::seen::{Found, O_CLOEXEC, Seen};
use crate::event::{Call, FileKey, Sighting, TextKind};
use crate::rows::{Row as Out, Span};
use crate::vocabulary::{Kind, Layer};

const EBADF: i32 = 9;
/// `include/uapi/linux/close_range.h`.
const CLOSE_RANGE_CLOEXEC: u64 = 4;

/// Files, handles and objects, which refer to each other.
#[derive(Default)]
pub struct ResourceTracker {
    pub files: Files,
    /// Paths that calls name, whatever is there.
    pub named: Named,
    pub hints: Hints,
    pub handles: Handles,
    pub objects: Objects,
    pub hdf5: Hdf5,
    pub netcdf: NetCdf,
    /// Room for the ids of files; kept for its capacity.
    scratch: Vec<i32>,
}

/// A close of a `PnetCDF` file that reports this (`NC_EBADID`, pnetcdf.h) closed nothing; after any other error it is closed.
const NC_EBADID: i32 = -33;
fn rooted((root, path): &(u64, Vec<u8>)) -> Rooted<'_> {
    (*root, path)
}

impl ResourceTracker {
    pub fn call(&mut self, seen: &Seen) -> Found {
        // What is mapped of a file of layers is the file below.
        let below = seen.row.family == Family::Fault;
        let above = |files: &Files, key| if below { files.of_data(key) } else { None };
        let file = seen.call.file.map(|key| above(&self.files, key).unwrap_or_else(|| self.files.intern(key)));
        // For other libraries of these layers the user's catalog is all there is.
        let netcdf = matches!(seen.row.family, Family::Netcdf | Family::Pnetcdf);
        if netcdf {
            self.netcdf.group(seen, &mut self.handles);
        }
        let mut found = match seen.row.role() {
            Role::None | Role::Unlink | Role::Rename | Role::Exchange | Role::Link => {
                Found { file: self.named(seen, file), ..Found::default() }
            }
            Role::Use => self.uses(seen, file),
            Role::Close => self.close(seen, file),
            Role::Reopen => self.reopen(seen, file),
            Role::Open => self.open(seen, file),
            Role::Dup => self.dup(seen, file),
            Role::CloseRange => self.close_range(seen),
            Role::Inherit => self.inherit(seen, file),
        };
        if let (Some(given), Some(handle)) = (self.hints.call(seen), found.handle) {
            self.handles.give(handle, given);
        }
        self.named_later(seen, &found);
        found.paths = self.paths(seen);
        found.object = found.handle.and_then(|id| self.object(id));
        found.flags = self.hdf5.call(seen, &found, &mut self.objects);
        if matches!(seen.row.effect(), Effect::Transfers { .. })
            && seen.numbers(hdf5::DATASETS).is_none_or(|all| all.len() != 1)
        {
            (found.handle, found.object) = (None, None); // it is about several
        }
        if let (Some(file), Layer::Syscall, true) = (found.file, seen.row.layer, succeeded(seen.call)) {
            self.sizes(seen, file);
        }
        if netcdf {
            found.access = Some(self.netcdf.call(seen, &mut found, &mut self.handles, &mut self.objects));
        }
        found
    }

    /// The ids of the paths that a call names.
    fn paths(&mut self, seen: &Seen) -> [Option<i32>; 2] {
        if !seen.row.names_files() {
            return [None; 2];
        }
        let pairs = [(TextKind::Path, TextKind::Base), (TextKind::Path2, TextKind::Base2)];
        pairs.map(|(path, base)| {
            // An empty one is about the descriptor that comes with it.
            let given = &seen.given(path).filter(|given| !given.bytes.is_empty())?.bytes;
            if let Some((_, path)) = seen.path(path, base) {
                return Some(self.named.id(&lossy_path(&path)));
            }
            // A library's own names start where those start that it gives to the kernel.
            let tail = lossy_path(&absolute(b"", given));
            let mut below = seen.below.iter().filter(|n| n.span.layer == Layer::Syscall).filter_map(|n| n.span.path_id);
            let known = below.find(|id| self.named.path(*id).is_some_and(|path| path.ends_with(&tail)));
            known.inspect(|id| self.named.used(*id)).or_else(|| Some(self.named.id(&lossy_path(given))))
        })
    }

    fn sizes(&mut self, seen: &Seen, file: i32) {
        let call = seen.call;
        match (seen.row.kind, call.off, call.got) {
            (Kind::Write, Some(off), Some(got)) => self.files.wrote_to(file, off.saturating_add(got) as i64),
            (Kind::Meta, Some(size), _) if seen.row.symbol.ends_with("truncate") => {
                self.files.resize(file, size as i64);
            }
            _ => {}
        }
    }

    fn named(&mut self, seen: &Seen, file: Option<i32>) -> Option<i32> {
        let path = seen.first_path();
        let file = file.or_else(|| self.files.by_path(rooted(path.as_ref()?))).or_else(|| seen.file_below(&self.files));
        if succeeded(seen.call) {
            match (seen.row.role(), path) {
                (Role::Unlink, Some(path)) => self.files.unlink(seen.end_ns, rooted(&path)),
                (role @ (Role::Rename | Role::Exchange), Some((root, from))) => {
                    if let Some((_, to)) = seen.path(TextKind::Path2, TextKind::Base2) {
                        let moves = if role == Role::Rename { Files::rename } else { Files::exchange };
                        moves(&mut self.files, seen.end_ns, root, &from, &to);
                    }
                }
                (Role::Link, Some(path)) => {
                    if let Some((_, to)) = seen.path(TextKind::Path2, TextKind::Base2) {
                        self.files.link(rooted(&path), &to);
                    }
                }
                // A file that is only ever asked about has no other name than the one it was asked about by.
                (Role::None, Some(path)) if seen.call.file.is_some() && seen.row.stat.is_some() => {
                    if let Some(file) = file {
                        self.files.asked_about(seen.end_ns, file, rooted(&path));
                    }
                }
                _ => {}
            }
        }
        file
    }

    /// The handle that a call names, made up when it was not seen opened.
    fn handle(&mut self, seen: &Seen, file: Option<i32>) -> Option<i32> {
        // Only the descriptor 0 is one: fflush(NULL) is about no stream.
        let raw = seen.call.handle.filter(|raw| *raw != 0 || seen.row.layer != Layer::Stdio || seen.row.descriptor)?;
        let mut known = self.handles.find(seen.owner, seen.name(raw));
        if seen.row.role() == Role::Close {
            known = known.or_else(|| self.of_below(seen, raw, |_| true));
        }
        if matches!(seen.row.family, Family::Uring | Family::Aio) {
            // Its descriptor may be closed, or another file's, since it was submitted.
            let then = |id: &i32| self.handles.row(*id).is_some_and(|h| h.start_ns <= seen.start_ns);
            return known
                .filter(then)
                .filter(|id| file.is_none() || self.handles.file(*id).is_none_or(|f| Some(f) == file));
        }
        let other = |id: i32| matches!((self.handles.file(id), file), (Some(a), Some(b)) if a != b);
        match known {
            // Another file: a close and an open were lost in between.
            Some(id) if !other(id) => Some(id),
            None if !succeeded(seen.call) || seen.row.layer == Layer::Hdf5 && hdf5::is_of_memory(raw) => None,
            _ => Some(self.handles.make(seen.older(raw, file))),
        }
    }

    /// The handle of that value that a call of the same layer inside this one was about: `tmpfile` calls `fdopen`, and
    /// `pclose` calls `fclose`.
    fn of_below(&self, seen: &Seen, raw: u64, what: impl Fn(&Node) -> bool) -> Option<i32> {
        let inner = seen.below.iter().rev().filter(|n| n.span.layer == seen.row.layer && what(n));
        let mut handles = inner.filter_map(|n| n.span.handle_id);
        handles.find(|id| self.handles.row(*id).is_some_and(|h| h.raw == raw as i64))
    }

    fn uses(&mut self, seen: &Seen, file: Option<i32>) -> Found {
        let handle = self.handle(seen, file);
        if succeeded(seen.call) {
            self.hdf5.references(seen);
        }
        let mut file = file.or_else(|| self.handles.file(handle?));
        if file.is_none() {
            file = seen.file_below(&self.files);
        }
        if let (Some(handle), Some(file)) = (handle, file) {
            self.handles.learn(handle, file);
            // What a library opens of a file when it needs it belongs to the handle that it needs it for.
            for inner in seen.below.iter().filter(|n| n.opened && n.span.layer > seen.row.layer) {
                if let Some(child) = inner.span.handle_id.filter(|_| inner.span.file_id == Some(file)) {
                    self.handles.adopt(child, handle);
                }
            }
        }
        Found { file, handle, ..Found::default() }
    }

    fn close(&mut self, seen: &Seen, file: Option<i32>) -> Found {
        let mut found = self.uses(seen, file);
        let status = seen.call.status;
        // A descriptor is gone even when its close reports an error, unless there was none. So is a C stream.
        let gone = match seen.row.layer {
            Layer::Syscall => status != -EBADF && !seen.call.unfinished,
            Layer::Pnetcdf => status != NC_EBADID && !seen.call.unfinished,
            Layer::Stdio => !seen.call.unfinished,
            Layer::Hdf5 => succeeded(seen.call) && self.hdf5.closes(seen),
            _ => succeeded(seen.call),
        };
        if let (Some(raw), true) = (seen.call.handle, gone) {
            let by = Closing { span: seen.span, start_ns: seen.start_ns, end_ns: seen.end_ns };
            if let Some(closed) = self.handles.close(seen.owner, seen.name(raw), by) {
                found.handle = Some(closed);
                found.file = seen.call.file.and(found.file).or_else(|| self.handles.file(closed));
            }
            if let Some(file) = found.file {
                self.files.closed(file);
            }
        }
        found
    }

    fn reopen(&mut self, seen: &Seen, file: Option<i32>) -> Found {
        if let (Some(raw), false) = (seen.call.off, seen.call.unfinished) {
            let by = Closing { span: seen.span, start_ns: seen.start_ns, end_ns: seen.end_ns };
            if let Some(closed) = self.handles.close(seen.owner, seen.name(raw), by) {
                self.handles.retire(closed);
            }
        }
        self.open(seen, file)
    }

    fn open(&mut self, seen: &Seen, file: Option<i32>) -> Found {
        let Some(raw) = seen.call.handle.filter(|_| succeeded(seen.call)) else {
            let file = file.or_else(|| self.files.by_path(rooted(&seen.first_path()?)));
            return Found { file, ..Found::default() };
        };
        let location = self.location(seen);
        let mut file = file.or_else(|| self.handles.file(location?));
        if file.is_none() {
            file = if seen.row.object.is_some() { seen.file_below(&self.files) } else { self.file_opened_below(seen) };
        }
        let mode = seen.call.len.filter(|_| seen.row.object.is_none());
        let id = self.of_below(seen, raw, |n| n.opened).unwrap_or_else(|| {
            self.handles.make(New {
                comm_size: seen
                    .call
                    .got
                    .filter(|_| seen.row.layer != Layer::Syscall)
                    .and_then(|n| i32::try_from(n).ok())
                    .filter(|n| *n > 0),
                mode: mode.map(|m| m as i32),
                close_on_exec: seen.close_on_exec(),
                file,
                ..seen.newly(raw)
            })
        });
        if seen.row.layer == Layer::Mpiio {
            let size = self.handles.row(id).and_then(|h| h.comm_size);
            self.handles.opened(id, mpiio::ranks(seen, size), mpiio::implementation(seen));
        }
        match (location, seen.row.object) {
            (Some(location), Some(class)) => {
                self.handles.adopt(id, location);
                if let Some(file) = file {
                    self.handles.learn(location, file);
                }
                self.name(seen, location, id, hdf5::class(class, raw));
            }
            (Some(descriptor), None) => self.handles.adopt(descriptor, id),
            (None, _) => {}
        }
        for inner in seen.below.iter().filter(|n| n.opened) {
            if let Some(child) = inner.span.handle_id {
                self.handles.adopt(child, id);
            }
        }
        Found { file, handle: Some(id), opened: true, ..Found::default() }
    }

    /// The handle stands for an object whose name the call gives relative to another handle.
    fn name(&mut self, seen: &Seen, location: i32, handle: i32, class: &'static str) {
        let made = matches!(seen.row.effect(), Effect::Made | Effect::Dataset { .. } | Effect::Attribute { .. });
        let scope = self.handles.file(handle).map_or(Scope::Handle(location), Scope::File);
        let object = if let Some(path) = seen.object_path() {
            let path = ObjectPath { scope, location: self.object(location), name: &path, class };
            self.objects.open(&path, handle, seen.owner, made)
        } else if made {
            self.objects.anonymous(scope, class, handle, seen.owner)
        } else {
            return; // which one it is, is not known
        };
        self.handles.set_object(handle, object);
    }

    fn object(&self, handle: i32) -> Option<i32> {
        self.handles.row(handle)?.object_id
    }

    /// An object that was made without a name gets one.
    fn named_later(&mut self, seen: &Seen, found: &Found) {
        if let (Effect::Named { .. }, true, Some(object), Some(path)) =
            (seen.row.effect(), succeeded(seen.call), found.handle.and_then(|h| self.object(h)), seen.object_path())
            && let Some(location) = self.location(seen)
        {
            let location = self.object(location);
            self.objects.name(object, location, &path);
        }
    }

    /// What an open starts from: a handle of its own layer for an object, a descriptor for `fdopen`.
    fn location(&mut self, seen: &Seen) -> Option<i32> {
        let links = matches!(seen.row.effect(), Effect::Named { .. });
        let opens = seen.row.role() == Role::Open && seen.row.hints() == catalog::Hints::None;
        let raw = seen.call.off.filter(|_| opens || links)?;
        let name = if links || seen.row.object.is_some() { seen.name(raw) } else { (Layer::Syscall, 0, raw) };
        let known = self.handles.find(seen.owner, name);
        Some(known.unwrap_or_else(|| {
            let older = seen.older(raw, None);
            self.handles.make(New { name, ..older })
        }))
    }

    /// The file that a library opened for the path it was given: the one of that name, else the last data file.
    fn file_opened_below(&self, seen: &Seen) -> Option<i32> {
        let opens = seen.below.iter().filter(|n| n.opened && n.span.layer == Layer::Syscall);
        let opened: Vec<i32> = opens.filter_map(|n| n.span.file_id).collect();
        let wanted = seen.text(TextKind::Path).map(last_component);
        let named = |id: &&i32| wanted.is_some() && self.files.path(**id).map(last_component) == wanted;
        let data = |id: &&i32| matches!(self.files.role(**id), "data" | "temp");
        let last = |keep: &dyn Fn(&&i32) -> bool| opened.iter().rev().find(keep).copied();
        last(&named)
            .or_else(|| last(&data))
            .or_else(|| opened.first().copied().filter(|_| opened.len() == 1))
            .or_else(|| self.files.by_path(rooted(&seen.first_path()?)))
    }

    fn dup(&mut self, seen: &Seen, file: Option<i32>) -> Found {
        let (Some(raw), Some(old)) = (seen.call.handle, seen.call.off) else {
            return Found { file, ..Found::default() };
        };
        let source = self.handles.find(seen.owner, seen.name(old));
        let file = file.or_else(|| self.handles.file(source?));
        if let (Effect::Reference, true) = (seen.row.effect(), succeeded(seen.call))
            && let Some(known) = self.handles.find(seen.owner, seen.name(raw))
        {
            self.hdf5.reference(seen, raw);
            return Found { file, handle: Some(known), ..Found::default() };
        }
        if !succeeded(seen.call) || raw == old {
            return Found { file, handle: source, ..Found::default() };
        }
        let mode = source.and_then(|id| self.handles.row(id)?.mode);
        let close_on_exec = seen.close_on_exec();
        let id = self.handles.make(New { mode, close_on_exec, file, ..seen.newly(raw) });
        if let Some(source) = source {
            self.handles.copied(id, source);
        }
        Found { file, handle: Some(id), opened: true, ..Found::default() }
    }

    /// Descriptors end, or are closed by the next exec.
    fn close_range(&mut self, seen: &Seen) -> Found {
        let Call { off: Some(first), len: Some(last), got, .. } = *seen.call else { return Found::default() };
        if !succeeded(seen.call) {
            return Found::default();
        }
        // As the kernel takes them: unsigned.
        for raw in self.handles.descriptors(seen.owner, first as u32, last as u32) {
            let name = (Layer::Syscall, 0, raw);
            if got.is_some_and(|flags| flags & CLOSE_RANGE_CLOEXEC != 0) {
                self.handles.inherit(seen.owner, name, false);
                continue;
            }
            let by = Closing { span: seen.span, start_ns: seen.start_ns, end_ns: seen.end_ns };
            if let Some(closed) = self.handles.close(seen.owner, name, by) {
                if let Some(file) = self.handles.file(closed) {
                    self.files.closed(file);
                }
                self.handles.retire(closed);
            }
        }
        Found::default()
    }

    fn inherit(&mut self, seen: &Seen, file: Option<i32>) -> Found {
        let found = self.uses(seen, file);
        if let (Some(raw), Some(closed), true) = (seen.call.handle, seen.call.got, succeeded(seen.call)) {
            self.handles.inherit(seen.owner, seen.name(raw), closed == 0);
        }
        found
    }

    /// A process ended, or executes another program.
    pub fn gone(&mut self, owner: Owner, t_ns: i64, executes: bool) {
        if executes {
            self.handles.exec(owner, t_ns);
        } else {
            self.handles.exit(owner, t_ns);
        }
        self.hdf5.gone(owner);
        self.netcdf.forget(&self.handles, &mut self.objects);
    }

    /// The trace ends.
    pub fn finish(&mut self, out: &mut Vec<Out>) {
        self.netcdf.finish(&mut self.objects);
        self.write(out);
        self.files.finish(out);
    }

    /// A descriptor found open at attach, with the flags that it was opened with.
    pub fn preopened(
        &mut self,
        t_ns: i64,
        (owner, pid): (Owner, i32),
        (fd, flags): (u32, Option<u32>),
        (key, seen): (FileKey, &Sighting),
    ) {
        let id = self.files.seen(t_ns, key, seen);
        if fd <= 2 {
            self.files.is_stdio(id);
        }
        let name = (Layer::Syscall, 0, u64::from(fd));
        if self.handles.find(owner, name).is_none() {
            self.handles.make(New {
                owner,
                pid,
                name,
                mode: flags.map(|flags| (flags & !(O_CLOEXEC as u32)) as i32),
                comm_size: None,
                close_on_exec: flags.is_some_and(|flags| u64::from(flags) & O_CLOEXEC != 0),
                file: Some(id),
                span: None,
                start_ns: t_ns,
                known_from: t_ns,
            });
        }
    }

    /// A C stream is on a descriptor. What of the two was not seen opened, or is about another file by now, is made up.
    pub fn stream(&mut self, t_ns: i64, (owner, pid): (Owner, i32), stream: u64, fd: u32, key: FileKey) {
        let file = Some(self.files.intern(key));
        let mut known = |name: Name| {
            let found =
                self.handles.find(owner, name).filter(|id| self.handles.file(*id).is_none_or(|f| Some(f) == file));
            found.unwrap_or_else(|| {
                self.handles.make(New {
                    owner,
                    pid,
                    name,
                    mode: None,
                    comm_size: None,
                    close_on_exec: false,
                    file,
                    span: None,
                    start_ns: t_ns,
                    known_from: t_ns,
                })
            })
        };
        let (descriptor, stream) = (known((Layer::Syscall, 0, u64::from(fd))), known((Layer::Stdio, 0, stream)));
        self.handles.adopt(descriptor, stream);
        if let Some(file) = file {
            self.handles.learn(descriptor, file);
            self.handles.learn(stream, file);
        }
    }

    /// A span is about to be written: fills in what became known since its call ended.
    pub fn complete(&mut self, span: &mut Span, closes: bool) {
        if let Some(handle) = span.handle_id {
            if span.file_id.is_none() {
                span.file_id = self.handles.file(handle);
            }
            self.handles.used(handle);
            if closes {
                self.handles.retire(handle);
            }
        }
        if let Some(file) = span.file_id {
            self.files.used(file);
        }
        for path in [span.path_id, span.path2_id].into_iter().flatten() {
            self.named.used(path);
        }
        if let Some(object) = span.object_id {
            self.objects.used(object);
        }
    }

    /// Their rows are written again when they are used.
    pub fn forgotten(&mut self, files: &[i32], objects: &[i32], handles: &[i32], paths: &[i32]) {
        self.files.forgotten(files);
        self.objects.forgotten(objects);
        self.handles.forgotten(handles);
        self.named.forgotten(paths);
    }

    /// Writes the rows that changed.
    pub fn write(&mut self, out: &mut Vec<Out>) {
        self.named.write(out);
        self.objects.write(out);
        if self.objects.has_many() {
            self.objects.forget(&self.handles.objects().chain(self.netcdf.objects()).collect());
        }
        self.handles.write(out, &mut self.scratch);
        for file in self.scratch.drain(..) {
            self.files.used(file);
        }
        self.files.write(out);
        if self.files.has_many() {
            self.files.forget(&self.handles.files());
        }
    }
}
