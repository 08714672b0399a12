//! What a person sees while a trace runs.

pub mod status;
