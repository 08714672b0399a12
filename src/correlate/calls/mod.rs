//! Calls: their own columns, their position in the call tree of their thread, and what their time went to.

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
