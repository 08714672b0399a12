//! Why a table has no rows, in a sentence.

use crate::summary::view::{Screen, Snapshot, Window};
use crate::tui::screens::about;
use crate::tui::state::State;
use crate::vocabulary::Layer;

/// Why there is no single call, and nothing of what calls what.
pub fn single_calls(snapshot: &Snapshot, state: &State) -> String {
    if snapshot.run.summed && snapshot.loading.is_none() {
        return "calls are summed up: only those of --detail are here (all: --aggregate=no)".into();
    }
    calls(snapshot, state)
}

/// Why there are no figures of calls.
pub fn calls(snapshot: &Snapshot, state: &State) -> String {
    let part = |w: Window| w.from_ns > snapshot.kept.from_ns || w.to_ns < snapshot.kept.to_ns;
    if let Some(loading) = &snapshot.loading {
        return format!("reading {} ...", loading.what);
    }
    match (state.filter.is_some(), state.window.is_some_and(part)) {
        (true, true) => return "no call in this window fulfils the filter (/ changes it, = shows everything)".into(),
        (true, false) => return "no call fulfils the filter (/ changes it)".into(),
        (false, true) => return "no call began in this window (= shows everything)".into(),
        (false, false) => {}
    }
    if state.active_only {
        return "no row has calls (o shows the others)".into();
    }
    let layers = &snapshot.overview.layers;
    if !layers.is_empty() && layers.iter().all(|l| !l.covered) {
        return format!("not covered: no layer has probes (see {}, coverage)", about(Screen::Coverage).key);
    }
    match (snapshot.run.live, snapshot.run.ended) {
        (true, false) => {
            format!("no call has returned yet (see {}, in flight)", about(Screen::InFlight).key)
        }
        (true, true) => "no call returned before the trace ended".into(),
        (false, _) => "the dataset has no calls".into(),
    }
}

/// Why there are no requests to devices.
pub fn requests(snapshot: &Snapshot) -> String {
    let block = snapshot.overview.layers.iter().find(|l| l.layer == Some(Layer::Block));
    let text = match block {
        _ if snapshot.loading.is_some() => "reading the requests ...",
        None => "not traced: the layer block is not among --layers",
        Some(block) if !block.covered => "not covered: no probe sees requests",
        Some(_) if snapshot.run.summed && !snapshot.run.live => {
            "calls are summed up (--aggregate): the dataset has the sums of block, and no single request"
        }
        Some(_) if snapshot.run.live && !snapshot.run.ended => "no request to a device yet: pages wait in memory",
        Some(_) => "no request to a device: what was written may still have waited in memory",
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::view::{LayerRow, Loading, Overview, RunHeader, Snapshot};
    use crate::tui::testing::drawn;
    use crate::tui::theme::Theme;
    use std::sync::Arc;

    fn none(run: RunHeader) -> Snapshot {
        let layers = vec![LayerRow { layer: Some(Layer::Syscall), covered: true, ..LayerRow::default() }];
        let kept = Window { from_ns: 0, to_ns: 1_000_000_000 };
        Snapshot {
            run: Arc::new(run),
            overview: Arc::new(Overview { layers, ..Overview::default() }),
            kept,
            ..Snapshot::default()
        }
    }

    fn shown(snapshot: &Snapshot, screen: Screen, change: impl Fn(&mut State)) -> String {
        let mut state = State::new(Theme::default());
        state.screen = screen;
        change(&mut state);
        drawn(snapshot, &mut state, 120, 40)
    }

    const LIVE: RunHeader = RunHeader {
        live: true,
        title: String::new(),
        host: String::new(),
        kernel: String::new(),
        t0_wall_ns: None,
        ended: false,
        summed: false,
    };

    #[test]
    fn in_aggregate_mode_it_is_the_mode_that_leaves_tree_and_events_empty() {
        let summed = none(RunHeader { summed: true, ..LIVE });
        for screen in [Screen::Tree, Screen::Events] {
            let text = shown(&summed, screen, |_| {});
            assert!(
                text.contains("calls are summed up: only those of --detail") && !text.contains("returned yet"),
                "{text}"
            );
        }
        let flame = shown(&summed, Screen::Tree, |s| s.tree = crate::tui::state::TreeView::Flame);
        assert!(flame.contains("calls are summed up: only those of --detail"), "{flame}");
        // Sums are there in this mode: that there are none has another reason.
        assert!(shown(&summed, Screen::Processes, |_| {}).contains("no call has returned yet (see 6"));
    }

    #[test]
    fn the_reason_is_the_one_that_the_user_can_change_first() {
        let live = none(LIVE);
        let mut cases = vec![
            (shown(&live, Screen::Events, |_| {}), "no call has returned yet (see 6, in flight)"),
            (shown(&live, Screen::Files, |s| s.active_only = true), "no row has calls (o shows the others)"),
            (
                shown(&live, Screen::Tree, |s| s.window = Some(Window { from_ns: 5, to_ns: 9 })),
                "no call began in this window",
            ),
            (shown(&none(RunHeader { ended: true, ..LIVE }), Screen::Latency, |_| {}), "before the trace ended"),
            (shown(&none(RunHeader::default()), Screen::Files, |_| {}), "the dataset has no calls"),
        ];
        let filter = crate::summary::filter::Filter::parse("layer=hdf5").map(Arc::new).ok();
        cases.push((shown(&live, Screen::Tree, |s| s.filter.clone_from(&filter)), "no call fulfils the filter"));
        let mut bare = none(LIVE);
        bare.overview = Arc::new(Overview {
            layers: vec![LayerRow { covered: false, ..LayerRow::default() }],
            ..Overview::default()
        });
        cases.push((shown(&bare, Screen::Events, |_| {}), "not covered: no layer has probes (see 9, coverage)"));
        let mut reading = none(RunHeader { summed: true, ..RunHeader::default() });
        reading.loading = Some(Loading { what: "calls".into(), done: 0.5 });
        cases.push((shown(&reading, Screen::Events, |_| {}), "reading calls ..."));
        for (text, expected) in cases {
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
    }
}
