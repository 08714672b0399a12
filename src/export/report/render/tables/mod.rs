//! Sections that are a table.

pub mod amplification;
pub mod bandwidth;
pub mod collectives;
pub mod composition;
pub mod devices;
pub mod errors;
pub mod files;
pub mod functions;
pub mod handles;
pub mod lookups;
pub mod nodes;
pub mod phases;
pub mod ranks;
pub mod sizes;
pub mod speed;
pub mod waiting;

/// A path with its node, where there are several.
fn on_node(host: Option<&str>, path: &str) -> String {
    host.map_or_else(|| path.to_owned(), |host| format!("{host}:{path}"))
}
