//! A line for a call, or for a request to a device.

use std::fmt::{self, Display, Write as _};

use crate::base::text::{errno, escape};
use crate::rows::{Block, Span};
use crate::vocabulary::flag;

/// Names of flags; those that other fields show are left out.
const FLAGS: [(i32, &str); 9] = [
    (flag::COLLECTIVE, "collective"),
    (flag::NONBLOCKING, "nonblocking"),
    (flag::ASYNC, "async"),
    (flag::DIRECT, "direct"),
    (flag::TRUNCATED, "truncated"),
    (flag::INFERRED_PARENT, "inferred-parent"),
    (flag::UNFINISHED, "unfinished"),
    (flag::READAHEAD, "readahead"),
    (flag::MAJOR, "major"),
];

/// A call that caused a row, and how where there are several ways.
pub struct Cause {
    pub id: i64,
    pub op: Option<&'static str>,
    pub how: Option<&'static str>,
    pub bytes: Option<i64>,
}

impl Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "by={}:{}", self.id, escape(self.op.unwrap_or("?")))?;
        self.how.map_or(Ok(()), |how| write!(f, ":{how}"))?;
        self.bytes.map_or(Ok(()), |bytes| write!(f, ":{bytes}"))
    }
}

/// What a row has beside its own columns: ids are those of its node.
pub struct Around<'a> {
    /// Of several nodes.
    pub host: Option<&'a str>,
    pub id: i64,
    pub path: Option<&'a str>,
    pub path2: Option<&'a str>,
    pub object: Option<&'a str>,
    pub causes: &'a [Cause],
    /// Causes that are not named.
    pub more: usize,
    /// Rules whose findings it shows.
    pub rules: &'a [&'static str],
}

/// Seconds since the start, with all digits that are known.
pub struct Seconds(pub i64);

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let ns = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
    }
}

/// A name of unknown origin as one word of a line.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", escape(name).replace('"', "\\x22"))
}

/// Fields of a line: `name=value`, where there is one.
pub struct Line(String);

impl Line {
    pub fn new(ns: i64, host: Option<&str>) -> Self {
        let mut line = Self(Seconds(ns).to_string());
        line.field("host", host.map(escape));
        line
    }

    /// `# NAME`, for a fact of the run.
    pub fn fact(name: &str) -> Self {
        Self(format!("# {name}"))
    }

    pub fn text(self) -> String {
        self.0
    }

    pub fn word(&mut self, word: impl Display) {
        let _ = write!(self.0, " {word}");
    }

    pub fn field(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            let _ = write!(self.0, " {name}={value}");
        }
    }

    fn end(mut self, around: &Around<'_>) -> String {
        around.causes.iter().for_each(|cause| self.word(cause));
        self.field("by_more", (around.more > 0).then_some(around.more));
        around.rules.iter().for_each(|rule| self.field("finding", Some(rule)));
        self.0
    }
}

/// `0.000123456 rank=0 pid=7 tid=7   syscall pwrite64 file="/x" offset=0 ... id=8589934593 by=8589934592:H5Dwrite`
pub fn call(span: &Span, around: &Around<'_>) -> String {
    let mut line = Line::new(span.start_ns, around.host);
    line.field("rank", span.rank);
    line.field("pid", Some(span.pid));
    line.field("tid", Some(span.tid));
    let depth = usize::try_from(span.depth).unwrap_or(0);
    line.word(format_args!("{:indent$}{} {}", "", span.layer, escape(span.op), indent = 2 * depth));
    line.field("file", around.path.map(quoted));
    line.field("to", around.path2.map(quoted));
    line.field("object", around.object.map(quoted));
    line.field("cmd", span.cmd);
    line.field("arg", span.arg);
    line.field("offset", span.offset);
    line.field("req_bytes", span.req_bytes);
    line.field("bytes", span.bytes);
    line.field("dur_ns", Some(span.dur_ns));
    line.field("ret", span.ret);
    line.field("error", (span.errno != 0).then(|| errno(span.errno)));
    let flags: Vec<&str> = FLAGS.iter().filter(|(bit, _)| span.flags & bit != 0).map(|(_, name)| *name).collect();
    line.field("flags", (!flags.is_empty()).then(|| flags.join(",")));
    line.field("async_id", span.async_id);
    line.field("coll_id", span.coll_id);
    line.field("speed", span.speed.map(|speed| speed.replace(' ', "-")));
    line.field("id", Some(around.id));
    line.end(around)
}

/// `0.000123456 pid=7 block write device=vda class=writeback ... req=3 by=8589934592:write:writeback:4096`
pub fn request(block: &Block, around: &Around<'_>) -> String {
    let mut line = Line::new(block.issue_ns, around.host);
    line.field("pid", Some(block.pid));
    line.word(format_args!("block {}", block.op));
    line.field("device", Some(escape(block.device_name())));
    line.field("class", Some(block.class));
    line.field("sector", Some(block.sector));
    line.field("bytes", Some(block.bytes));
    line.field("queued_ns", Some(block.issue_ns.saturating_sub(block.queue_ns)));
    line.field("dur_ns", block.dur_ns);
    line.field("status", block.status);
    line.field("qdepth", Some(block.qdepth));
    line.field("req", Some(around.id));
    line.end(around)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::{Kind, Layer};

    const NONE: Around<'_> =
        Around { host: None, id: 9, path: None, path2: None, object: None, causes: &[], more: 0, rules: &[] };

    #[test]
    fn a_call_is_one_line_whatever_its_names_are() {
        let span = Span {
            depth: 1,
            rank: Some(3),
            bytes: Some(5),
            errno: 2,
            flags: flag::DIRECT | flag::UNFINISHED,
            ..Span::new(9, (Layer::Syscall, "pwrite64", Kind::Write), 1, (1_000_000_007, 12))
        };
        let causes = [Cause { id: 8, op: Some("H5Dwrite"), how: None, bytes: None }];
        let path = Some("/a b\"c\n\x1b[31m id=1 \u{202e}");
        let line = call(&span, &Around { path, causes: &causes, rules: &["sync-per-record"], ..NONE });
        let expected = "1.000000007 rank=3 pid=0 tid=0   syscall pwrite64 file=\"/a b\\x22c\\x0a\\x1b[31m id=1 \\u{202e}\" \
                        bytes=5 dur_ns=12 error=ENOENT flags=direct,unfinished id=9 by=8:H5Dwrite finding=sync-per-record";
        assert_eq!(line, expected);
        let damaged = Span { depth: -1, start_ns: i64::MIN, ..span };
        assert!(call(&damaged, &NONE).starts_with("-9223372036.854775808 rank=3 pid=0 tid=0 syscall pwrite64 "));
    }
}
