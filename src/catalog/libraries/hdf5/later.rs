//! Functions that only put their work into an event set (`*_async`): with an asynchronous connector it is done later, on
//! another thread; without one, in the call.

use crate::catalog::{Row, Src};
use crate::vocabulary::flag;

/// Each has the arguments of the function beside it, after `(app_file, app_func, app_line)`.
const PAIRS: &[(&str, &str)] = &[
    ("H5Fcreate_async", "H5Fcreate"),
    ("H5Fopen_async", "H5Fopen"),
    ("H5Freopen_async", "H5Freopen"),
    ("H5Fflush_async", "H5Fflush"),
    ("H5Fclose_async", "H5Fclose"),
    ("H5Dcreate_async", "H5Dcreate2"),
    ("H5Dopen_async", "H5Dopen2"),
    ("H5Dget_space_async", "H5Dget_space"),
    ("H5Dread_async", "H5Dread"),
    ("H5Dread_multi_async", "H5Dread_multi"),
    ("H5Dwrite_async", "H5Dwrite"),
    ("H5Dwrite_multi_async", "H5Dwrite_multi"),
    ("H5Dset_extent_async", "H5Dset_extent"),
    ("H5Dclose_async", "H5Dclose"),
    ("H5Acreate_async", "H5Acreate2"),
    ("H5Acreate_by_name_async", "H5Acreate_by_name"),
    ("H5Aopen_async", "H5Aopen"),
    ("H5Aopen_by_name_async", "H5Aopen_by_name"),
    ("H5Aopen_by_idx_async", "H5Aopen_by_idx"),
    ("H5Aread_async", "H5Aread"),
    ("H5Awrite_async", "H5Awrite"),
    ("H5Arename_async", "H5Arename"),
    ("H5Arename_by_name_async", "H5Arename_by_name"),
    // The answer goes to memory, unlike that of their namesakes.
    ("H5Aexists_async", "H5Adelete"),
    ("H5Aexists_by_name_async", "H5Adelete"),
    ("H5Aclose_async", "H5Aclose"),
    ("H5Gcreate_async", "H5Gcreate2"),
    ("H5Gopen_async", "H5Gopen2"),
    ("H5Gget_info_async", "H5Gget_info"),
    ("H5Gget_info_by_name_async", "H5Gget_info_by_name"),
    ("H5Gget_info_by_idx_async", "H5Gget_info_by_idx"),
    ("H5Gclose_async", "H5Gclose"),
    ("H5Lcreate_hard_async", "H5Lcreate_hard"),
    ("H5Lcreate_soft_async", "H5Lcreate_soft"),
    ("H5Ldelete_async", "H5Ldelete"),
    ("H5Ldelete_by_idx_async", "H5Ldelete_by_idx"),
    ("H5Lexists_async", "H5Ldelete"),
    ("H5Literate_async", "H5Literate2"),
    ("H5Oopen_async", "H5Oopen"),
    ("H5Oopen_by_idx_async", "H5Oopen_by_idx"),
    ("H5Oget_info_by_name_async", "H5Oget_info_by_name3"),
    ("H5Ocopy_async", "H5Ocopy"),
    ("H5Oflush_async", "H5Oflush"),
    ("H5Orefresh_async", "H5Orefresh"),
    ("H5Oclose_async", "H5Oclose"),
    ("H5Ropen_object_async", "H5Ropen_object"),
    ("H5Ropen_region_async", "H5Ropen_region"),
    ("H5Ropen_attr_async", "H5Ropen_attr"),
    ("H5Tcommit_async", "H5Tcommit2"),
    ("H5Topen_async", "H5Topen2"),
    ("H5Tclose_async", "H5Tclose"),
];

/// Arguments in front.
const BEFORE: u8 = 3;

/// Their rows, made from those of the functions that do the same at once.
pub(super) fn rows(at_once: &[Row]) -> Vec<Row> {
    let row = |(symbol, twin): &(&'static str, &str)| {
        let twin = at_once.iter().find(|r| r.symbol == *twin)?;
        Some(Row { symbol, op: symbol, flags: twin.flags | flag::NONBLOCKING, ..shifted(*twin) })
    };
    PAIRS.iter().filter_map(row).collect()
}

/// The row of a function with arguments in front.
fn shifted(mut row: Row) -> Row {
    row.does = row.does.with_sources(later);
    for argument in [&mut row.path, &mut row.path2].into_iter().flatten() {
        *argument += BEFORE;
    }
    for array in row.arrays.iter_mut().flatten() {
        *array = array.later(BEFORE);
    }
    row
}

/// Where a value comes from when there are arguments in front.
fn later(src: Src) -> Src {
    match src {
        Src::Arg(a) => Src::Arg(a + BEFORE),
        Src::Int(a) => Src::Int(a + BEFORE),
        Src::In(a) => Src::In(a + BEFORE),
        Src::Rounds(count, a, b) => Src::Rounds(count + BEFORE, a, b),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::libraries::hdf5::Effect;
    use crate::catalog::{Family, rows};

    #[test]
    fn each_function_has_a_twin_and_its_arguments_are_shifted() {
        let rows: Vec<Row> = rows().into_iter().filter(|r| r.family == Family::Hdf5).collect();
        let of = |symbol: &str| *rows.iter().find(|r| r.symbol == symbol).unwrap();
        for (symbol, twin) in PAIRS {
            let (later, twin) = (of(symbol), of(twin));
            assert_eq!((later.kind, later.role()), (twin.kind, twin.role()), "{symbol}");
            let variant = std::mem::discriminant::<Effect>;
            assert_eq!(variant(&later.effect()), variant(&twin.effect()), "{symbol}");
            assert_eq!((later.op, later.flags), (*symbol, flag::NONBLOCKING));
            // Every source that these rows use is one that `later` knows.
            for (src, later) in twin.values().all().into_iter().zip(later.values().all()) {
                let inner = matches!(src, Src::FromInner(_) | Src::InnerProduct(..));
                let fixed = inner || matches!(src, Src::None | Src::Ret | Src::RetInt);
                assert!(fixed || later != src, "{symbol}: {src:?}");
            }
        }
        let write = of("H5Dwrite_async");
        let values = write.values();
        assert_eq!((values.handle, values.off, values.len), (Src::Arg(3), Src::Arg(7), Src::InnerProduct(0, 1)));
        assert!(write.stack_arguments());
        assert_eq!(of("H5Dread_multi_async").values().len, Src::Rounds(3, 0, 2));
        assert_eq!(of("H5Dread_multi_async").arrays[0].unwrap().arg, 4);
        assert_eq!((of("H5Fopen_async").path, of("H5Acreate_by_name_async").path2), (Some(3), Some(5)));
    }
}
