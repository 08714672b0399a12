//! Frames from fixed answers.

use super::*;
use crate::cluster::history::Node;
use crate::cluster::testing::{Page, node};
use crate::cluster::view::view;
use crate::tui::terminal::input::Key;
use crate::tui::testing::text_of;
use crate::tui::theme::Palette;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

const EVERY: Duration = Duration::from_secs(2);

/// Four nodes: one whose second rank is slow, one that began again, one that went silent, one that was never there.
fn nodes(ranks: bool) -> Vec<Node> {
    let mut nodes: Vec<Node> = (1..=4).map(|n| node(&format!("10.0.0.{n}:9464"))).collect();
    for tick in 0..30_u32 {
        for (n, node) in (0..).zip(&mut nodes) {
            let restarted = n == 1 && tick >= 20;
            let (t, wave) = (f64::from(if restarted { tick - 20 } else { tick }), f64::from(tick % 10));
            let busy = [0.2, 0.9][usize::from(n == 0)] * t;
            let each = [(Some(2 * n), 0.1 * t + 0.02 * wave), (Some(2 * n + 1), busy)];
            let all = [(None, each[0].1 + each[1].1)];
            let page = Page {
                name: ["nodea", "node\u{202e}b", "nodec", ""][n as usize],
                started: if restarted { 2.0 } else { 1.0 },
                io: if ranks { &each } else { &all },
                calls: 2000.0 * t,
                read: f64::from(n) * 3e6 * t,
                written: 5e6 * t,
                failed: if n == 2 { 7.0 * t } else { 0.0 },
                pressure: 0.7 * t,
                lost: if n == 1 { 12.0 } else { 0.0 },
                finding: (n == 0).then_some(("sync-writes", 21.5)),
                processes: 3,
            };
            let answer = match (n, tick) {
                (3, _) => Err("no such host".to_owned()),
                (2, 22..) => Err("Connection refused".to_owned()),
                _ => page.read(),
            };
            node.answer(tick.into(), EVERY * tick, answer);
        }
    }
    nodes
}

fn frame(ranks: bool, keys: &[Key], theme: Theme, (width, height): (u16, u16)) -> Buffer {
    let view = view(&nodes(ranks), EVERY, 30, 60);
    let mut look = Look::new(theme);
    let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
    screen::draw(&mut buf, &view, &mut look);
    for key in keys {
        assert!(look.key(*key));
        buf.reset();
        screen::draw(&mut buf, &view, &mut look);
    }
    buf
}

fn text(ranks: bool, keys: &[Key], size: (u16, u16)) -> String {
    text_of(&frame(ranks, keys, Theme::default(), size))
}

#[test]
fn nodes_and_ranks_with_stragglers_and_reasons() {
    insta::assert_snapshot!("nodes_80x24", text(true, &[], (80, 24)));
    insta::assert_snapshot!("nodes_200x50", text(true, &[], (200, 50)));
}

#[test]
fn without_ranks_there_are_nodes_only() {
    insta::assert_snapshot!("nodes_without_ranks_120x16", text(false, &[], (120, 16)));
}

#[test]
fn layers_and_findings_of_a_node() {
    insta::assert_snapshot!("node_inside_120x24", text(true, &[Key::Enter], (120, 24)));
}

#[test]
fn keys_sort_go_to_the_other_table_show_it_alone_and_help() {
    let by_mean = [Key::Tab, Key::Char('e')];
    let alone = text(true, &by_mean, (120, 30));
    assert!(alone.contains("ranks, time in I/O") && !alone.contains("stragglers:"), "{alone}");
    let back = text(true, &[Key::Tab, Key::Char('e'), Key::Esc], (120, 30));
    assert!(back.contains("stragglers:") && back.contains("ranks, time in I/O"), "{back}");
    // By name of the node, from A on; then the other way around.
    let sorted = |keys: &[Key]| {
        let text = text(false, keys, (120, 16));
        let line = text.lines().nth(3).unwrap_or_default().to_owned();
        line.split(' ').next().unwrap_or_default().to_owned()
    };
    assert_eq!(
        (sorted(&[Key::Char('>')]), sorted(&[Key::Char('>'), Key::Char('I')])),
        ("10.0.0.4:9464".into(), "node\\u{202e}b".into())
    );
    assert!(text(true, &[Key::Char('?')], (120, 30)).contains("/proc/pressure/io"));
    let mut look = Look::new(Theme::default());
    assert!(!look.key(Key::Char('q')));
}

#[test]
fn a_long_time_and_a_short_one() {
    let mut look = Look::new(Theme::default());
    for (key, least) in [('+', 15), ('-', 600)] {
        (0..20).for_each(|_| assert!(look.key(Key::Char(key))));
        assert_eq!(look.ticks, least);
    }
}

#[test]
fn any_size_is_drawn_and_without_unicode_all_is_ascii() {
    for (width, height) in [(0, 0), (1, 1), (9, 2), (20, 5), (40, 10), (400, 3)] {
        for keys in [&[][..], &[Key::Enter], &[Key::Char('?')], &[Key::Tab, Key::Char('e')]] {
            text(true, keys, (width, height));
        }
    }
    let ascii = text_of(&frame(true, &[], Theme { palette: Palette::Mono, ascii: true }, (120, 30)));
    assert!(ascii.is_ascii(), "{ascii}");
}
