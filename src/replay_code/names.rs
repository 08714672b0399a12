//! Names of files of the trace as names below the directory of the generated program, and as strings of C.

use std::fmt::Write as _;

/// Longest name of a file in most file systems.
const LONGEST: usize = 255;

/// Directories whose files a program does not itself work on: they are left out unless they are asked for.
const SYSTEM: &[&str] = &[
    "/bin/",
    "/boot/",
    "/dev/",
    "/etc/",
    "/lib/",
    "/lib32/",
    "/lib64/",
    "/proc/",
    "/run/",
    "/sbin/",
    "/sys/",
    "/usr/",
    "/var/lib/",
    "/var/cache/",
    "/var/run/",
    "/tmp/ompi.",
    "/tmp/pmix",
    "/tmp/openmpi-",
];

/// Whether a path is in such a directory.
pub fn is_system(path: &str) -> bool {
    !path.starts_with('/')
        || SYSTEM.iter().any(|directory| path.starts_with(directory))
        || path.split('/').any(|part| part.starts_with("ompi.") || part == ".deps")
}

/// Names below a directory, one for each path: without what all paths begin with, every part a plain file name.
pub fn below(paths: &[String]) -> Vec<String> {
    let parts: Vec<Vec<&str>> =
        paths.iter().map(|path| path.split('/').filter(|part| !part.is_empty()).collect()).collect();
    let first = parts.first().map_or(&[][..], Vec::as_slice);
    let common =
        |path: &Vec<&str>| path[..path.len().saturating_sub(1)].iter().zip(first).take_while(|(a, b)| a == b).count();
    let shared = parts.iter().map(common).min().unwrap_or(0);
    parts.iter().enumerate().map(|(at, path)| plain(&path[shared..], at)).collect()
}

fn plain(parts: &[&str], number: usize) -> String {
    let name = parts.iter().map(|part| escaped(part)).collect::<Vec<_>>().join("/");
    let too_long = name.split('/').any(|part| part.len() > LONGEST) || name.len() > 2048;
    if name.is_empty() || too_long { format!("%file{number}") } else { name }
}

/// One part of a path: letters, digits and `._-`, other bytes as `%NN`; never `.` or `..`.
fn escaped(part: &str) -> String {
    if part.bytes().all(|byte| byte == b'.') {
        return part.replace('.', "%2e");
    }
    let mut name = String::new();
    for byte in part.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => name.push(byte.into()),
            _ => _ = write!(name, "%{byte:02x}"),
        }
    }
    name
}

/// A string of C. Bytes that are not plain are octal: `\xNN` would take digits behind it as well.
pub fn literal(text: &str) -> String {
    let mut c = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => _ = write!(c, "\\{}", char::from(byte)),
            // `??/` would be a trigraph.
            b'?' => c.push_str("\\?"),
            b' '..=b'~' => c.push(byte.into()),
            _ => _ = write!(c, "\\{byte:03o}"),
        }
    }
    c.push('"');
    c
}

/// Text that can stand in a comment of C, and in Markdown.
pub fn comment(text: &str) -> String {
    crate::base::text::escape(text).replace("*/", "*\\/").replace('`', "'").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(paths: &[&str]) -> Vec<String> {
        below(&paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn what_all_have_in_common_goes() {
        assert_eq!(of(&["/a/b/x.dat", "/a/b/c/y.dat"]), ["x.dat", "c/y.dat"]);
        assert_eq!(of(&["/a/b/x.dat"]), ["x.dat"]);
        assert_eq!(of(&["/a/x", "/a/x/y"]), ["x", "x/y"]);
    }

    #[test]
    fn hostile_names_stay_below() {
        assert_eq!(of(&["/a/..", "/b/x y\n\"%s"]), ["a/%2e%2e", "b/x%20y%0a%22%25s"]);
        assert_eq!(literal("a\"\\\n1?é"), r#""a\"\\\0121\?\303\251""#);
        assert_eq!(comment("a */ b\u{202e}"), "a *\\/ b\\u{202e}");
    }

    proptest! {
        #[test]
        fn every_name_is_below(paths in prop::collection::btree_set("(/[a-c. %/]{1,4}){1,3}", 1..6)) {
            let paths: Vec<String> = paths.into_iter().collect();
            let names = below(&paths);
            for name in &names {
                prop_assert!(!name.starts_with('/') && name.split('/').all(|part| !part.is_empty() && part != "." && part != ".."));
            }
        }
    }
}
