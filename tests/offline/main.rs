//! Tests that trace nothing: command line, datasets, report, views, catalog and documents.

#![allow(clippy::unwrap_used, reason = "what a test does not expect is a failure")]

#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "each binary of tests needs a part of it")]
mod common;

mod cli;
mod compare;
mod damage;
mod dataset;
mod export;
mod exports_otf2_darshan;
mod findings;
mod hdf5_functions;
mod hive;
mod html;
mod metrics_doc;
mod names;
mod netcdf_functions;
mod packages;
mod perfetto;
mod python;
mod query;
mod replay_code;
mod report;
mod report_figures;
mod report_sql;
mod report_text;
mod runs;
mod sample;
mod schema_doc;
mod screens_sql;
mod spark;
mod sql_command;
mod stdio_functions;
mod stepped;
mod top;
mod truth;
mod upgrades;
