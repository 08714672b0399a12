//! HDF5.

use crate::replay_code::calls::Arg::{
    self, Collective, Communicator, Container, ElementSize, File, Handle, Hints, Mode, Object, Opened, Selection,
};
use crate::replay_code::calls::Does::{self, Closes, Opens, Uses};
use crate::replay_code::calls::Row;
use crate::vocabulary::Layer;

const fn hdf5(does: Does, ops: &'static [&'static str], args: &'static [Arg], c: &'static str) -> Row {
    Row { layer: Layer::Hdf5, ops, does, args, c }
}

pub const ROWS: &[Row] = &[
    hdf5(
        Opens,
        &["H5Fcreate"],
        &[Opened, File, Mode, Communicator, Hints],
        r#"id[{0}] = made("{op}", {op}(path({1}), {2}, H5P_DEFAULT, access_by({3}, {4})));"#,
    ),
    hdf5(
        Opens,
        &["H5Fopen"],
        &[Opened, File, Mode, Communicator, Hints],
        r#"id[{0}] = made("{op}", {op}(path({1}), {2}, access_by({3}, {4})));"#,
    ),
    hdf5(
        Opens,
        &["H5Gcreate2", "H5Gcreate1", "H5Dcreate2", "H5Dcreate1", "H5Acreate2", "H5Acreate1", "H5Acreate_by_name"],
        &[Opened, Container, Object],
        r#"id[{0}] = made("{op}", create(id[{1}], &OBJECTS[{2}]));"#,
    ),
    hdf5(
        Opens,
        &[
            "H5Gopen2",
            "H5Gopen1",
            "H5Dopen2",
            "H5Dopen1",
            "H5Aopen",
            "H5Aopen_by_name",
            "H5Aopen_name",
            "H5Aopen_idx",
            "H5Aopen_by_idx",
            "H5Oopen",
        ],
        &[Opened, Container, Object],
        r#"id[{0}] = made("{op}", open_object(id[{1}], &OBJECTS[{2}]));"#,
    ),
    hdf5(
        Closes,
        &["H5Fclose", "H5Gclose", "H5Dclose", "H5Aclose", "H5Oclose"],
        &[Handle],
        r#"good("{op}", {op}(id[{0}]));"#,
    ),
    hdf5(
        Uses,
        &["H5Dread", "H5Dwrite"],
        &[Handle, Object, ElementSize, Collective, Selection],
        r#"good("{op}", transfer({op}, id[{0}], &OBJECTS[{1}], {2}, {3}, {start}, {count}));"#,
    ),
    hdf5(
        Uses,
        &["H5Awrite", "H5Aread"],
        &[Handle, Object, ElementSize],
        r#"good("{op}", {op}(id[{0}], type_of({2}), buffer));"#,
    ),
    hdf5(Uses, &["H5Fflush"], &[Handle], r#"good("{op}", {op}(id[{0}], H5F_SCOPE_GLOBAL));"#),
];
