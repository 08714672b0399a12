//! MPI-IO.

use crate::replay_code::calls::Arg::{
    self, Amode, Awaited, Begun, Communicator, File, Handle, Hints, Moved, Offset, Opened, Requested,
};
use crate::replay_code::calls::Does::{self, Closes, Opens, Uses};
use crate::replay_code::calls::Row;
use crate::vocabulary::Layer;

const fn mpiio(does: Does, ops: &'static [&'static str], args: &'static [Arg], c: &'static str) -> Row {
    Row { layer: Layer::Mpiio, ops, does, args, c }
}

pub const ROWS: &[Row] = &[
    mpiio(
        Opens,
        &["MPI_File_open"],
        &[Opened, File, Amode, Communicator, Hints],
        r#"good("MPI_File_open", MPI_File_open(communicator({3}), path({1}), {2}, hints({4}), &file[{0}]));"#,
    ),
    mpiio(Closes, &["MPI_File_close"], &[Handle], r#"good("MPI_File_close", MPI_File_close(&file[{0}]));"#),
    mpiio(
        Uses,
        &["MPI_File_read_at", "MPI_File_write_at", "MPI_File_read_at_all", "MPI_File_write_at_all"],
        &[Handle, Offset, Requested, Moved],
        r#"moved("{op}", {3}, {op}(file[{0}], {1}, buffer, {2}, MPI_BYTE, &status));"#,
    ),
    mpiio(
        Uses,
        &[
            "MPI_File_read",
            "MPI_File_write",
            "MPI_File_read_all",
            "MPI_File_write_all",
            "MPI_File_read_shared",
            "MPI_File_write_shared",
            "MPI_File_read_ordered",
            "MPI_File_write_ordered",
        ],
        &[Handle, Requested, Moved],
        r#"moved("{op}", {2}, {op}(file[{0}], buffer, {1}, MPI_BYTE, &status));"#,
    ),
    mpiio(
        Uses,
        &["MPI_File_iread_at", "MPI_File_iwrite_at", "MPI_File_iread_at_all", "MPI_File_iwrite_at_all"],
        &[Handle, Offset, Requested, Begun],
        r#"good("{op}", {op}(file[{0}], {1}, buffer, {2}, MPI_BYTE, &request[{3}]));"#,
    ),
    mpiio(
        Uses,
        &[
            "MPI_File_iread",
            "MPI_File_iwrite",
            "MPI_File_iread_all",
            "MPI_File_iwrite_all",
            "MPI_File_iread_shared",
            "MPI_File_iwrite_shared",
        ],
        &[Handle, Requested, Begun],
        r#"good("{op}", {op}(file[{0}], buffer, {1}, MPI_BYTE, &request[{2}]));"#,
    ),
    mpiio(
        Uses,
        &[
            "MPI_Wait",
            "MPI_Waitall",
            "MPI_Waitany",
            "MPI_Waitsome",
            "MPI_Test",
            "MPI_Testall",
            "MPI_Testany",
            "MPI_Testsome",
        ],
        &[Awaited],
        r#"good("MPI_Wait", MPI_Wait(&request[{0}], &status));"#,
    ),
    mpiio(
        Uses,
        &["MPI_File_read_at_all_begin", "MPI_File_write_at_all_begin"],
        &[Handle, Offset, Requested],
        r#"good("{op}", {op}(file[{0}], {1}, buffer, {2}, MPI_BYTE));"#,
    ),
    mpiio(
        Uses,
        &[
            "MPI_File_read_all_begin",
            "MPI_File_write_all_begin",
            "MPI_File_read_ordered_begin",
            "MPI_File_write_ordered_begin",
        ],
        &[Handle, Requested],
        r#"good("{op}", {op}(file[{0}], buffer, {1}, MPI_BYTE));"#,
    ),
    mpiio(
        Uses,
        &[
            "MPI_File_read_at_all_end",
            "MPI_File_write_at_all_end",
            "MPI_File_read_all_end",
            "MPI_File_write_all_end",
            "MPI_File_read_ordered_end",
            "MPI_File_write_ordered_end",
        ],
        &[Handle],
        r#"good("{op}", {op}(file[{0}], buffer, &status));"#,
    ),
    mpiio(
        Uses,
        &["MPI_File_seek", "MPI_File_seek_shared"],
        &[Handle, Offset],
        r#"good("{op}", {op}(file[{0}], {1}, MPI_SEEK_SET));"#,
    ),
    mpiio(
        Uses,
        &["MPI_File_set_view"],
        &[Handle, Offset, Hints],
        r#"good("{op}", set_view(file[{0}], {1}, {turn}, hints({2})));"#,
    ),
    mpiio(Uses, &["MPI_File_sync"], &[Handle], r#"good("{op}", {op}(file[{0}]));"#),
    mpiio(
        Uses,
        &["MPI_File_set_size", "MPI_File_preallocate"],
        &[Handle, Requested],
        r#"good("{op}", {op}(file[{0}], {1}));"#,
    ),
    mpiio(
        Uses,
        &["MPI_File_get_size", "MPI_File_get_position", "MPI_File_get_position_shared"],
        &[Handle],
        r#"good("{op}", {op}(file[{0}], &number));"#,
    ),
];
