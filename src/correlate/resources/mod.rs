//! What calls are about: files, handles, objects, processes and the names they were given.

pub(crate) mod call_paths;
pub(crate) mod cgroup;
pub(crate) mod files;
pub(crate) mod handles;
pub(crate) mod objects;
pub(crate) mod placeholder;
pub(crate) mod processes;
