//! Requests as slices on the tracks of their devices, and how many a device had.

use anyhow::Result;

use super::calls::Below;
use super::flows::Flows;
use super::lanes::{Lanes, Slice};
use super::messages::{CounterDescriptor, EventType, TrackDescriptor, TrackEvent};
use super::packets::Packets;
use crate::HashMap;
use crate::analysis::trace::source::{IdKind, Source};
use crate::export::report::Union;
use crate::rows::Block;

/// Requests that are shown in one device at a time.
const REQUESTS_MAX: usize = 4096;

struct Device {
    track: u64,
    /// How many requests were in the device.
    depth: u64,
    lanes: Lanes,
    /// When the last request was over.
    over: i64,
}

/// All requests on their way into a trace.
pub struct Devices<'a> {
    union: &'a Union,
    all: HashMap<(Option<String>, i32), Device>,
    /// Requests for which no track had room: instants, and not slices.
    unplaced: u64,
}

impl<'a> Devices<'a> {
    pub fn new(union: &'a Union) -> Self {
        Self { union, all: HashMap::default(), unplaced: 0 }
    }

    /// A slice from issue to completion. All calls must have been written.
    pub fn write(&mut self, packets: &mut Packets<'_>, flows: &Flows, block: &Block) -> Result<()> {
        let host = self.union.origin(IdKind::Request, block.req_id).map(|origin| origin.host.to_owned());
        let key = (host, block.dev);
        if !self.all.contains_key(&key) {
            let device = new(packets, key.0.as_deref(), block)?;
            self.all.insert(key.clone(), device);
        }
        let Some(device) = self.all.get_mut(&key) else { return Ok(()) };
        let (start, took) = (block.issue_ns, block.dur_ns.unwrap_or(0).max(0));
        let slice = Slice { id: block.req_id, parent: None, start, end: start.saturating_add(took) };
        device.over = device.over.max(slice.end);
        packets.count(device.depth, start, block.qdepth.into())?;
        let mut below = Below { packets: &mut *packets, above: device.track, name: "requests" };
        let track = device.lanes.place(&slice, (false, REQUESTS_MAX), &mut below)?;
        self.unplaced += u64::from(track.is_none());
        let numbers = [
            ("req_id", Some(block.req_id)),
            ("sector", Some(block.sector)),
            ("bytes", Some(block.bytes.into())),
            ("pid", Some(block.pid.into())),
            ("queued_ns", Some(start.saturating_sub(block.queue_ns))),
            ("nr_bios", Some(block.nr_bios.into())),
            // Null, as in the dataset: it did not complete.
            ("dur_ns", block.dur_ns),
            ("status", block.status.map(i64::from).filter(|status| *status != 0)),
        ];
        let known = numbers.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let mut notes: Vec<_> = known.map(|(name, value)| packets.note(name, value)).collect();
        notes.push(packets.note_text("class", block.class));
        let kind = if track.is_some() { EventType::SliceBegin } else { EventType::Instant };
        let terminating_flow_ids = flows.of_request(block);
        let event = TrackEvent { debug_annotations: notes, terminating_flow_ids, ..TrackEvent::default() };
        packets.named((kind, start, track.unwrap_or(device.track)), ("block", block.op), event)
    }

    /// What is not shown as it is.
    pub fn warnings(&self) -> Option<String> {
        let requests =
            || format!("{} requests overlap too many others: they are shown without duration", self.unplaced);
        (self.unplaced > 0).then(requests)
    }

    /// Ends what is open.
    pub fn finish(self, packets: &mut Packets<'_>) -> Result<()> {
        for device in self.all.into_values() {
            packets.count(device.depth, device.over, 0.0)?;
            device.lanes.close(&mut Below { packets: &mut *packets, above: device.track, name: "" })?;
        }
        Ok(())
    }
}

fn new(packets: &mut Packets<'_>, host: Option<&str>, block: &Block) -> Result<Device> {
    let name = crate::base::text::escape(block.device_name());
    let node = host.map(|host| crate::base::text::escape(host) + ": ").unwrap_or_default();
    let name = Some(format!("{node}device {name}"));
    let track = packets.track(TrackDescriptor { name, ..TrackDescriptor::default() })?;
    let depth = packets.track(TrackDescriptor {
        name: Some("requests in the device".to_owned()),
        parent_uuid: Some(track),
        counter: Some(CounterDescriptor::default()),
        ..TrackDescriptor::default()
    })?;
    Ok(Device { track, depth, lanes: Lanes::default(), over: i64::MIN })
}
