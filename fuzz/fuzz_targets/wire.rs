//! What comes from the kernel, through the correlator, to rows.
//!
//! The first byte is its set-up. Then come items, each behind two bytes: 12 bits are its length, 4 its type.
#![no_main]
#![allow(clippy::expect_used)] // A panic is how a target fails.

use std::sync::LazyLock;

use iotrace_bpf::catalog::{self, Catalog};
use iotrace_bpf::correlate::{Config, Correlator};
use iotrace_bpf::event::wire::{self, Decoder, Record};
use iotrace_bpf::event::{Counts, Event, Measured, Sum};
use iotrace_bpf::rows::Row;
use libfuzzer_sys::fuzz_target;

/// Kinds of items; the others are records.
const WATERMARK: u16 = 1;
const SUM: u16 = 2;
const COUNTS: u16 = 3;
/// Whoever has the rows forgets all files and objects.
const FORGOTTEN: u16 = 4;

/// As `setup` has it.
mod setup {
    pub const AGGREGATE: u8 = 1;
    pub const LITTLE_ROOM: u8 = 2;
    pub const MEASURED: u8 = 4;
}

static SPECS: LazyLock<Vec<catalog::Row>> = LazyLock::new(|| {
    let mut catalog = Catalog::built_in();
    for phase in ["outer", "inner"] {
        catalog.add_phase(&phase.parse().expect("a phase")).expect("room for it");
    }
    catalog.rows().to_vec()
});

/// Rows that one item may make: more than any needs, and far from what grows with numbers in it.
const ROWS_OF_ONE: usize = 2000;

fuzz_target!(|data: &[u8]| {
    let Some((setup, mut rest)) = data.split_first() else { return };
    let has = |bit| setup & bit != 0;
    let mut correlator = Correlator::new(Config {
        specs: SPECS.clone(),
        aggregate: has(setup::AGGREGATE),
        max_pending: if has(setup::LITTLE_ROOM) { 8 } else { 1 << 20 },
        ..Config::default()
    });
    if has(setup::MEASURED) {
        correlator.set_measured(Measured {
            pages: true,
            throttling: true,
            locks: true,
            requests: true,
            system_calls: true,
        });
    }
    let mut decoder = Decoder::default();
    let (mut out, mut items, mut rows, mut last) = (Vec::new(), 0, 0, 0);
    let [mut files, mut objects, mut handles, mut paths] = [const { Vec::new() }; 4];
    while let Some((head, behind)) = rest.split_first_chunk() {
        let head = u16::from_le_bytes(*head);
        let (item, behind) = behind.split_at(behind.len().min(usize::from(head & 0xfff)));
        rest = behind;
        items += 1;
        // Aligned, as records in rings are.
        let item = item.to_vec();
        let number = item.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        match head >> 12 {
            WATERMARK => {
                last = number;
                correlator.advance(number, &mut out);
            }
            SUM => sum(&item, last).into_iter().for_each(|sum| correlator.push(sum)),
            COUNTS => counts(&item, last).into_iter().for_each(|counts| correlator.push(counts)),
            FORGOTTEN => {
                correlator.forgotten(&files, &objects, &handles, &paths);
                for forgotten in [&mut files, &mut objects, &mut handles, &mut paths] {
                    forgotten.clear();
                }
            }
            _ => {
                wire::is_for_engine(&item);
                if let Ok(Record::Event(event)) = decoder.decode(&item) {
                    correlator.push(event);
                }
            }
        }
        rows += out.len();
        for row in out.drain(..) {
            match row {
                Row::File(file) => files.push(file.file_id),
                Row::Object(object) => objects.push(object.object_id),
                Row::Handle(handle) => handles.push(handle.handle_id),
                Row::CallPath(path) => paths.push(path.path_id),
                _ => {}
            }
        }
    }
    correlator.finish(last, &mut out);
    rows += out.len();
    assert!(rows <= (items + 1) * ROWS_OF_ONE, "{rows} rows of {items} items, the last {:?}", out.last().map(kind));
});

fn kind(row: &Row) -> String {
    format!("{row:.60?}")
}

fn sum(bytes: &[u8], time: u64) -> Option<Event> {
    let (key, figures) = bytes.split_at_checked(wire::sum_sizes().0 as usize)?;
    let (about, process, row, alone) = wire::sum_key(key)?;
    let (figures, _) = wire::figures(figures, alone)?;
    Some(Event::Sum(Box::new(Sum {
        time,
        from: time.saturating_sub(1_000_000_000),
        process,
        row,
        about,
        rest: false,
        figures,
    })))
}

fn counts(bytes: &[u8], time: u64) -> Option<Event> {
    let (row, buckets) = bytes.split_first_chunk()?;
    let [durations, sizes] =
        wire::counts(buckets)?.map(|counts| counts.into_iter().enumerate().filter(|(_, n)| *n > 0).collect());
    let row = u64::from_le_bytes(*row) as u32;
    Some(Event::Counts(Box::new(Counts { time, from: time.saturating_sub(1_000_000_000), row, durations, sizes })))
}
