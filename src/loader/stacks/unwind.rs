//! Where a waiting thread is in its program: its stack, read from outside and unwound with the tables that compilers write
//! for exceptions. Whatever cannot be read makes the stack shorter, and nothing else.

use crate::loader::processes::maps::{self, Mapping};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};
use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSection as _, ObjectSegment as _, ReadCache, SegmentFlags};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Frames of one stack.
const DEPTH: usize = 128;
/// Tables longer than this are left out.
const MAX_SECTION: u64 = 256 << 20;

type Bytes = Arc<[u8]>;

/// The unwind information of a program or library.
#[derive(Default)]
struct Tables {
    /// Executable parts: offset in the file, address.
    code: Vec<(Range<u64>, u64)>,
    text: Option<Range<u64>>,
    eh_frame: Option<(Range<u64>, Bytes)>,
    eh_frame_hdr: Option<(Range<u64>, Bytes)>,
}

/// Where a thread stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    pub ip: u64,
    pub sp: u64,
    pub bp: u64,
}

/// Remembers the tables of files; a file that is written anew has another inode.
#[derive(Default)]
pub struct Unwinder {
    tables: HashMap<(u32, u64), Option<Arc<Tables>>>,
    cache: CacheX86_64,
}

/// Where the code of a process is, and how its frames are unwound.
pub struct Modules(UnwinderX86_64<Bytes>);

/// A process as it is now.
pub struct Space {
    memory: File,
    modules: Modules,
}

impl Space {
    /// `N` bytes of its memory.
    pub fn read<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.memory.read_exact_at(&mut bytes, address).ok()?;
        Some(bytes)
    }

    /// A text that ends with NUL.
    pub fn text(&self, address: u64) -> Option<Vec<u8>> {
        let mut text = vec![0; 4096];
        // It may end right before memory that is not there.
        let n = self.memory.read_at(&mut text, address).ok()?;
        text.truncate(text[..n].iter().position(|b| *b == 0)?);
        Some(text)
    }
}

impl Unwinder {
    pub fn space(&mut self, pid: u32) -> Option<Space> {
        let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
        let text = std::fs::read(format!("/proc/{pid}/maps")).ok()?;
        Some(Space { memory, modules: self.modules(pid, &maps::mappings(&text)) })
    }

    /// The code of a process with these mappings, which may have ended since.
    pub fn modules(&mut self, pid: u32, mappings: &[Mapping]) -> Modules {
        let mut unwinder = UnwinderX86_64::new();
        for mapping in mappings.iter().filter(|m| m.is_code()) {
            let tables = self.tables.entry((mapping.dev, mapping.inode)).or_insert_with(|| {
                let of_ended = || tables(&file(pid, mapping)?);
                tables(&mapped(pid, mapping)).or_else(of_ended).map(Arc::new)
            });
            if let Some(module) = tables.as_deref().and_then(|tables| module(mapping, tables)) {
                unwinder.add_module(module);
            }
        }
        Modules(unwinder)
    }

    /// The addresses of a stack, the innermost first; those but the first are where calls return to. `back`: what stood at
    /// these addresses of the stack before return probes wrote over it.
    pub fn stack(&mut self, space: &Space, at: Registers, back: &HashMap<u64, u64>) -> Vec<u64> {
        self.walk(&space.modules, at, back, |address| space.read(address).map(u64::from_ne_bytes))
    }

    /// The same of a stack that `read` has words of.
    pub fn walk(
        &mut self,
        modules: &Modules,
        at: Registers,
        back: &HashMap<u64, u64>,
        read: impl Fn(u64) -> Option<u64>,
    ) -> Vec<u64> {
        let mut read = |address: u64| back.get(&address).copied().or_else(|| read(address)).ok_or(());
        let regs = UnwindRegsX86_64::new(at.ip, at.sp, at.bp);
        let mut frames = modules.0.iter_frames(at.ip, regs, &mut self.cache, &mut read);
        let mut stack = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            stack.push(frame.address());
            if stack.len() == DEPTH {
                break;
            }
        }
        stack
    }
}

/// The file of a mapping, whatever its name is by now, of a process that is there.
fn mapped(pid: u32, mapping: &Mapping) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/map_files/{:x}-{:x}", mapping.start, mapping.end))
}

/// A path of the file of a mapping, the same for all processes where that is possible. Of a process that has ended only the
/// inode shows that the path still leads to it.
pub fn file(pid: u32, mapping: &Mapping) -> Option<PathBuf> {
    let (path, mapped) = (PathBuf::from(OsStr::from_bytes(&mapping.path)), mapped(pid, mapping));
    let named = std::fs::metadata(&path).ok();
    match (std::fs::metadata(&mapped), named) {
        (Ok(m), Some(n)) if (m.dev(), m.ino()) == (n.dev(), n.ino()) => Some(path),
        (Ok(_), _) => Some(mapped),
        (Err(_), Some(n)) if n.ino() == mapping.inode => Some(path),
        (Err(_), _) => None,
    }
}

/// Does a thread still wait in the system call at whose entry its stack pointer was this? The line of the kernel: number,
/// arguments, stack pointer, instruction pointer (Documentation/filesystems/proc.rst), or "running".
pub fn waits_at(pid: u32, tid: u32, sp: u64) -> bool {
    let line = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).unwrap_or_default();
    line.trim_end().rsplit(' ').nth(1) == Some(&format!("{sp:#x}"))
}

fn tables(path: &Path) -> Option<Tables> {
    let data = ReadCache::new(File::open(path).ok()?);
    let elf = ElfFile64::<object::Endianness, _>::parse(&data).ok()?;
    let executable = |flags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags.0 & object::elf::PF_X.0 != 0);
    let section = |name: &str| {
        let section = elf.section_by_name(name).filter(|s| s.size() <= MAX_SECTION)?;
        let range = section.address()..section.address() + section.size();
        Some((range, section.uncompressed_data().ok()?.into()))
    };
    Some(Tables {
        code: elf
            .segments()
            .filter(|s| executable(s.flags()))
            .map(|s| (s.file_range().0..s.file_range().0 + s.file_range().1, s.address()))
            .collect(),
        text: elf.section_by_name(".text").map(|s| s.address()..s.address() + s.size()),
        eh_frame: section(".eh_frame"),
        eh_frame_hdr: section(".eh_frame_hdr"),
    })
}

/// The mapping that contains code of a file.
fn module(mapping: &Mapping, tables: &Tables) -> Option<Module<Bytes>> {
    let end = mapping.offset + (mapping.end - mapping.start);
    let (file, address) = tables.code.iter().find(|(file, _)| file.start < end && mapping.offset < file.end)?;
    // Where the file's address 0 is.
    let base = mapping.start.wrapping_sub(mapping.offset).wrapping_add(file.start).wrapping_sub(*address);
    let (eh_frame_svma, eh_frame) = tables.eh_frame.clone().unzip();
    let (eh_frame_hdr_svma, eh_frame_hdr) = tables.eh_frame_hdr.clone().unzip();
    let info = ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: tables.text.clone(),
        eh_frame_svma,
        eh_frame,
        eh_frame_hdr_svma,
        eh_frame_hdr,
        ..Default::default()
    };
    Some(Module::new(String::new(), mapping.start..mapping.end, base, info))
}
