//! Requests of devices and servers: which calls they serve and whose bytes they carry.

pub(crate) mod block;
pub(crate) mod busy;
pub(crate) mod class;
pub(crate) mod dirty;
#[cfg(test)]
mod requests;
pub(crate) mod rpc;
