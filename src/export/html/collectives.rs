//! When each rank arrived at a collective call.

use std::cmp::Reverse;

use serde_json::{Value, json};

use crate::HashMap;
use crate::rows::Span;

/// Arrivals that are kept while the rows go by.
const ARRIVALS_MAX: usize = 1 << 20;
/// Collective calls on the page: those with the greatest spread of arrivals; and the arrivals of all that have them there.
const CALLS_SHOWN: usize = 1000;
const ARRIVALS_SHOWN: usize = 30_000;

struct Collective {
    op: &'static str,
    file: u32,
    /// Rank and start.
    arrivals: Vec<(u32, i64)>,
}

/// Collective calls by id, and by how often a rank had that id before: runs of one program may repeat ids.
#[derive(Default)]
pub struct Collectives {
    calls: HashMap<(i64, u32), Collective>,
    times: HashMap<(i64, u32), u32>,
    arrivals: usize,
    left_out: i64,
}

impl Collectives {
    /// A call of a rank, which began at this time on the common clock.
    pub fn span(&mut self, span: &Span, (rank, file): (u32, u32), start_ns: i64) {
        let Some(coll_id) = span.coll_id else { return };
        if self.arrivals >= ARRIVALS_MAX {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        self.arrivals += 1;
        let times = self.times.entry((coll_id, rank)).or_default();
        let call = (coll_id, *times);
        *times = times.saturating_add(1);
        let collective =
            self.calls.entry(call).or_insert_with(|| Collective { op: span.op, file, arrivals: Vec::new() });
        collective.arrivals.push((rank, start_ns));
    }

    pub fn finish(self) -> Value {
        let number = self.calls.len();
        let mut calls: Vec<_> = self.calls.into_iter().collect();
        calls.sort_unstable_by_key(|(id, call)| (Reverse(call.spread()), *id));
        calls.truncate(CALLS_SHOWN);
        let mut room = ARRIVALS_SHOWN;
        let mut list: Vec<(i64, Value)> = calls.iter().map(|(_, call)| (call.first(), call.value(&mut room))).collect();
        list.sort_by_key(|(first, _)| *first);
        let list: Vec<Value> = list.into_iter().map(|(_, value)| value).collect();
        json!({ "number": number, "left_out": self.left_out, "list": list })
    }
}

impl Collective {
    fn first(&self) -> i64 {
        self.arrivals.iter().map(|(_, start)| *start).min().unwrap_or(0)
    }

    fn spread(&self) -> i64 {
        let last = self.arrivals.iter().map(|(_, start)| *start).max().unwrap_or(0);
        last.saturating_sub(self.first())
    }

    /// With the arrivals while there is room for them.
    fn value(&self, room: &mut usize) -> Value {
        let first = self.first();
        let last = self.arrivals.iter().max_by_key(|(rank, start)| (*start, Reverse(*rank)));
        let mut arrivals: Vec<(u32, i64)> =
            self.arrivals.iter().map(|(rank, start)| (*rank, start.saturating_sub(first))).collect();
        arrivals.sort_unstable();
        let fits = arrivals.len() <= *room;
        if fits {
            *room -= arrivals.len();
        }
        json!({
            "op": self.op, "file": self.file, "first_ns": first, "spread_ns": self.spread(), "ranks": self.arrivals.len(),
            "last": last.map(|(rank, _)| rank), "arrivals": if fits { Some(arrivals) } else { None },
        })
    }
}
