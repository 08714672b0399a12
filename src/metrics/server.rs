//! A small HTTP server: GET and HEAD of a few pages, one request to a connection. Whoever is slow, or many, is sent away.

use anyhow::{Context as _, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Connections at a time; each has a thread.
const CONNECTIONS: usize = 8;
/// How long a client may take for all it says, and for all it is told.
const LIMIT: Duration = Duration::from_secs(5);
/// Of a request's line and headers.
const HEAD: usize = 8192;
const HEADERS: usize = 64;

/// A page.
pub struct Answer {
    pub content_type: &'static str,
    pub text: String,
}

/// Listens until it is dropped.
pub struct Server {
    /// Closed to wake and end the thread.
    wake: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// `answer` gives the page of a path to a client that accepts that.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(
        listener: TcpListener,
        answer: impl Fn(&str, &str) -> Option<Answer> + Send + Sync + 'static,
    ) -> Result<Self> {
        listener.set_nonblocking(true).context("listening")?;
        let (wake, woken) = UnixStream::pair().context("socket pair")?;
        let (answer, connections) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
        let listen = move || {
            while wait(&listener, &woken) {
                match listener.accept() {
                    Ok((client, _)) => take(client, &connections, Arc::clone(&answer)),
                    // What was there is gone, or there are no descriptors just now.
                    Err(e) if e.kind() != ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(50)),
                    Err(_) => {}
                }
            }
        };
        let thread = std::thread::Builder::new().name("metrics".into()).spawn(listen).context("thread for metrics")?;
        Ok(Self { wake: Some(wake), thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Until somebody comes; false when it is to end.
fn wait(listener: &TcpListener, woken: &UnixStream) -> bool {
    let mut of = [PollFd::new(listener.as_fd(), PollFlags::POLLIN), PollFd::new(woken.as_fd(), PollFlags::POLLIN)];
    match poll(&mut of, PollTimeout::NONE) {
        Ok(_) => of[1].revents().is_none_or(|events| events.is_empty()),
        Err(e) => e == nix::errno::Errno::EINTR,
    }
}

/// One connection less when it is over, however that comes about.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn take(
    client: TcpStream,
    connections: &Arc<AtomicUsize>,
    answer: Arc<impl Fn(&str, &str) -> Option<Answer> + Send + Sync + 'static>,
) {
    let one = Counted(Arc::clone(connections));
    if connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
        // Closed without a word: one that would be told may be slow to listen, and this thread must not wait for it.
        return;
    }
    let talk = move || {
        let _one = one;
        // A client that has gone, or is too slow, has no answer.
        let _ = talk(client, &*answer);
    };
    // Without a thread the connection is closed.
    let _ = std::thread::Builder::new().name("metrics client".into()).spawn(talk);
}

fn talk(mut client: TcpStream, answer: &impl Fn(&str, &str) -> Option<Answer>) -> io::Result<()> {
    client.set_nonblocking(false)?;
    let reply = match head(&mut client)? {
        Ok(request) => reply(&request, answer),
        Err(status) => Reply::short(status),
    };
    write(&mut client, &reply)?;
    client.shutdown(Shutdown::Write)?;
    // What it still sends is read, up to a limit: to close with that unread would take the answer away from it.
    let until = Instant::now() + LIMIT;
    let mut rest = [0; HEAD];
    for _ in 0..16 {
        if read(&mut client, &mut rest, until)? == 0 {
            break;
        }
    }
    Ok(())
}

/// What a client asks for.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    method: String,
    path: String,
    accept: String,
}

/// A request, or the status of the answer to what is none.
type Asked = Result<Request, &'static str>;

const BAD: &str = "400 Bad Request";
const LATE: &str = "408 Request Timeout";
const LARGE: &str = "431 Request Header Fields Too Large";

/// `None` while there is more to come.
fn parse(bytes: &[u8]) -> Option<Asked> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) if bytes.len() < HEAD => return None,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => return Some(Err(LARGE)),
        Ok(httparse::Status::Complete(_)) => {}
        Err(_) => return Some(Err(BAD)),
    }
    let (Some(method), Some(target)) = (request.method, request.path) else { return Some(Err(BAD)) };
    let accept = request.headers.iter().filter(|h| h.name.eq_ignore_ascii_case("accept"));
    let accept: Vec<_> = accept.map(|h| String::from_utf8_lossy(h.value)).collect();
    // What comes after the path says nothing here.
    let path = target.split(['?', '#']).next().unwrap_or_default().to_owned();
    Some(Ok(Request { method: method.to_owned(), path, accept: accept.join(",") }))
}

fn head(client: &mut TcpStream) -> io::Result<Asked> {
    let until = Instant::now() + LIMIT;
    let (mut bytes, mut part) = (Vec::new(), [0; HEAD]);
    loop {
        let room = HEAD - bytes.len();
        let n = match read(client, &mut part[..room], until) {
            Err(e) if e.kind() == ErrorKind::TimedOut => return Ok(Err(LATE)),
            n => n?,
        };
        if n == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&part[..n]);
        if let Some(asked) = parse(&bytes) {
            return Ok(asked);
        }
    }
}

/// Time that is left; an error when there is none.
fn left(until: Instant) -> io::Result<Duration> {
    Some(until.saturating_duration_since(Instant::now())).filter(|d| !d.is_zero()).ok_or(ErrorKind::TimedOut.into())
}

fn late(e: io::Error) -> io::Error {
    if e.kind() == ErrorKind::WouldBlock { ErrorKind::TimedOut.into() } else { e }
}

fn read(client: &mut TcpStream, into: &mut [u8], until: Instant) -> io::Result<usize> {
    client.set_read_timeout(Some(left(until)?))?;
    loop {
        match client.read(into) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            n => return n.map_err(late),
        }
    }
}

struct Reply {
    head: String,
    body: String,
}

impl Reply {
    fn new(status: &str, content_type: &str, more: &str, body: String) -> Self {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n{more}Cache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
        );
        Self { head, body }
    }

    fn short(status: &str) -> Self {
        Self::new(status, PLAIN, "", format!("{status}\n"))
    }
}

const PLAIN: &str = "text/plain; charset=utf-8";

fn reply(request: &Request, answer: &impl Fn(&str, &str) -> Option<Answer>) -> Reply {
    let head_only = match request.method.as_str() {
        "GET" => false,
        "HEAD" => true,
        _ => {
            return Reply::new(
                "405 Method Not Allowed",
                PLAIN,
                "Allow: GET, HEAD\r\n",
                "405 Method Not Allowed\n".into(),
            );
        }
    };
    let mut reply = match answer(&request.path, &request.accept) {
        Some(Answer { content_type, text }) => Reply::new("200 OK", content_type, "Vary: Accept\r\n", text),
        None => Reply::short("404 Not Found"),
    };
    if head_only {
        reply.body.clear();
    }
    reply
}

fn write(client: &mut TcpStream, reply: &Reply) -> io::Result<()> {
    let until = Instant::now() + LIMIT;
    for part in [reply.head.as_bytes(), reply.body.as_bytes()] {
        let mut rest = part;
        while !rest.is_empty() {
            client.set_write_timeout(Some(left(until)?))?;
            match client.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => rest = rest.get(n..).unwrap_or_default(),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(late(e)),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn server() -> (SocketAddr, Server) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answer = |path: &str, accept: &str| {
            let text = if path == "/large" { "x".repeat(1 << 20) } else { format!("{path} {accept}") };
            (path != "/none").then_some(Answer { content_type: "text/x", text })
        };
        (address, Server::start(listener, answer).unwrap())
    }

    fn say(address: SocketAddr, words: &[u8]) -> String {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(words).unwrap();
        let mut said = String::new();
        client.read_to_string(&mut said).unwrap();
        said
    }

    #[test]
    fn pages_are_told_by_path_and_accept() {
        let (address, _server) = server();
        let said = say(address, b"GET /a?b=c HTTP/1.1\r\nHost: x\r\naccept: one\r\nAccept: two\r\n\r\n");
        assert!(said.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 10\r\n"), "{said}");
        assert!(said.contains("\r\nConnection: close\r\n"), "{said}");
        assert!(said.ends_with("\r\n\r\n/a one,two"), "{said}");
        let said = say(address, b"GET /none HTTP/1.0\r\n\r\n");
        assert!(said.starts_with("HTTP/1.1 404 Not Found\r\n"), "{said}");
        let said = say(address, b"HEAD /a HTTP/1.1\r\n\r\n");
        assert!(said.contains("Content-Length: 3\r\n") && said.ends_with("\r\n\r\n"), "{said}");
        let said = say(address, b"POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello");
        assert!(said.starts_with("HTTP/1.1 405 ") && said.contains("\r\nAllow: GET, HEAD\r\n"), "{said}");
        let said = say(address, b"GET /large HTTP/1.1\r\n\r\n");
        assert_eq!(said.split("\r\n\r\n").nth(1).map(str::len), Some(1 << 20));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let (address, _server) = server();
        assert!(say(address, b"\x16\x03\x01 hello\r\n\r\n").starts_with("HTTP/1.1 400 "));
        let long = [b"GET /a HTTP/1.1\r\nX: ", &[b'x'; HEAD][..]].concat();
        assert!(say(address, &long[..HEAD]).starts_with("HTTP/1.1 431 "));
        let many = format!("GET /a HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(HEADERS + 1));
        assert!(say(address, many.as_bytes()).starts_with("HTTP/1.1 431 "));
    }

    #[test]
    fn a_request_may_come_in_parts() {
        assert_eq!(parse(b"GET /metrics HTTP/1.1\r\nAcc"), None);
        let whole = Request { method: "GET".into(), path: "/metrics".into(), accept: "x".into() };
        assert_eq!(parse(b"GET /metrics HTTP/1.1\r\nAccept: x\r\n\r\nmore"), Some(Ok(whole)));
    }

    #[test]
    fn who_says_nothing_keeps_nobody_else_out_for_ever() {
        let (address, server) = server();
        let silent: Vec<TcpStream> = (0..CONNECTIONS).map(|_| TcpStream::connect(address).unwrap()).collect();
        // One too many is sent away at once; the silent ones are told that they are late, and then there is room again.
        let mut beyond = TcpStream::connect(address).unwrap();
        assert!(matches!(beyond.read(&mut [0; 1]), Ok(0) | Err(_)));
        for mut client in silent {
            let mut said = String::new();
            client.read_to_string(&mut said).unwrap();
            assert!(said.starts_with("HTTP/1.1 408 "), "{said}");
        }
        let said = (0..100).find_map(|_| {
            std::thread::sleep(Duration::from_millis(50));
            let mut client = TcpStream::connect(address).unwrap();
            let mut said = String::new();
            let _ = client.write_all(b"GET /a HTTP/1.1\r\n\r\n").and_then(|()| client.read_to_string(&mut said));
            said.starts_with("HTTP/1.1 200 ").then_some(said)
        });
        assert!(said.is_some());
        drop(server);
        assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
    }
}
