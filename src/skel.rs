//! The skeletons that libbpf-cargo generates from `bpf/`, and nothing else.
#![allow(unsafe_code, missing_docs, clippy::all, clippy::pedantic, clippy::unwrap_used, clippy::expect_used)]

mod iotrace {
    include!(concat!(env!("OUT_DIR"), "/iotrace.skel.rs"));
}
mod trial {
    include!(concat!(env!("OUT_DIR"), "/trial.skel.rs"));
}
pub use iotrace::*;
pub use trial::types::iot_calibration;
pub use trial::{OpenTrialSkel, TrialSkel, TrialSkelBuilder};
