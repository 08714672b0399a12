//! What `--phase` names: a function of the program or of a file, or lines of one of its source files.

use std::str::FromStr;

/// A function, or some lines of one, that becomes a span around what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// As in the symbol table, or a C++ or Rust name without arguments; or [`Lines`].
    pub function: String,
    /// The file that has it, by name or path; none: any program that is executed.
    pub binary: Option<String>,
}

/// Lines of a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    /// The end of its path.
    pub file: String,
    pub first: u64,
    pub last: u64,
}

impl Lines {
    /// `FILE:FIRST-LAST`; none: the name of a function.
    pub fn parse(text: &str) -> Option<Result<Self, &'static str>> {
        let (file, lines) = text.rsplit_once(':')?;
        if !lines.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let range = || {
            let (first, last) = lines.split_once('-')?;
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            let file = file.trim_start_matches("./").to_owned();
            (!file.is_empty() && 0 < first && first <= last).then_some(Self { file, first, last })
        };
        Some(range().ok_or("expected FILE:FIRST-LAST: solver.c:42-87, src/io/save.f90:120-120"))
    }
}

impl Phase {
    /// Ranges behind functions, and in a file the outer ones first.
    pub fn order(&self) -> impl Ord + use<> {
        let lines = Lines::parse(&self.function).and_then(Result::ok);
        lines.map(|lines| (lines.file, lines.first, std::cmp::Reverse(lines.last)))
    }
}

impl FromStr for Phase {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (function, binary) = match text.split_once('@') {
            Some((function, binary)) => (function, Some(binary)),
            None => (text, None),
        };
        if function.is_empty() || binary.is_some_and(str::is_empty) {
            return Err(
                "expected FUNCTION or FUNCTION@BINARY: step, io::save@app, flush@libx.so; or lines: solver.c:42-87",
            );
        }
        if let Some(Err(why)) = Lines::parse(function) {
            return Err(why);
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

    #[test]
    fn lines_of_a_file() {
        let parse = |text: &str| Lines::parse(text).map(|lines| lines.map(|l| (l.file, l.first, l.last)));
        assert_eq!(parse("./src/a.c:42-87"), Some(Ok(("src/a.c".into(), 42, 87))));
        assert_eq!(parse("a.c:7-7"), Some(Ok(("a.c".into(), 7, 7))));
        assert_eq!((parse("ns::step"), parse("step")), (None, None));
        for bad in ["a.c:42", "a.c:0-3", "a.c:9-8", ":1-2", "a.c:1-", "a.c:1-x"] {
            assert!(matches!(parse(bad), Some(Err(_))) && bad.parse::<Phase>().is_err(), "{bad}");
        }
    }

    #[test]
    fn outer_ranges_come_first_and_functions_before_them() {
        let mut all = ["a.c:3-5", "b.c:1-2", "a.c:1-9", "step", "a.c:3-9"].map(|text| text.parse::<Phase>().unwrap());
        all.sort_by_key(Phase::order);
        assert_eq!(all.map(|p| p.function), ["step", "a.c:1-9", "a.c:3-9", "a.c:3-5", "b.c:1-2"]);
    }
}
