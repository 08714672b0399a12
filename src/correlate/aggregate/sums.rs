//! Aggregate mode: sums of the kernel side and of calls that it sends, merged by process, file, layer and operation.

use std::collections::VecDeque;

use crate::HashMap;
use crate::correlate::resources::processes::{Owned, Ranks};
use crate::event::{Figures, size_class, time_bin};
use crate::rows::{FileRollup, Row, Span};
use crate::vocabulary::{Kind, Layer};

/// How long rows collect before they are written, and how long the handles of what has ended are remembered: longer than sums
/// of the kernel side are on their way.
const PERIOD_NS: i64 = 1_000_000_000;
const KEPT_NS: i64 = 10_000_000_000;
/// Values of which it is counted how often they were there, in a period; the most frequent are written.
const VALUES: usize = 32;
const WRITTEN: usize = 4;

/// What a row is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Subject {
    pub process: Option<Owned>,
    pub file: Option<i32>,
    pub object: Option<i32>,
    pub device: Option<String>,
    /// It is of all that found no room.
    pub rest: bool,
}

/// A function, as rows name it.
pub type Op = (Layer, &'static str, Kind);

/// A handle of a library, by the call that opened it.
#[derive(Debug, Clone, Copy)]
pub struct Opened {
    pub handle: i32,
    pub file: Option<i32>,
    pub object: Option<i32>,
}

/// The handles that a process opened, as long as sums of it may come, and whose they were.
#[derive(Default)]
struct ProcessHandles {
    opened: HashMap<i64, Opened>,
    /// The calls that opened a handle that is open: of one inside another both have.
    open: HashMap<i32, Vec<i64>>,
    gone: Option<(Owned, Ranks)>,
}

/// Sums that are not written yet.
#[derive(Default)]
pub struct Sums {
    from_ns: i64,
    /// Behind a pointer: a table has room for twice as many as there are.
    open: HashMap<(Op, Subject), Box<Figures>>,
    processes: HashMap<u32, ProcessHandles>,
    /// What may be forgotten, and when it ended: a process, or one of its handles.
    ended: VecDeque<(i64, u32, Option<i64>)>,
}

impl Sums {
    /// Adds what the kernel side has summed up.
    pub fn add(&mut self, op: Op, subject: Subject, figures: &Figures) {
        merge(self.open.entry((op, subject)).or_default(), figures);
    }

    /// Adds a call. Times of rows are relative to the start of the trace, at `t0`.
    pub fn span(&mut self, span: &Span, t0: u64) {
        let process = (span.process_ix >= 0).then_some(Owned::of(span));
        let subject = Subject { process, file: span.file_id, object: span.object_id, ..Subject::default() };
        self.add((span.layer, span.op, span.kind), subject, &figures(span, t0));
    }

    /// A call opened a handle.
    pub fn opened(&mut self, process: u32, span: i64, opened: Opened) {
        let known = self.processes.entry(process).or_default();
        known.open.entry(opened.handle).or_default().push(span);
        known.opened.insert(span, opened);
    }

    /// The handle that a call opened. For a closed one: as it was when it was closed.
    pub fn handle(&self, process: u32, span: i64) -> Option<Opened> {
        self.processes.get(&process)?.opened.get(&span).copied()
    }

    /// A handle ends. What is known of it now is remembered.
    pub fn closed(&mut self, t_ns: i64, process: u32, handle: i32, now: impl Fn(&Opened) -> Opened) {
        let Some(known) = self.processes.get_mut(&process) else { return };
        for span in known.open.remove(&handle).unwrap_or_default() {
            if let Some(opened) = known.opened.get_mut(&span) {
                *opened = now(opened);
            }
            self.ended.push_back((t_ns, process, Some(span)));
        }
    }

    /// A process ended, and with it the handles that it had open.
    pub fn gone(&mut self, t_ns: i64, process: u32, was: (Owned, Ranks), now: impl Fn(&Opened) -> Opened) {
        let known = self.processes.entry(process).or_default();
        known.gone = Some(was);
        for span in known.open.drain().flat_map(|(_, spans)| spans) {
            if let Some(opened) = known.opened.get_mut(&span) {
                *opened = now(opened);
            }
        }
        self.ended.push_back((t_ns, process, None));
    }

    /// What a process that has ended was when it ran this program.
    pub fn was(&self, process: u32, program: Option<u32>) -> Option<Owned> {
        let (owned, ranks) = self.processes.get(&process)?.gone.as_ref()?;
        Some(ranks.owned(*owned, program))
    }

    /// Writes the rows when a period is over; without `until`, all.
    pub fn write(&mut self, now_ns: i64, all: bool, t0: u64, out: &mut Vec<Row>) {
        if !all && now_ns < self.from_ns.saturating_add(PERIOD_NS) {
            return;
        }
        let from_ns = std::mem::replace(&mut self.from_ns, now_ns);
        // Not its room: as many as came in one period may never come again.
        let mut open: Vec<_> = std::mem::take(&mut self.open).into_iter().collect();
        open.sort_by(|((a, x), _), ((b, y), _)| {
            let key = |s: &Subject| (s.process.map(|p| p.process_ix), s.file, s.object, s.device.clone(), s.rest);
            (a, key(x)).cmp(&(b, key(y)))
        });
        out.extend(
            open.into_iter()
                .map(|((op, subject), f)| Row::FileRollup(Box::new(row([from_ns, now_ns], op, subject, *f, t0)))),
        );
        let old = now_ns.saturating_sub(KEPT_NS);
        while let Some((_, process, span)) = self.ended.pop_front_if(|(t, ..)| *t < old) {
            match span {
                Some(span) => {
                    self.processes.get_mut(&process).map(|known| known.opened.remove(&span));
                }
                None => {
                    self.processes.remove(&process);
                }
            }
        }
    }
}

/// What one call comes to.
fn figures(span: &Span, t0: u64) -> Figures {
    let count = |n: i64| u64::try_from(n).unwrap_or(0);
    let own = Figures { own: count(span.self_ns), errors: u64::from(span.errno != 0), ..Figures::default() };
    if !span.layer_top {
        return Figures { nested: 1, ..own };
    }
    let moves = matches!(span.kind, Kind::Read | Kind::Write);
    let time = count(span.net_ns());
    let start = t0.saturating_add_signed(span.start_ns);
    let bytes = span.bytes.map(count);
    let mut f = Figures {
        calls: 1,
        unknown: u64::from(moves && bytes.is_none() && span.errno == 0),
        bytes: bytes.unwrap_or(0),
        asked: span.req_bytes.map_or(0, count),
        time: count(span.inclusive_ns()),
        max: time,
        max_at: start,
        first: start,
        last: start.saturating_add(count(span.dur_ns)),
        miss: span.miss_bytes.map_or(0, count),
        ahead: span.ahead_bytes.map_or(0, count),
        waited: span.throttle_ns.map_or(0, count),
        away: span.cpu_ns.map_or(0, |cpu| count(span.net_ns().saturating_sub(cpu))),
        queued: span.runq_ns.map_or(0, count),
        locked: span.lock_ns.map_or(0, count),
        ..own
    };
    f.by_time[time_bin(time)] = 1;
    if let Some(bytes) = bytes {
        f.by_size[size_class(bytes)] = 1;
        if moves {
            f.sizes.push((bytes, 1));
        }
    }
    f
}

fn merge(to: &mut Figures, f: &Figures) {
    if f.max > to.max || to.max_at == 0 {
        (to.max, to.max_at) = (f.max, f.max_at);
    }
    if f.first > 0 && (to.first == 0 || f.first < to.first) {
        to.first = f.first;
    }
    to.last = to.last.max(f.last);
    to.end = to.end.max(f.end);
    to.counters(f, u64::saturating_add);
    to.error = f.error.map_or(to.error, |error| Some(to.error.unwrap_or(0).saturating_add(error)));
    let add = |to: &mut u64, n: u64| *to = to.saturating_add(n);
    let bins = to.by_size.iter_mut().chain(&mut to.by_time).zip(f.by_size.iter().chain(&f.by_time));
    bins.for_each(|(to, n)| add(to, *n));
    for (values, others, new) in
        [(&mut to.sizes, &mut to.other_sizes, &f.sizes), (&mut to.strides, &mut to.other_strides, &f.strides)]
    {
        for (value, n) in new {
            match values.iter().position(|(v, _)| v == value) {
                Some(at) => add(&mut values[at].1, *n),
                None if values.len() < VALUES => values.push((*value, *n)),
                None => add(others, *n),
            }
        }
    }
}

/// The most frequent values, how often they were there, and how often others were.
type Common = (Option<Vec<i64>>, Option<Vec<i64>>, i64);

fn common(mut values: Vec<(u64, u64)>, others: u64) -> Common {
    values.sort_by_key(|(value, n)| (std::cmp::Reverse(*n), *value));
    let rest =
        values.split_off(values.len().min(WRITTEN)).into_iter().map(|(_, n)| n).fold(others, u64::saturating_add);
    let list = |of: fn(&(u64, u64)) -> u64| {
        Some(values.iter().map(|v| number(of(v))).collect()).filter(|l: &Vec<i64>| !l.is_empty())
    };
    (list(|v| v.0), list(|v| v.1), number(rest))
}

fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn row([from_ns, to_ns]: [i64; 2], (layer, op, kind): Op, subject: Subject, f: Figures, t0: u64) -> FileRollup {
    let time = |t: u64| (t > 0).then(|| crate::correlate::relative(t, t0));
    let bins = |bins: &[u64]| bins.iter().any(|n| *n > 0).then(|| bins.iter().map(|n| number(*n)).collect());
    let (common_sizes, common_size_calls, other_sizes) = common(f.sizes, f.other_sizes);
    let (common_strides, common_stride_calls, other_strides) = common(f.strides, f.other_strides);
    FileRollup {
        from_ns,
        to_ns,
        layer,
        op,
        kind,
        process_ix: subject.process.map(|p| p.process_ix),
        pid: subject.process.map(|p| p.pid),
        rank: subject.process.and_then(|p| p.rank),
        file_id: subject.file,
        object_id: subject.object,
        device: subject.device,
        other: subject.rest,
        calls: number(f.calls),
        calls_error: f.error.map(number),
        nested_calls: number(f.nested),
        errors: number(f.errors),
        unknown_calls: number(f.unknown),
        bytes: number(f.bytes),
        req_bytes: number(f.asked),
        dur_ns: number(f.time),
        self_ns: number(f.own),
        max_ns: number(f.max),
        slowest_ns: time(f.max_at),
        first_ns: time(f.first),
        last_ns: time(f.last),
        end_offset: (f.end > 0).then(|| number(f.end)),
        sequential: number(f.sequential),
        consecutive: number(f.consecutive),
        switches: number(f.switches),
        unaligned: number(f.unaligned),
        miss_bytes: number(f.miss),
        ahead_bytes: number(f.ahead),
        wait_ns: number(f.waited),
        cpu_ns: number(f.time.saturating_sub(f.away)),
        runq_ns: number(f.queued),
        lock_ns: number(f.locked),
        sizes: bins(&f.by_size),
        durations: bins(&f.by_time),
        common_sizes,
        common_size_calls,
        other_sizes,
        common_strides,
        common_stride_calls,
        other_strides,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::correlate::testing::{Run, call, key, spec};
    use crate::event::{About, Cached, Call, DeferredCall, Event, Sum, Wanted};
    use crate::vocabulary::flag;

    fn sum(time: u64, symbol: &str, about: About, calls: u64) -> Event {
        let mut figures = Figures { calls, bytes: 10 * calls, time: 5 * calls, own: 4 * calls, ..Figures::default() };
        figures.sizes = vec![(10, calls)];
        figures.by_size[0] = calls;
        let row = u32::from(spec(symbol));
        Event::Sum(Box::new(Sum { time, from: time - 100, process: Some((0, None)), row, about, rest: false, figures }))
    }

    fn rows(out: &[Row]) -> Vec<&FileRollup> {
        out.iter().filter_map(|r| if let Row::FileRollup(r) = r { Some(&**r) } else { None }).collect()
    }

    #[test]
    fn calls_have_the_rank_of_the_program_that_made_them() {
        let mut run = Run::summing();
        run.process(10, 1, Some(0));
        run.exec_as(20, 1, 1, vec![b"PMI_RANK=3".to_vec()]);
        let of = |time, program, calls| {
            let Event::Sum(sum) = sum(time, "read", About::Nothing, calls) else { unreachable!() };
            Event::Sum(Box::new(Sum { process: Some((1, program)), ..*sum }))
        };
        for (program, calls) in [(Some(0), 5), (Some(1), 7), (None, 11)] {
            run.push(of(200, program, calls));
        }
        run.push(Event::Exit { time: 210, process: 1, status: 0 });
        run.push(of(220, Some(0), 13));
        let out = run.finish().0;
        let mut seen: Vec<_> = rows(&out).iter().map(|r| (r.rank, r.calls)).collect();
        seen.sort_unstable();
        assert_eq!(seen, [(None, 18), (Some(3), 18)]);
    }

    #[test]
    fn a_handle_value_that_is_used_again_is_another_handle() {
        let mut run = Run::summing();
        // Two streams at one address, one after the other, and each has a file of its own.
        for (seq, ino, start) in [(0, 7, 10), (10, 8, 100)] {
            let open = call(0, seq + 1, 1, start + 1, start + 2);
            run.openat(open, &format!("/tmp/{ino}"), ino, 3);
            run.call("fopen", Call { handle: Some(0x1000), ..call(0, seq, 0, start, start + 4) });
            run.call("fclose", Call { handle: Some(0x1000), ..call(0, seq + 5, 0, start + 20, start + 24) });
        }
        // Their sums come when both are closed, and the process is gone.
        run.push(Event::Exit { time: 150, process: 0, status: 0 });
        run.push(sum(200, "fwrite", About::Handle { raw: 0x1000, opened: Some((0, 0)) }, 3));
        run.push(sum(200, "fwrite", About::Handle { raw: 0x1000, opened: Some((0, 10)) }, 4));
        run.push(sum(200, "pread64", About::File(key(8)), 5));
        let out = run.finish().0;
        let paths: HashMap<i32, String> = out
            .iter()
            .filter_map(
                |r| if let Row::File(f) = r { Some((f.file_id, f.path.clone().unwrap_or_default())) } else { None },
            )
            .collect();
        let seen: Vec<_> = rows(&out)
            .into_iter()
            .filter(|r| ["fwrite", "pread64"].contains(&r.op))
            .map(|r| (r.op, paths[&r.file_id.unwrap()].as_str(), r.calls, r.bytes, r.self_ns, r.pid))
            .collect();
        let pid = Some(100);
        assert_eq!(
            seen,
            [
                ("fwrite", "/tmp/7", 3, 30, 12, pid),
                ("fwrite", "/tmp/8", 4, 40, 16, pid),
                ("pread64", "/tmp/8", 5, 50, 20, pid)
            ]
        );
        // Calls that are sent are summed up, too, and none is written.
        let opens: i64 = rows(&out).iter().filter(|r| r.op == "fopen").map(|r| r.calls).sum();
        assert_eq!(opens, 2);
        assert!(!out.iter().any(|r| matches!(r, Row::Span(_))));
        let rollup = |op| {
            out.iter().filter_map(|r| if let Row::Rollup(r) = r { Some(r) } else { None }).filter(move |r| r.op == op)
        };
        assert_eq!(rollup("fwrite").map(|r| r.calls).sum::<i64>(), 7);
    }

    #[test]
    fn the_time_of_calls_that_are_not_sent_is_not_self_time_of_the_enclosing_call() {
        let mut run = Run::summing();
        run.push(Event::Inner { time: 90, thread: 0, seq: 1, inner: 60 });
        run.call("fclose", Call { handle: Some(0x1000), ..call(0, 1, 0, 10, 90) });
        let out = run.finish().0;
        assert_eq!(rows(&out).iter().map(|r| (r.op, r.dur_ns, r.self_ns)).collect::<Vec<_>>(), [("fclose", 80, 20)]);
    }

    #[test]
    fn what_is_wanted_besides_is_written_and_counted_once() {
        let mut run = Run::summing();
        let wanted = |call: Call, wanted| Call { wanted, ..call };
        // A call that is recorded whole: the one inside it was sent before that was known.
        run.call("H5Aopen", Call { handle: Some(7), ..call(0, 1, 1, 20, 30) });
        run.call("H5Dopen2", wanted(Call { handle: Some(9), ..call(0, 0, 0, 10, 90) }, Wanted::Whole));
        // One that was summed up and is sent because of the one inside it.
        let cached = Cached { miss: None, ahead: None, throttled: 0, locked: 0 };
        let deferred = |symbol: &str, call: Call, sent, inner| {
            Event::Deferred(Box::new(DeferredCall { call: Call { spec: spec(symbol), ..call }, sent, inner, cached }))
        };
        run.push(deferred("pwrite64", wanted(call(0, 11, 1, 120, 130), Wanted::Itself), 150, 0));
        run.push(deferred("fwrite", call(0, 10, 0, 100, 150), 150, 10));
        run.push(sum(200, "pwrite64", About::Nothing, 1));
        run.push(sum(200, "fwrite", About::Nothing, 1));
        let out = run.finish().0;
        let spans: Vec<_> = out
            .iter()
            .filter_map(|r| if let Row::Span(s) = r { Some((s.op, s.self_ns, s.flags & flag::SUMMED)) } else { None })
            .collect();
        assert_eq!(
            spans,
            [("H5Dopen2", 70, flag::SUMMED), ("H5Aopen", 10, flag::SUMMED), ("pwrite64", 10, flag::SUMMED)]
        );
        let calls = |op: &str| rows(&out).iter().filter(|r| r.op == op).map(|r| r.calls + r.nested_calls).sum::<i64>();
        assert_eq!(["H5Dopen2", "H5Aopen", "pwrite64", "fwrite"].map(calls), [1; 4]);
    }

    #[test]
    fn the_most_frequent_values_are_kept_and_the_others_counted() {
        let mut all = Figures::default();
        for n in 0..40_u64 {
            merge(&mut all, &Figures { sizes: vec![(n, n + 1)], other_sizes: 1, ..Figures::default() });
        }
        let (values, calls, others) = common(all.sizes, all.other_sizes);
        let (values, calls) = (values.unwrap(), calls.unwrap());
        assert_eq!(calls, [32, 31, 30, 29]);
        assert_eq!(values, [31, 30, 29, 28]);
        assert_eq!(others + calls.iter().sum::<i64>(), (1..=40).sum::<i64>() + 40);
    }
}
