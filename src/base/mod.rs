//! What every other part may use: text, units, paths, histograms, messages, errors of usage.

pub mod hist;
pub mod notices;
pub mod objects;
pub mod paths;
pub mod sudo;
pub mod text;
pub mod units;
pub mod usage;
