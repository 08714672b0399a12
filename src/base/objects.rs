//! The compiled programs for the kernel. The package in `bpf/` has them, and the program gives them to this library, which is
//! compiled without: it does not change with them.

use std::sync::OnceLock;

/// The most that an object may have (bytes).
const LARGEST: usize = 16 << 20;

/// What the package in `bpf/` has.
#[derive(Debug, Clone, Copy)]
pub struct Objects {
    /// An ELF object, compressed with zstd.
    pub iotrace: &'static [u8],
    /// The same of the smallest programs.
    pub trial: &'static [u8],
    /// Names of the types in `iotrace`, one on a line.
    pub types: &'static str,
}

static OBJECTS: OnceLock<Objects> = OnceLock::new();

/// To be called before anything is loaded. The first ones stay.
pub fn provide(objects: Objects) {
    let _ = OBJECTS.set(objects);
}

/// None are nothing that libbpf would load.
fn provided() -> Objects {
    #[cfg(test)]
    provide(Objects {
        iotrace: iotrace_bpf_objects::IOTRACE,
        trial: iotrace_bpf_objects::TRIAL,
        types: iotrace_bpf_objects::TYPES,
    });
    OBJECTS.get().copied().unwrap_or(Objects { iotrace: &[], trial: &[], types: "" })
}

pub fn iotrace() -> Vec<u8> {
    decompressed(provided().iotrace)
}

pub fn trial() -> Vec<u8> {
    decompressed(provided().trial)
}

pub fn types() -> &'static str {
    provided().types
}

/// Libbpf refuses an empty one.
fn decompressed(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::decompress(bytes, LARGEST).unwrap_or_default()
}
