//! What the words in names of functions and arguments stand for.

use crate::probes::generate::guess::{Function, is_buffer};
use crate::vocabulary::Kind;

/// Words in names, and what functions with them do. Of several words in a name the first line here decides.
const VERBS: &[(Kind, &[&str])] = &[
    (Kind::Open, &["open", "create", "creat", "fopen", "reopen"]),
    (Kind::Close, &["close", "fclose", "closeall"]),
    (Kind::Sync, &["flush", "fflush", "sync", "fsync", "fdatasync", "commit", "checkpoint"]),
    (Kind::Seek, &["seek", "fseek", "lseek", "rewind"]),
    (Kind::Meta, &["rename", "unlink", "delete", "remove", "truncate", "resize", "stat", "inq", "inquire"]),
    (Kind::Write, &["write", "fwrite", "pwrite", "put", "store", "save", "append", "dump", "emit"]),
    (Kind::Read, &["read", "fread", "pread", "get", "load", "recv", "fetch"]),
];
/// Those that may stand at the end of a longer word, and longer words that only seem to end with one.
const SUFFIXES: &[&str] = &["open", "create", "close", "flush", "sync", "seek", "write", "read"];
const NO_VERBS: &[&str] = &["thread", "spread", "async", "overread"];
/// Words for what `get` and `put` move when that is no data.
const FACTS: &[&str] = &["size", "length", "count", "name", "info", "error", "version", "mode", "option", "property"];

/// The words of a name: `nc_put_varOpen2` is nc, put, var, open.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = '_';
    for c in name.chars() {
        let begins = c.is_ascii_uppercase() && !before.is_ascii_uppercase();
        match words.last_mut() {
            Some(word) if before.is_alphabetic() && c.is_alphabetic() && !begins => word.push(c.to_ascii_lowercase()),
            _ if c.is_alphabetic() => words.push(c.to_ascii_lowercase().to_string()),
            _ => {}
        }
        before = c;
    }
    words
}

/// The first word of most names: the library's, and no verb.
pub(super) fn common_prefix(functions: &[Function]) -> Option<String> {
    let first = |f: &Function| words(&f.name).into_iter().next();
    let candidate = functions.iter().find_map(first)?;
    let with = functions.iter().filter(|f| first(f).as_ref() == Some(&candidate)).count();
    (with > 1 && 2 * with >= functions.len()).then_some(candidate)
}

pub(super) fn kind(function: &Function, prefix: Option<&str>) -> Option<Kind> {
    let mut words = words(&function.name);
    if words.len() > 1 && words.first().map(String::as_str) == prefix {
        words.remove(0);
    }
    // gzread, H5Dwrite
    let ends = |word: &str, verb: &str| SUFFIXES.contains(&verb) && !NO_VERBS.contains(&word) && word.ends_with(verb);
    let has = |verb: &&str| words.iter().any(|word| word == verb || ends(word, verb));
    let (kind, _) = VERBS.iter().find(|(_, verbs)| verbs.iter().any(has))?;
    let weak = has(&"get") || has(&"put");
    let moves = match (kind, &function.signature) {
        (Kind::Read | Kind::Write, Some(signature)) => signature.params.iter().any(|p| is_buffer(p, *kind)),
        (Kind::Read | Kind::Write, None) => !FACTS.iter().any(has),
        _ => true,
    };
    Some(if weak && !moves { Kind::Meta } else { *kind })
}

/// Does the name of an argument consist of one of these words, or end with it?
pub(super) fn named(name: &str, known: &[&str]) -> bool {
    let words = words(name);
    known.contains(&name.to_ascii_lowercase().trim_matches('_'))
        || words.last().is_some_and(|last| known.contains(&last.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_of_words() {
        assert_eq!(words("nc_put_varOpen2"), ["nc", "put", "var", "open"]);
        assert_eq!(words("H5Dwrite_multi"), ["h", "dwrite", "multi"]);
        assert_eq!(words("readHTTPFile"), ["read", "httpfile"]);
        assert_eq!(words("_store__open_"), ["store", "open"]);
    }
}
