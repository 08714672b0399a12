//! In the place of [`header`](super::header) in a build without the feature `headers`.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::{Result, bail};

use crate::probes::generate::signature::Signature;

/// Refuses: there is no parser.
pub fn signatures(header: &Path, _: &HashSet<&str>) -> Result<HashMap<String, Signature>> {
    bail!(
        "{}: this build cannot read headers; build it with the feature `headers`, or leave out --header",
        header.display()
    )
}
