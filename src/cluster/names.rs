//! Addresses of nodes by their names, without `getaddrinfo`: a static program cannot load the modules of glibc that know them.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::sync_channel;
use std::thread;

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;
use ureq::{Error, Timeout};

use crate::loader::processes::getent;

const HOSTS: &str = "/etc/hosts";
/// Addresses that are tried. There is room for as many in an answer.
const TRIED: usize = 16;

/// Looks names up.
#[derive(Debug)]
pub struct Names;

impl Resolver for Names {
    fn resolve(&self, uri: &Uri, _: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let authority = uri.authority().ok_or(Error::HostNotFound)?;
        let (host, port) = (authority.host().to_owned(), authority.port_u16().unwrap_or(80));
        let mut all = self.empty();
        if let Some(number) = number(&host) {
            all.push(SocketAddr::new(number, port));
            return Ok(all);
        }
        let (found, answer) = sync_channel(1);
        // On a thread of its own: it may take as long as the network does.
        thread::Builder::new().name("names".into()).spawn(move || found.send(addresses(&host))).map_err(Error::Io)?;
        let found = answer.recv_timeout(*timeout.after).map_err(|_| Error::Timeout(Timeout::Resolve))?;
        found.into_iter().take(TRIED).for_each(|address| all.push(SocketAddr::new(address, port)));
        if all.is_empty() { Err(Error::HostNotFound) } else { Ok(all) }
    }
}

/// A host that is an address already.
fn number(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Those of a node by its name, the preferred first.
fn addresses(host: &str) -> Vec<IpAddr> {
    // It would be an option.
    if host.starts_with('-') {
        return Vec::new();
    }
    let listed = fs::read_to_string(HOSTS).map(|text| in_hosts(&text, host)).unwrap_or_default();
    if !listed.is_empty() {
        return listed;
    }
    let asked = getent::ask("ahosts", host).unwrap_or_default();
    first_words(&String::from_utf8_lossy(&asked))
}

/// Those that hosts(5) has: an address, then its names, and comments from a # on.
fn in_hosts(text: &str, host: &str) -> Vec<IpAddr> {
    let address = |line: &str| {
        let mut words = line.split('#').next()?.split_whitespace();
        let address = words.next()?.parse().ok()?;
        words.any(|name| name.eq_ignore_ascii_case(host)).then_some(address)
    };
    text.lines().filter_map(address).collect()
}

/// Those at the beginning of lines, each once: getent has a line for each kind of socket.
fn first_words(text: &str) -> Vec<IpAddr> {
    let mut seen = BTreeSet::new();
    let addresses = text.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok());
    addresses.filter(|address| seen.insert(*address)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::disallowed_methods)]
mod tests {
    use super::*;
    use std::net::ToSocketAddrs as _;

    fn texts(addresses: &[IpAddr]) -> Vec<String> {
        addresses.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn hosts_are_found_by_each_of_their_names() {
        let text =
            "127.0.0.1 localhost\n# 10.0.0.9 node1\n10.0.0.1\tnode1.site node1 # not node2\nx node1\n::1 NODE1\n";
        assert_eq!(texts(&in_hosts(text, "node1")), ["10.0.0.1", "::1"]);
        assert_eq!(texts(&in_hosts(text, "node2")), Vec::<String>::new());
        assert_eq!(
            texts(&first_words("10.0.0.1 STREAM node1\n10.0.0.1 DGRAM\nodd\n\nfe80::1 RAW\n")),
            ["10.0.0.1", "fe80::1"]
        );
    }

    #[test]
    fn names_and_numbers_have_the_addresses_that_libc_has() {
        for host in ["127.0.0.1", "[::1]", "localhost"] {
            let ours: BTreeSet<IpAddr> =
                number(host).map_or_else(|| addresses(host), |number| vec![number]).into_iter().collect();
            let libc = format!("{host}:1").to_socket_addrs().unwrap().map(|address| address.ip());
            assert_eq!(ours, libc.collect(), "{host}");
        }
        // As where the file does not know it.
        let asked = String::from_utf8_lossy(&getent::ask("ahosts", "localhost").unwrap()).into_owned();
        assert!(first_words(&asked).iter().any(IpAddr::is_loopback), "{asked}");
        for none in ["", "-V", "no.such.host.invalid"] {
            assert_eq!(addresses(none), Vec::<IpAddr>::new(), "{none}");
        }
    }
}
