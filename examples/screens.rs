//! Measures the dashboard over a large dataset, which is a real one again and again: `cargo run --release --example screens`.
//! Prints how long it takes to open, from a key to its frame and to draw each screen, and the most memory in use.

use anyhow::{Context as _, Result};
use iotrace_bpf::export::{Dataset, DatasetWriter, Options, Table, VIEWS};
use iotrace_bpf::replay::Replay;
use iotrace_bpf::rows::{
    Block, BlockBytes, BlockLink, CallPath, Coverage, File, FilePath, Handle, Hist, Loss, Meta, Metric, Mount, Object,
    Process, Rollup, Row, SEQ_BITS, Span, Stack, Thread,
};
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
        repeat(&from, spans, &dir)?;
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

fn all<T: Table>(dataset: &Dataset) -> Result<Vec<T>> {
    let mut rows = Vec::new();
    dataset.rows(|row| {
        rows.push(row);
        Ok(())
    })?;
    Ok(rows)
}

/// Writes a dataset in which the run of another one happens again and again, until there are so many calls.
fn repeat(from: &Path, wanted: u64, to: &Path) -> Result<()> {
    let dataset = Dataset::open(from)?;
    let host = dataset.hosts().into_iter().next().unwrap_or_default();
    let mut writer = DatasetWriter::create(Options { path: to, host: &host, force: false, owner: None, views: VIEWS })?;
    let spans: Vec<Span> = all(&dataset)?;
    let (block, links, bytes): (Vec<Block>, Vec<BlockLink>, Vec<BlockBytes>) =
        (all(&dataset)?, all(&dataset)?, all(&dataset)?);
    let (rollup, hist): (Vec<Rollup>, Vec<Hist>) = (all(&dataset)?, all(&dataset)?);
    let end = spans.iter().map(|s| s.start_ns + s.dur_ns).max().unwrap_or(0);
    let length = (end / 1_000_000_000 + 1) * 1_000_000_000;
    let seqs = spans.iter().map(|s| s.span_id & ((1 << SEQ_BITS) - 1)).max().unwrap_or(0) + 1;
    let requests = block.iter().map(|b| b.req_id).max().unwrap_or(0) + 1;
    let times = wanted.div_ceil(spans.len() as u64) as i64;
    for time in 0..times {
        let (t, id, req) = (time * length, time * seqs, time * requests);
        let call = |s: &Span| Span {
            span_id: s.span_id + id,
            parent_id: s.parent_id.map(|p| p + id),
            root_id: s.root_id + id,
            start_ns: s.start_ns + t,
            ..s.clone()
        };
        spans.iter().map(|s| Row::Span(Box::new(call(s)))).try_for_each(|row| writer.push(row))?;
        for b in &block {
            let (queue_ns, issue_ns) = (b.queue_ns + t, b.issue_ns + t);
            writer.push(Row::Block(Block { req_id: b.req_id + req, queue_ns, issue_ns, ..b.clone() }))?;
        }
        for l in &links {
            let (req_id, span_id, root_id) = (l.req_id + req, l.span_id + id, l.root_id + id);
            writer.push(Row::BlockLink(BlockLink { req_id, span_id, root_id, ..l.clone() }))?;
        }
        for b in &bytes {
            let span_id = b.span_id.map(|s| s + id);
            writer.push(Row::BlockBytes(BlockBytes { req_id: b.req_id + req, span_id, ..b.clone() }))?;
        }
        for r in &rollup {
            writer.push(Row::Rollup(Rollup { t_ns: r.t_ns + t, ..r.clone() }))?;
        }
        for h in &hist {
            writer.push(Row::Hist(Hist { t_ns: h.t_ns + t, ..h.clone() }))?;
        }
        writer.tick(Duration::from_nanos(t as u64))?;
    }
    for meta in all::<Meta>(&dataset)? {
        let value = if meta.key == "end_ns" { (times * length).to_string() } else { meta.value };
        writer.push(Row::Meta(Meta { value, ..meta }))?;
    }
    copy::<File>(&dataset, &mut writer, |row| Row::File(Box::new(row)))?;
    copy::<FilePath>(&dataset, &mut writer, Row::FilePath)?;
    copy::<CallPath>(&dataset, &mut writer, Row::CallPath)?;
    copy::<Handle>(&dataset, &mut writer, Row::Handle)?;
    copy::<Object>(&dataset, &mut writer, Row::Object)?;
    copy::<Process>(&dataset, &mut writer, |row| Row::Process(Box::new(row)))?;
    copy::<Thread>(&dataset, &mut writer, Row::Thread)?;
    copy::<Mount>(&dataset, &mut writer, |row| Row::Mount(Box::new(row)))?;
    copy::<Stack>(&dataset, &mut writer, Row::Stack)?;
    copy::<Metric>(&dataset, &mut writer, Row::Metric)?;
    copy::<Loss>(&dataset, &mut writer, Row::Loss)?;
    copy::<Coverage>(&dataset, &mut writer, Row::Coverage)?;
    writer.finish()?;
    Ok(())
}

fn copy<T: Table>(dataset: &Dataset, writer: &mut DatasetWriter, row: fn(T) -> Row) -> Result<()> {
    all(dataset)?.into_iter().map(row).try_for_each(|row| writer.push(row))
}
