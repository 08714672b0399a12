//! How Fortran writes numbers, texts, selections, loops and functions.

use crate::replay_code::calls::{Arg, Row};
use crate::replay_code::fortran::statements;
use crate::replay_code::ranks::{Expr, Value};
use crate::replay_code::writer::{Syntax, variable};

/// Columns of a line; the language allows 132.
const WIDTH: usize = 118;
/// Bytes of a literal in one piece: lines are broken between pieces.
const PIECE: usize = 64;
/// Bytes of an argument that stays on a line.
const LONGEST: usize = 90;

/// Fortran for a library.
#[derive(Debug, Clone, Copy)]
pub struct Fortran {
    /// The kind of starts and counts of selections.
    pub index: &'static str,
    /// What starts count from.
    pub first: i64,
}

impl Syntax for Fortran {
    fn statements(&self, _: &Row, op: &str) -> &'static str {
        statements::of(op).unwrap_or_default()
    }

    fn word(&self, name: &str, op: &str, _: &[Expr]) -> String {
        match name {
            "f" => statements::function(op),
            "one" => statements::one(op),
            _ => statements::data(op).into(),
        }
    }

    /// Variables have 64 bits, and what functions are given has 32.
    fn argument(&self, _: Arg, arg: &Expr, text: String) -> String {
        if matches!(arg.base, Value::Same(_)) && arg.steps.is_empty() { text } else { format!("int({text})") }
    }

    /// The first dimension of Fortran is the last one of C.
    fn list(&self, mut values: Vec<String>) -> String {
        values.reverse();
        list(self.index, &values)
    }

    fn first(&self) -> i64 {
        self.first
    }

    fn number(&self, value: i64) -> String {
        number(value)
    }

    fn table(&self, number: usize) -> String {
        format!("t{number}(member)")
    }

    fn function(&self, name: &str, ranks: &str, loops: usize) -> [String; 2] {
        let mut begin = format!("  ! Of rank {ranks}.\n  subroutine {name}()\n");
        let variables: Vec<String> = (0..loops).map(variable).collect();
        if !variables.is_empty() {
            begin.push_str(&wrapped("    ", &format!("integer(int64) :: {}", variables.join(", "))));
            begin.push('\n');
        }
        [begin, format!("  end subroutine {name}\n\n")]
    }

    fn repeated(&self, variable: &str, count: &str) -> [String; 2] {
        let last =
            count.parse::<i64>().map_or_else(|_| format!("{count} - 1"), |count| number(count.saturating_sub(1)));
        [format!("do {variable} = 0, {last}"), "end do".into()]
    }

    fn think(&self, ns: i64) -> String {
        format!("call think({ns}_int64)")
    }

    fn line(&self, text: &str, indent: usize) -> String {
        wrapped(&"  ".repeat(indent + 1), text)
    }
}

/// Numbers of a kind.
pub fn list(kind: &str, values: &[String]) -> String {
    let values = values.join(", ");
    format!("[integer({kind}) ::{}{values}]", if values.is_empty() { "" } else { " " })
}

pub fn number(value: i64) -> String {
    match i32::try_from(value) {
        // There is no literal of the smallest number of a kind.
        _ if value == i64::MIN => "(-9223372036854775807_int64 - 1)".into(),
        Ok(small) if small != i32::MIN => small.to_string(),
        _ => format!("{value}_int64"),
    }
}

/// A text in pieces. Bytes that are not plain are numbers: a source has no other way for them.
pub fn literal(text: &str) -> String {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    for byte in text.bytes() {
        let plain = matches!(byte, b' '..=b'~');
        if !piece.is_empty() && (!plain || piece.len() >= PIECE) {
            pieces.push(format!("\"{}\"", std::mem::take(&mut piece)));
        }
        match byte {
            b'"' => piece.push_str("\"\""),
            _ if plain => piece.push(byte.into()),
            _ => pieces.push(format!("char({byte})")),
        }
    }
    if !piece.is_empty() || pieces.is_empty() {
        pieces.push(format!("\"{piece}\""));
    }
    pieces.join(" // ")
}

/// A statement on as many lines as it needs.
pub fn wrapped(indent: &str, statement: &str) -> String {
    let (mut out, mut line) = (String::new(), indent.to_owned());
    for part in parts(statement) {
        let is_first = line.len() == indent.len();
        if !is_first && line.len() + 1 + part.len() > WIDTH {
            out.push_str(&line);
            out.push_str(" &\n");
            line = format!("{indent}     ");
        } else if !is_first {
            line.push(' ');
        }
        line.push_str(part);
    }
    out + &line + "\n"
}

/// What stays on a line: arguments, and pieces of literals; of long ones each word.
fn parts(statement: &str) -> Vec<&str> {
    let arguments = split(statement, |before| matches!(before, ',' | '/'));
    arguments
        .into_iter()
        .flat_map(|part| if part.len() > LONGEST { split(part, |_| true) } else { vec![part] })
        .collect()
}

/// Splits at blanks outside of literals that are behind such a character.
fn split(text: &str, behind: fn(char) -> bool) -> Vec<&str> {
    let (mut inside, mut before) = (false, ' ');
    text.split(|c| {
        inside ^= c == '"';
        let is_end = c == ' ' && !inside && behind(before);
        before = c;
        is_end
    })
    .collect()
}
