//! What `--phase` names: a function of the program, or of a file.

use std::str::FromStr;

/// A function that becomes a span around what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// As in the symbol table, or a C++ or Rust name without arguments.
    pub function: String,
    /// The file that has it, by name or path; none: any program that is executed.
    pub binary: Option<String>,
}

impl FromStr for Phase {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (function, binary) = match text.split_once('@') {
            Some((function, binary)) => (function, Some(binary)),
            None => (text, None),
        };
        if function.is_empty() || binary.is_some_and(str::is_empty) {
            return Err("expected FUNCTION or FUNCTION@BINARY: step, io::save@app, flush@libx.so");
        }
        Ok(Self { function: function.trim_end_matches("()").to_owned(), binary: binary.map(str::to_owned) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_and_maybe_a_file() {
        let parse = |text: &str| text.parse::<Phase>().map(|p| (p.function, p.binary));
        assert_eq!(parse("main"), Ok(("main".into(), None)));
        assert_eq!(parse("ns::C::step()@./a.out"), Ok(("ns::C::step".into(), Some("./a.out".into()))));
        for bad in ["", "@", "@x", "f@"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
