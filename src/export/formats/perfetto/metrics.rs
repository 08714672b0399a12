//! Figures of the node and of the traced processes as counters.

use anyhow::Result;

use super::messages::{CounterDescriptor, TrackDescriptor};
use super::packets::Packets;
use crate::HashMap;
use crate::analysis::trace::source::Source;
use crate::export::report::Union;

/// Names with labels: more have no track.
const TRACKS_MAX: usize = 1 << 14;

/// Writes a track for each name and label of each node. Others of the table are about the tracer.
pub fn write(union: &Union, packets: &mut Packets<'_>) -> Result<()> {
    let mut tracks = HashMap::<(String, &'static str, Option<String>), u64>::default();
    let several = union.nodes().len() > 1;
    union.metrics_of_hosts(|host, metric| {
        if !metric.name.starts_with("node_") && !metric.name.starts_with("target_") {
            return Ok(());
        }
        let key = (host.to_owned(), metric.name, metric.label);
        let track = match tracks.get(&key) {
            Some(track) => *track,
            None if tracks.len() >= TRACKS_MAX => return Ok(()),
            None => {
                let node = if several { crate::base::text::escape(host) + ": " } else { String::new() };
                let label = key.2.as_ref().map(|label| format!(" {}", crate::base::text::escape(label)));
                let track = packets.track(TrackDescriptor {
                    name: Some(format!("{node}{}{}", metric.name, label.unwrap_or_default())),
                    counter: Some(CounterDescriptor::default()),
                    ..TrackDescriptor::default()
                })?;
                tracks.insert(key, track);
                track
            }
        };
        packets.count(track, metric.t_ns, metric.value)
    })
}
