//! What a call is about: its file, its handle, its object; and what it does to them.

use super::call::succeeded;
use super::files::Files;
use super::handles::{Closing, Handles, New};
use super::objects::{Objects, Scope};
use super::paths::{absolute, last_component};
use super::processes::{Owner, Text};
use super::rows::{Row as Out, Span};
use super::stack::Node;
use crate::catalog::{Role, Row};
use crate::event::{Call, FileKey, TextKind};
use crate::words::{Kind, Layer};

const O_CLOEXEC: u64 = 0o2_000_000;
const EBADF: i32 = 9;

/// Files, handles and objects, which refer to each other.
#[derive(Default)]
pub struct Things {
    pub files: Files,
    pub handles: Handles,
    pub objects: Objects,
    /// Room for the ids of files; kept for its capacity.
    scratch: Vec<i32>,
}

/// A call with what surrounds it.
pub struct Seen<'a> {
    pub row: &'a Row,
    pub call: &'a Call,
    pub owner: Owner,
    pub pid: i32,
    pub span: i64,
    pub start_ns: i64,
    pub end_ns: i64,
    pub texts: &'a [Text],
    /// The completed calls inside it.
    pub below: &'a [Node],
    /// Of a phase, whose calls are gone: the one file that its system calls named.
    pub phase_file: Option<i32>,
}

impl Seen<'_> {
    fn text(&self, what: TextKind) -> Option<&[u8]> {
        self.texts.iter().find(|t| t.seq == self.call.seq && t.what == what).map(|t| t.bytes.as_slice())
    }

    /// A path argument as an absolute path, if that is known.
    fn path(&self, path: TextKind, base: TextKind) -> Option<Vec<u8>> {
        let path = self.text(path)?;
        if path.starts_with(b"/") { Some(absolute(b"", path)) } else { Some(absolute(self.text(base)?, path)) }
    }

    fn first_path(&self) -> Option<Vec<u8>> {
        self.path(TextKind::Path, TextKind::Base)
    }

    /// The one file that all system calls inside this call name.
    fn file_below(&self) -> Option<i32> {
        let mut files = self.below.iter().filter(|n| n.span.layer == Layer::Syscall).filter_map(|n| n.span.file_id);
        let Some(first) = files.next() else { return self.phase_file };
        files.all(|f| f == first).then_some(first)
    }

    fn newly(&self, raw: u64) -> New {
        New {
            owner: self.owner,
            pid: self.pid,
            name: (self.row.layer, raw),
            mode: None,
            close_on_exec: false,
            file: None,
            span: Some(self.span),
            start_ns: self.start_ns,
            known_from: self.end_ns,
        }
    }

    /// A handle that is used and was not seen opened.
    fn older(&self, raw: u64, file: Option<i32>) -> New {
        New { file, span: None, known_from: self.start_ns, ..self.newly(raw) }
    }
}

/// What a call turned out to be about.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub file: Option<i32>,
    pub handle: Option<i32>,
    pub object: Option<i32>,
    /// It made the handle.
    pub opened: bool,
}

impl Things {
    pub fn call(&mut self, seen: &Seen) -> Found {
        let file = seen.call.file.map(|key| self.files.intern(key));
        let mut found = match seen.row.role {
            Role::None | Role::Unlink | Role::Rename => Found { file: self.named(seen, file), ..Found::default() },
            Role::Use => self.uses(seen, file),
            Role::Close => self.close(seen, file),
            Role::Open => self.open(seen, file),
            Role::Dup => self.dup(seen, file),
        };
        found.object = found.handle.and_then(|id| self.handles.row(id)?.object_id);
        if let (Some(file), Layer::Syscall, true) = (found.file, seen.row.layer, succeeded(seen.call)) {
            self.sizes(seen, file);
        }
        found
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
        let file = file.or_else(|| self.files.by_path(path.as_deref()?)).or_else(|| seen.file_below());
        if succeeded(seen.call) {
            match (seen.row.role, path) {
                (Role::Unlink, Some(path)) => self.files.unlink(&path),
                (Role::Rename, Some(from)) => {
                    if let Some(to) = seen.path(TextKind::Path2, TextKind::Base2) {
                        self.files.rename(seen.end_ns, &from, &to);
                    }
                }
                // A file that is only ever asked about has no other name than the one it was asked about by.
                (Role::None, Some(path)) if seen.call.file.is_some() && seen.row.stat.is_some() => {
                    if let Some(file) = file {
                        self.files.asked_about(seen.end_ns, file, &path);
                    }
                }
                _ => {}
            }
        }
        file
    }

    /// The handle that a call names, made up when it was not seen opened.
    fn handle(&mut self, seen: &Seen, file: Option<i32>) -> Option<i32> {
        let raw = seen.call.handle?;
        let known = self.handles.find(seen.owner, (seen.row.layer, raw));
        let other = |id: i32| matches!((self.handles.file(id), file), (Some(a), Some(b)) if a != b);
        match known {
            // The file says that a close and an open were lost in between.
            Some(id) if !other(id) => Some(id),
            None if !succeeded(seen.call) => None,
            _ => Some(self.handles.make(seen.older(raw, file))),
        }
    }

    fn uses(&mut self, seen: &Seen, file: Option<i32>) -> Found {
        let handle = self.handle(seen, file);
        let mut file = file.or_else(|| self.handles.file(handle?));
        if file.is_none() {
            file = seen.file_below();
        }
        if let (Some(handle), Some(file)) = (handle, file) {
            self.handles.learn(handle, file);
        }
        Found { file, handle, ..Found::default() }
    }

    fn close(&mut self, seen: &Seen, file: Option<i32>) -> Found {
        let mut found = self.uses(seen, file);
        let status = seen.call.status;
        // A descriptor is gone even when its close reports an error, unless there was none.
        let gone = succeeded(seen.call)
            || (seen.row.layer == Layer::Syscall && status < 0 && status != -EBADF && !seen.call.unfinished);
        if let (Some(raw), true) = (seen.call.handle, gone) {
            let by = Closing { span: seen.span, start_ns: seen.start_ns, end_ns: seen.end_ns };
            if let Some(closed) = self.handles.close(seen.owner, (seen.row.layer, raw), by) {
                found.handle = Some(closed);
                found.file = seen.call.file.and(found.file).or_else(|| self.handles.file(closed));
            }
            if let Some(file) = found.file {
                self.files.closed(file);
            }
        }
        found
    }

    fn open(&mut self, seen: &Seen, file: Option<i32>) -> Found {
        let Some(raw) = seen.call.handle.filter(|_| succeeded(seen.call)) else {
            let file = file.or_else(|| self.files.by_path(&seen.first_path()?));
            return Found { file, ..Found::default() };
        };
        let location = self.location(seen);
        let mut file = file.or_else(|| self.handles.file(location?));
        if file.is_none() {
            file = if seen.row.object.is_some() { seen.file_below() } else { self.file_opened_below(seen) };
        }
        let mode = seen.call.len;
        let id = self.handles.make(New {
            mode: mode.map(|m| m as i32),
            close_on_exec: seen.row.layer == Layer::Syscall && mode.is_some_and(|m| m & O_CLOEXEC != 0),
            file,
            ..seen.newly(raw)
        });
        match (location, seen.row.object) {
            (Some(location), Some(class)) => {
                self.handles.adopt(id, location);
                if let Some(file) = file {
                    self.handles.learn(location, file);
                }
                let scope = file.map_or(Scope::Handle(location), Scope::File);
                let inside = self.handles.row(location).and_then(|h| h.object_id);
                if let Some(name) = seen.text(TextKind::Path) {
                    let object = self.objects.open(scope, inside, name, class, id);
                    self.handles.set_object(id, object);
                }
            }
            (Some(descriptor), None) => self.handles.adopt(descriptor, id),
            (None, _) => {}
        }
        for inner in seen.below.iter().filter(|n| n.opened) {
            if let Some(child) = inner.span.handle_id {
                self.handles.adopt(child, id);
            }
        }
        Found { file, handle: Some(id), object: None, opened: true }
    }

    /// What an open starts from: a handle of its own layer for an object, a descriptor for `fdopen`.
    fn location(&mut self, seen: &Seen) -> Option<i32> {
        let raw = seen.call.off?;
        let layer = if seen.row.object.is_some() { seen.row.layer } else { Layer::Syscall };
        let known = self.handles.find(seen.owner, (layer, raw));
        Some(known.unwrap_or_else(|| {
            let older = seen.older(raw, None);
            self.handles.make(New { name: (layer, raw), ..older })
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
            .or_else(|| self.files.by_path(&seen.first_path()?))
    }

    fn dup(&mut self, seen: &Seen, file: Option<i32>) -> Found {
        let (Some(raw), Some(old)) = (seen.call.handle, seen.call.off) else {
            return Found { file, ..Found::default() };
        };
        let source = self.handles.find(seen.owner, (seen.row.layer, old));
        let file = file.or_else(|| self.handles.file(source?));
        if !succeeded(seen.call) || raw == old {
            return Found { file, handle: source, ..Found::default() };
        }
        let mode = source.and_then(|id| self.handles.row(id)?.mode);
        let id = self.handles.make(New { mode, file, ..seen.newly(raw) });
        Found { file, handle: Some(id), object: None, opened: true }
    }

    /// A descriptor found open at attach.
    pub fn preopened(&mut self, t_ns: i64, owner: Owner, pid: i32, fd: u32, file: (FileKey, u64, &[u8])) {
        let (key, size, path) = file;
        let id = self.files.seen(t_ns, key, size, path);
        if fd <= 2 {
            self.files.is_stdio(id);
        }
        let name = (Layer::Syscall, u64::from(fd));
        if self.handles.find(owner, name).is_none() {
            self.handles.make(New {
                owner,
                pid,
                name,
                mode: None,
                close_on_exec: false,
                file: Some(id),
                span: None,
                start_ns: t_ns,
                known_from: t_ns,
            });
        }
    }

    /// A span is about to be written: fills in what became known since its call ended.
    pub fn complete(&mut self, span: &mut Span, closes: bool) {
        if let Some(handle) = span.handle_id {
            if span.file_id.is_none() {
                span.file_id = self.handles.file(handle);
            }
            if closes {
                self.handles.retire(handle);
            }
        }
        if let Some(file) = span.file_id {
            self.files.used(file);
        }
    }

    /// Writes the rows that changed.
    pub fn write(&mut self, out: &mut Vec<Out>) {
        self.objects.write(out);
        self.handles.write(out, &mut self.scratch);
        for file in self.scratch.drain(..) {
            self.files.used(file);
        }
        self.files.write(out);
    }
}
