//! The report and its findings, beside SQL over the same datasets.

mod conflicts;
mod figures;
mod findings;
mod node_sql;
mod nodes;
mod parts;
pub mod random;
mod report;
mod sql;
mod text;
