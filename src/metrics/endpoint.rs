//! The address of `--metrics`, and what is served there.

use crate::metrics::counts::Counts;
use crate::metrics::page::{Node, Own, Page, page};
use crate::metrics::server::{Answer, Server};
use crate::metrics::text::Format;
use anyhow::{Context as _, Result, anyhow};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};

/// Totals that the worker adds to and the server reads.
#[derive(Debug, Default)]
pub struct Shared(Mutex<Counts>);

impl Shared {
    pub fn new(counts: Counts) -> Self {
        Self(Mutex::new(counts))
    }

    /// Works on the totals, which no other thread uses meanwhile.
    pub fn with<T>(&self, work: impl FnOnce(&mut Counts) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An address as the command line has it.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected an address of this machine and a port: 127.0.0.1:9464, [::1]:9464".to_owned())
}

/// Takes the port, before anything is started that would have to be ended again.
///
/// # Errors
/// Names why it cannot be had, and the remedy.
pub fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).map_err(|e| {
        let way_out = match e.kind() {
            ErrorKind::AddrInUse => "another program listens there; name another port, or 0 for any that is free",
            ErrorKind::AddrNotAvailable => "that is no address of this machine (ip addr shows them); 127.0.0.1 is",
            _ => "name another address",
        };
        anyhow!("--metrics {address}: {e}: {way_out}")
    })
}

/// Begins to serve; ends when the server is dropped. `now` returns what is neither row nor total.
///
/// # Errors
/// When a thread cannot be started.
pub fn serve(
    listener: TcpListener,
    totals: Arc<Shared>,
    now: impl Fn() -> (Own, Node) + Send + Sync + 'static,
) -> Result<(SocketAddr, Server)> {
    let address = listener.local_addr().context("address of --metrics")?;
    let answer = move |path: &str, accept: &str| match path {
        "/metrics" => {
            let format = Format::accepted(accept);
            let (own, node) = now();
            let text = totals.with(|counts| page(format, &Page { counts, own: &own, node: &node }));
            Some(Answer { content_type: format.content_type(), text })
        }
        "/" => Some(Answer { content_type: "text/plain; charset=utf-8", text: LANDING.to_owned() }),
        _ => None,
    };
    Ok((address, Server::start(listener, answer)?))
}

const LANDING: &str = "iotrace-bpf: figures of a trace that goes on are at /metrics\n";
