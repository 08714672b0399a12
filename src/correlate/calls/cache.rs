//! What the page cache had to do with a system call, and which counts of the kernel are measured.

use crate::catalog::Row;
use crate::event::{Cached, Call, Measured};
use crate::vocabulary::{Kind, Layer};

use crate::correlate::calls::call;

/// The columns of a span that follow.
#[derive(Debug, PartialEq, Eq)]
pub struct CacheColumns {
    pub miss: Option<i64>,
    pub ahead: Option<i64>,
}

/// A call without counts missed nothing.
pub fn columns(measured: Measured, row: &Row, call: &Call, bytes: Option<i64>, cached: Option<Cached>) -> CacheColumns {
    let cached = cached.unwrap_or(Cached { miss: Some(0), ahead: Some(0), throttled: 0, locked: 0 });
    let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let of = |kind: Kind| row.layer == Layer::Syscall && row.kind == kind && call.file.is_some();
    let reads = of(Kind::Read) && measured.pages && !call.direct && call::succeeded(call);
    CacheColumns {
        // What was added and then not delivered was not missed.
        miss: cached.miss.filter(|_| reads).map(count).zip(bytes).map(|(miss, bytes)| miss.min(bytes)),
        ahead: cached.ahead.filter(|_| reads).map(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;
    use crate::correlate::testing::{call, key, spec};

    const ALL: Measured = Measured { pages: true, throttling: true, locks: true, requests: true, system_calls: true };

    fn of(measured: Measured, symbol: &str, call: Call, cached: Option<Cached>) -> [Option<i64>; 2] {
        let row = catalog::rows()[usize::from(spec(symbol))];
        let CacheColumns { miss, ahead } = columns(measured, &row, &call, Some(100), cached);
        [miss, ahead]
    }

    #[test]
    fn a_call_without_counts_missed_nothing_where_misses_are_measured() {
        let on = Call { file: Some(key(1)), ..call(0, 1, 0, 0, 1) };
        assert_eq!(of(ALL, "read", on, None), [Some(0), Some(0)]);
        assert_eq!(of(ALL, "write", on, None), [None; 2]);
        assert_eq!(of(Measured::default(), "read", on, None), [None; 2]);
        assert_eq!(of(ALL, "fstat", on, None), [None; 2]);
        assert_eq!(of(ALL, "read", Call { direct: true, ..on }, None), [None; 2]);
        assert_eq!(of(ALL, "read", Call { status: -5, ..on }, None), [None; 2]);
        assert_eq!(of(ALL, "read", Call { file: None, ..on }, None), [None; 2]);
    }

    #[test]
    fn counts_of_the_kernel_side_are_used() {
        let on = Call { file: Some(key(1)), ..call(0, 1, 0, 0, 1) };
        let cached = Cached { miss: Some(300), ahead: Some(8192), throttled: 7, locked: 0 };
        assert_eq!(of(ALL, "pread64", on, Some(cached)), [Some(100), Some(8192)]);
        let unknown = Cached { miss: None, ahead: None, throttled: 0, locked: 0 };
        assert_eq!(of(ALL, "read", on, Some(unknown)), [None; 2]);
    }
}
