//! Sums: of all calls by time, and of those that were not recorded one by one.

pub(crate) mod demoted;
pub(crate) mod paused;
pub(crate) mod rollup;
pub(crate) mod sums;
