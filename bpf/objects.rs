//! The programs for the kernel, as `build.rs` compiles them. A package of its own: a change of a program compiles this and
//! links the tracer again, and the library, which knows only their declarations (`skeleton/`), stays as it is.

/// `iotrace.bpf.c`: an ELF object, compressed with zstd.
pub const IOTRACE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/iotrace.bpf.o.zst"));
/// `trial.bpf.c`, in the same form.
pub const TRIAL: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/trial.bpf.o.zst"));
/// The names of the structures, unions and enumerations in `IOTRACE`, one on a line.
pub const TYPES: &str = include_str!(concat!(env!("OUT_DIR"), "/iotrace.types"));
