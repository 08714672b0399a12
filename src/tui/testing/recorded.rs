//! Every screen over a recorded dataset (`tests/fixtures`), key by key and through the same path as `replay`.

use std::path::Path;

use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};
use ratatui::style::Color;

use crate::replay::Replay;
use crate::tui::screens::SCREENS;
use crate::tui::testing::text_of;
use crate::tui::{Dashboard, Key, Palette, Theme};

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

/// What is shown after some keys, when everything has been read.
fn shown(keys: &str, theme: Theme, size: (u16, u16)) -> Buffer {
    shown_of("mpi_hdf5", keys, theme, size)
}

fn shown_of(fixture: &str, keys: &str, theme: Theme, (width, height): (u16, u16)) -> Buffer {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(fixture);
    let mut replay = Replay::open(&dir).unwrap();
    let size = Size { width, height };
    let mut dashboard = Dashboard::new(&mut replay, theme, None);
    let settled = |dashboard: &mut Dashboard, replay: &mut Replay| {
        while dashboard.snapshot().loading.is_some() {
            std::thread::sleep(std::time::Duration::from_millis(5));
            dashboard.look(replay);
        }
    };
    settled(&mut dashboard, &mut replay);
    for c in keys.chars() {
        let key = match c {
            '\n' => Key::Enter,
            '\t' => Key::Tab,
            c => Key::Char(c),
        };
        assert!(dashboard.key(key, &mut replay, size));
        settled(&mut dashboard, &mut replay);
    }
    let mut buffer = Buffer::empty(Rect::from(size));
    dashboard.draw(&mut buffer);
    // What is selected is known after the first frame.
    buffer.reset();
    dashboard.draw(&mut buffer);
    buffer
}

fn frame(name: &str, keys: &str, size: (u16, u16)) {
    let text = text_of(&shown(keys, Theme::default(), size));
    insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), text, keys);
}

macro_rules! screens {
    ($($name:ident: $keys:literal),+ $(,)?) => {$(
        #[test]
        fn $name() {
            for size in SIZES {
                frame(stringify!($name), $keys, size);
            }
        }
    )+};
}

screens! {
    overview: "1",
    processes: "2",
    files: "3",
    tree: "4",
    latency: "5",
    in_flight: "6",
    events: "7",
    devices: "8",
    coverage: "9",
    findings: "0",
}

/// What the screens lead to, at the size in which all of it is seen.
macro_rules! deeper {
    ($($name:ident: $keys:literal),+ $(,)?) => {$(
        #[test]
        fn $name() {
            frame(stringify!($name), $keys, SIZES[1]);
        }
    )+};
}

deeper! {
    one_file: "3/file~*demo.h5\n\n",
    slowest_calls: "4\n",
    one_call: "4\n\t\n",
    flame: "4f",
    functions: "4i",
    latency_of_a_function: "5\n",
    sizes: "5b",
    filtered: "1/layer=hdf5 and kind=write\n",
    a_window: "1z++}",
    devices_in_a_window: "8z++}",
    help: "3?",
    threads: "2p",
    ranks: "2pp",
    processes_below_each_other: "2t",
    calls_of_a_process: "2f",
    failed_calls_of_a_process: "2f/errno!=0\n",
    sql_of_files: "3S",
    sql_of_a_node: "4/layer=hdf5 and dur>1ms\njy",
}

#[test]
fn a_dataset_of_sums_names_the_mode_where_single_calls_would_be() {
    for (keys, screen) in [("4", "tree"), ("4f", "flame"), ("4i", "functions"), ("7", "events")] {
        let text = text_of(&shown_of("aggregate", keys, Theme::default(), SIZES[0]));
        assert!(
            text.contains("calls are summed up: only those of --detail are here (all: --aggregate=no)"),
            "{screen}: {text}"
        );
    }
    let devices = text_of(&shown_of("aggregate", "8", Theme::default(), SIZES[1]));
    assert!(devices.contains("not traced: the layer block is not among --layers"), "{devices}");
}

#[test]
fn colours_are_those_that_every_terminal_has() {
    let sixteen = |c: Color| !matches!(c, Color::Rgb(..) | Color::Indexed(_));
    for screen in SCREENS.iter().map(|about| about.key) {
        let buffer = shown(&screen.to_string(), Theme { palette: Palette::Sixteen, ascii: false }, SIZES[1]);
        assert!(buffer.content.iter().all(|c| sixteen(c.fg) && sixteen(c.bg)), "{screen}");
        assert!(buffer.content.iter().any(|c| c.fg != Color::Reset), "{screen}");
    }
}

#[test]
fn without_colours_and_unicode_there_are_neither() {
    for screen in SCREENS.iter().map(|about| about.key) {
        let buffer = shown(&screen.to_string(), Theme { palette: Palette::Mono, ascii: true }, SIZES[1]);
        assert!(buffer.content.iter().all(|c| c.fg == Color::Reset && c.bg == Color::Reset), "{screen}");
        let text = text_of(&buffer);
        assert!(text.is_ascii(), "{screen}: {text}");
    }
}
