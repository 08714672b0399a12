//! Devices, journals, write-back and file systems, stacked and remote.

mod block;
mod fsync;
mod journal;
mod levels;
mod nfs;
mod overlay;
mod rpc;
mod writeback;
