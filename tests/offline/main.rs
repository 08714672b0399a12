//! Tests that trace nothing: command line, datasets, report, views, catalog and documents.

#![allow(clippy::unwrap_used, reason = "what a test does not expect is a failure")]

#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "each binary of tests needs a part of it")]
mod common;

mod catalog;
mod commands;
mod datasets;
mod exports;
mod reports;
