//! A filter as a condition of SQL on rows of `spans`, as `DuckDB` understands it.

use std::ops::RangeInclusive;

use crate::summary::filter::{Node, Numbers, Texts};

/// A text in SQL. Control characters are written by their numbers, so that SQL pasted into a terminal has none.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("'");
    for c in text.chars() {
        match c {
            '\'' => out.push_str("''"),
            c if c.is_control() => out.push_str(&format!("' || chr({}) || '", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('\'');
    if out.contains("||") { format!("({out})") } else { out }
}

impl Node {
    /// True or false and never null, so that `NOT` means what it means in a filter.
    pub(super) fn sql(&self) -> String {
        let joined = |nodes: &[Self], word: &str| {
            let each: Vec<String> = nodes.iter().map(Self::sql).collect();
            format!("({})", each.join(word))
        };
        let names = |names: Vec<&str>| names.into_iter().map(quoted).collect::<Vec<_>>().join(", ");
        match self {
            Self::And(all) => joined(all, " AND "),
            Self::Or(any) => joined(any, " OR "),
            Self::Not(one) => format!("NOT {}", one.sql()),
            Self::Layers(layers) => format!("layer IN ({})", names(layers.iter().map(|l| l.name()).collect())),
            Self::Kinds(kinds) => format!("kind IN ({})", names(kinds.iter().map(|k| k.name()).collect())),
            Self::Text(Texts::Op, patterns) => like("op", patterns),
            Self::Text(Texts::File, patterns) => {
                let paths = like("coalesce(path, '')", patterns);
                format!("coalesce(file_id IN (SELECT file_id FROM files WHERE {paths}), false)")
            }
            Self::Number(what, ranges) => {
                let column = match what {
                    Numbers::Pid => "pid",
                    Numbers::Tid => "tid",
                    Numbers::Rank => "rank",
                    Numbers::Dur => "net_ns",
                    Numbers::Own => "self_ns",
                    Numbers::Offset => "\"offset\"",
                    Numbers::Bytes => "bytes",
                    Numbers::Errno => "errno",
                };
                let each: Vec<String> = ranges.iter().map(|r| within(column, r)).collect();
                let any = if each.len() == 1 { each.concat() } else { format!("({})", each.join(" OR ")) };
                match what {
                    Numbers::Rank | Numbers::Offset | Numbers::Bytes => format!("coalesce({any}, false)"),
                    _ => any,
                }
            }
        }
    }
}

fn within(column: &str, range: &RangeInclusive<i64>) -> String {
    match (*range.start(), *range.end()) {
        (i64::MIN, i64::MAX) => format!("{column} IS NOT NULL"),
        (i64::MIN, high) => format!("{column} <= {high}"),
        (low, i64::MAX) => format!("{column} >= {low}"),
        (low, high) if low == high => format!("{column} = {low}"),
        (low, high) => format!("{column} BETWEEN {low} AND {high}"),
    }
}

fn like(column: &str, patterns: &[String]) -> String {
    let each: Vec<String> = patterns
        .iter()
        .map(|pattern| {
            let (escapes, pattern) = like_pattern(pattern);
            let escape = if escapes { " ESCAPE '^'" } else { "" };
            format!("{column} LIKE {}{escape}", quoted(&pattern))
        })
        .collect();
    if each.len() == 1 { each.concat() } else { format!("({})", each.join(" OR ")) }
}

/// `*` and `?` in the words of SQL; whether something had to be escaped.
fn like_pattern(pattern: &str) -> (bool, String) {
    let mut out = String::new();
    let mut escapes = false;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        let plain = match c {
            '*' => {
                out.push('%');
                continue;
            }
            '?' => {
                out.push('_');
                continue;
            }
            '\\' => chars.next().unwrap_or('\\'),
            c => c,
        };
        if matches!(plain, '%' | '_' | '^') {
            out.push('^');
            escapes = true;
        }
        out.push(plain);
    }
    (escapes, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::filter::Filter;

    fn sql(text: &str) -> String {
        Filter::parse(text).unwrap().sql()
    }

    #[test]
    fn conditions_are_the_same_in_sql() {
        for (filter, wanted) in [
            ("layer=hdf5,mpiio", "layer IN ('hdf5', 'mpiio')"),
            ("op~H5D*", "op LIKE 'H5D%'"),
            ("op=MPI_File_open", "op LIKE 'MPI^_File^_open' ESCAPE '^'"),
            ("dur>10ms", "net_ns >= 10000001"),
            ("rank=0..7", "coalesce(rank BETWEEN 0 AND 7, false)"),
            ("pid=1,2", "(pid = 1 OR pid = 2)"),
            ("offset=4k", "coalesce(\"offset\" = 4096, false)"),
            ("not kind=read", "NOT kind IN ('read')"),
            (
                "layer=vfs and (pid=1 or errno!=0)",
                "(layer IN ('vfs') AND (pid = 1 OR (errno IS NOT NULL AND NOT errno = 0)))",
            ),
            (
                "file~*.h5",
                "coalesce(file_id IN (SELECT file_id FROM files WHERE coalesce(path, '') LIKE '%.h5'), false)",
            ),
        ] {
            assert_eq!(sql(filter), wanted, "{filter}");
        }
    }

    #[test]
    fn a_text_ends_where_it_ends() {
        assert_eq!(quoted("it's"), "'it''s'");
        assert_eq!(sql("op=\"a'b\""), "op LIKE 'a''b'");
        assert_eq!(quoted("a\n\x1b"), "('a' || chr(10) || '' || chr(27) || '')");
    }
}
