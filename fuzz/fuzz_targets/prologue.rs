//! Machine code: where a function is probed, where it can be left, which field it returns, and what it calls. The first
//! two bytes are its size.
#![no_main]

use iotrace_bpf::loader::code::accessor::{self, Callee};
use iotrace_bpf::loader::code::{prologue, returns};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((size, code)) = data.split_first_chunk() else { return };
    let size = u64::from(u16::from_le_bytes(*size));
    if let Ok(probe) = prologue::choose(code, size, size as u16) {
        assert!(usize::from(probe.skip) < code.len(), "{probe:?}");
        assert!(size == 0 && probe.skip == 0 || u64::from(probe.skip) < size, "{probe:?}");
    }
    accessor::field(code);
    if let Some(callee) = Callee::new(code, size, None) {
        let calls = accessor::calls(&callee, code, 0);
        assert!(calls.is_sorted() && calls.iter().all(|at| *at < code.len() as u64), "{calls:?}");
    }
    // In one part, and with what is rarely executed moved elsewhere.
    let half = size / 2;
    for parts in [&[(0, size)][..], &[(half, size - half), (0, half)]] {
        let Ok(exit_points) = returns::exit_points(code, parts) else { continue };
        assert!(exit_points.is_sorted(), "{exit_points:?}");
    }
});
