//! Takes the probes of functions away whose calls are shorter than their probe, and looks at such calls now and then.

use crate::event::Event;
use crate::event::wire::{self, Busy};
use crate::loader::kernel::rings;
use crate::loader::kernel::spec::spec;
use crate::loader::session::{SETTLE, Session, probes};
use crate::skel::types::{self as t, iot_brief_state};
use libbpf_rs::{MapCore as _, MapFlags};
use std::time::{Duration, Instant};

/// How long the probes of demoted functions are back, how long after a function was demoted, and at most how rarely. It takes
/// some 10 ms besides to take them away.
pub(super) const WINDOW: Duration = Duration::from_millis(3);
const FIRST_WINDOW: Duration = Duration::from_millis(250);
const LONGEST_BETWEEN: Duration = Duration::from_secs(10);

impl Session<'_> {
    /// Probes cost a thread more than they should, or those that are paused are wanted: what tells the reader of the
    /// records, if some go or come.
    pub fn relieve(&mut self, busy: &Busy, t_ns: i64) -> Option<Event> {
        let row = busy.spec % u16::try_from(self.rows.len()).ok().filter(|rows| *rows > 0)?;
        if busy.calls == 0 {
            return self.recall();
        }
        if self.rows.get(usize::from(row)).is_some_and(|row| row.pauses) {
            return self.begin_pause(row, busy, t_ns);
        }
        self.demote(row, busy, t_ns)
    }

    /// Takes the probes of a function away whose calls are shorter and more than they should be.
    fn demote(&mut self, row: u16, busy: &Busy, t_ns: i64) -> Option<Event> {
        if self.engine.is_demoted(row) {
            return None;
        }
        if let Some(data) = self.skel.maps.bss_data.as_deref_mut() {
            data.iot_demoting = 1;
        }
        self.set_exchanging(true);
        // Where entry and return have a probe each, calls that are open now return through both.
        self.set_settled(false);
        self.settles = Some(Instant::now() + SETTLE);
        let Some(gone) = self.engine.demote(row, busy, t_ns, probes(&self.skel, self.second.as_ref())) else {
            self.set_brief(row, iot_brief_state::IOT_BRIEF_NO);
            return None;
        };
        // Its replacement is attached before it is detached.
        let time = rings::now();
        self.set_brief(row, iot_brief_state::IOT_BRIEF_DEMOTED);
        self.engine.leave(gone);
        if !self.summing {
            self.window = Some((Instant::now() + FIRST_WINDOW, FIRST_WINDOW));
        }
        Some(Event::Demoted { time, row })
    }

    pub(super) fn set_brief(&self, row: u16, state: iot_brief_state) {
        let Some(row_of) = self.rows.get(usize::from(row)) else { return };
        let spec = t::iot_spec { brief: state.0 as u8, ..spec(row_of, &self.layers) };
        // The table has an entry for every row.
        let _ =
            self.skel.maps.iot_specs.update(&u32::from(row).to_ne_bytes(), wire::spec_bytes(&spec), MapFlags::EXIST);
    }

    /// When it is time to, looks for a moment at each call of what is demoted: what tells the reader of the records.
    pub fn sample(&mut self) -> Option<Event> {
        let (_, after) = self.window.filter(|(due, _)| Instant::now() >= *due)?;
        let time = rings::now();
        let links = self.engine.open_window(probes(&self.skel, self.second.as_ref()));
        std::thread::sleep(WINDOW);
        self.engine.leave(links);
        let after = (after * 2).min(LONGEST_BETWEEN);
        self.window = Some((Instant::now() + after, after));
        Some(Event::Sampled { time })
    }
}
