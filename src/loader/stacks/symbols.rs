//! Names of functions in the kernel and in programs.

use crate::inflight::Frame;
use crate::loader::processes::maps::Mapping;
use crate::loader::stacks::unwind;
use blazesym::MaybeDefault;
use blazesym::symbolize::source::{Elf, Kernel, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};

pub struct Symbols(Symbolizer);

impl Default for Symbols {
    fn default() -> Self {
        Self(Symbolizer::builder().enable_inlined_fns(false).build())
    }
}

impl Symbols {
    /// A stack of the kernel, the innermost function first.
    pub fn kernel(&self, stack: &[u64]) -> Vec<Frame> {
        let mut kernel = Kernel::default();
        // The running kernel names its functions itself; its debug information may be far larger than the program.
        (kernel.vmlinux, kernel.debug_syms) = (MaybeDefault::None, false);
        self.frames(stack, &Source::Kernel(kernel))
    }

    /// A stack of a source that is asked by address.
    pub fn frames(&self, stack: &[u64], source: &Source<'_>) -> Vec<Frame> {
        let symbols = self.0.symbolize(source, Input::AbsAddr(&calls(stack))).unwrap_or_default();
        stack.iter().enumerate().map(|(i, address)| frame(*address, symbols.get(i))).collect()
    }

    /// A stack of a process with these mappings, which may have ended since.
    pub fn program(&self, pid: u32, mappings: &[Mapping], stack: &[u64]) -> Vec<Frame> {
        let frames = stack.iter().zip(calls(stack)).map(|(address, call)| {
            let mapping = mappings.iter().find(|m| m.inode != 0 && (m.start..m.end).contains(&call));
            let source = mapping.and_then(|m| Some((m, Source::Elf(Elf::new(unwind::file(pid, m)?)))));
            let symbol = source.and_then(|(m, source)| {
                self.0.symbolize_single(&source, Input::FileOffset(call - m.start + m.offset)).ok()
            });
            let mut frame = frame(*address, symbol.as_ref());
            frame.module = mapping.map(|m| String::from_utf8_lossy(&m.path).into_owned());
            frame
        });
        frames.collect()
    }
}

/// Return addresses may be those of the next function: the call is before them.
fn calls(stack: &[u64]) -> Vec<u64> {
    stack.iter().enumerate().map(|(i, a)| a - u64::from(i > 0 && *a > 0)).collect()
}

fn frame(address: u64, symbol: Option<&Symbolized<'_>>) -> Frame {
    let known = symbol.and_then(Symbolized::as_sym);
    Frame {
        address,
        function: known.map(|s| s.name.to_string()),
        module: known.and_then(|s| Some(s.module.as_deref()?.to_string_lossy().into_owned())),
        line: known.and_then(|s| {
            let code = s.code_info.as_deref()?;
            Some((code.file.to_string_lossy().into_owned(), code.line?))
        }),
    }
}
