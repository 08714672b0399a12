//! The correlator's invariants, on random call trees, interleavings and losses.

use std::collections::{BTreeMap, HashMap, HashSet};

use proptest::prelude::*;

use crate::catalog::{self, Async};
use crate::correlate::testing::{call, key, spec};
use crate::correlate::{Config, Correlator};
use crate::event::{Cached, Call, DeferredCall, Enter, Event, Wanted};
use crate::rows::{Row, SEQ_BITS, Span, span_id};
use crate::vocabulary::{Kind, Layer, flag};
use std::sync::LazyLock;

const PHASES: u16 = 10;

/// The built-in rows whose spans are written always and as they are, and behind them some phases.
static SPECS: LazyLock<Vec<catalog::Row>> = LazyLock::new(|| {
    let all = crate::correlate::testing::specs();
    let phase = all[usize::from(spec("outer"))];
    let operation = |r: &catalog::Row| matches!(r.family, catalog::Family::Uring | catalog::Family::Aio);
    let whole =
        all.into_iter().filter(|r| !r.is_phase() && !r.inside && r.asynchronous() == Async::No && !operation(r));
    whole.chain(std::iter::repeat_n(phase, usize::from(PHASES))).collect()
});

fn specs() -> Vec<catalog::Row> {
    SPECS.clone()
}

/// Rows that are no phases.
fn calls() -> u16 {
    SPECS.len() as u16 - PHASES
}

fn is_phase(call: &Call) -> bool {
    call.spec >= calls()
}

fn enter(call: &Call) -> Event {
    let Call { spec, thread, seq, depth, start, cpu, .. } = *call;
    Event::Enter(Enter { spec, thread, seq, depth, start, cpu })
}

/// The events of these calls: each call, and the beginning of each phase. The beginnings at `lost` are missing.
fn events(calls: &[Call], lost: &[bool]) -> Vec<Event> {
    let begins = calls.iter().enumerate().filter(|(i, c)| is_phase(c) && !lost.get(*i).copied().unwrap_or(false));
    begins.map(|(_, c)| enter(c)).chain(calls.iter().copied().map(Event::Call)).collect()
}

/// How a thread's next event differs from its last one: time passes, then a call begins or one ends.
type Step = (u64, bool, u16);

/// Plays steps as well-nested calls; the second value is the true parent of each.
///
/// Calls may take no time and may begin or end together with their parent, but the clock ticks between one
/// call and the next: it counts nanoseconds, and a probe takes hundreds.
fn play(thread: u32, steps: &[Step]) -> Vec<(Call, Option<u32>)> {
    let (mut now, mut open, mut done): (u64, Vec<Call>, Vec<_>) = (100, Vec::new(), Vec::new());
    let (mut seq, mut ended) = (0, false);
    let mut end = |open: &mut Vec<Call>, now: u64| {
        if let Some(mut c) = open.pop() {
            c.dur = now - c.start;
            done.push((c, open.last().map(|p| p.seq)));
        }
    };
    for (wait, enter, spec) in steps {
        now += wait;
        let enter = *enter && open.len() < 12;
        if enter {
            now += u64::from(ended);
            seq += 1;
            open.push(busy(Call { spec: *spec, ..call(thread, seq, open.len() as u8, now, now) }));
        } else {
            end(&mut open, now);
        }
        ended = !enter;
    }
    while !open.is_empty() {
        end(&mut open, now);
    }
    done
}

/// Gives a call a handle, a file and bytes out of a few, so that calls open, use, close and overwrite each other's.
fn busy(call: Call) -> Call {
    let (n, few) = (u64::from(call.seq), u64::from(call.spec));
    let file = (few % 3 == 0).then(|| key(n % 4));
    Call { handle: Some(n % 5), off: Some(few % 5), len: Some(n), got: Some(n), file, ..call }
}

fn programs() -> impl Strategy<Value = Vec<Vec<Step>>> {
    let step = (0_u64..4, prop::bool::weighted(0.55), prop_oneof![3 => 0..calls(), 1 => calls()..calls() + PHASES]);
    prop::collection::vec(prop::collection::vec(step, 0..60), 1..4)
}

fn play_all(programs: &[Vec<Step>]) -> Vec<(Call, Option<u32>)> {
    programs.iter().enumerate().flat_map(|(thread, steps)| play(thread as u32, steps)).collect()
}

/// Pushes the events in the order of `shuffle`, in batches: before each, the watermark moves as far as it truly may.
fn run(events: &[Event], shuffle: &[u64], batch: usize, max_pending: usize) -> Vec<Row> {
    run_with(events, shuffle, batch, Config { max_pending, specs: specs(), ..Config::default() })
}

fn run_with(events: &[Event], shuffle: &[u64], batch: usize, config: Config) -> Vec<Row> {
    let mut correlator = Correlator::new(config);
    let mut out = Vec::new();
    let mut order: Vec<usize> = (0..events.len()).collect();
    order.sort_by_key(|i| shuffle.get(*i).copied().unwrap_or(0));
    for (n, at) in order.iter().enumerate() {
        correlator.push(events[*at].clone());
        if n % batch == 0 {
            let mark = order[n + 1..].iter().map(|i| events[*i].time()).min().unwrap_or(u64::MAX);
            correlator.advance(mark, &mut out);
        }
    }
    correlator.finish(1 << 40, &mut out);
    out
}

fn spans(rows: &[Row]) -> BTreeMap<i64, Span> {
    let mut all = BTreeMap::new();
    for row in rows {
        if let Row::Span(span) = row {
            assert!(all.insert(span.span_id, (**span).clone()).is_none(), "span {} twice", span.span_id);
        }
    }
    all
}

fn check_shape(all: &BTreeMap<i64, Span>) {
    let mut own: HashMap<i64, i64> = HashMap::new();
    for span in all.values() {
        *own.entry(span.root_id).or_default() += span.self_ns;
        assert!(span.self_ns >= 0, "{span:?}");
        let Some(parent) = span.parent_id else {
            assert_eq!((span.root_id, span.depth), (span.span_id, 0), "{span:?}");
            assert!(span.layer_top);
            continue;
        };
        let parent = &all[&parent];
        assert!(parent.start_ns <= span.start_ns, "{span:?} in {parent:?}");
        assert!(span.start_ns + span.dur_ns <= parent.start_ns + parent.dur_ns, "{span:?} in {parent:?}");
        assert_eq!((span.root_id, span.depth), (parent.root_id, parent.depth + 1));
        let mut above = Some(parent);
        let mut same_layer = false;
        while let Some(span_above) = above {
            same_layer |= span_above.layer == span.layer;
            above = span_above.parent_id.map(|id| &all[&id]);
        }
        assert_eq!(span.layer_top, !same_layer, "{span:?}");
    }
    for (root, sum) in own {
        assert_eq!(sum, all[&root].dur_ns, "self times of tree {root}");
    }
}

/// The calls of a thread are written in the order in which they began, but for the phases that only phases enclose.
fn check_order(rows: &[Row]) {
    let all = spans(rows);
    let phase = |s: &Span| s.layer == Layer::App && s.kind == Kind::Other;
    let outer = |s: &Span| std::iter::successors(Some(s), |s| s.parent_id.map(|id| &all[&id])).all(phase);
    let mut last: HashMap<i64, i64> = HashMap::new();
    for row in rows {
        if let Row::Span(span) = row
            && !outer(span)
        {
            let before = last.insert(span.span_id >> SEQ_BITS, span.span_id);
            assert!(before < Some(span.span_id), "{before:?} before {}", span.span_id);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Without loss every call comes out once, with its true parent.
    #[test]
    fn trees_are_rebuilt_exactly(programs in programs(), shuffle in prop::collection::vec(0_u64..1000, 200), batch in 1_usize..9) {
        let truth = play_all(&programs);
        let calls: Vec<Call> = truth.iter().map(|t| t.0).collect();
        let rows = run(&events(&calls, &[]), &shuffle, batch, usize::MAX);
        check_order(&rows);
        let got = spans(&rows);
        check_shape(&got);
        prop_assert_eq!(got.len(), calls.len());
        for (call, parent) in &truth {
            let span = &got[&span_id(call.thread, call.seq)];
            prop_assert_eq!(span.parent_id, parent.map(|p| span_id(call.thread, p)));
            prop_assert_eq!(span.flags & flag::INFERRED_PARENT, 0);
            prop_assert_eq!(i32::from(span.depth), i32::from(call.depth));
        }
    }

    /// Calls that are summed up and sent when the outermost call around them ends get the same parents as ones that
    /// are sent at once.
    #[test]
    fn calls_that_are_sent_late_get_the_same_parents(programs in programs(), kept in prop::collection::vec(prop::bool::weighted(0.6), 200), shuffle in prop::collection::vec(0_u64..1000, 200), batch in 1_usize..9) {
        let mut truth = play_all(&programs);
        for (call, _) in &mut truth {
            call.spec %= calls();
            call.wanted = Wanted::Itself;
        }
        let of = |thread: u32, seq: u32| truth.iter().find(|(c, _)| (c.thread, c.seq) == (thread, seq)).unwrap();
        let outermost = |call: &Call| {
            let (mut call, mut parent) = *of(call.thread, call.seq);
            while let Some(seq) = parent {
                (call, parent) = *of(call.thread, seq);
            }
            call
        };
        let cached = Cached { miss: None, ahead: None, throttled: 0, locked: 0 };
        let inner = |call: &Call| {
            truth.iter().filter(|(c, p)| (c.thread, *p) == (call.thread, Some(call.seq))).map(|(c, _)| c.dur).sum()
        };
        let events: Vec<Event> = truth.iter().enumerate().map(|(i, (call, _))| {
            if !kept.get(i).copied().unwrap_or(false) {
                return Event::Call(*call);
            }
            let outermost = outermost(call);
            let sent = outermost.start + outermost.dur;
            Event::Deferred(Box::new(DeferredCall { call: *call, sent, inner: inner(call), cached }))
        }).collect();
        let config = || Config { specs: specs(), aggregate: true, ..Config::default() };
        let got = spans(&run_with(&events, &shuffle, batch, config()));
        check_shape(&got);
        prop_assert_eq!(got.len(), truth.len());
        for (call, parent) in &truth {
            let span = &got[&span_id(call.thread, call.seq)];
            prop_assert_eq!(span.parent_id, parent.map(|p| span_id(call.thread, p)));
            prop_assert_eq!(span.flags & (flag::INFERRED_PARENT | flag::SUMMED), flag::SUMMED);
        }
    }

    /// With loss the surviving calls come out once, each below its nearest surviving ancestor. Lost are calls, and
    /// beginnings of phases; the end of a phase comes before its thread goes on, if its beginning was sent.
    #[test]
    fn loss_only_removes(programs in programs(), lost in prop::collection::vec(prop::bool::weighted(0.2), 200), not_sent in prop::collection::vec(prop::bool::weighted(0.3), 200), shuffle in prop::collection::vec(0_u64..1000, 200), batch in 1_usize..9) {
        let truth = play_all(&programs);
        let at = |of: &[bool], i: usize| of.get(i).copied().unwrap_or(false);
        let is_lost = |i: usize| at(&lost, i) && (!is_phase(&truth[i].0) || at(&not_sent, i));
        let parents: HashMap<(u32, u32), Option<u32>> = truth.iter().map(|(c, p)| ((c.thread, c.seq), *p)).collect();
        let (calls, not_sent): (Vec<Call>, Vec<bool>) =
            truth.iter().enumerate().filter(|(i, _)| !is_lost(*i)).map(|(i, t)| (t.0, at(&not_sent, i))).unzip();
        let alive: HashSet<(u32, u32)> = calls.iter().map(|c| (c.thread, c.seq)).collect();
        let got = spans(&run(&events(&calls, &not_sent), &shuffle, batch, usize::MAX));
        check_shape(&got);
        prop_assert_eq!(got.len(), calls.len());
        for call in &calls {
            let true_parent = parents[&(call.thread, call.seq)];
            let mut nearest = true_parent;
            while let Some(seq) = nearest.filter(|seq| !alive.contains(&(call.thread, *seq))) {
                nearest = parents[&(call.thread, seq)];
            }
            let span = &got[&span_id(call.thread, call.seq)];
            prop_assert_eq!(span.parent_id, nearest.map(|p| span_id(call.thread, p)));
            prop_assert_eq!(span.flags & flag::INFERRED_PARENT != 0, nearest != true_parent);
        }
    }

    /// Batches and arrival order change no row, whatever is lost and however little may wait.
    #[test]
    fn arrival_changes_nothing(programs in programs(), lost in prop::collection::vec(prop::bool::weighted(0.1), 200), shuffles in prop::collection::vec(prop::collection::vec(0_u64..1000, 200), 2), batches in (1_usize..9, 1_usize..50), max_pending in 1_usize..40) {
        let calls: Vec<Call> = play_all(&programs).into_iter().enumerate()
            .filter(|(i, (c, _))| is_phase(c) || !lost.get(*i).copied().unwrap_or(false)).map(|(_, t)| t.0).collect();
        let events = events(&calls, &lost);
        let one = run(&events, &shuffles[0], batches.0, max_pending);
        let two = run(&events, &shuffles[1], batches.1, max_pending);
        check_shape(&spans(&one));
        prop_assert_eq!(spans(&one).len(), calls.len());
        prop_assert_eq!(lasting(&one), lasting(&two));
    }

    /// What only phases enclose is written when it ends, not when they do.
    #[test]
    fn phases_hold_nothing_back(steps in programs().prop_map(|mut p| p.swap_remove(0))) {
        let truth = play(0, &steps);
        let phases: HashSet<u32> = truth.iter().filter(|(c, _)| is_phase(c)).map(|(c, _)| c.seq).collect();
        let parents: HashMap<u32, Option<u32>> = truth.iter().map(|(c, p)| (c.seq, *p)).collect();
        let outermost = |seq: u32| {
            std::iter::successors(parents[&seq], |p| parents[p]).all(|above| phases.contains(&above))
        };
        let mut correlator = Correlator::new(Config { max_pending: 0, specs: specs(), ..Config::default() });
        let calls: Vec<Call> = truth.iter().map(|t| t.0).filter(|c| outermost(c.seq)).collect();
        let mut events = events(&calls, &[]);
        events.sort_by_key(Event::time);
        let (mut out, mut ended) = (Vec::new(), 0);
        for together in events.chunk_by(|a, b| a.time() == b.time()) {
            ended += together.iter().filter(|e| matches!(e, Event::Call(_))).count();
            for event in together {
                correlator.push(event.clone());
            }
            correlator.advance(together[0].time() + 1, &mut out);
            prop_assert_eq!(out.iter().filter(|r| matches!(r, Row::Span(_))).count(), ended);
        }
        let lost = out.iter().find(|r| matches!(r, Row::Loss(l) if l.place != "thread_unknown"));
        prop_assert_eq!(lost, None);
        check_shape(&spans(&out));
    }

    /// Anything at all may arrive: nothing panics, every call comes out once.
    #[test]
    fn nonsense_is_survived(raw in prop::collection::vec((any::<u16>(), 0_u32..3, 0_u32..40, any::<u8>(), any::<u64>(), any::<u64>(), any::<i32>()), 0..60), t0 in any::<u64>(), marks in prop::collection::vec(any::<u64>(), 5)) {
        let mut correlator = Correlator::new(Config { t0, max_pending: 8, specs: specs(), ..Config::default() });
        let mut out = Vec::new();
        for (n, (spec, thread, seq, depth, start, dur, status)) in raw.iter().enumerate() {
            let odd = Call { spec: *spec, depth: depth % 4, dur: *dur, status: *status, handle: Some(*dur), len: Some(*start), got: Some(*dur), off: Some(*start), ..call(*thread, *seq, 0, *start, *start) };
            if status % 3 == 0 {
                correlator.push(enter(&odd));
            }
            correlator.push(Event::Call(odd));
            if n % 12 == 0 {
                correlator.advance(marks[n / 12], &mut out);
            }
        }
        correlator.finish(0, &mut out);
        // Phases that no call ends are written as unfinished.
        let begun = raw.iter().filter(|r| r.0 % (calls() + PHASES) >= calls() && r.6 % 3 == 0).count();
        let written = out.iter().filter(|r| matches!(r, Row::Span(_))).count();
        prop_assert!((raw.len()..=raw.len() + begun).contains(&written), "{} of {} and {}", written, raw.len(), begun);
    }
}

/// The rows in a fixed order, without those that are sums and may be split differently.
fn lasting(rows: &[Row]) -> Vec<String> {
    let sum = |r: &&Row| matches!(r, Row::Rollup(_) | Row::Hist(_) | Row::Loss(_) | Row::Metric(_));
    let kept = rows.iter().filter(|r| !sum(r));
    let mut text: Vec<String> = kept.map(|r| format!("{r:?}")).collect();
    text.sort();
    text
}
