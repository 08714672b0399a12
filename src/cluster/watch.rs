//! Asks all nodes, each on a thread of its own: one that does not answer keeps no other from being asked.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::cluster::history::{Node, TICKS};
use crate::cluster::scrape;
use crate::cluster::target::Target;
use crate::cluster::view::{View, view};

/// What a thread needs: no more than a request.
const STACK: usize = 512 << 10;

/// Nodes that are asked until this is dropped.
pub struct Watch {
    shared: Arc<Shared>,
    interval: Duration,
}

struct Shared {
    begun: Instant,
    nodes: Mutex<Vec<Node>>,
    /// Answers, and requests without one.
    answers: AtomicU64,
}

impl Shared {
    fn nodes(&self) -> MutexGuard<'_, Vec<Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// Begins to ask.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn begin(targets: &[Target], interval: Duration) -> Result<Self> {
        let nodes = targets.iter().cloned().map(Node::new).collect();
        let shared = Arc::new(Shared { begun: Instant::now(), nodes: Mutex::new(nodes), answers: AtomicU64::new(0) });
        for (at, target) in targets.iter().enumerate() {
            let (of, begun, url) = (Arc::downgrade(&shared), shared.begun, target.url.clone());
            thread::Builder::new()
                .name(format!("node {at}"))
                .stack_size(STACK)
                .spawn(move || ask(&of, at, &url, (begun, interval)))
                .with_context(|| format!("a thread for {}", target.name))?;
        }
        Ok(Self { shared, interval })
    }

    /// Greater when there is something new.
    pub fn answers(&self) -> u64 {
        self.shared.answers.load(Ordering::Acquire)
    }

    /// What is known of the last ticks.
    pub fn view(&self, ticks: usize) -> View {
        let now = tick(self.shared.begun.elapsed(), self.interval);
        view(&self.shared.nodes(), self.interval, now, ticks.min(TICKS))
    }
}

fn tick(elapsed: Duration, interval: Duration) -> u64 {
    elapsed.as_nanos().checked_div(interval.as_nanos()).map_or(0, |tick| u64::try_from(tick).unwrap_or(u64::MAX))
}

/// Asks one node at each tick until nobody wants to know.
fn ask(shared: &Weak<Shared>, at: usize, url: &str, (begun, interval): (Instant, Duration)) {
    let agent = scrape::agent();
    let mut now = 0;
    loop {
        let due = interval.saturating_mul(u32::try_from(now).unwrap_or(u32::MAX));
        thread::sleep(due.saturating_sub(begun.elapsed()));
        if shared.strong_count() == 0 {
            return;
        }
        let answer = scrape::ask(&agent, url);
        let Some(shared) = shared.upgrade() else { return };
        let elapsed = begun.elapsed();
        if let Some(node) = shared.nodes().get_mut(at) {
            node.answer(now, elapsed, answer);
        }
        shared.answers.fetch_add(1, Ordering::Release);
        // Ticks that passed meanwhile are not asked for.
        now = (now + 1).max(tick(elapsed, interval));
    }
}
