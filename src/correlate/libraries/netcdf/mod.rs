//! What NetCDF-C and `PnetCDF` calls are about: groups, variables, attributes; and the bytes of each call, which follow from
//! the counts it was given and from the shape of the variable as earlier calls, or calls inside it, gave it.

mod bytes;
mod file;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use crate::catalog::Role;
use crate::catalog::libraries::hdf5::{DEFLATE, FLETCHER32, SHUFFLE};
use crate::catalog::variables::{Element, Meaning, Region, slot};
use crate::correlate::calls::call::succeeded;
use crate::correlate::libraries::hdf5;
use crate::correlate::libraries::netcdf::file::{Attribute, File, Key, Variable};
use crate::correlate::resources::handles::{Closing, Handles, New};
use crate::correlate::resources::objects::{ObjectPath, Objects, Scope};
use crate::correlate::seen::{Found, Seen, VariableAccess};
use crate::event::TextKind;
use crate::vocabulary::{Kind, Layer};

/// `NC_GLOBAL`: the file (or group) instead of a variable.
const GLOBAL: i32 = -1;
/// `NC_CHUNKED`.
const CHUNKED: i64 = 0;
/// `sizeof(nc_vlen_t)`.
const LIST_BYTES: i64 = 16;
/// The group's part of an `ncid` (`GRP_ID_MASK` of nc4internal.h).
const GROUP_BITS: u64 = 0xffff;

/// Files by their handles.
#[derive(Default)]
pub struct NetCdf {
    files: HashMap<i32, File>,
}

/// A call on a file: what the parts of it mean.
struct On<'a> {
    seen: &'a Seen<'a>,
    /// Handle of the file.
    root: i32,
    /// Handle of the group.
    group: i32,
    ok: bool,
}

impl On<'_> {
    fn id(&self) -> Option<i32> {
        self.seen.call.off.map(|off| off as i32)
    }
    fn above(&self) -> u64 {
        self.seen.call.off.unwrap_or(0) >> 32
    }
    fn len(&self) -> Option<i64> {
        self.seen.call.len.map(|len| len as i64)
    }
    fn got(&self) -> Option<i64> {
        self.seen.call.got.map(|got| got as i64)
    }
    fn name(&self) -> Option<&[u8]> {
        self.seen.text(TextKind::Path)
    }
    fn key(&self) -> Option<Key> {
        Some((self.group, self.id()?))
    }
    /// A name in an object, or in the file.
    fn object_path<'a>(
        &self,
        handles: &Handles,
        location: Option<i32>,
        name: &'a [u8],
        class: &'static str,
    ) -> ObjectPath<'a> {
        let scope = handles.file(self.root).map_or(Scope::Handle(self.root), Scope::File);
        ObjectPath { scope, location, name, class }
    }
}

/// The file's own name for a name of something in it.
pub fn file_of(layer: Layer, raw: u64) -> u64 {
    if layer == Layer::Netcdf { raw & !GROUP_BITS } else { raw }
}

impl NetCdf {
    /// A group that is used and was not seen opened gets a handle.
    pub fn group(&mut self, seen: &Seen, handles: &mut Handles) {
        let Some(raw) = seen.call.handle.filter(|_| succeeded(seen.call) && seen.row.role() == Role::Use) else {
            return;
        };
        let root = file_of(seen.row.layer, raw);
        if root != raw && handles.find(seen.owner, seen.name(raw)).is_none() {
            let root =
                handles.find(seen.owner, seen.name(root)).unwrap_or_else(|| handles.make(seen.older(root, None)));
            self.new_group(seen.older(raw, handles.file(root)), root, handles);
        }
    }

    fn new_group(&mut self, new: New, root: i32, handles: &mut Handles) -> i32 {
        self.files.entry(root).or_default().groups.push(new.name.2);
        handles.make(new)
    }

    /// A call ended.
    pub fn call(
        &mut self,
        seen: &Seen,
        found: &mut Found,
        handles: &mut Handles,
        objects: &mut Objects,
    ) -> VariableAccess {
        let ok = succeeded(seen.call);
        let meaning = seen.row.meaning();
        if let (Meaning::File { parallel }, Some(id)) = (meaning, found.handle) {
            self.files.entry(id).or_default().parallel |= parallel;
            return VariableAccess { collective: parallel, ..VariableAccess::default() };
        }
        let Some(raw) = seen.call.handle else { return VariableAccess::default() };
        let known = handles.find(seen.owner, seen.name(file_of(seen.row.layer, raw)));
        let Some(root) = known.or(found.handle.filter(|_| meaning == Meaning::End)) else {
            return VariableAccess::default();
        };
        let on = On { seen, root, group: found.handle.unwrap_or(root), ok };
        let file = self.files.entry(root).or_default();
        let parallel = file.parallel;
        let requested = match meaning {
            Meaning::Data(region, element) => Some(data(&on, file, found, region, element)),
            Meaning::AttributeData(element) => Some(attribute_data(&on, file, found, element, handles, objects)),
            Meaning::Inner => Some(bytes::inside(seen)),
            _ => None,
        };
        if ok {
            match meaning {
                Meaning::End => self.close(&on, handles, objects),
                Meaning::Group | Meaning::GroupName | Meaning::GroupParent | Meaning::Groups => {
                    self.groups(&on, found, handles, objects);
                }
                _ => learn(&on, file, found, handles, objects),
            }
        }
        let everyone = match meaning {
            Meaning::Data(..) => {
                let variable = on.key().and_then(|key| self.files.get(&root)?.variables.get(&key));
                variable.is_some_and(|v| v.collective)
            }
            _ => true,
        };
        VariableAccess {
            requested: requested.and_then(Result::ok),
            unknown_bytes: requested.and_then(Result::err).filter(|_| ok),
            collective: parallel && everyone,
        }
    }

    fn close(&mut self, on: &On, handles: &mut Handles, objects: &mut Objects) {
        let Some(file) = self.files.remove(&on.root) else { return };
        finish(&file, objects);
        let by = Closing { span: on.seen.span, start_ns: on.seen.start_ns, end_ns: on.seen.end_ns };
        for raw in &file.groups {
            if let Some(id) = handles.close(on.seen.owner, on.seen.name(*raw), by) {
                handles.adopt(id, on.root);
                handles.retire(id);
            }
        }
    }

    /// Groups that a call names get handles, locations and names.
    fn groups(&mut self, on: &On, found: &mut Found, handles: &mut Handles, objects: &mut Objects) {
        let seen = on.seen;
        let file = self.files.entry(on.root).or_default();
        let ids: Vec<u64> = match seen.row.meaning() {
            // One that is made: its handle is there.
            Meaning::Group if seen.row.role() == Role::Open => return file.groups.extend(seen.call.handle),
            Meaning::Group => seen.call.off.into_iter().collect(),
            Meaning::GroupParent => {
                if let Some(parent) = seen.call.off.and_then(|raw| handles.find(seen.owner, seen.name(raw))) {
                    handles.adopt(on.group, parent);
                }
                return;
            }
            Meaning::Groups => {
                let number = on.got().and_then(|n| usize::try_from(n).ok());
                let number = number.or_else(|| file.numbers.get(&on.group).copied());
                file.numbers.extend(number.map(|n| (on.group, n)));
                let ids = seen.numbers(slot::IDS).unwrap_or_default();
                ids.into_iter().take(number.unwrap_or(0)).map(|id| id as u64).collect()
            }
            _ => seen.call.handle.into_iter().collect(),
        };
        for raw in ids.into_iter().filter(|raw| file_of(seen.row.layer, *raw) != *raw) {
            let known = handles.find(seen.owner, seen.name(raw));
            let id = known.unwrap_or_else(|| {
                let new = New { file: handles.file(on.root), ..seen.newly(raw) };
                self.new_group(new, on.root, handles)
            });
            let by_path = on.name().is_some_and(|name| name.starts_with(b"/"));
            if matches!(seen.row.meaning(), Meaning::Group | Meaning::Groups) && !by_path {
                handles.adopt(id, on.group);
            }
            let (Some(name), None) = (on.name(), object(id, handles)) else { continue };
            let inside = parent(id, handles).filter(|_| !by_path);
            let location = inside.and_then(|inside| object(inside, handles));
            // The name of what it is in must be known, unless that is the file.
            if by_path || location.is_some() || inside == Some(on.root) {
                let object = objects.open(&on.object_path(handles, location, name, "group"), id, seen.owner, false);
                handles.set_object(id, object);
            }
        }
        found.object = object(on.group, handles);
    }

    /// Forgets files whose handles have ended.
    pub fn forget(&mut self, handles: &Handles, objects: &mut Objects) {
        self.files.retain(|id, file| {
            let open = handles.row(*id).is_some_and(|h| h.end_ns.is_none());
            if !open {
                finish(file, objects);
            }
            open
        });
    }

    /// The variables of open files.
    pub fn objects(&self) -> impl Iterator<Item = i32> {
        self.files.values().flat_map(|file| file.variables.values()).filter_map(|variable| variable.object)
    }

    /// The trace ends.
    pub fn finish(&mut self, objects: &mut Objects) {
        for (_, file) in self.files.drain() {
            finish(&file, objects);
        }
    }
}

fn object(handle: i32, handles: &Handles) -> Option<i32> {
    handles.row(handle)?.object_id
}

fn parent(handle: i32, handles: &Handles) -> Option<i32> {
    handles.row(handle)?.parent_handle_id
}

/// Learns dimensions, variables, types and attributes from a call.
fn learn(on: &On, file: &mut File, found: &mut Found, handles: &Handles, objects: &mut Objects) {
    let (len, got) = (on.len(), on.got());
    match on.seen.row.meaning() {
        Meaning::Dimension { new } => {
            if let Some(id) = on.id() {
                let dimension = file.dimensions.entry(id).or_default();
                dimension.len = len.or(dimension.len);
                dimension.grows |= new && len == Some(0);
            }
        }
        Meaning::Variable { new } => variable(on, file, found, new, handles, objects),
        Meaning::Access => {
            for (_, variable) in
                file.variables.iter_mut().filter(|(key, _)| on.id() == Some(GLOBAL) || on.key() == Some(**key))
            {
                variable.collective = len == Some(1); // NC_COLLECTIVE, netcdf_par.h
            }
        }
        Meaning::Storage | Meaning::Deflate | Meaning::Checksum | Meaning::Filter | Meaning::Filters => {
            let Some(key) = on.key() else { return };
            let variable = file.variables.entry(key).or_default();
            found.object = variable.object;
            layout(on, variable);
            // What is filtered can only be written together (NC4_hdf5_def_var_filter, hdf5filter.c).
            variable.collective |= file.parallel && !variable.filters.is_empty();
            describe(file, key, objects);
        }
        Meaning::Type => {
            if let (Some(id), Some(len)) = (on.id(), len) {
                file.types.insert(id, len);
            }
        }
        Meaning::ListType => {
            file.types.extend(on.id().map(|id| (id, LIST_BYTES)));
        }
        Meaning::SameType => {
            let size = len.and_then(|base| file.size(base as i32));
            file.types.extend(on.id().zip(size));
        }
        Meaning::Attribute => {
            if let Some((key, name)) = on.key().zip(on.name()) {
                let known = file.attributes.entry((key, name.to_vec())).or_default();
                *known = Attribute { elements: len.or(known.elements), kind: got.map(|k| k as i32).or(known.kind) };
            }
        }
        Meaning::NoAttribute => {
            if let Some((key, name)) = on.key().zip(on.name()) {
                file.attributes.remove(&(key, name.to_vec()));
            }
        }
        _ => {}
    }
}

fn variable(on: &On, file: &mut File, found: &mut Found, new: bool, handles: &Handles, objects: &mut Objects) {
    let Some(key) = on.key().filter(|key| key.1 != GLOBAL) else { return };
    let variable = file.variables.entry(key).or_default();
    if new {
        *variable = Variable::default();
    }
    variable.kind = on.len().map(|k| k as i32).or(variable.kind);
    variable.rank = on.got().and_then(|rank| usize::try_from(rank).ok()).or(variable.rank);
    if let (Some(ids), Some(rank)) = (on.seen.numbers(slot::IDS), variable.rank) {
        variable.dims = ids.get(..rank).map(|ids| ids.iter().map(|id| *id as i32).collect()).or(variable.dims.take());
    }
    if variable.rank == Some(0) {
        variable.dims = Some(Vec::new());
    }
    let location = object(on.group, handles);
    // The name of the group must be known.
    if let Some(name) = on.name().filter(|_| location.is_some() || on.group == on.root) {
        let path = on.object_path(handles, location, name, "variable");
        match variable.object {
            Some(known) => objects.rename(known, &path),
            None => variable.object = Some(objects.open(&path, on.group, on.seen.owner, new)),
        }
    }
    found.object = variable.object;
    describe(file, key, objects);
}

fn layout(on: &On, variable: &mut Variable) {
    let parameter = on.seen.numbers(slot::PARAMETERS).and_then(|p| p.first().copied());
    let yes = |value: Option<i64>| value.is_some_and(|v| v as i32 != 0);
    match on.seen.row.meaning() {
        Meaning::Storage if on.len() == Some(CHUNKED) => {
            variable.chunk = on.seen.numbers(slot::CHUNK).or(variable.chunk.take());
        }
        Meaning::Storage if on.len().is_some() => variable.chunk = Some(Vec::new()),
        Meaning::Deflate => {
            if yes(on.len()) {
                variable.filter(SHUFFLE, None);
            }
            if yes(on.got()) {
                variable.filter(DEFLATE, parameter.or(on.got().map(|level| i64::from(level as i32))));
            }
        }
        Meaning::Checksum if yes(on.len()) => variable.filter(FLETCHER32, None),
        Meaning::Filter => {
            if let Some(id) = on.len() {
                variable.filter(id as i32, parameter);
            }
        }
        Meaning::Filters => {
            on.seen.numbers(slot::IDS).unwrap_or_default().into_iter().for_each(|id| variable.filter(id as i32, None));
        }
        _ => {}
    }
}

/// The bytes of a call on a variable, or why they are not known. Learns the rank of the variable.
fn data(on: &On, file: &mut File, found: &mut Found, region: Region, element: Element) -> Result<i64, &'static str> {
    let Some(key) = on.key().filter(|_| region != Region::Several) else { return bytes::several(on.seen, element) };
    let inner = bytes::InnerValues::of(on, region);
    let variable = file.variables.entry(key).or_default();
    found.object = variable.object;
    variable.rank = variable.rank.or(inner.rank);
    if let (Region::Whole, Some(shape)) = (region, on.seen.numbers(slot::SHAPE)) {
        variable.shape = Some(shape);
    }
    let asked = bytes::of(on, file, key, region, element, inner);
    if on.ok && on.seen.row.kind == Kind::Write {
        file.reached(key, &bytes::ends(on.seen, region));
    }
    asked
}

fn attribute_data(
    on: &On,
    file: &mut File,
    found: &mut Found,
    element: Element,
    handles: &Handles,
    objects: &mut Objects,
) -> Result<i64, &'static str> {
    let (Some(key), Some(name)) = (on.key(), on.name()) else { return Err(bytes::LENGTH) };
    let location =
        if key.1 == GLOBAL { object(on.group, handles) } else { file.variables.get(&key).and_then(|v| v.object) };
    if location.is_some() || key.1 == GLOBAL && on.group == on.root {
        let path = on.object_path(handles, location, name, "attribute");
        found.object = Some(objects.open(&path, on.group, on.seen.owner, false));
    }
    let known = file.attributes.get(&(key, name.to_vec())).copied().unwrap_or_default();
    let now = Attribute {
        elements: on.len().or(known.elements),
        kind: on.got().map(|kind| kind as i32).or(known.kind).or(bytes::text_type(on.seen.row.op)),
    };
    if on.ok && on.seen.row.kind == Kind::Write {
        file.attributes.insert((key, name.to_vec()), now);
    }
    let size = match element {
        Element::Bytes(bytes) => Some(i64::from(bytes)),
        _ => now.kind.and_then(|kind| file.size(kind)),
    };
    let elements = now.elements.ok_or(bytes::LENGTH)?;
    Ok(elements.saturating_mul(size.ok_or(bytes::TYPE)?))
}

/// What is known of a variable goes to its object. Other handles on the file may know of more records.
fn describe(file: &File, key: Key, objects: &mut Objects) {
    let Some(variable) = file.variables.get(&key) else { return };
    let Some(id) = variable.object else { return };
    let dims = file.lengths(variable);
    let size = variable.kind.and_then(|kind| file.size(kind));
    let filter = |(id, level): &(i32, Option<i64>)| hdf5::named(*id, level.map(|level| level as u64));
    let filters: Vec<String> = variable.filters.iter().map(filter).collect();
    objects.learn(id, |shape| {
        shape.dims = match (dims, shape.dims.take()) {
            (Some(a), Some(b)) if a.len() == b.len() => Some(a.into_iter().zip(b).map(|(a, b)| a.max(b)).collect()),
            (now, known) => now.or(known),
        };
        shape.chunk = variable.chunk().or(shape.chunk.take());
        shape.elem_size = size.and_then(|s| i32::try_from(s).ok()).or(shape.elem_size);
        shape.filters = Some(filters).filter(|f| !f.is_empty()).or(shape.filters.take());
    });
}

/// The final state of the variables of a file.
fn finish(file: &File, objects: &mut Objects) {
    let mut keys: Vec<&Key> = file.variables.keys().collect();
    keys.sort_unstable();
    for key in keys {
        describe(file, *key, objects);
    }
}
