//! Tests that trace real programs on the running kernel, as root; `.config/nextest.toml` has which may run beside another one.

#![allow(clippy::unwrap_used, reason = "what a test does not expect is a failure")]

#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "each binary of tests needs a part of it")]
mod common;

mod calls;
mod jobs;
mod kept;
mod libraries;
mod outputs;
mod robustness;
mod screens;
mod storage;
mod targets;
