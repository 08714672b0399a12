//! A trace for Perfetto (<https://ui.perfetto.dev>): calls as slices on the tracks of their threads, requests on those
//! of their devices, arrows between them, and counters. Packets come in the order of the dataset; Perfetto sorts them.
//!
//! Numbers of tracks (`uuid`) count from 1 in the order in which tracks are needed. A thread has its own track, on
//! which calls lie inside each other, and below it tracks for what does not: phases, asynchronous operations, calls
//! that overlap.

mod calls;
mod devices;
mod flows;
mod lanes;
mod messages;
mod metrics;
mod packets;
mod rates;

use std::io::Write;

use anyhow::{Result, bail};

use crate::analysis::trace::source::{IdKind, Source};
use crate::export::report::Union;
use crate::rows::{Block, Span};

use calls::Calls;
use devices::Devices;
use flows::Flows;
use packets::{Clock, Packets};
use rates::Rates;

/// Writes the trace, and returns what of the datasets it does not have.
pub fn write(union: &Union, out: &mut dyn Write) -> Result<Vec<String>> {
    if union.count::<Span>() == 0 && union.count::<Block>() == 0 {
        bail!("the dataset has no single calls or requests to show: it was recorded with --aggregate, or is empty");
    }
    let mut packets = Packets::new(out, &Clock::of(&union.facts()))?;
    let mut flows = Flows::read(union)?;
    let mut calls = Calls::new(union)?;
    let mut rates = Rates::default();
    union.rows(|span: Span| {
        rates.add(union.origin(IdKind::Process, span.process_ix.into()).map(|origin| origin.host), &span);
        calls.write(&mut packets, &mut flows, &span)
    })?;
    let mut warnings = calls.warnings();
    calls.finish(&mut packets)?;
    let mut devices = Devices::new(union);
    union.rows(|block: Block| devices.write(&mut packets, &flows, &block))?;
    warnings.extend(devices.warnings());
    devices.finish(&mut packets)?;
    warnings.extend(flows.overflow.then(|| "there are more arrows than are shown".to_owned()));
    warnings.extend(rates.overflow.then(|| "the trace is too long for all its bytes by second".to_owned()));
    rates.write(&mut packets)?;
    metrics::write(union, &mut packets)?;
    Ok(warnings)
}
