//! The skeletons that libbpf-cargo generates from `bpf/`, with compressed objects.
#![allow(unsafe_code, missing_docs, clippy::all, clippy::pedantic, clippy::unwrap_used, clippy::expect_used)]

/// The most that an object may have (bytes).
const LARGEST: usize = 16 << 20;

/// An object that `build.rs` has compressed. Libbpf refuses an empty one.
fn decompressed(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::decompress(bytes, LARGEST).unwrap_or_default()
}

mod iotrace {
    include!(concat!(env!("OUT_DIR"), "/iotrace.skel.rs"));
}
mod trial {
    include!(concat!(env!("OUT_DIR"), "/trial.skel.rs"));
}
pub use iotrace::*;
pub use trial::types::iot_calibration;
pub use trial::{OpenTrialSkel, TrialSkel, TrialSkelBuilder};
