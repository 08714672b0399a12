//! Short ways to write events in tests.

use crate::event::Call;

/// A call of catalog row 0 from `start` to `end`.
pub fn call(thread: u32, seq: u32, depth: u8, start: u64, end: u64) -> Call {
    Call {
        spec: 0,
        thread,
        seq,
        depth,
        start,
        dur: end - start,
        cpu: 0,
        status: 0,
        handle: None,
        len: None,
        got: None,
        off: None,
        file: None,
        unfinished: false,
        direct: false,
        truncated: false,
    }
}
