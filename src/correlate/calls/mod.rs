//! What a call says by itself, where it is in the tree of its thread, and what its time went to.

pub(crate) mod asynchronous;
pub(crate) mod cache;
pub(crate) mod call;
pub(crate) mod cover;
pub(crate) mod operations;
pub(crate) mod order;
pub(crate) mod phases;
pub(crate) mod roots;
pub(crate) mod slow;
pub(crate) mod stack;
pub(crate) mod unknown;
pub(crate) mod waiting;
