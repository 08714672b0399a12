//! Packets of a Perfetto trace, written one by one: names get numbers when they are first used.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Context, Result};
use prost::Message;

use super::messages::{
    CLOCK_MONOTONIC, CLOCK_REALTIME, ClockReading, ClockSnapshot, DebugAnnotation, EventType, InternedData,
    InternedName, PACKET_TAG, SEQ_INCREMENTAL_STATE_CLEARED, SEQ_NEEDS_INCREMENTAL_STATE, TracePacket,
    TracePacketDefaults, TrackDescriptor, TrackEvent,
};
use crate::HashMap;

/// All packets are of one sequence.
const SEQUENCE: u32 = 1;
/// Texts that get a number; more are written out each time.
const TEXTS_MAX: usize = 1 << 16;

/// The clock of the trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Clock {
    /// Its Perfetto number, and what it showed at the time 0 of the rows; none where that is not known.
    start: Option<(u32, i64)>,
    /// Pairs of monotonic and wall clock.
    pairs: Vec<(i64, i64)>,
}

impl Clock {
    /// The monotonic clock of the node where there is one start, else the wall clock.
    pub fn of(facts: &BTreeMap<String, String>) -> Self {
        let number = |key: &str| facts.get(key).and_then(|value| value.parse::<i64>().ok()).filter(|ns| *ns >= 0);
        let wall = number("t0_wall_ns");
        let Some(t0) = number("t0_ns") else {
            return Self { start: wall.map(|wall| (CLOCK_REALTIME, wall)), pairs: Vec::new() };
        };
        let later = facts.iter().filter_map(|(key, wall)| {
            let at = key.strip_prefix("clock_pair_")?.parse().ok().filter(|at| *at > t0)?;
            Some((at, wall.parse().ok()?))
        });
        let mut pairs: Vec<(i64, i64)> = wall.map(|wall| (t0, wall)).into_iter().chain(later).collect();
        pairs.sort_unstable();
        Self { start: Some((CLOCK_MONOTONIC, t0)), pairs }
    }

    fn snapshots(&self) -> Vec<ClockSnapshot> {
        let reading = |id, ns: i64| ClockReading { clock_id: Some(id), timestamp: Some(unsigned(ns)) };
        let Some((id, start)) = self.start else { return Vec::new() };
        let clocks = |pair: &(i64, i64)| vec![reading(CLOCK_MONOTONIC, pair.0), reading(CLOCK_REALTIME, pair.1)];
        let mut all: Vec<_> = self.pairs.iter().map(clocks).collect();
        if all.is_empty() {
            all.push(vec![reading(id, start)]);
        }
        all.into_iter().map(|clocks| ClockSnapshot { clocks, primary_trace_clock: Some(id) }).collect()
    }
}

/// Damaged datasets have times before all time.
fn unsigned(ns: i64) -> u64 {
    u64::try_from(ns).unwrap_or(0)
}

/// Where the numbers of a name are valid.
#[derive(Debug, Default)]
struct Names {
    categories: HashMap<&'static str, u64>,
    events: HashMap<&'static str, u64>,
    notes: HashMap<&'static str, u64>,
    texts: HashMap<String, u64>,
    /// Those that no packet has defined yet.
    new: InternedData,
}

/// The number of a name, with its definition if it is new.
fn number(known: &mut HashMap<&'static str, u64>, new: &mut Vec<InternedName>, name: &'static str) -> u64 {
    let next = known.len() as u64 + 1;
    *known.entry(name).or_insert_with(|| {
        new.push(InternedName { iid: Some(next), name: Some(crate::base::text::escape(name)) });
        next
    })
}

/// A trace that is being written.
pub struct Packets<'a> {
    out: &'a mut dyn Write,
    base_ns: i64,
    names: Names,
    tracks: u64,
    buffer: Vec<u8>,
}

impl<'a> Packets<'a> {
    pub fn new(out: &'a mut dyn Write, clock: &Clock) -> Result<Self> {
        let base_ns = clock.start.map_or(0, |(_, start)| start);
        let mut packets = Self { out, base_ns, names: Names::default(), tracks: 0, buffer: Vec::new() };
        let defaults = clock.start.map(|(id, _)| TracePacketDefaults { timestamp_clock_id: Some(id) });
        let flags = Some(SEQ_INCREMENTAL_STATE_CLEARED | SEQ_NEEDS_INCREMENTAL_STATE);
        for snapshot in clock.snapshots() {
            packets.write(TracePacket { clock_snapshot: Some(snapshot), ..TracePacket::default() })?;
        }
        packets.write(TracePacket { sequence_flags: flags, defaults, ..TracePacket::default() })?;
        Ok(packets)
    }

    fn write(&mut self, packet: TracePacket) -> Result<()> {
        let packet = TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..packet };
        self.buffer.clear();
        self.buffer.push(PACKET_TAG);
        packet.encode_length_delimited(&mut self.buffer).context("a message is too long")?;
        self.out.write_all(&self.buffer).context("cannot write the trace")
    }

    /// Describes a track and returns its number (`uuid`): 1, 2, ... in the order in which tracks are needed.
    pub fn track(&mut self, descriptor: TrackDescriptor) -> Result<u64> {
        self.tracks += 1;
        let descriptor = TrackDescriptor { uuid: Some(self.tracks), ..descriptor };
        self.write(TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() })?;
        Ok(self.tracks)
    }

    fn event(&mut self, at: i64, event: TrackEvent) -> Result<()> {
        let new = std::mem::take(&mut self.names.new);
        self.write(TracePacket {
            timestamp: Some(unsigned(self.base_ns.saturating_add(at))),
            sequence_flags: Some(SEQ_NEEDS_INCREMENTAL_STATE),
            interned_data: (new != InternedData::default()).then_some(new),
            track_event: Some(event),
            ..TracePacket::default()
        })
    }

    /// An event with a category and a name.
    pub fn named(
        &mut self,
        (kind, at, track): (EventType, i64, u64),
        (category, name): (&'static str, &'static str),
        event: TrackEvent,
    ) -> Result<()> {
        let category = number(&mut self.names.categories, &mut self.names.new.event_categories, category);
        let name = number(&mut self.names.events, &mut self.names.new.event_names, name);
        let event = TrackEvent {
            r#type: Some(kind.into()),
            category_iids: vec![category],
            name_iid: Some(name),
            track_uuid: Some(track),
            ..event
        };
        self.event(at, event)
    }

    /// The end of the innermost open slice of a track.
    pub fn end(&mut self, track: u64, at: i64) -> Result<()> {
        let end = EventType::SliceEnd.into();
        self.event(at, TrackEvent { r#type: Some(end), track_uuid: Some(track), ..TrackEvent::default() })
    }

    pub fn count(&mut self, track: u64, at: i64, value: f64) -> Result<()> {
        let count = EventType::Counter.into();
        let event = TrackEvent {
            r#type: Some(count),
            track_uuid: Some(track),
            double_counter_value: Some(value),
            ..TrackEvent::default()
        };
        self.event(at, event)
    }

    /// A number of an event, with its name.
    pub fn note(&mut self, name: &'static str, value: i64) -> DebugAnnotation {
        let name = number(&mut self.names.notes, &mut self.names.new.debug_annotation_names, name);
        DebugAnnotation { name_iid: Some(name), int_value: Some(value), ..DebugAnnotation::default() }
    }

    /// A text of an event, with its name.
    pub fn note_text(&mut self, name: &'static str, text: &str) -> DebugAnnotation {
        let name = number(&mut self.names.notes, &mut self.names.new.debug_annotation_names, name);
        let note = DebugAnnotation { name_iid: Some(name), ..DebugAnnotation::default() };
        if let Some(known) = self.names.texts.get(text) {
            return DebugAnnotation { string_value_iid: Some(*known), ..note };
        }
        let plain = crate::base::text::escape(text);
        if self.names.texts.len() >= TEXTS_MAX {
            return DebugAnnotation { string_value: Some(plain), ..note };
        }
        let next = self.names.texts.len() as u64 + 1;
        self.names.texts.insert(text.to_owned(), next);
        let texts = &mut self.names.new.debug_annotation_string_values;
        texts.push(InternedName { iid: Some(next), name: Some(plain) });
        DebugAnnotation { string_value_iid: Some(next), ..note }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_clock_is_that_of_the_node_or_the_one_on_the_wall() {
        let wall = ("t0_wall_ns", "5000");
        let one = Clock::of(&facts(&[("t0_ns", "100"), wall, ("clock_pair_900", "5800"), ("clock_pair_x", "1")]));
        assert_eq!(one, Clock { start: Some((CLOCK_MONOTONIC, 100)), pairs: vec![(100, 5000), (900, 5800)] });
        assert_eq!(one.snapshots().len(), 2);
        let several = Clock::of(&facts(&[("t0_ns", "100, 200"), wall]));
        assert_eq!(several, Clock { start: Some((CLOCK_REALTIME, 5000)), pairs: Vec::new() });
        assert_eq!(Clock::of(&facts(&[("t0_ns", "-1")])), Clock::default());
    }
}
