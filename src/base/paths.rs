//! Paths are bytes from strangers: making them text, absolute, and comparable.

use std::fmt::Write as _;

/// A path, and a number of the root directory that it starts from: containers have their own.
pub type Rooted<'a> = (u64, &'a [u8]);

/// The text of a path; bytes that are not UTF-8 become `\xNN`.
pub fn lossy_path(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// `path` seen from `base`, without `.`, `..` and double slashes. Symbolic links are not followed.
pub fn absolute(base: &[u8], path: &[u8]) -> Vec<u8> {
    let start: &[u8] = if path.starts_with(b"/") { b"" } else { base };
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in start.split(|b| *b == b'/').chain(path.split(|b| *b == b'/')) {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    let mut out = Vec::with_capacity(start.len() + path.len() + 1);
    for part in parts {
        out.push(b'/');
        out.extend_from_slice(part);
    }
    if out.is_empty() {
        out.push(b'/');
    }
    out
}

/// What follows a directory in a path below it, with its slash.
pub fn below<'a>(dir: &[u8], path: &'a [u8]) -> Option<&'a [u8]> {
    let rest = path.strip_prefix(dir.strip_suffix(b"/").unwrap_or(dir))?;
    (rest.is_empty() || rest.starts_with(b"/")).then_some(rest)
}

/// The path in its file system of a file that was renamed, from the one it had there, the one that the process knew, and
/// the one that it knows now: what the first two end with alike is below their mount.
pub fn moved_inside(inside: &[u8], before: &[u8], now: &[u8]) -> Option<Vec<u8>> {
    let same = inside.iter().rev().zip(before.iter().rev()).take_while(|(a, b)| a == b).count();
    let slash = inside[inside.len() - same..].iter().position(|b| *b == b'/')?;
    let common = same - slash;
    let rest = now.strip_prefix(&before[..before.len() - common])?;
    Some([&inside[..inside.len() - common], rest].concat())
}

/// What follows the last slash.
pub fn last_component(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or(path)
}

/// The role of a file by its path: `lib`, `proc`, `temp`, `socket`, `pipe` or `data`.
pub fn role(path: &[u8]) -> &'static str {
    let below = |dir: &[u8]| path.starts_with(dir) && path.get(dir.len()).is_none_or(|b| *b == b'/');
    let name = last_component(path);
    if path.starts_with(b"socket:[") {
        "socket"
    } else if path.starts_with(b"pipe:[") {
        "pipe"
    } else if below(b"/proc") || below(b"/sys") {
        "proc"
    } else if name.ends_with(b".so") || name.windows(4).any(|w| w == b".so.") {
        "lib"
    } else if below(b"/tmp") || below(b"/dev/shm") {
        "temp"
    } else {
        "data"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_text_without_losing_a_byte() {
        assert_eq!(lossy_path("/tmp/é".as_bytes()), "/tmp/é");
        assert_eq!(lossy_path(b"/a\xff\xc3/b"), "/a\\xff\\xc3/b");
    }

    #[test]
    fn paths_become_absolute_by_their_text_alone() {
        let cases: [(&str, &str, &str); 6] = [
            ("/home/u", "a/b", "/home/u/a/b"),
            ("/home/u", "/a//b/", "/a/b"),
            ("/home/u/", "./../x", "/home/x"),
            ("/", "../../x", "/x"),
            ("", "x", "/x"),
            ("/", ".", "/"),
        ];
        for (base, path, want) in cases {
            assert_eq!(absolute(base.as_bytes(), path.as_bytes()), want.as_bytes(), "{base} + {path}");
        }
    }

    #[test]
    fn a_renamed_file_moves_in_its_file_system() {
        let cases = [
            // Below the mount of a whole file system, of a directory, in a root directory of its own.
            (["/d/x", "/mnt/d/x", "/mnt/e/y"], Some("/e/y")),
            (["/vol/7/x", "/data/x", "/data/y"], Some("/vol/7/y")),
            (["/srv/root/data/x", "/data/x", "/data/s/y"], Some("/srv/root/data/s/y")),
            (["/a/x", "/b/x", "/b/y"], Some("/a/y")),
            (["/a/x", "/b/x", "/c/x"], None),
            (["/ab/x", "/b/x", "/b/z"], Some("/ab/z")),
        ];
        for ([inside, before, now], want) in cases {
            let got = moved_inside(inside.as_bytes(), before.as_bytes(), now.as_bytes());
            assert_eq!(got.as_deref(), want.map(str::as_bytes), "{inside} {before} {now}");
        }
    }

    #[test]
    fn roles_follow_the_path() {
        let cases: [(&str, &str); 10] = [
            ("socket:[5]", "socket"),
            ("pipe:[5]", "pipe"),
            ("/usr/lib/libc.so.6", "lib"),
            ("/x/libfoo.so", "lib"),
            ("/proc/self/maps", "proc"),
            ("/process/data", "data"),
            ("/sys", "proc"),
            ("/tmp/x", "temp"),
            ("/dev/shm/a", "temp"),
            ("/home/a.sort", "data"),
        ];
        for (path, want) in cases {
            assert_eq!(role(path.as_bytes()), want, "{path}");
        }
    }
}
