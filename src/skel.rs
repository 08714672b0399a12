//! The skeletons that libbpf-cargo generates from `bpf/`.
#![allow(unsafe_code, missing_docs, clippy::all, clippy::pedantic, clippy::unwrap_used, clippy::expect_used)]

mod iotrace {
    include!("../bpf/skeleton/iotrace.rs");
}
mod trial {
    include!("../bpf/skeleton/trial.rs");
}
pub use iotrace::*;
pub use trial::types::iot_calibration;
pub use trial::{OpenTrialSkel, TrialSkel, TrialSkelBuilder};
