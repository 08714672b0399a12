//! Bytes moved by functions that were demoted during the trace: their calls are not recorded one by one (`loader::attach`).
//!
//! Every other call on a stream gives the position of the stream before and after it. What lies between the end of one and the
//! beginning of the next is what calls of demoted functions moved. How many they were is estimated: as many for these bytes as
//! there were when each of them was recorded, just before the function was demoted and in short windows since.

use crate::HashMap;
use crate::catalog::{Role, Row, Src};
use crate::correlate::aggregate::sums::Subject;
use crate::event::{Call, Figures, size_class};
use crate::vocabulary::Kind;

/// What calls of one demoted function came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Of the catalog.
    pub row: u16,
    pub calls: u64,
    /// Standard error of `calls`: as large as `calls` with a single sample. With none on the stream, the calls that all of its
    /// bytes would need.
    pub error: u64,
    /// Exact.
    pub bytes: u64,
    /// All calls that were seen moved as many bytes as each other.
    pub alike: bool,
}

impl Estimate {
    /// The sums of calls that were not recorded: they ended before `until`.
    pub fn figures(&self, until: u64) -> Figures {
        let Self { calls, error, bytes, alike, .. } = *self;
        let at = if calls > 0 { until } else { 0 };
        let mut f =
            Figures { calls, bytes, asked: bytes, first: at, last: at, error: Some(error), ..Figures::default() };
        if let Some(each) = bytes.checked_div(calls) {
            f.by_size[size_class(each)] = calls;
            if alike {
                f.sizes.push((each, calls));
            } else {
                f.other_sizes = calls;
            }
        }
        f
    }
}

/// Calls that were recorded.
#[derive(Debug, Clone, Copy)]
struct Sample {
    row: u16,
    /// The last one in which it moved bytes.
    window: u32,
    calls: u64,
    bytes: u64,
    /// Sum of squares of their bytes.
    squares: f64,
}

impl Sample {
    fn mean(&self) -> f64 {
        self.bytes as f64 / self.calls as f64
    }

    /// Standard error of the mean, as a share of the mean.
    fn error(&self) -> f64 {
        if self.calls < 2 {
            return 1.0;
        }
        let (n, mean) = (self.calls as f64, self.mean());
        let variance = ((self.squares - n * mean * mean) / (n - 1.0)).max(0.0);
        (variance / n).sqrt() / mean
    }
}

/// What functions moved how much, of those that read or of those that write: each in the last window in which it was recorded.
#[derive(Debug, Clone, Default)]
struct Mix {
    samples: Vec<Sample>,
}

impl Mix {
    fn add(&mut self, new: Sample) {
        match self.samples.iter_mut().find(|sample| sample.row == new.row) {
            Some(sample) if sample.window == new.window => {
                sample.calls = sample.calls.saturating_add(new.calls);
                sample.bytes = sample.bytes.saturating_add(new.bytes);
                sample.squares += new.squares;
            }
            Some(sample) if new.bytes > 0 => *sample = new,
            // What moved nothing does not show what moves bytes.
            Some(_) => {}
            None => self.samples.push(new),
        }
    }

    /// How these bytes are spread over the functions of the last window. `own`: the calls were on the same stream, otherwise
    /// they could all be of one of them, or of a function that was recorded in an earlier window only: of that, no call is
    /// likely, but many are possible. Nothing, when none of them was seen to move any.
    fn spread(&self, bytes: u64, own: bool, demoted: &[u16]) -> Vec<Estimate> {
        let known = self.samples.iter().filter(|s| demoted.contains(&s.row) && s.bytes > 0 && s.calls > 0);
        let last = known.clone().map(|s| s.window).max();
        let (samples, earlier): (Vec<&Sample>, Vec<&Sample>) = known.partition(|s| Some(s.window) == last);
        let most = |sample: &Sample| (bytes as f64 / sample.mean()).max(1.0);
        let all = samples.iter().fold(0_u64, |sum, s| sum.saturating_add(s.bytes));
        let mut left = bytes;
        let mut estimates = Vec::with_capacity(samples.len());
        for (i, sample) in samples.iter().enumerate() {
            let share = bytes as f64 / all as f64;
            let part = if i + 1 == samples.len() { left } else { ((sample.bytes as f64 * share) as u64).min(left) };
            left -= part;
            if part == 0 {
                continue;
            }
            // It took one at least.
            let calls = (part as f64 / sample.mean()).round().max(1.0);
            let error = if own { calls * sample.error() } else { most(sample) };
            estimates.push(Estimate {
                row: sample.row,
                calls: calls as u64,
                error: error.round() as u64,
                bytes: part,
                alike: sample.calls > 1 && sample.error() < 1e-9,
            });
        }
        if !own && !estimates.is_empty() {
            let none =
                |s: &&Sample| Estimate { row: s.row, calls: 0, error: most(s).round() as u64, bytes: 0, alike: false };
            estimates.extend(earlier.iter().map(none));
        }
        estimates
    }
}

#[derive(Debug, Default)]
struct Stream {
    /// Where the last call left it, as far as that is known.
    end: Option<u64>,
    /// What was done with it last.
    wrote: Option<bool>,
    /// Of reads, and of writes.
    mixes: [Mix; 2],
}

/// A call on a stream.
pub struct OnStream<'a> {
    pub row: &'a Row,
    /// Its number.
    pub number: u16,
    pub call: &'a Call,
    pub handle: i32,
    pub process_ix: i32,
    pub bytes: Option<i64>,
    /// It made the stream.
    pub opened: Option<Opened>,
}

/// How a stream was opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct Opened {
    /// Where it stands then, if it is known.
    pub stands: Option<u64>,
    /// It is only written to, or only read.
    pub writes: Option<bool>,
}

/// Bytes of which it is not known yet which function moved them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    pub subject: Subject,
    /// Before this, in ns.
    pub until: u64,
    sides: [bool; 2],
    pub bytes: u64,
}

/// The streams, and what is known of the calls of brief functions.
#[derive(Debug, Default)]
pub struct Demoted {
    rows: Vec<u16>,
    window: u32,
    /// By process and handle: a child has a copy of its own of its parent's.
    streams: HashMap<(i32, i32), Stream>,
    /// Of all streams.
    all: [Mix; 2],
    pending: Vec<Pending>,
}

impl Demoted {
    /// From now on calls of this row are not recorded. Where they were only summed up before, their last position is not known.
    pub fn demote(&mut self, row: u16, summed: bool) {
        if !self.rows.contains(&row) {
            self.rows.push(row);
        }
        if summed {
            self.streams.values_mut().for_each(|stream| stream.end = None);
        }
    }

    /// For a moment they are.
    pub fn sampled(&mut self) {
        self.window += 1;
    }

    /// A process is gone, and with it its streams.
    pub fn gone(&mut self, process_ix: i32) {
        self.streams.retain(|(process, _), _| *process != process_ix);
    }

    /// Calls of a brief function that were summed up.
    pub fn summed(&mut self, row: u16, writes: bool, f: &Figures) {
        if f.calls == 0 || f.bytes == 0 {
            return;
        }
        let mean = f.bytes as f64 / f.calls as f64;
        let square = |value: f64, n: u64| value * value * n as f64;
        let squares =
            f.sizes.iter().map(|(value, n)| square(*value as f64, *n)).sum::<f64>() + square(mean, f.other_sizes);
        let window = self.window;
        self.all[usize::from(writes)].add(Sample { row, window, calls: f.calls, bytes: f.bytes, squares });
    }

    /// Bytes that unrecorded calls moved on the stream before this call; `of`: their owner.
    pub fn call(&mut self, on: &OnStream<'_>, of: impl FnOnce() -> Subject) -> Vec<Estimate> {
        let key = (on.process_ix, on.handle);
        if let Some(opened) = on.opened {
            let stream = Stream { end: opened.stands, wrote: opened.writes, ..Stream::default() };
            self.streams.insert(key, stream);
            return Vec::new();
        }
        let position = |from: Src, value: Option<u64>| value.filter(|_| from == Src::StreamPos);
        let values = on.row.values();
        let is_tell = values.off == Src::Ret && on.row.kind == Kind::Other;
        let before = position(values.off, on.call.off)
            .or_else(|| position(values.len, on.call.len))
            .or(on.call.off.filter(|_| is_tell));
        let stream = self.streams.entry(key).or_default();
        let direction = match (on.row.kind, on.row.slow_path) {
            (Kind::Read, _) | (_, Some(Kind::Read)) => Some(false),
            (Kind::Write, _) | (_, Some(Kind::Write)) => Some(true),
            _ => None,
        };
        // Between reading and writing a stream is flushed or moved: what was done before is what was done last.
        let wrote = stream.wrote.or(direction);
        let between = match (stream.end, before) {
            (Some(end), Some(before)) => before.checked_sub(end).filter(|n| *n > 0),
            _ => None,
        };
        let bytes = on.bytes.and_then(|n| u64::try_from(n).ok());
        stream.wrote = direction.or(stream.wrote);
        let moves = matches!(on.row.kind, Kind::Read | Kind::Write);
        stream.end = match values.off {
            Src::StreamEnd => on.call.off,
            _ if moves => before.and_then(|at| at.checked_add(bytes.unwrap_or(0))),
            _ => before.or(stream.end),
        };
        let estimates = match between {
            Some(n) if !self.rows.is_empty() => self.estimate(on, wrote, n, of),
            _ => Vec::new(),
        };
        if let (true, true, Some(bytes), Some(stream)) = (moves, on.row.brief, bytes, self.streams.get_mut(&key)) {
            let side = usize::from(on.row.kind == Kind::Write);
            let squares = bytes as f64 * bytes as f64;
            let sample = Sample { row: on.number, window: self.window, calls: 1, bytes, squares };
            stream.mixes[side].add(sample);
            self.all[side].add(sample);
        }
        if on.row.role() == Role::Close {
            self.streams.remove(&key);
        }
        estimates
    }

    fn estimate(
        &mut self,
        on: &OnStream<'_>,
        wrote: Option<bool>,
        bytes: u64,
        of: impl FnOnce() -> Subject,
    ) -> Vec<Estimate> {
        let sides = [wrote != Some(true), wrote != Some(false)];
        let spread = |mixes: &[Mix; 2], own| {
            let of_sides = sides.iter().zip(mixes).filter(|(wanted, _)| **wanted);
            of_sides.map(|(_, mix)| mix.spread(bytes, own, &self.rows)).find(|estimates| !estimates.is_empty())
        };
        let own = self.streams.get(&(on.process_ix, on.handle)).and_then(|stream| spread(&stream.mixes, true));
        if let Some(estimates) = own.or_else(|| spread(&self.all, false)) {
            return estimates;
        }
        let (subject, until) = (of(), on.call.start);
        match self.pending.iter_mut().find(|p| p.subject == subject && p.sides == sides) {
            Some(pending) => {
                pending.bytes = pending.bytes.saturating_add(bytes);
                pending.until = until;
            }
            None => self.pending.push(Pending { subject, until, sides, bytes }),
        }
        Vec::new()
    }

    /// What of the bytes that were not known to be any function's are known to be by now; `last`: it is too late for more.
    pub fn settle(&mut self, last: bool) -> Vec<(Pending, Vec<Estimate>)> {
        let mut settled = Vec::new();
        for pending in std::mem::take(&mut self.pending) {
            let mixes = self.all.iter().zip(pending.sides).filter(|(_, wanted)| *wanted);
            let spread = mixes.map(|(mix, _)| mix.spread(pending.bytes, false, &self.rows)).find(|e| !e.is_empty());
            // Some of them it must have been.
            let any = || {
                let row = self.rows.first().filter(|_| last)?;
                Some(vec![Estimate { row: *row, calls: 1, error: pending.bytes, bytes: pending.bytes, alike: false }])
            };
            match spread.or_else(any) {
                Some(estimates) => settled.push((pending, estimates)),
                None => self.pending.push(pending),
            }
        }
        settled
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::correlate::testing::{Run, call, spec};
    use crate::event::Event;
    use crate::rows::{FileRollup, Row as Out};

    fn demote(run: &mut Run, time: u64, symbol: &str) {
        run.push(Event::Demoted { time, row: spec(symbol) });
    }

    fn on(seq: u32, start: u64) -> Call {
        Call { handle: Some(0x1000), ..call(0, seq, 0, start, start + 1) }
    }

    /// A byte is read, or written, where the stream stands.
    fn byte(run: &mut Run, symbol: &str, seq: u32, start: u64, at: u64) {
        run.call(symbol, Call { len: Some(1), got: Some(1), off: Some(at), ..on(seq, start) });
    }

    fn estimates(run: Run) -> Vec<(&'static str, i64, Option<i64>, i64)> {
        let out = run.finish().0;
        let rows = out.iter().filter_map(|r| if let Out::FileRollup(r) = r { Some(&**r) } else { None });
        rows.map(|r: &FileRollup| (r.op, r.calls, r.calls_error, r.bytes)).collect()
    }

    #[test]
    fn bytes_between_two_calls_are_those_of_demoted_functions() {
        let mut run = Run::new();
        for n in 0..10 {
            byte(&mut run, "fgetc", n, 10 + u64::from(n) * 10, u64::from(n));
        }
        demote(&mut run, 200, "fgetc");
        // Its buffer is empty twice, and it is closed in the middle of the third.
        run.call("_IO_file_underflow", Call { len: Some(4096), ..on(10, 300) });
        run.call("_IO_file_underflow", Call { len: Some(8192), ..on(11, 400) });
        run.call("fclose", Call { len: Some(9000), ..on(12, 500) });
        assert_eq!(estimates(run), [("fgetc", 8990, Some(0), 8990)]);
    }

    #[test]
    fn bytes_between_two_calls_belong_to_no_call_as_long_as_nothing_is_demoted() {
        let mut run = Run::new();
        byte(&mut run, "fgetc", 0, 10, 0);
        byte(&mut run, "fgetc", 1, 20, 77);
        assert_eq!(estimates(run), []);
    }

    #[test]
    fn a_seek_moves_nothing_and_a_byte_that_is_pushed_back_is_read_twice() {
        let mut run = Run::new();
        byte(&mut run, "fgetc", 0, 10, 0);
        demote(&mut run, 15, "fgetc");
        run.call("fseek", Call { len: Some(101), off: Some(50), ..on(1, 20) });
        run.call("ungetc", Call { len: Some(150), off: Some(149), ..on(2, 30) });
        run.call("fclose", Call { len: Some(150), ..on(3, 40) });
        assert_eq!(estimates(run), [("fgetc", 201, Some(201), 201)]);
    }

    #[test]
    fn calls_of_several_functions_share_what_was_moved_as_they_did_before() {
        let mut run = Run::new();
        let mut at = 0;
        for n in 0..4 {
            byte(&mut run, "fputc", 2 * n, u64::from(n) * 100 + 10, at);
            let record =
                Call { len: Some(7), got: Some(7), off: Some(at + 1), ..on(2 * n + 1, u64::from(n) * 100 + 20) };
            run.call("fwrite", record);
            at += 8;
        }
        demote(&mut run, 1000, "fputc");
        demote(&mut run, 1000, "fwrite");
        run.call("_IO_file_overflow", Call { len: Some(at + 800), ..on(8, 2000) });
        // In a window it is another mix: only the one of them.
        run.push(Event::Sampled { time: 3000 });
        byte(&mut run, "fputc", 9, 3010, at + 800);
        byte(&mut run, "fputc", 10, 3020, at + 801);
        run.call("_IO_file_overflow", Call { len: Some(at + 902), ..on(11, 4000) });
        let mut seen = estimates(run);
        seen.sort_unstable();
        assert_eq!(seen, [("fputc", 200, Some(0), 200), ("fwrite", 100, Some(0), 700)]);
    }

    #[test]
    fn where_no_call_on_the_stream_was_seen_all_could_be_of_any_function() {
        let mut run = Run::new();
        byte(&mut run, "fgetc", 0, 10, 0);
        run.call("fread", Call { len: Some(9), got: Some(9), off: Some(1), ..on(1, 20) });
        demote(&mut run, 30, "fgetc");
        demote(&mut run, 30, "fread");
        let other = |seq, start, at| Call { handle: Some(0x2000), len: Some(at), ..call(0, seq, 0, start, start + 1) };
        run.call("_IO_file_underflow", other(2, 40, 0));
        run.call("fclose", other(3, 50, 90));
        let mut seen = estimates(run);
        seen.sort_unstable();
        assert_eq!(seen, [("fgetc", 9, Some(90), 9), ("fread", 9, Some(10), 81)]);
    }

    #[test]
    fn a_function_that_the_last_window_lacks_may_have_been_called_on_a_stream_without_any_recorded_call() {
        let mut run = Run::new();
        byte(&mut run, "fputc", 0, 10, 0);
        demote(&mut run, 20, "fputc");
        demote(&mut run, 20, "fwrite");
        run.push(Event::Sampled { time: 30 });
        run.call("fwrite", Call { len: Some(10), got: Some(10), off: Some(1), ..on(1, 40) });
        run.call("fwrite", Call { len: Some(10), got: Some(10), off: Some(11), ..on(2, 50) });
        let other = |seq, start, at| Call { handle: Some(0x2000), len: Some(at), ..call(0, seq, 0, start, start + 1) };
        run.call("_IO_file_overflow", other(3, 60, 0));
        run.call("fclose", other(4, 70, 50));
        // On the stream that the window saw it is not likely.
        run.call("fclose", Call { len: Some(41), ..on(5, 80) });
        let mut seen = estimates(run);
        seen.sort_unstable();
        assert_eq!(seen, [("fputc", 0, Some(50), 0), ("fwrite", 7, Some(5), 70)]);
    }

    #[test]
    fn what_a_window_has_of_others_and_what_moved_nothing_does_not_end_a_sample() {
        let mut run = Run::new();
        byte(&mut run, "fgetc", 0, 10, 0);
        demote(&mut run, 20, "fgetc");
        run.push(Event::Sampled { time: 30 });
        run.call("fread", Call { len: Some(9), got: Some(9), off: Some(1), ..on(1, 40) });
        run.call("fgetc", Call { len: Some(1), got: Some(0), off: Some(10), ..on(2, 50) });
        let other = |seq, start, at| Call { handle: Some(0x2000), len: Some(at), ..call(0, seq, 0, start, start + 1) };
        run.call("_IO_file_underflow", other(3, 60, 0));
        run.call("fclose", other(4, 70, 90));
        assert_eq!(estimates(run), [("fgetc", 90, Some(90), 90)]);
    }

    #[test]
    fn sums_of_calls_give_the_mix_when_they_come() {
        let mut run = Run::summing();
        // Their positions are not known: what moved before the first known position is not counted.
        run.call("fopen", Call { handle: Some(0x1000), ..on(0, 10) });
        demote(&mut run, 20, "fputc");
        run.call("_IO_file_overflow", Call { len: Some(4096), ..on(1, 30) });
        run.call("_IO_file_overflow", Call { len: Some(8192), ..on(2, 40) });
        let figures = Figures { calls: 50, bytes: 50, sizes: vec![(1, 50)], ..Figures::default() };
        let sum = crate::event::Sum {
            time: 60,
            from: 0,
            process: Some((0, None)),
            row: u32::from(spec("fputc")),
            about: crate::event::About::Nothing,
            rest: false,
            figures,
        };
        run.push(Event::Sum(Box::new(sum)));
        run.call("fclose", Call { len: Some(8200), ..on(3, 70) });
        let puts: Vec<_> = estimates(run).into_iter().filter(|row| row.0 == "fputc").collect();
        let [calls, bytes] = [puts.iter().map(|p| p.1).sum::<i64>(), puts.iter().map(|p| p.3).sum()];
        assert_eq!((calls, bytes), (50 + 4104, 50 + 4104));
    }
}
