//! Files and directories that others may exchange while a privileged program writes them.

pub(crate) mod directory;
pub(crate) mod file;
mod flush;
pub(crate) mod safe_open;
