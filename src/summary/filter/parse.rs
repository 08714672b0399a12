//! Text to filter, by recursive descent.

use std::ops::RangeInclusive;

use crate::base::units;
use crate::base::usage::hint;
use crate::summary::filter::{Node, Numbers, Texts, Wrong};
use crate::vocabulary::{KINDS, Kind, LAYERS, Layer};

/// Fields, what they mean, and an example of each: for help texts.
pub const FIELDS: [(&str, &str, &str); 12] = [
    ("layer", "layer of the call", "layer=hdf5,mpiio"),
    ("op", "name of the function; ~ takes a pattern with * and ?", "op~H5D*"),
    ("kind", "what the call does: read, write, open, close, meta, sync, seek, mmap, wait, other", "kind=write"),
    ("file", "path of the file; without a / in it: its last part", "file~*.h5"),
    ("pid", "process", "pid=4711"),
    ("tid", "thread", "tid=4712"),
    ("rank", "rank, or a range of them", "rank=0..7"),
    ("dur", "duration: ns, us, ms, s, m, h", "dur>10ms"),
    ("self", "duration less what calls inside it take", "self>1ms"),
    ("bytes", "bytes moved: K, M, G, T are powers of 1024", "bytes>=1M"),
    ("offset", "where in the file", "offset<4K"),
    ("errno", "error number of a system call, -1 for a failed library call, 0 for success", "errno!=0"),
];

/// Parentheses and `not` may be nested this deep, so that no text can use up the stack.
const MAX_DEPTH: usize = 64;

pub fn parse(text: &str) -> Result<Node, Wrong> {
    let mut parser = Parser { text, chars: text.chars().collect(), at: 0, depth: 0 };
    parser.blank();
    if parser.peek().is_none() {
        return Err(parser.wrong(0, "a filter is expected, such as: layer=hdf5 and dur>10ms"));
    }
    let node = parser.any()?;
    match parser.peek() {
        None => Ok(node),
        Some(')') => Err(parser.wrong(parser.at, "this parenthesis was never opened")),
        Some(_) => Err(parser.wrong(parser.at, "expected and, or, or the end")),
    }
}

struct Parser<'a> {
    text: &'a str,
    chars: Vec<char>,
    at: usize,
    depth: usize,
}

/// Comparisons, the longer ones first.
const COMPARISONS: [&str; 9] = ["!=", "!~", "<=", ">=", "==", "=", "~", "<", ">"];

impl Parser<'_> {
    fn wrong(&self, at: usize, why: impl Into<String>) -> Wrong {
        Wrong { text: self.text.to_owned(), at, why: why.into() }
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn blank(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    /// The word that begins here.
    fn word(&self) -> String {
        self.chars[self.at..].iter().take_while(|c| c.is_ascii_alphanumeric() || **c == '_').collect()
    }

    /// Takes a word (in any case) or a sign if it comes next.
    fn take(&mut self, words: &[&str]) -> bool {
        let word = self.word().to_ascii_lowercase();
        let sign = |w: &&&str| {
            !w.starts_with(char::is_alphabetic)
                && self.chars[self.at..].iter().take(w.len()).collect::<String>() == ***w
        };
        let found = words.iter().find(|w| **w == word || sign(w)).map(|w| w.len());
        if let Some(length) = found {
            self.at += length;
            self.blank();
        }
        found.is_some()
    }

    fn any(&mut self) -> Result<Node, Wrong> {
        let mut nodes = vec![self.all()?];
        while self.take(&["or", "||"]) {
            nodes.push(self.all()?);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::Or(nodes) })
    }

    /// Conditions that follow each other without a word between them must all hold.
    fn all(&mut self) -> Result<Node, Wrong> {
        let mut nodes = vec![self.one()?];
        while self.take(&["and", "&&"]) || self.peek().is_some_and(|c| c != ')' && !self.ends()) {
            nodes.push(self.one()?);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::And(nodes) })
    }

    fn ends(&self) -> bool {
        self.word().eq_ignore_ascii_case("or") || self.chars[self.at..].starts_with(&['|', '|'])
    }

    fn one(&mut self) -> Result<Node, Wrong> {
        let begin = self.at;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.wrong(begin, format!("nested more than {MAX_DEPTH} deep")));
        }
        let node = if self.take(&["not", "!"]) {
            Node::Not(Box::new(self.one()?))
        } else if self.peek() == Some('(') {
            self.at += 1;
            self.blank();
            let node = self.any()?;
            if self.peek() != Some(')') {
                let why =
                    if self.peek().is_none() { "this parenthesis is never closed" } else { "expected and, or, )" };
                return Err(self.wrong(if self.peek().is_none() { begin } else { self.at }, why));
            }
            self.at += 1;
            self.blank();
            node
        } else {
            self.condition()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn condition(&mut self) -> Result<Node, Wrong> {
        let begin = self.at;
        let field = self.word();
        let names = || FIELDS.map(|(name, _, _)| name).join(", ");
        if field.is_empty() {
            return Err(self.wrong(begin, format!("expected a field ({}), not or (", names())));
        }
        let field = field.to_ascii_lowercase();
        if !FIELDS.iter().any(|(name, _, _)| *name == field) {
            let similar = hint(&field, FIELDS.map(|(name, _, _)| name));
            return Err(self.wrong(begin, format!("{field:?} is no field{similar}; fields are: {}", names())));
        }
        self.at += field.len();
        self.blank();
        let compared = self.comparison(&field)?;
        let values = self.values(&field)?;
        let node = self.meaning(&field, compared, &values)?;
        self.blank();
        Ok(if compared.starts_with('!') { other_than(node) } else { node })
    }

    fn comparison(&mut self, field: &str) -> Result<&'static str, Wrong> {
        let begin = self.at;
        let rest: String = self.chars[begin..].iter().take(2).collect();
        let Some(found) = COMPARISONS.into_iter().find(|c| rest.starts_with(c)) else {
            return Err(self.wrong(begin, format!("expected a comparison after {field}: = != ~ !~ < <= > >=")));
        };
        let fits = match field {
            "layer" | "kind" => matches!(found, "=" | "==" | "!="),
            "op" | "file" => !matches!(found, "<" | "<=" | ">" | ">="),
            _ => !matches!(found, "~" | "!~"),
        };
        if !fits {
            let which = match field {
                "layer" | "kind" => "= and !=",
                "op" | "file" => "=, !=, ~ and !~",
                _ => "=, !=, <, <=, > and >=",
            };
            return Err(self.wrong(begin, format!("{field} is compared with {which}")));
        }
        self.at += found.len();
        self.blank();
        Ok(found)
    }

    /// Values with commas between them, each with where it begins.
    fn values(&mut self, field: &str) -> Result<Vec<(usize, String)>, Wrong> {
        let mut values = Vec::new();
        loop {
            let begin = self.at;
            let value = if let Some(quote @ ('"' | '\'')) = self.peek() {
                let rest = &self.chars[begin + 1..];
                let Some(length) = rest.iter().position(|c| *c == quote) else {
                    return Err(self.wrong(begin, "this quotation mark is never closed"));
                };
                self.at += length + 2;
                rest[..length].iter().collect::<String>()
            } else {
                let rest = self.chars[begin..].iter();
                let value: String = rest.take_while(|c| !c.is_whitespace() && !"(),".contains(**c)).collect();
                self.at += value.chars().count();
                value
            };
            if value.is_empty() {
                return Err(self.wrong(begin, format!("expected a value of {field}")));
            }
            values.push((begin, value));
            if self.peek() != Some(',') {
                return Ok(values);
            }
            self.at += 1;
        }
    }

    fn meaning(&self, field: &str, compared: &str, values: &[(usize, String)]) -> Result<Node, Wrong> {
        let numbers = match field {
            "layer" => {
                let layers = values.iter().map(|(at, v)| {
                    Layer::parse(v).ok_or_else(|| {
                        let known = LAYERS.map(Layer::name);
                        self.wrong(*at, format!("no such layer{}; layers are: {}", hint(v, known), known.join(", ")))
                    })
                });
                return Ok(Node::Layers(layers.collect::<Result<_, _>>()?));
            }
            "kind" => {
                let kinds = values.iter().map(|(at, v)| {
                    Kind::parse(v).ok_or_else(|| {
                        let known = KINDS.map(Kind::name);
                        self.wrong(*at, format!("no such kind{}; kinds are: {}", hint(v, known), known.join(", ")))
                    })
                });
                return Ok(Node::Kinds(kinds.collect::<Result<_, _>>()?));
            }
            "op" | "file" => {
                let what = if field == "op" { Texts::Op } else { Texts::File };
                let exactly = !compared.ends_with('~');
                return Ok(Node::Text(what, values.iter().map(|(_, v)| pattern(what, v, exactly)).collect()));
            }
            "pid" => Numbers::Pid,
            "tid" => Numbers::Tid,
            "rank" => Numbers::Rank,
            "dur" => Numbers::Dur,
            "self" => Numbers::Own,
            "offset" => Numbers::Offset,
            "bytes" => Numbers::Bytes,
            _ => Numbers::Errno,
        };
        if values.len() > 1 && compared.starts_with(['<', '>']) {
            return Err(self.wrong(values[1].0, format!("{compared} takes one value")));
        }
        let ranges = values.iter().map(|(at, v)| {
            let value = |text: &str| number(numbers, text).map_err(|why| self.wrong(*at, why));
            let range = match v.split_once("..") {
                Some(_) if compared.starts_with(['<', '>']) => {
                    return Err(self.wrong(*at, format!("{compared} takes no range")));
                }
                Some((low, high)) => value(low)?..=value(high)?,
                None => {
                    let v = value(v)?;
                    match compared {
                        "<" => i64::MIN..=v.saturating_sub(1),
                        "<=" => i64::MIN..=v,
                        ">" => v.saturating_add(1)..=i64::MAX,
                        ">=" => v..=i64::MAX,
                        _ => v..=v,
                    }
                }
            };
            if range.is_empty() {
                Err(self.wrong(*at, "a range goes from the lower to the higher value"))
            } else {
                Ok(range)
            }
        });
        Ok(Node::Number(numbers, ranges.collect::<Result<_, _>>()?))
    }
}

/// What has a value, and not this one.
fn other_than(node: Node) -> Node {
    let any = match &node {
        Node::Text(what, _) => Node::Text(*what, vec!["*".to_owned()]),
        Node::Number(what, _) => Node::Number(*what, vec![RangeInclusive::new(i64::MIN, i64::MAX)]),
        _ => return Node::Not(Box::new(node)),
    };
    Node::And(vec![any, Node::Not(Box::new(node))])
}

/// A file without a `/` is meant by its last part.
fn pattern(what: Texts, value: &str, exactly: bool) -> String {
    let mut pattern = String::new();
    if what == Texts::File && !value.contains('/') && !value.starts_with('*') {
        pattern.push_str("*/");
    }
    for c in value.chars() {
        if exactly && "*?\\".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

fn number(what: Numbers, text: &str) -> Result<i64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-').unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits);
    let expected = || match what {
        Numbers::Dur | Numbers::Own => "expected a time with its unit: 500us, 10ms, 1.5s".to_owned(),
        Numbers::Bytes | Numbers::Offset => "expected a size: 512, 4K, 1.5M".to_owned(),
        _ => "expected a number".to_owned(),
    };
    let n: f64 = digits.parse().map_err(|_| expected())?;
    let factor = match (what, unit) {
        // Zero needs no unit.
        (Numbers::Dur | Numbers::Own, "") => (n == 0.0).then_some(1.0),
        (Numbers::Dur | Numbers::Own, _) => units::ns_per(unit),
        (Numbers::Bytes | Numbers::Offset, "" | "B" | "b") => Some(1.0),
        (Numbers::Bytes | Numbers::Offset, _) => units::bytes_per(unit),
        (_, "") => (n.fract() == 0.0).then_some(1.0),
        _ => None,
    };
    Ok((n * factor.ok_or_else(expected)?) as i64)
}
