//! `--metrics` of a trace: what is served, and from where that is known.

use crate::base::notices;
use crate::cli::RecordArgs;
use crate::loader::kernel::rings::Gauges;
use crate::metrics::counts::Counts;
use crate::metrics::endpoint::{self, Shared};
use crate::metrics::page::{Node, Own};
use crate::metrics::server::Server;
use crate::record::job::rank;
use crate::record::session::live::{own_cpu, own_memory};
use crate::record::session::sampler::Board;
use crate::vocabulary::Layer;
use anyhow::Result;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

/// Ends with the recording.
pub struct Serving {
    totals: Arc<Shared>,
    _server: Server,
}

impl Serving {
    /// Begins to serve, and prints the address.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn begin(
        listener: TcpListener,
        args: &RecordArgs,
        layers: &[Layer],
        gauges: &Arc<Gauges>,
        node: &Arc<Board>,
    ) -> Result<Self> {
        let totals = Arc::new(Shared::new(Counts::new(layers).summed(args.aggregates())));
        let (gauges, node, ring_bytes) = (Arc::clone(gauges), Arc::clone(node), args.ring_size);
        let started_ns = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_nanos());
        let host = rank::host();
        let now = move || {
            let (ring_fill, of_node) = node.with(|seen| {
                let node = Node { readings: seen.readings.clone(), sources: seen.sources.clone() };
                (seen.ring_fill(), node)
            });
            let own = Own {
                node: host.clone(),
                records: gauges.records.load(Ordering::Relaxed),
                ring_fill,
                ring_bytes,
                cpu_ns: own_cpu().as_nanos(),
                memory_bytes: own_memory(),
                started_ns,
            };
            (own, of_node)
        };
        let (address, server) = endpoint::serve(listener, Arc::clone(&totals), now)?;
        notices::note(&format!("metrics at http://{address}/metrics"));
        Ok(Self { totals, _server: server })
    }

    /// What the worker adds to.
    pub fn totals(&self) -> Arc<Shared> {
        Arc::clone(&self.totals)
    }
}
