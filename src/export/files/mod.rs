//! Files and directories that others may exchange while a privileged program writes them.

pub(crate) mod directory;
pub(crate) mod file;
pub(crate) mod safe_open;
