//! Sources of values as people write them in catalog files: `arg0`, `mul(1,2)`, `ret`. One line each.

use crate::catalog::Src;

/// How a source is made of argument positions.
#[derive(Clone, Copy)]
enum Make {
    Plain(Src),
    One(fn(u8) -> Src),
    Two(fn(u8, u8) -> Src),
    /// A number.
    Times(fn(u16) -> Src),
    /// A position and a number.
    OneTimes(fn(u8, u16) -> Src),
}
use Make::{One, OneTimes, Plain, Times, Two};

/// Name, meaning for people, and how it is made. Those of system calls only are not here.
const SOURCES: &[(&str, Make, &str)] = &[
    ("none", Plain(Src::None), "there is none"),
    ("arg", One(Src::Arg), "the argument, 64 bits"),
    ("int", One(Src::Int), "the argument as a signed 32-bit number"),
    ("in", One(Src::In), "the 64-bit word it points at, when the call begins (for handle)"),
    ("in_int", One(Src::InInt), "the 32-bit number it points at, when the call begins (for handle)"),
    ("out", One(Src::Out), "the 64-bit word it points at, when the call returns"),
    ("out_int", One(Src::OutInt), "the 32-bit number it points at, when the call returns"),
    ("field", OneTimes(Src::Field), "the 64-bit member of the struct it points at, so far into it"),
    ("field_int", OneTimes(Src::FieldInt), "the same of a 32-bit number"),
    ("strlen", One(Src::Strlen), "the length of the string it points at"),
    ("line", One(Src::Line), "the same and a newline"),
    ("mul", Two(Src::Mul), "the product of two arguments"),
    ("scaled", OneTimes(Src::Scaled), "the argument times a number"),
    ("iov", Two(Src::Iov), "the sum of a struct iovec array: pointer, count"),
    ("typed", Two(Src::Typed), "a count times the size of an Open MPI datatype"),
    ("typed_long", Two(Src::TypedLong), "a 64-bit count times the size of an Open MPI datatype"),
    ("status", One(Src::Status), "bytes moved, from an Open MPI status"),
    ("ret", Plain(Src::Ret), "the result"),
    ("ret_int", Plain(Src::RetInt), "the result as a signed 32-bit number"),
    ("ret_times", One(Src::RetTimes), "the result times an argument"),
    ("ret_scaled", Times(Src::RetScaled), "the result times a number"),
    ("asked", Plain(Src::Asked), "what was asked for (len), when the call succeeds"),
];

/// Arguments that are read (`IOT_ARGS`).
pub const ARGUMENTS: u8 = 12;

/// A position of an argument.
pub fn position(text: &str) -> Result<u8, String> {
    match text.trim().parse() {
        Ok(n) if n < ARGUMENTS => Ok(n),
        Ok(_) => Err(format!("argument {} is not read: 0 to {} are", text.trim(), ARGUMENTS - 1)),
        Err(_) => Err(format!("{:?} is no position of an argument: 0 to {}", text.trim(), ARGUMENTS - 1)),
    }
}

/// The source of a value.
pub fn source(text: &str) -> Result<Src, String> {
    let (name, arguments) = match text.split_once('(') {
        Some((name, rest)) => {
            let inside = rest.strip_suffix(')').ok_or_else(|| format!("{text:?} lacks a closing parenthesis"))?;
            (name, inside.split(',').map(str::trim).collect::<Vec<_>>())
        }
        None => match text.find(|c: char| c.is_ascii_digit()) {
            Some(at) => (&text[..at], vec![&text[at..]]),
            None => (text, Vec::new()),
        },
    };
    let Some((_, make, _)) = SOURCES.iter().find(|(known, _, _)| *known == name.trim()) else {
        return Err(format!("{text:?} is no source of a value; sources are: {}", forms().join(", ")));
    };
    let number = |text: &str| match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(format!("{text:?} is no number from 1 to {}", u16::MAX)),
    };
    match (make, arguments.as_slice()) {
        (Plain(source), []) => Ok(*source),
        (One(source), [a]) => Ok(source(position(a)?)),
        (Two(source), [a, b]) => Ok(source(position(a)?, position(b)?)),
        (Times(source), [k]) => Ok(source(number(k)?)),
        (OneTimes(source), [a, k]) => Ok(source(position(a)?, number(k)?)),
        _ => Err(format!("{text:?} should be {}", form(name.trim(), *make))),
    }
}

fn form(name: &str, make: Make) -> String {
    match make {
        Plain(_) => name.to_owned(),
        One(_) if name == "arg" || name == "int" => format!("{name}0"),
        One(_) => format!("{name}(0)"),
        Two(_) => format!("{name}(0,1)"),
        Times(_) => format!("{name}(8)"),
        OneTimes(_) => format!("{name}(0,8)"),
    }
}

fn forms() -> Vec<String> {
    SOURCES.iter().map(|(name, make, _)| form(name, *make)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_as_it_is_shown() {
        for (shown, (_, make, _)) in forms().iter().zip(SOURCES) {
            let expected = match make {
                Plain(source) => *source,
                One(source) => source(0),
                Two(source) => source(0, 1),
                Times(source) => source(8),
                OneTimes(source) => source(0, 8),
            };
            assert_eq!(source(shown), Ok(expected), "{shown}");
        }
        assert_eq!(source("arg(2)"), Ok(Src::Arg(2)));
        assert_eq!(source("mul( 1 , 2 )"), Ok(Src::Mul(1, 2)));
        assert_eq!(source("scaled(3, 4096)"), Ok(Src::Scaled(3, 4096)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, expected) in [
            (
                "frob(1)",
                "sources are: none, arg0, int0, in(0), in_int(0), out(0), out_int(0), field(0,8), field_int(0,8), strlen(0),",
            ),
            ("arg12", "argument 12 is not read: 0 to 11 are"),
            ("arg", "\"arg\" should be arg0"),
            ("mul(1)", "\"mul(1)\" should be mul(0,1)"),
            ("mul(1,x)", "\"x\" is no position"),
            ("mul(1,2", "lacks a closing parenthesis"),
            ("ret0", "\"ret0\" should be ret"),
            ("scaled(1,0)", "no number from 1"),
            ("scaled(1,70000)", "no number from 1 to 65535"),
        ] {
            let error = source(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
