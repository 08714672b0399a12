//! Measures the dashboard over a large dataset, which is a real one again and again: `cargo run --release --example screens`.
//! Prints how long it takes to open, from a key to its frame and to draw each screen, and the most memory in use.

#[path = "large/repeat.rs"]
mod repeat;

use anyhow::{Context as _, Result};
use iotrace_bpf::replay::Replay;
use iotrace_bpf::tui::{Dashboard, Key, Last, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SIZE: Size = Size { width: 200, height: 60 };
/// What is typed, and what it shows.
const KEYS: [(&str, &str); 16] = [
    ("1", "overview"),
    ("2", "processes"),
    ("3", "files"),
    ("\n", "one file"),
    ("4", "call tree"),
    ("*", "call tree, all open"),
    ("i", "functions"),
    ("i\n", "slowest calls"),
    ("\t\n", "one call"),
    ("5", "latency"),
    ("6", "in flight"),
    ("7", "events"),
    ("8", "devices"),
    ("9", "coverage"),
    ("4/op=H5Dwrite\n", "call tree, filtered"),
    ("=/\u{15}\nz++", "call tree, in a window"),
];

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let spans: u64 = args.next().map_or(Ok(10_000_000), |n| n.parse()).context("the number of calls")?;
    let dir = args.next().map_or_else(|| std::env::temp_dir().join(format!("screens-{spans}.iotrace")), PathBuf::from);
    if !dir.exists() {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mpi_hdf5");
        let begun = Instant::now();
        repeat::repeat(&from, spans, 1, &dir)?;
        println!("{} written in {:.1} s", dir.display(), begun.elapsed().as_secs_f64());
    }
    let begun = Instant::now();
    let mut replay = Replay::open(&dir)?;
    let opened = begun.elapsed();
    let mut dashboard = Dashboard::new(&mut replay, Theme::default(), None);
    dashboard.draw(&mut Buffer::empty(Rect::from(SIZE)));
    println!("open {}, first frame after {}", ms(opened), ms(begun.elapsed()));
    let mut while_reading = Last::default();
    let mut longest = Duration::ZERO;
    for key in ('1'..='9').cycle() {
        if dashboard.snapshot().loading.is_none() {
            break;
        }
        let took = typed(&mut dashboard, &mut replay, &key.to_string());
        while_reading.add(took);
        longest = longest.max(took);
        std::thread::sleep(Duration::from_millis(50));
    }
    println!("all calls read after {:.1} s", begun.elapsed().as_secs_f64());
    if let Some((p50, p95)) = while_reading.figures() {
        println!("key to frame while reading: p50 {} p95 {} max {}", ms(p50), ms(p95), ms(longest));
    }
    println!("{:<24} {:>12} {:>12} {:>12} {:>12}", "screen", "key to frame", "all read", "drawing p50", "p95");
    for (keys, screen) in KEYS {
        let begun = Instant::now();
        let frame = typed(&mut dashboard, &mut replay, keys);
        while dashboard.snapshot().loading.is_some() {
            std::thread::sleep(Duration::from_millis(1));
            dashboard.look(&mut replay);
        }
        let complete = begun.elapsed();
        let mut drawing = Last::default();
        for _ in 0..200 {
            let mut buffer = Buffer::empty(Rect::from(SIZE));
            let begun = Instant::now();
            dashboard.draw(&mut buffer);
            drawing.add(begun.elapsed());
        }
        let (p50, p95) = drawing.figures().unwrap_or_default();
        println!("{screen:<24} {:>12} {:>12} {:>12} {:>12}", ms(frame), ms(complete), ms(p50), ms(p95));
    }
    let status = std::fs::read_to_string("/proc/self/status")?;
    let most = status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or_default();
    println!("most memory: {}", most.trim_start_matches("VmHWM:").trim());
    Ok(())
}

fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

/// The longest time from a key to its frame.
fn typed(dashboard: &mut Dashboard, replay: &mut Replay, keys: &str) -> Duration {
    let mut longest = Duration::ZERO;
    for c in keys.chars() {
        let key = match c {
            '\n' => Key::Enter,
            '\t' => Key::Tab,
            '\u{15}' => Key::Ctrl('u'),
            c => Key::Char(c),
        };
        let mut buffer = Buffer::empty(Rect::from(SIZE));
        let begun = Instant::now();
        dashboard.key(key, replay, SIZE);
        dashboard.draw(&mut buffer);
        longest = longest.max(begun.elapsed());
    }
    longest
}
