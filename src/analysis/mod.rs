//! What the figures of a trace are: each is defined here once, over rows, and report, dashboard, `--batch` and metrics read
//! it. `views.sql` has the same in SQL; tests compare every figure of both on recorded and on random datasets.
//!
//! What a row adds to any figure is in [`calls`]; which call a span is part of, and what the program asked for, in [`nesting`].

pub mod calls;
pub mod devices;
pub mod durations;
pub mod errors;
pub mod files;
pub mod findings;
mod heavy;
pub mod kinds;
pub mod layers;
pub mod lookups;
mod moments;
pub mod nesting;
pub mod only;
pub mod parallel;
pub mod speed;
pub mod trace;
pub mod transfers;
pub mod utilisation;
