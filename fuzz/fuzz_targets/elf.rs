//! A file that a target maps as code: its symbols, and what would be probed in it.
#![no_main]
#![allow(clippy::expect_used)] // A panic is how a target fails.

use std::cell::RefCell;
use std::sync::LazyLock;

use iotrace_bpf::catalog::{Catalog, symbol};
use iotrace_bpf::loader::code::elf::{self, Elf, Target};
use iotrace_bpf::loader::code::outline::Outline;
use iotrace_bpf::loader::code::plan::Planner;
use libfuzzer_sys::fuzz_target;

/// Every library that is known, a phase in C and one in C++, and lines of a file.
static PLANNER: LazyLock<Planner> = LazyLock::new(|| {
    let mut catalog = Catalog::built_in();
    for phase in ["step", "ns::Grid::step", "lines.c:5-9"] {
        catalog.add_phase(&phase.parse().expect("a phase")).expect("room for it");
    }
    Planner::new(catalog)
});

thread_local! {
    static OUTLINE: RefCell<Outline> = RefCell::default();
}

fuzz_target!(|data: &[u8]| {
    let entry = elf::entry(data);
    let whole = Elf::parse(data, |_| true);
    let part = |buffer: &mut [u8], at: u64| {
        buffer.copy_from_slice(&data[at as usize..][..buffer.len()]);
        Ok(())
    };
    let outline = OUTLINE.with_borrow_mut(|o| o.of(data.len(), part).map(|data| Elf::parse(data, |_| true)));
    if let Ok(Ok(outline)) = outline {
        let slots = whole.as_ref().map(|elf| elf.slots.clone()).unwrap_or_default();
        assert_eq!(Ok(Elf { slots, ..outline }), whole, "of a part of the file");
    }
    let Ok(elf) = whole else { return };
    entry.expect("the header can be read");
    let mut plan = PLANNER.plan("/usr/lib/libany.so", &elf, data, &|_| true);
    PLANNER.plan_lines(&mut plan, "/usr/lib/libany.so", &elf, || Ok(data.to_vec()));
    for probe in &plan.probes {
        assert!(probe.offset < data.len() as u64, "{probe:?} lies behind the file");
    }
    for (name, found) in &elf.symbols {
        symbol::plain_name(name);
        for symbol in found {
            if let Target::Code(offset) = symbol.target {
                assert!(offset < data.len() as u64, "{name} lies behind the file");
            }
            elf::content(data, symbol.vaddr);
        }
    }
});
