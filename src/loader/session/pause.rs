//! Pauses the probes of MPI communication, and brings them back.

use crate::event::Event;
use crate::event::wire::Busy;
use crate::loader::attach::pauses;
use crate::loader::kernel::rings;
use crate::loader::session::demote::WINDOW;
use crate::loader::session::{Session, probes};
use crate::rows::Coverage;
use crate::skel::types::iot_brief_state;
use crate::vocabulary::Layer;
use std::time::Instant;

impl Session<'_> {
    /// A thread calls MPI all the time.
    pub(super) fn begin_pause(&mut self, row: u16, busy: &Busy, t_ns: i64) -> Option<Event> {
        if !self.engine.can_pause() {
            self.set_brief(row, iot_brief_state::IOT_BRIEF_NO);
            return None;
        }
        if !self.pause.begins(Instant::now()) {
            return None;
        }
        if let Some(data) = self.skel.maps.bss_data.as_deref_mut() {
            // Returns of open calls may never be seen.
            (data.iot_demoting, data.iot_paused, data.iot_recalled) = (1, 1, 0);
        }
        let time = rings::now();
        self.take_paused_away();
        if self.paused_for.is_none() {
            self.paused_for = Some((t_ns, *busy));
            self.hooks.extend(self.paused());
        }
        Some(Event::Paused { time })
    }

    /// A call of an I/O library took long while they are paused: what MPI does in the next one is to be seen.
    pub(super) fn recall(&mut self) -> Option<Event> {
        if !self.pause.ends(Instant::now()) {
            if let Some(data) = self.skel.maps.bss_data.as_deref_mut() {
                data.iot_recalled = 0;
            }
            return None;
        }
        self.engine.resume(probes(&self.skel, self.second.as_ref()));
        Some(self.record_again())
    }

    fn take_paused_away(&mut self) {
        // Until they have gone they and new ones may be there.
        self.set_exchanging(true);
        let gone = self.engine.pause();
        self.engine.leave(gone);
    }

    /// Their probes are back for good.
    fn record_again(&mut self) -> Event {
        if let Some(data) = self.skel.maps.bss_data.as_deref_mut() {
            data.iot_window = data.iot_window.wrapping_add(1).max(1);
            data.iot_paused = 0;
        }
        Event::Resumed { time: rings::now() }
    }

    /// When it is time to, looks for a moment how often the paused functions are called: what tells the reader of the
    /// records.
    pub fn look_at_paused(&mut self) -> Vec<Event> {
        if !self.pause.is_due(Instant::now()) {
            return Vec::new();
        }
        self.engine.resume(probes(&self.skel, self.second.as_ref()));
        if let Some(data) = self.skel.maps.bss_data.as_deref_mut() {
            data.iot_window_most = 0;
            data.iot_window = data.iot_window.wrapping_add(1).max(1);
        }
        let (begun, from) = (Instant::now(), rings::now());
        self.set_looking(from);
        std::thread::sleep(WINDOW);
        self.set_looking(0);
        let (length, until) = (begun.elapsed(), rings::now());
        let most = self.skel.maps.bss_data.as_deref().map_or(0, |data| std::hint::black_box(data).iot_window_most);
        let mut events = vec![Event::Looking { time: from }, Event::Looked { time: until }];
        if self.pause.looked(Instant::now(), most, length, self.every) {
            events.push(self.record_again());
        } else {
            self.take_paused_away();
        }
        events
    }

    fn set_looking(&mut self, since: u64) {
        if let Some(data) = self.skel.maps.bss_data.as_deref_mut() {
            data.iot_looking = since;
        }
    }

    /// The verdict on what was paused, as far as it was.
    pub(super) fn paused(&self) -> Option<Coverage> {
        let (at_ns, busy) = self.paused_for.as_ref()?;
        let (times, total) = self.pause.sums(Instant::now());
        Some(Coverage {
            layer: Layer::Mpi,
            target: String::new(),
            symbol: String::new(),
            tier: None,
            status: "paused",
            reason: Some(pauses::reason(*at_ns, busy, times, total, self.summing)),
            offset: None,
            insn: None,
        })
    }
}
