//! Tables of a dataset, their views and documents, and what damage does to them.

mod damage;
mod dataset;
mod lists;
mod metrics_doc;
mod monitoring;
pub mod sample;
mod scale;
mod schema_doc;
mod screens_sql;
mod spark;
mod truth;
mod upgrades;
mod users;
