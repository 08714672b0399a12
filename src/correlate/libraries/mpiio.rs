//! Opens of files by MPI-IO.

use crate::catalog::{Family, OMPIO, OMPIO_OPENED, OPENED_BY, ROMIO, ROMIO_OPENED};
use crate::correlate::seen::Seen;

/// The ranks in the job of the processes, `size` of them, that open a file together, where all are known.
pub fn ranks(seen: &Seen, size: Option<i32>) -> Option<String> {
    let size = usize::try_from(size?).ok()?;
    let mut ranks = Vec::new();
    for [first, last, step] in seen.numbers(OPENED_BY)?.as_chunks().0 {
        let steps = (last - first).checked_div(*step).unwrap_or(0);
        ranks.extend((0..=steps).take(size).map(|n| first + n * step));
        if ranks.len() > size {
            return None;
        }
    }
    ranks.sort_unstable();
    ranks.dedup();
    (ranks.len() == size && ranks.first().is_some_and(|rank| *rank >= 0)).then(|| in_short(&ranks))
}

/// Ascending numbers as ranges: `0-3`, with their distance where that is not 1: `0-6:2`.
fn in_short(mut numbers: &[i64]) -> String {
    let mut parts = Vec::new();
    while let [first, rest @ ..] = numbers {
        let step = rest.first().map_or(1, |next| next - first);
        let run = numbers.windows(2).take_while(|pair| pair[1] - pair[0] == step).count() + 1;
        let (last, run) = if run < 3 { (first, 1) } else { (&numbers[run - 1], run) };
        parts.push(match (run, step) {
            (1, _) => first.to_string(),
            (_, 1) => format!("{first}-{last}"),
            _ => format!("{first}-{last}:{step}"),
        });
        numbers = &numbers[run..];
    }
    parts.join(",")
}

/// Which implementation serves the file. MPICH and what descends from it have one.
pub fn implementation(seen: &Seen) -> Option<&'static str> {
    match seen.row.family {
        Family::Mpich | Family::MpiAbi => Some(ROMIO),
        _ if seen.numbers(OMPIO_OPENED).is_some() => Some(OMPIO),
        _ => seen.numbers(ROMIO_OPENED).map(|_| ROMIO),
    }
}

#[cfg(test)]
mod tests {
    use super::in_short;

    #[test]
    fn numbers_are_ranges_with_steps() {
        for (numbers, text) in [
            (&[][..], ""),
            (&[3], "3"),
            (&[0, 1], "0,1"),
            (&[0, 1, 2, 3], "0-3"),
            (&[0, 2, 4], "0-4:2"),
            (&[0, 1, 3, 5, 7], "0,1-7:2"),
            (&[0, 1, 2, 7, 9, 20], "0-2,7,9,20"),
        ] {
            assert_eq!(in_short(numbers), text);
        }
    }
}
