//! The way to the dashboard, which is not there yet: it opens nowhere.

use crate::summary::filter::Filter;
use crate::summary::view::Source;
use anyhow::{Result, bail};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How the dashboard is to look, and when to end.
#[derive(Debug, Clone)]
pub struct Options {
    pub ascii: bool,
    pub stop: Arc<AtomicBool>,
    pub filter: Option<Arc<Filter>>,
}

/// Is there a terminal to show it on?
pub const fn wanted() -> bool {
    false
}

/// A flag that signals set.
///
/// # Errors
/// Never yet.
pub fn stop_on_signals() -> Result<Arc<AtomicBool>> {
    Ok(Arc::default())
}

/// Shows the dashboard until the user leaves it.
///
/// # Errors
/// Always: there is none.
pub fn run(_: &mut dyn Source, _: &Options) -> Result<()> {
    bail!("there is no dashboard yet")
}
