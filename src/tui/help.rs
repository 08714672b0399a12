//! The table of screens, in the order of their keys: tab, name, help text and own keys.

use crate::summary::view::Screen;
use crate::tui::keys::Binding;

/// The help text of a screen.
pub struct About {
    pub screen: Screen,
    /// On the tab.
    pub tab: &'static str,
    pub name: &'static str,
    pub text: &'static [&'static str],
    pub keys: &'static [Binding],
}

/// All screens; the position is the key: see [`key`] and [`screen`].
pub static SCREENS: &[About] = &[
    About {
        screen: Screen::Overview,
        tab: "Over",
        name: "Overview: which layer costs most",
        text: &[
            "One line for each layer, from the program down to the device.",
            "excl: part of the exclusive time, that is time not spent in the traced calls below.",
            "p50, p99: how long outermost calls of the layer took. A layer without probes is",
            "not covered: that is no finding about the program.",
            "Bytes: what the program asked for, and what each layer below made of it.",
            "Imbalance: the most of any rank over the mean.",
        ],
        keys: &[
            ("Enter", "latency of the layer, or the file or process"),
            ("a m", "rates, totals, what came since the mark; set the mark"),
        ],
    },
    About {
        screen: Screen::Processes,
        tab: "Proc",
        name: "Processes and ranks: which one does the I/O, which one is slow",
        text: &[
            "I/O: time in outermost traced calls. The strip shows it over time, darker is more;",
            "all strips have the same scale, so a rank that works while others wait stands out.",
        ],
        keys: &[
            ("Enter", "call tree of the process (as a filter)"),
            ("p", "rows of processes, threads, ranks, control groups, users, containers, units, jobs"),
            ("t", "processes below those that started them"),
            ("a m", "rates, totals, what came since the mark; set the mark"),
        ],
    },
    About {
        screen: Screen::Files,
        tab: "File",
        name: "Files: which file, and how it is accessed",
        text: &[
            "seq: reads and writes that begin at or after the end of the one before; small: below 4 KiB.",
            "Enter shows offsets over time, the most frequent sizes and strides, the handles",
            "and datasets, and the calls on the file.",
        ],
        keys: &[
            ("Enter", "one file"),
            ("Esc", "all files"),
            ("a m", "since the mark or from the beginning; set the mark"),
        ],
    },
    About {
        screen: Screen::Tree,
        tab: "Tree",
        name: "Call tree: what calls what, and where the time stays",
        text: &[
            "Calls are merged by the functions that enclose them. incl: their time, excl: what of it",
            "is in no traced call below. Enter on a function: its slowest calls; Enter on one of these:",
            "everything that happened inside it, down to the requests to devices.",
        ],
        keys: &[
            ("Space *", "open or close a node, all"),
            ("f", "flame view"),
            ("i t", "inverted: functions by exclusive time, wherever they are called"),
            ("Enter Esc", "slowest calls, one call; back"),
        ],
    },
    About {
        screen: Screen::Latency,
        tab: "Lat",
        name: "Latency: how long calls take, and when they took long",
        text: &[
            "Left: time from left to right, duration from bottom to top, darker is more calls.",
            "Right: the distribution of all of them.",
        ],
        keys: &[("Enter", "only the selected function"), ("Esc", "all"), ("b", "sizes or durations")],
    },
    About {
        screen: Screen::InFlight,
        tab: "Flight",
        name: "In flight: what has begun and not returned, the oldest first",
        text: &["Calls inside each other, and where the thread is in the kernel.", "Long ones are red."],
        keys: &[("Enter", "calls and stacks of the selected one")],
    },
    About {
        screen: Screen::Events,
        tab: "Event",
        name: "Events: the last calls, as they return",
        text: &["Calls appear when they return, so inner calls come before the calls around them."],
        keys: &[
            ("F", "follow the newest"),
            ("P C", "the call around it, the first call inside it"),
            ("Enter", "all that happened inside"),
        ],
    },
    About {
        screen: Screen::Devices,
        tab: "Dev",
        name: "Devices and mounts: how busy, how slow, and their users",
        text: &[
            "busy: part of the time in which the device had a request. queue: from queueing to the driver;",
            "device: from the driver to completion. Requests of other programs are in it, too.",
            "node: CPUs in use (2.0: two of them), part of the time in which a task waited for a CPU,",
            "for I/O or for memory, bytes a second, free memory; over the last 100 ms to 10 minutes.",
        ],
        keys: &[("Tab", "users, mounts")],
    },
    About {
        screen: Screen::Coverage,
        tab: "Cover",
        name: "Coverage and losses: what is traced, and what was lost",
        text: &[
            "Probes by library, those that are not attached and why, and every event that was",
            "seen and is not in the figures, by layer and place.",
        ],
        keys: &[("Tab", "losses, probes that are not attached")],
    },
];

/// What there is to know about a screen.
pub fn about(screen: Screen) -> &'static About {
    SCREENS.iter().find(|about| about.screen == screen).unwrap_or(&SCREENS[0])
}

/// The keys of screens, in their order.
const KEYS: &str = "1234567890";

const _: () = assert!(SCREENS.len() <= KEYS.len());

/// The key that shows a screen.
pub fn key(screen: Screen) -> char {
    let at = SCREENS.iter().position(|about| about.screen == screen).unwrap_or(0);
    KEYS.chars().nth(at).unwrap_or(' ')
}

/// The screen that a key shows, if it is one of a screen.
pub fn screen(key: char) -> Option<Screen> {
    Some(SCREENS.get(KEYS.find(key)?)?.screen)
}

/// The keys of all screens.
#[cfg(test)]
pub fn keys() -> impl Iterator<Item = char> {
    KEYS.chars().take(SCREENS.len())
}
