//! A small HTTP server: GET and HEAD of a few pages, one request to a connection. A slow client loses its connection, and at
//! once when another one comes and there is no room.

use anyhow::{Context as _, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Connections at a time; each has a thread.
const CONNECTIONS: usize = 8;
/// Threads, of which some may still have to notice that their connection is gone.
const THREADS: usize = 2 * CONNECTIONS;
/// A connection that has not read its answer within this time makes room for others.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a client may take to send its request, and to read its answer.
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
        let (answer, room) = (Arc::new(answer), Arc::new(Room::default()));
        let listen = move || {
            while wait(&listener, &woken) {
                match listener.accept() {
                    Ok((client, _)) => take(client, &room, Arc::clone(&answer)),
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

/// Until a client connects; false when it is to end.
fn wait(listener: &TcpListener, woken: &UnixStream) -> bool {
    let mut of = [PollFd::new(listener.as_fd(), PollFlags::POLLIN), PollFd::new(woken.as_fd(), PollFlags::POLLIN)];
    match poll(&mut of, PollTimeout::NONE) {
        Ok(_) => of[1].revents().is_none_or(|events| events.is_empty()),
        Err(e) => e == nix::errno::Errno::EINTR,
    }
}

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its request is not complete.
    Asks,
    /// It has been answered since then, or is being.
    Hears(Instant),
    /// It has all of its answer, and has not gone yet.
    Lingers,
}

/// A connection, as others see it.
struct Client {
    number: u64,
    state: State,
    /// To end it.
    stream: TcpStream,
}

/// Those that are there, in the order in which they came.
#[derive(Default)]
struct Clients {
    all: Vec<Client>,
    /// Threads that have not ended.
    threads: usize,
    last: u64,
}

impl Clients {
    /// Makes room for one more: the client that needs its connection least loses it. Of those that have not asked for
    /// anything the one is dropped that has been there for longest, so that one that asks at once has its answer
    /// whatever others do.
    fn make_room(&mut self) -> bool {
        if self.all.len() < CONNECTIONS {
            return true;
        }
        let first = |is: &dyn Fn(State) -> bool| self.all.iter().position(|client| is(client.state));
        let stuck = |state| matches!(state, State::Hears(since) if since.elapsed() > PATIENCE);
        let least = first(&|s| s == State::Lingers).or_else(|| first(&|s| s == State::Asks)).or_else(|| first(&stuck));
        let Some(least) = least else { return false };
        // Wakes its thread. It may be gone already.
        let _ = self.all.remove(least).stream.shutdown(Shutdown::Both);
        true
    }
}

/// Where they are.
#[derive(Default)]
struct Room {
    clients: Mutex<Clients>,
    /// A thread has ended.
    left: Condvar,
}

impl Room {
    fn clients(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of them, which is one less when it is over, however that comes about.
struct Present {
    room: Arc<Room>,
    number: u64,
}

impl Present {
    /// `None` when there is no room.
    fn new(stream: &TcpStream, room: &Arc<Room>) -> Option<Self> {
        let stream = stream.try_clone().ok()?;
        let mut clients = room.clients();
        if !clients.make_room() {
            return None;
        }
        // One that has lost its connection ends at once.
        while clients.threads >= THREADS {
            clients = room.left.wait(clients).unwrap_or_else(PoisonError::into_inner);
        }
        clients.last += 1;
        clients.threads += 1;
        let number = clients.last;
        clients.all.push(Client { number, state: State::Asks, stream });
        drop(clients);
        Some(Self { room: Arc::clone(room), number })
    }

    fn is(&self, state: State) {
        let mut clients = self.room.clients();
        clients.all.iter_mut().filter(|client| client.number == self.number).for_each(|client| client.state = state);
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        let mut clients = self.room.clients();
        clients.all.retain(|client| client.number != self.number);
        clients.threads -= 1;
        self.room.left.notify_one();
    }
}

fn take(
    client: TcpStream,
    room: &Arc<Room>,
    answer: Arc<impl Fn(&str, &str) -> Option<Answer> + Send + Sync + 'static>,
) {
    // Closed without an answer: the client may be slow to read it, and this thread must not wait for that.
    let Some(present) = Present::new(&client, room) else { return };
    let serve = move || {
        // A client that has gone, or is too slow, has no answer.
        let _ = serve_client(client, &present, &*answer);
    };
    // Without a thread the connection is closed.
    let _ = std::thread::Builder::new().name("metrics client".into()).spawn(serve);
}

fn serve_client(
    mut client: TcpStream,
    present: &Present,
    answer: &impl Fn(&str, &str) -> Option<Answer>,
) -> io::Result<()> {
    client.set_nonblocking(false)?;
    let asked = head(&mut client)?;
    present.is(State::Hears(Instant::now()));
    let reply = match asked {
        Ok(request) => reply(&request, answer),
        Err(status) => Reply::short(status),
    };
    write(&mut client, &reply)?;
    client.shutdown(Shutdown::Write)?;
    present.is(State::Lingers);
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
type ParsedRequest = Result<Request, &'static str>;

const BAD: &str = "400 Bad Request";
const LATE: &str = "408 Request Timeout";
const LARGE: &str = "431 Request Header Fields Too Large";

/// `None` while there is more to come.
fn parse(bytes: &[u8]) -> Option<ParsedRequest> {
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
    // A query after the path is ignored.
    let path = target.split(['?', '#']).next().unwrap_or_default().to_owned();
    Some(Ok(Request { method: method.to_owned(), path, accept: accept.join(",") }))
}

fn head(client: &mut TcpStream) -> io::Result<ParsedRequest> {
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
            let text = match path {
                "/large" => "x".repeat(1 << 20),
                "/huge" => "x".repeat(1 << 25),
                _ => format!("{path} {accept}"),
            };
            (path != "/none").then_some(Answer { content_type: "text/x", text })
        };
        (address, Server::start(listener, answer).unwrap())
    }

    fn exchange(address: SocketAddr, request: &[u8]) -> String {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(request).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn pages_depend_on_path_and_accept() {
        let (address, _server) = server();
        let answer = exchange(address, b"GET /a?b=c HTTP/1.1\r\nHost: x\r\naccept: one\r\nAccept: two\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 10\r\n"), "{answer}");
        assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\n/a one,two"), "{answer}");
        let answer = exchange(address, b"GET /none HTTP/1.0\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{answer}");
        let answer = exchange(address, b"HEAD /a HTTP/1.1\r\n\r\n");
        assert!(answer.contains("Content-Length: 3\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
        let answer = exchange(address, b"POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello");
        assert!(answer.starts_with("HTTP/1.1 405 ") && answer.contains("\r\nAllow: GET, HEAD\r\n"), "{answer}");
        let answer = exchange(address, b"GET /large HTTP/1.1\r\n\r\n");
        assert_eq!(answer.split("\r\n\r\n").nth(1).map(str::len), Some(1 << 20));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let (address, _server) = server();
        assert!(exchange(address, b"\x16\x03\x01 hello\r\n\r\n").starts_with("HTTP/1.1 400 "));
        let long = [b"GET /a HTTP/1.1\r\nX: ", &[b'x'; HEAD][..]].concat();
        assert!(exchange(address, &long[..HEAD]).starts_with("HTTP/1.1 431 "));
        let many = format!("GET /a HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(HEADERS + 1));
        assert!(exchange(address, many.as_bytes()).starts_with("HTTP/1.1 431 "));
    }

    #[test]
    fn a_request_may_come_in_parts() {
        assert_eq!(parse(b"GET /metrics HTTP/1.1\r\nAcc"), None);
        let whole = Request { method: "GET".into(), path: "/metrics".into(), accept: "x".into() };
        assert_eq!(parse(b"GET /metrics HTTP/1.1\r\nAccept: x\r\n\r\nmore"), Some(Ok(whole)));
    }

    fn ask(address: SocketAddr) -> TcpStream {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"GET /a HTTP/1.1\r\n\r\n").unwrap();
        client
    }

    fn answer_of(mut client: TcpStream) -> String {
        let mut answer = String::new();
        // A connection that is dropped may end in an error.
        let _ = client.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn a_slow_or_silent_client_keeps_no_other_out() {
        let (address, server) = server();
        // More of them than there are connections, each with another part of a request.
        let slow = |n: usize| {
            let mut client = TcpStream::connect(address).unwrap();
            client.write_all(&b"GET /metrics HTTP/1.1\r\nX: "[..n % 24]).unwrap();
            client
        };
        let mut all: Vec<TcpStream> = (0..3 * CONNECTIONS).map(slow).collect();
        for _ in 0..2 * CONNECTIONS {
            assert!(answer_of(ask(address)).starts_with("HTTP/1.1 200 "));
            all.push(slow(all.len()));
        }
        // The last connections get an answer that they are late; those before were dropped, the first ones first.
        let ends: Vec<String> = all.into_iter().map(answer_of).collect();
        let late = ends.iter().rev().take_while(|answer| answer.starts_with("HTTP/1.1 408 ")).count();
        assert!((1..=CONNECTIONS).contains(&late), "{ends:?}");
        assert!(ends.iter().rev().skip(late).all(String::is_empty), "{ends:?}");
        drop(server);
        assert!(TcpStream::connect(address).is_err(), "it does not listen any more");
    }

    #[test]
    fn a_client_that_reads_no_answer_or_stays_keeps_no_other_out_for_ever() {
        let (address, _server) = server();
        // They have their answers, and stay.
        let _linger: Vec<TcpStream> = (0..2 * CONNECTIONS).map(|_| ask(address)).collect();
        // They ask for more than fits on the way, and read nothing of it.
        let stuck = |_| {
            let mut client = TcpStream::connect(address).unwrap();
            let _ = client.write_all(b"GET /huge HTTP/1.1\r\n\r\n");
            client
        };
        let _stuck: Vec<TcpStream> = (0..2 * CONNECTIONS).map(stuck).collect();
        let answered = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            let mut client = TcpStream::connect(address).unwrap();
            let sent = client.write_all(b"GET /a HTTP/1.1\r\n\r\n");
            sent.is_ok() && answer_of(client).starts_with("HTTP/1.1 200 ")
        });
        assert!(answered);
    }
}
