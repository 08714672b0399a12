//! How a dataset that is opened is stored, from the structures in which the library keeps it.
//!
//! They are private to the library (H5Oprivate.h, H5Zprivate.h) and differ between versions. Which of them it is shows
//! in the numbers: the last dimension of a chunk is the size of an element, and there is one more than the dataset has.

use crate::correlate::libraries::hdf5::{CHUNKED, named};

/// `H5D_COMPACT`, `H5D_CONTIGUOUS` and `H5D_VIRTUAL` of `H5D_layout_t` (H5Dpublic.h).
const OTHER_LAYOUTS: [u64; 3] = [0, 1, 3];
/// 64-bit integers of `H5Z_filter_info_t`, and the indices of its identifier and first parameter.
const FILTER_WORDS: usize = 8;
const ID: usize = 0;
const PARAMETER: usize = 5;

/// Where `H5O_layout_t` has the number of a chunk's dimensions and the dimensions, and the bytes of each.
const FORMS: [(usize, usize, usize); 3] = [
    // 1.10 to 1.14
    (24, 28, 4),
    // 2.0
    (24, 32, 8),
    // 1.8
    (16, 20, 4),
];

/// The chunk's dimensions, none where the dataset is not in chunks. `elem`: bytes of an element.
pub fn chunk(layout: &[i64], rank: Option<usize>, elem: Option<u64>) -> Option<Vec<i64>> {
    if is_other(layout) {
        return Some(Vec::new());
    }
    if number(layout, 0, 4) != Some(CHUNKED) {
        return None;
    }
    FORMS.into_iter().find_map(|(count, dims, width)| {
        let rank = rank.filter(|rank| number(layout, count, 4) == Some(*rank as u64 + 1))?;
        let all = (0..=rank).map(|i| number(layout, dims + i * width, width)).collect::<Option<Vec<u64>>>()?;
        let (last, dims) = all.split_last()?;
        let dims = dims.iter().map(|dim| i64::try_from(*dim).ok().filter(|dim| *dim > 0));
        elem.filter(|elem| elem == last).and_then(|_| dims.collect())
    })
}

/// Its filters, in their order; none where it is not in chunks. `pipeline`: how many, and what the library knows of each.
pub fn filters(layout: &[i64], pipeline: &[i64]) -> Option<Vec<String>> {
    if is_other(layout) {
        return Some(Vec::new());
    }
    let (count, filters) = pipeline.split_first()?;
    let (filters, rest) = filters.as_chunks::<FILTER_WORDS>();
    let low = |value: i64| value as u32;
    let whole = *count == filters.len() as i64 && rest.is_empty();
    whole.then(|| filters.iter().map(|f| named(low(f[ID]) as i32, Some(low(f[PARAMETER]).into()))).collect())
}

fn is_other(layout: &[i64]) -> bool {
    number(layout, 0, 4).is_some_and(|class| OTHER_LAYOUTS.contains(&class))
}

/// The number of `width` bytes, 4 or 8, at byte offset `at` of this array.
fn number(array: &[i64], at: usize, width: usize) -> Option<u64> {
    let value = *array.get(at / size_of::<i64>())? as u64;
    if width == size_of::<u64>() {
        return Some(value);
    }
    Some(value >> (8 * (at % size_of::<u64>())) & u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An array with 32-bit numbers at these byte offsets.
    fn array(numbers: &[(usize, u32)]) -> Vec<i64> {
        let mut array = vec![0; 38];
        for (at, number) in numbers {
            array[at / 8] |= i64::from(*number) << (8 * (at % 8));
        }
        array
    }

    #[test]
    fn every_version_is_understood() {
        let since_1_10 = array(&[(0, 2), (24, 3), (28, 16), (32, 32), (36, 8)]);
        let since_2_0 = array(&[(0, 2), (24, 3), (32, 16), (40, 32), (48, 8)]);
        let since_1_8 = array(&[(0, 2), (16, 3), (20, 16), (24, 32), (28, 8)]);
        for layout in [since_1_10, since_2_0, since_1_8] {
            assert_eq!(chunk(&layout, Some(2), Some(8)), Some(vec![16, 32]), "{layout:?}");
            assert_eq!(chunk(&layout, Some(2), Some(4)), None, "of another size");
            assert_eq!(chunk(&layout, Some(1), Some(8)), None, "of another rank");
            assert_eq!(chunk(&layout, None, Some(8)), None);
        }
    }

    #[test]
    fn what_is_not_in_chunks_has_neither() {
        for class in [0, 1, 3] {
            let layout = array(&[(0, class)]);
            assert_eq!(chunk(&layout[..2], Some(2), Some(8)), Some(vec![]));
            assert_eq!(filters(&layout[..2], &[]), Some(vec![]));
        }
        let unknown = array(&[(0, 7)]);
        assert_eq!((chunk(&unknown, Some(0), Some(0)), filters(&unknown, &[])), (None, None));
        assert_eq!((chunk(&[], Some(0), Some(0)), filters(&[], &[])), (None, None));
    }

    #[test]
    fn filters_have_their_names_and_levels() {
        let chunked = array(&[(0, 2)]);
        let filter = |id: i64, parameter: i64| [id | 1 << 32, 0, 0, 0, 1, parameter | 9 << 32, 0, 0];
        let pipeline = [&[3][..], &filter(2, 4), &filter(1, 6), &filter(32004, 1)].concat();
        let names = ["shuffle", "deflate(6)", "32004"].map(str::to_owned).to_vec();
        assert_eq!(filters(&chunked, &pipeline), Some(names));
        assert_eq!(filters(&chunked, &[0]), Some(vec![]));
        assert_eq!(filters(&chunked, &pipeline[..9]), None, "cut");
        assert_eq!(filters(&chunked, &[]), None, "not read");
    }
}
