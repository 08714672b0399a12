//! The filter language of `--where` and of the dashboard: conditions on calls, joined by and, or, not and parentheses.

pub mod fields;
mod parse;
mod sql;

use std::fmt;
use std::ops::RangeInclusive;

pub use parse::FIELDS;
pub use sql::quoted;

use crate::vocabulary::{Kind, Layer};

/// A condition on calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    text: String,
    root: Node,
}

/// Where a text is no filter, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The text.
    pub text: String,
    /// Character, counted from 0, of the first mistake.
    pub at: usize,
    pub why: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at character {} of {:?}: {}", self.at + 1, self.text, self.why)
    }
}

impl std::error::Error for Wrong {}

/// The fields of a call that a filter looks at.
#[derive(Debug, Clone, Copy)]
pub struct CallFields<'a> {
    pub layer: Layer,
    pub op: &'a str,
    pub kind: Kind,
    pub path: Option<&'a str>,
    pub pid: i32,
    pub tid: i32,
    pub rank: Option<i32>,
    pub dur_ns: i64,
    pub self_ns: i64,
    pub offset: Option<i64>,
    pub bytes: Option<i64>,
    pub errno: i16,
}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// Names where the text is no filter, and what is expected there.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        parse::parse(text).map(|root| Self { text: text.to_owned(), root })
    }

    /// As the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn matches(&self, fields: &CallFields) -> bool {
        self.root.matches(fields)
    }

    /// Is it on layers, functions, files and processes only, and not on what single calls have?
    pub fn is_of_sums(&self) -> bool {
        self.root.is_of_sums()
    }

    /// Does it look at paths of files?
    pub fn is_of_paths(&self) -> bool {
        self.root.is_of_paths()
    }

    /// The same condition on rows of the dataset's `spans`, in SQL.
    pub fn sql(&self) -> String {
        self.root.sql()
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    And(Vec<Self>),
    Or(Vec<Self>),
    Not(Box<Self>),
    /// One of these layers.
    Layers(Vec<Layer>),
    Kinds(Vec<Kind>),
    /// The text matches one of these patterns.
    Text(Texts, Vec<String>),
    /// The number is in one of these ranges.
    Number(Numbers, Vec<RangeInclusive<i64>>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Texts {
    Op,
    File,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Numbers {
    Pid,
    Tid,
    Rank,
    Dur,
    Own,
    Offset,
    Bytes,
    Errno,
}

impl Node {
    fn is_of_sums(&self) -> bool {
        match self {
            Self::And(all) | Self::Or(all) => all.iter().all(Self::is_of_sums),
            Self::Not(one) => one.is_of_sums(),
            Self::Layers(_) | Self::Kinds(_) | Self::Text(..) => true,
            Self::Number(what, _) => matches!(what, Numbers::Pid | Numbers::Rank),
        }
    }

    fn is_of_paths(&self) -> bool {
        match self {
            Self::And(all) | Self::Or(all) => all.iter().any(Self::is_of_paths),
            Self::Not(one) => one.is_of_paths(),
            Self::Text(what, _) => *what == Texts::File,
            Self::Layers(_) | Self::Kinds(_) | Self::Number(..) => false,
        }
    }

    /// What a call does not have fulfils no condition.
    fn matches(&self, fields: &CallFields) -> bool {
        match self {
            Self::And(all) => all.iter().all(|n| n.matches(fields)),
            Self::Or(any) => any.iter().any(|n| n.matches(fields)),
            Self::Not(one) => !one.matches(fields),
            Self::Layers(layers) => layers.contains(&fields.layer),
            Self::Kinds(kinds) => kinds.contains(&fields.kind),
            Self::Text(what, patterns) => {
                let text = match what {
                    Texts::Op => Some(fields.op),
                    Texts::File => fields.path,
                };
                text.is_some_and(|text| patterns.iter().any(|p| glob(p.as_bytes(), text.as_bytes())))
            }
            Self::Number(what, ranges) => {
                let number = match what {
                    Numbers::Pid => Some(fields.pid.into()),
                    Numbers::Tid => Some(fields.tid.into()),
                    Numbers::Rank => fields.rank.map(i64::from),
                    Numbers::Dur => Some(fields.dur_ns),
                    Numbers::Own => Some(fields.self_ns),
                    Numbers::Offset => fields.offset,
                    Numbers::Bytes => fields.bytes,
                    Numbers::Errno => Some(fields.errno.into()),
                };
                number.is_some_and(|n| ranges.iter().any(|r| r.contains(&n)))
            }
        }
    }
}

/// Does all of `text` match? `*` stands for any characters, `/` too, `?` for one, `\` takes the next as it is.
/// Linear in time but for the length of the pattern, whatever the pattern is.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where the last star was, and up to where in the text it reaches.
    let mut back: Option<(usize, usize)> = None;
    while t < text.len() {
        let (step, fits) = match pattern.get(p) {
            Some(b'*') => {
                back = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some(b'?') => (1, true),
            Some(b'\\') if p + 1 < pattern.len() => (2, pattern[p + 1] == text[t]),
            Some(c) => (1, *c == text[t]),
            None => (0, false),
        };
        if fits {
            p += step;
            t += 1;
        } else if let Some((after, reach)) = back {
            back = Some((after, reach + 1));
            p = after;
            t = reach + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
