//! The version of a library, read from its file.

use std::fmt;

use crate::catalog::{Family, Version};
use crate::loader::code::elf::{self, Elf};

/// No version is longer.
const LONGEST: usize = 64;

/// A library that a traced process has mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    pub name: &'static str,
    /// `None`: not in the file.
    pub version: Option<String>,
    pub path: String,
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.version.as_deref().unwrap_or("of unknown version");
        write!(f, "{} {version}: {}", self.name, self.path)
    }
}

/// The version of a file that is a library of the family.
pub fn of(family: Family, elf: &Elf, bytes: &[u8]) -> Option<String> {
    match family.version() {
        Version::Nowhere => None,
        Version::Symbol(name) => {
            let symbol = elf.symbols.get(name)?.first()?;
            let text = elf::content(bytes, symbol.vaddr)?;
            let text = text.get(..4 * LONGEST).unwrap_or(text).split(|b| *b == 0).next()?;
            let mut words = std::str::from_utf8(text).ok()?.split_ascii_whitespace();
            words.find(|w| w.starts_with(|c: char| c.is_ascii_digit()) && w.contains('.')).map(str::to_owned)
        }
        Version::Text(before, after) => between(bytes, before.as_bytes(), after.as_bytes()),
    }
}

fn between(bytes: &[u8], before: &[u8], after: &[u8]) -> Option<String> {
    memchr::memmem::find_iter(bytes, before).find_map(|at| {
        let at = at + before.len();
        let rest = bytes.get(at..)?;
        let rest = rest.get(..LONGEST).unwrap_or(rest);
        let end = rest.windows(after.len()).position(|w| w == after)?;
        let text = std::str::from_utf8(&rest[..end]).ok()?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
        (text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(plain)).then(|| text.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_stands_between_two_texts() {
        let text = b"release version %s.\0 release version 2.36.\nCopyright release version 3.\n";
        assert_eq!(between(text, b" release version ", b".\n"), Some("2.36".into()));
        assert_eq!(between(text, b"no such text ", b".\n"), None);
        assert_eq!(between(b" release version 2", b" release version ", b".\n"), None);
    }
}
