//! What the worker does with records, stage by stage (`src/record/session/worker.rs`).

use anyhow::{Result, ensure};
use iotrace_bpf::correlate::{Config, Correlator};
use iotrace_bpf::event::Measured;
use iotrace_bpf::event::wire::{Decoder, Record};
use iotrace_bpf::export::{DatasetWriter, Options, VIEWS};
use iotrace_bpf::loader::kernel::rings::Batch;
use iotrace_bpf::rows::Row;
use std::path::Path;

pub fn decode(batches: &[Batch]) -> Result<()> {
    let mut decoder = Decoder::default();
    for record in batches.iter().flat_map(Batch::records) {
        std::hint::black_box(decoder.decode(record)?);
    }
    Ok(())
}

pub fn correlate(batches: &[Batch], out: &mut dyn FnMut(&mut Vec<Row>) -> Result<()>) -> Result<()> {
    let mut decoder = Decoder::default();
    let mut correlator = Correlator::new(Config::default());
    correlator.set_measured(Measured {
        pages: true,
        throttling: true,
        locks: true,
        requests: true,
        system_calls: true,
    });
    let mut rows = Vec::new();
    for batch in batches {
        for record in batch.records() {
            if let Record::Event(event) = decoder.decode(record)? {
                correlator.push(event);
            }
        }
        if batch.watermark > 0 {
            correlator.advance(batch.watermark, &mut rows);
        }
        out(&mut rows)?;
        rows.clear();
    }
    correlator.finish(batches.last().map_or(0, |b| b.watermark), &mut rows);
    out(&mut rows)
}

/// The bytes of the dataset.
pub fn write(batches: &[Batch], to: &Path, spans: usize) -> Result<u64> {
    let options = Options { path: to, host: "throughput", force: false, owner: None, views: VIEWS };
    let mut writer = DatasetWriter::create(options)?;
    correlate(batches, &mut |rows| rows.drain(..).try_for_each(|row| writer.push(row)))?;
    let finished = writer.finish()?;
    let written = finished.rows.iter().find(|(table, _)| *table == "spans").map_or(0, |(_, rows)| *rows);
    ensure!(written == spans as u64, "{written} of {spans} calls were written");
    Ok(finished.bytes)
}
