//! Every screen over figures beyond all bounds, as the bytes of a damaged dataset may give them: drawn at any size, without a panic.

#[path = "../../../tests/common/synthetic/extreme.rs"]
mod rows;
#[path = "../../../tests/common/synthetic/trace.rs"]
#[allow(dead_code, reason = "shared: every test uses its part")]
mod trace;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};

use crate::export::{DatasetWriter, Options, VIEWS};
use crate::replay::Replay;
use crate::tui::screens::SCREENS;
use crate::tui::{Dashboard, Key, Palette, Theme};

const SIZES: [(u16, u16); 7] = [(1, 1), (3, 40), (40, 10), (60, 12), (81, 25), (200, 60), (400, 120)];

/// One after the other, on every screen: what is selected, what is in it, other units, orders and forms, windows of time.
const KEYS: &str =
    "\njd\x1bG\x1bslI\n\x1bubfipto?\x1bS\x1b\te\tg\nzzm++}}{[]-=:9223372036854775807s\n:4294967295:0\n:0\n-/dur>1ms\n";

#[test]
fn numbers_beyond_all_bounds_are_drawn() {
    let mut failed = Vec::new();
    for aggregate in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        let options = Options { path: &path, host: "vm", force: false, owner: None, views: VIEWS };
        let mut writer = DatasetWriter::create(options).unwrap();
        for row in rows::rows(aggregate) {
            writer.push(row).unwrap();
        }
        writer.finish().unwrap();
        for screen in SCREENS.iter().map(|about| about.key) {
            let mut replay = Replay::open(&path).unwrap();
            let mut dashboard = Dashboard::new(
                &mut replay,
                Theme { palette: if aggregate { Palette::Mono } else { Palette::Dark }, ascii: aggregate },
                None,
            );
            let mut keys = String::new();
            for c in std::iter::once(screen).chain(KEYS.chars()) {
                keys.push(c);
                let key = match c {
                    '\n' => Key::Enter,
                    '\t' => Key::Tab,
                    '\x1b' => Key::Esc,
                    c => Key::Char(c),
                };
                let mut pressed = || {
                    let goes_on = dashboard.key(key, &mut replay, Size { width: 80, height: 24 });
                    let limit = Instant::now() + Duration::from_secs(30);
                    while dashboard.snapshot().loading.is_some() {
                        assert!(Instant::now() < limit, "it is not read to its end");
                        std::thread::sleep(Duration::from_millis(1));
                        dashboard.look(&mut replay);
                    }
                    for (width, height) in SIZES {
                        dashboard.draw(&mut Buffer::empty(Rect::new(0, 0, width, height)));
                    }
                    goes_on
                };
                if !catch_unwind(AssertUnwindSafe(&mut pressed)).is_ok_and(|goes_on| goes_on) {
                    failed.push((aggregate, keys.clone()));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{} times, the first after {:?}", failed.len(), failed[0]);
}
