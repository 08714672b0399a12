//! The kernel's types, cut to those that our programs know.
//!
//! libbpf compares each type that a program asks for with the name of each type of the kernel, of which there are over
//! 100 000 (`bpf_core_add_cands`): 50 ms for each of our two objects. Of the few that can be meant it takes next to
//! nothing. The format is described in the kernel's Documentation/bpf/btf.rst.

use crate::base::objects;
use crate::loader::cache::Cache;
use ahash::RandomState;
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

/// Of the running kernel.
const KERNEL: &str = "/sys/kernel/btf/vmlinux";
const MODULES: &str = "/sys/kernel/btf";

type Names<'a> = HashSet<&'a str, RandomState>;

const MAGIC: u16 = 0xeb9f;
const HEADER: u32 = 24;
/// Name, kind with the number of its parts, and size or type.
const TYPE: usize = 12;
/// Structures in structures. Deeper ones are refused: they would be damaged.
const DEEP: u32 = 64;

mod kind {
    pub const INT: u32 = 1;
    pub const PTR: u32 = 2;
    pub const ARRAY: u32 = 3;
    pub const STRUCT: u32 = 4;
    pub const UNION: u32 = 5;
    pub const ENUM: u32 = 6;
    pub const FWD: u32 = 7;
    pub const TYPEDEF: u32 = 8;
    pub const RESTRICT: u32 = 11;
    pub const FUNC: u32 = 12;
    pub const FUNC_PROTO: u32 = 13;
    pub const VAR: u32 = 14;
    pub const DATASEC: u32 = 15;
    pub const FLOAT: u32 = 16;
    pub const DECL_TAG: u32 = 17;
    pub const TYPE_TAG: u32 = 18;
    pub const ENUM64: u32 = 19;
}

/// The types in a file without a name; `None`: they are not there, not as they were when this was written, or a module
/// has some.
pub fn kernels() -> Option<File> {
    let modules = modules();
    let cache = Cache::new("types.btf", &modules);
    if let Some(cut) = cache.as_ref().and_then(Cache::bytes) {
        return in_memory(&cut);
    }
    let raw = std::fs::read(KERNEL).ok()?;
    let mut names = names();
    let cut = cut(&raw, &mut names)?;
    if modules_have(&modules, &names) {
        return None;
    }
    // Where it cannot be kept it is made again.
    let _ = cache.map(|cache| cache.write_bytes(&cut));
    in_memory(&cut)
}

/// The types of modules that are loaded, by path.
fn modules() -> Vec<PathBuf> {
    let files = std::fs::read_dir(MODULES).into_iter().flatten().flatten().map(|file| file.path());
    let mut modules: Vec<PathBuf> = files.filter(|path| path != Path::new(KERNEL)).collect();
    modules.sort_unstable();
    modules
}

fn in_memory(bytes: &[u8]) -> Option<File> {
    let mut file = File::from(memfd_create(c"iotrace-types", MFdFlags::MFD_CLOEXEC).ok()?);
    file.write_all(bytes).ok()?;
    Some(file)
}

/// Those that may be the kernel's.
fn names() -> Names<'static> {
    objects::types().lines().filter(|name| !name.starts_with("iot_")).collect()
}

/// Has a module a type of one of these names? They are looked for in its strings.
fn modules_have(modules: &[PathBuf], names: &Names<'_>) -> bool {
    let has = |raw: &[u8]| {
        let strings = part(raw, 16, 20).unwrap_or_default();
        strings.split(|byte| *byte == 0).any(|name| std::str::from_utf8(name).is_ok_and(|name| names.contains(name)))
    };
    modules.iter().map(|path| std::fs::read(path).unwrap_or_default()).any(|raw| has(&raw))
}

/// A path to it, as long as it is open.
pub fn path(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_ne_bytes(*b))
}

/// A part of BTF: its offset behind the header and its length stand there.
fn part(raw: &[u8], offset: usize, length: usize) -> Option<&[u8]> {
    let from = word(raw, 4)? as usize + word(raw, offset)? as usize;
    raw.get(from..from.checked_add(word(raw, length)? as usize)?)
}

struct Types<'a> {
    all: &'a [u8],
    strings: &'a [u8],
    /// Where each type begins, by number; the first one has number 1.
    starts: Vec<usize>,
}

/// How many bytes follow a type of this kind.
fn follows(kind: u32, parts: usize) -> Option<usize> {
    Some(match kind {
        kind::INT | kind::VAR | kind::DECL_TAG => 4,
        kind::ARRAY => 12,
        kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => parts * 12,
        kind::ENUM | kind::FUNC_PROTO => parts * 8,
        kind::PTR | kind::FWD..=kind::FUNC | kind::FLOAT | kind::TYPE_TAG => 0,
        _ => return None,
    })
}

const fn kind_of(info: u32) -> u32 {
    info >> 24 & 0x1f
}

const fn parts_of(info: u32) -> usize {
    (info & 0xffff) as usize
}

impl<'a> Types<'a> {
    fn parse(raw: &'a [u8]) -> Option<Self> {
        if raw.first_chunk().map(|b| u16::from_ne_bytes(*b))? != MAGIC || raw.get(2) != Some(&1) {
            return None;
        }
        let (types, strings) = (part(raw, 8, 12)?, part(raw, 16, 20)?);
        let (mut starts, mut at) = (vec![0], 0);
        while at < types.len() {
            starts.push(at);
            let info = word(types, at + 4)?;
            at += TYPE + follows(kind_of(info), parts_of(info))?;
        }
        Some(Self { all: types, strings, starts })
    }

    /// Where a type begins.
    fn start(&self, id: u32) -> Option<usize> {
        self.starts.get(id as usize).copied().filter(|_| id > 0)
    }

    fn name(&self, offset: u32) -> Option<&'a str> {
        CStr::from_bytes_until_nul(self.strings.get(offset as usize..)?).ok()?.to_str().ok()
    }
}

struct Cut<'a> {
    of: &'a Types<'a>,
    ids: HashMap<u32, u32, RandomState>,
    names: HashMap<u32, u32, RandomState>,
    types: Vec<u8>,
    strings: Vec<u8>,
    /// Of types.
    count: u32,
}

/// The types of these names, and what they consist of. Pointers lead nowhere: what they point to has its own name. Left
/// in `names` are those that no type has.
fn cut(raw: &[u8], names: &mut Names<'_>) -> Option<Vec<u8>> {
    let of = Types::parse(raw)?;
    let mut found = Names::default();
    let mut cut = Cut {
        of: &of,
        ids: HashMap::default(),
        names: HashMap::default(),
        types: Vec::new(),
        strings: vec![0],
        count: 0,
    };
    for (id, at) in of.starts.iter().enumerate().skip(1) {
        let (name, info) = (word(of.all, *at)?, word(of.all, at + 4)?);
        let kinds = [kind::STRUCT, kind::UNION, kind::ENUM, kind::ENUM64];
        if name != 0 && kinds.contains(&kind_of(info)) {
            let name = of.name(name)?;
            if names.contains(name) {
                cut.take(u32::try_from(id).ok()?, DEEP)?;
                found.insert(name);
            }
        }
    }
    names.retain(|name| !found.contains(name));
    let mut all = MAGIC.to_ne_bytes().to_vec();
    all.extend([1, 0]);
    let lengths = [cut.types.len(), cut.strings.len()].map(|length| length as u32);
    for field in [HEADER, 0, lengths[0], lengths[0], lengths[1]] {
        all.extend(field.to_ne_bytes());
    }
    all.extend(cut.types);
    all.extend(cut.strings);
    Some(all)
}

impl Cut<'_> {
    fn put(&mut self, words: &[u32]) {
        self.types.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    }

    fn name(&mut self, offset: u32) -> Option<u32> {
        if offset == 0 {
            return Some(0);
        }
        if let Some(known) = self.names.get(&offset) {
            return Some(*known);
        }
        let new = self.strings.len() as u32;
        self.strings.extend(self.of.name(offset)?.bytes());
        self.strings.push(0);
        self.names.insert(offset, new);
        Some(new)
    }

    /// The new number of a type, which is there then.
    fn take(&mut self, id: u32, depth: u32) -> Option<u32> {
        if id == 0 {
            return Some(0);
        }
        if let Some(known) = self.ids.get(&id) {
            return Some(*known);
        }
        let (of, depth) = (self.of, depth.checked_sub(1)?);
        let at = of.start(id)?;
        let [name, info, of_what] = [0, 4, 8].map(|offset| word(of.all, at + offset));
        let (info, of_what) = (info?, of_what?);
        let name = self.name(name?)?;
        let (kind, parts) = (kind_of(info), parts_of(info));
        let rest: Vec<u32> = of
            .all
            .get(at + TYPE..at + TYPE + follows(kind, parts)?)?
            .chunks_exact(4)
            .filter_map(|chunk| word(chunk, 0))
            .collect();
        let mut new = vec![name, info];
        match kind {
            kind::INT | kind::FWD | kind::FLOAT => {
                new.push(of_what);
                new.extend(rest);
            }
            kind::PTR => new.push(0),
            kind::TYPEDEF..=kind::RESTRICT | kind::TYPE_TAG => new.push(self.take(of_what, depth)?),
            kind::ARRAY => {
                let [element, index, count] = rest.first_chunk()?;
                new.extend([of_what, self.take(*element, depth)?, self.take(*index, depth)?, *count]);
            }
            kind::STRUCT | kind::UNION => {
                new.push(of_what);
                for part in rest.chunks_exact(3) {
                    new.extend([self.name(part[0])?, self.take(part[1], depth)?, part[2]]);
                }
            }
            kind::ENUM | kind::ENUM64 => {
                new.push(of_what);
                for part in rest.chunks_exact(if kind == kind::ENUM { 2 } else { 3 }) {
                    new.push(self.name(part[0])?);
                    new.extend(&part[1..]);
                }
            }
            // Functions, variables, remarks: no part of a structure.
            _ => return Some(0),
        }
        self.put(&new);
        self.count += 1;
        self.ids.insert(id, self.count);
        Some(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libbpf_rs::btf::Btf;
    use libbpf_rs::btf::HasSize as _;
    use libbpf_rs::btf::types::Struct;

    /// The size of a structure and where its members are, of those with a name.
    fn layout(types: &Btf<'_>, name: &str) -> Option<(usize, Vec<(String, String)>)> {
        let of = types.type_by_name::<Struct<'_>>(name)?;
        let members = of.iter().filter_map(|m| Some((m.name?.to_string_lossy().into_owned(), format!("{:?}", m.attr))));
        Some((of.size(), members.collect()))
    }

    #[test]
    fn what_our_programs_know_is_as_in_the_kernel() {
        let types = super::cut(&std::fs::read(KERNEL).unwrap(), &mut names()).unwrap();
        let file = in_memory(&types).unwrap();
        let (cut, whole) = (Btf::from_path(path(&file)).unwrap(), Btf::from_vmlinux().unwrap());
        assert!(cut.len() * 4 < whole.len(), "{} of {}", cut.len(), whole.len());
        let known: Vec<&str> = objects::types().lines().filter(|name| layout(&whole, name).is_some()).collect();
        assert!(known.contains(&"task_struct") && known.contains(&"request") && known.len() > 50, "{known:?}");
        for name in known {
            assert_eq!(layout(&cut, name), layout(&whole, name), "{name}");
        }
    }

    #[test]
    fn types_that_only_a_module_has_are_noticed() {
        let raw = std::fs::read(KERNEL).unwrap();
        let mut names = Names::from_iter(["task_struct", "no_such_type"]);
        assert!(cut(&raw, &mut names).is_some());
        assert_eq!(names, Names::from_iter(["no_such_type"]));
        assert!(!modules_have(&modules(), &names));
    }

    #[test]
    fn damaged_types_are_refused() {
        let raw = std::fs::read(KERNEL).unwrap();
        let cut = |raw: &[u8]| super::cut(raw, &mut Names::from_iter(["task_struct", "no_such_type"]));
        assert!(cut(&raw).is_some());
        for length in [0, 3, 23, 24, 1000, raw.len() / 2] {
            assert!(cut(&raw[..length]).is_none(), "{length}");
        }
        let mut other = raw;
        other[2] = 2;
        assert!(cut(&other).is_none());
    }
}
