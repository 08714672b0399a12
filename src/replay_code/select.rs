//! Which elements a transfer is of: the trace has the number of bytes, and often where they are in the file.

/// How many elements a transfer has, and their size in memory: the trace has their product.
pub fn elements(bytes: i64, size: i64, dims: &[i64]) -> Option<(i64, i64)> {
    let total = total(dims);
    let count = bytes.checked_div(size).filter(|count| count.checked_mul(size) == Some(bytes) && *count <= total);
    // Elements of another size in memory: so many of them as the dataset has.
    let converted = || bytes.checked_div(total).filter(|size| *size > 0 && size.checked_mul(total) == Some(bytes));
    count.map(|count| (count, size)).or_else(|| converted().map(|size| (total, size)))
}

pub fn total(dims: &[i64]) -> i64 {
    dims.iter().fold(1, |total, dim| total.saturating_mul((*dim).max(0)))
}

/// Where the transfer number `turn` of a rank begins when ranks take turns.
pub fn in_turns(turn: i64, (rank, ranks): (i64, i64), count: i64, total: i64) -> i64 {
    if count <= 0 || count >= total {
        return 0;
    }
    let at = turn.saturating_mul(ranks).saturating_add(rank).saturating_mul(count);
    // Over the end it begins again.
    let whole = (total / count).saturating_mul(count);
    if at >= whole { at.checked_rem(whole).unwrap_or(0) } else { at }
}

/// Start and count of a block of so many elements that begins at a position, or as near to it as it fits. None: no block
/// has so many.
pub fn block(dims: &[i64], at: i64, count: i64) -> Option<(Vec<i64>, Vec<i64>)> {
    let (mut start, mut counts) = (vec![0; dims.len()], vec![0; dims.len()]);
    let (mut left, mut position) = (count, at);
    for (d, dim) in dims.iter().enumerate().rev() {
        let whole = if left > 0 { largest_divisor(left, *dim)? } else { 0 };
        counts[d] = whole;
        left = if whole > 0 { left / whole } else { 0 };
        start[d] = position.checked_rem(*dim).unwrap_or(0).min(dim.saturating_sub(whole)).max(0);
        position = position.checked_div(*dim).unwrap_or(0);
    }
    (left <= 1).then_some((start, counts))
}

/// Divisors of larger numbers are not looked for: a dataset may have any number, and each takes as long as its root.
const DIVIDED_MAX: i64 = 1 << 32;

/// The largest divisor of a number that is at most `most`.
fn largest_divisor(number: i64, most: i64) -> Option<i64> {
    if most >= number {
        return Some(number);
    }
    if most > 0 && number % most == 0 {
        return Some(most);
    }
    if number > DIVIDED_MAX {
        return None;
    }
    let mut largest = None;
    for small in 1..=most {
        if small.saturating_mul(small) > number {
            break;
        }
        if number % small == 0 {
            largest = largest.max(Some(small).filter(|small| *small <= most));
            largest = largest.max(Some(number / small).filter(|large| *large <= most));
        }
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn whole_rows_and_parts_of_one() {
        assert_eq!(block(&[32, 16], 64, 256), Some((vec![4, 0], vec![16, 16])));
        assert_eq!(block(&[32, 16], 20, 4), Some((vec![1, 4], vec![1, 4])));
        assert_eq!(block(&[], 0, 1), Some((vec![], vec![])));
        assert_eq!(block(&[3, 4], 0, 10), None);
        assert_eq!(block(&[8], 3, 0), Some((vec![3], vec![0])));
        let huge = i64::MAX - 24;
        assert_eq!(block(&[huge / 2, 3], 0, huge), None, "not looked for");
    }

    #[test]
    fn sizes_in_memory() {
        assert_eq!(elements(1024, 4, &[32, 16]), Some((256, 4)));
        assert_eq!(elements(40, 33, &[4]), Some((4, 10)));
        assert_eq!(elements(4, 16, &[]), Some((1, 4)));
        assert_eq!(elements(7, 4, &[32]), None);
        assert_eq!(elements(0, 4, &[32]), Some((0, 4)));
    }

    #[test]
    fn ranks_take_turns() {
        let of = |turn, rank| in_turns(turn, (rank, 4), 10, 100);
        assert_eq!([of(0, 0), of(0, 3), of(1, 0), of(2, 1), of(2, 2)], [0, 30, 40, 90, 0]);
        assert_eq!(in_turns(5, (1, 4), 100, 100), 0);
    }

    proptest! {
        #[test]
        fn a_block_is_inside_and_of_that_size(dims in prop::collection::vec(1..9_i64, 0..4), at in 0..500_i64, count in 0..500_i64) {
            if let Some((start, counts)) = block(&dims, at, count) {
                let most = counts.iter().zip(&start).zip(&dims).all(|((count, start), dim)| *start >= 0 && start + count <= *dim);
                prop_assert!(most);
                prop_assert!(dims.is_empty() || total(&counts) == count);
            }
        }
    }
}
