//! The calls that are replayed: which call of the trace, which of its values, and the statement in C.

use crate::vocabulary::Layer;

/// A value of a call, as a number of the generated program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arg {
    /// The variable with the handle that the call uses; of a call that closes it, for the last time.
    Handle,
    /// The variable that gets the handle.
    Opened,
    /// The number of the file that the call names.
    File,
    /// The same, of a file that was there when the call named it.
    KnownFile,
    /// The file's second name.
    SecondFile,
    /// How it is opened: flags of `open`, those of MPI-IO, and of other libraries.
    OpenFlags,
    Amode,
    Mode,
    /// Who opens it together.
    Communicator,
    /// Its hints.
    Hints,
    Offset,
    /// The plain argument, and what it counts from.
    Argument,
    Whence,
    /// Bytes asked for and moved.
    Requested,
    Moved,
    /// The variable of the request that the call begins, or waits for.
    Begun,
    Awaited,
    /// The number of a dataset, variable, attribute or group, and the variable of the file that it is in.
    Object,
    Container,
    /// Bytes of an element in memory.
    ElementSize,
    /// How many elements, and the number of their type in NetCDF.
    Elements,
    Type,
    /// 1: the transfer is collective.
    Collective,
    /// Start and count of each dimension: `{start}` and `{count}`. The last argument.
    Selection,
}

/// What a call does with its handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    Opens,
    Uses,
    Closes,
}

/// A call of the trace as a statement.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub layer: Layer,
    /// Its names in the trace; `*` at the end is any rest.
    pub ops: &'static [&'static str],
    pub does: Does,
    pub args: &'static [Arg],
    /// `{0}` is the first argument, `{op}` the name.
    pub c: &'static str,
}

impl Row {
    fn covers(&self, op: &str) -> bool {
        self.ops.iter().any(|own| own.strip_suffix('*').map_or(*own == op, |begins| op.starts_with(begins)))
    }
}

const fn posix(does: Does, ops: &'static [&'static str], args: &'static [Arg], c: &'static str) -> Row {
    Row { layer: Layer::Syscall, ops, does, args, c }
}

const fn mpiio(does: Does, ops: &'static [&'static str], args: &'static [Arg], c: &'static str) -> Row {
    Row { layer: Layer::Mpiio, ops, does, args, c }
}

const fn netcdf(does: Does, ops: &'static [&'static str], args: &'static [Arg], c: &'static str) -> Row {
    Row { layer: Layer::Netcdf, ops, does, args, c }
}

const fn pnetcdf(does: Does, ops: &'static [&'static str], args: &'static [Arg], c: &'static str) -> Row {
    Row { layer: Layer::Pnetcdf, ops, does, args, c }
}

const fn hdf5(does: Does, ops: &'static [&'static str], args: &'static [Arg], c: &'static str) -> Row {
    Row { layer: Layer::Hdf5, ops, does, args, c }
}

/// The row of the calls that ranks wait in for each other.
pub const BARRIER: usize = 0;
/// The row of a position that a descriptor had before its first call.
pub const POSITION: usize = 1;

use Arg::{
    Amode, Argument, Awaited, Begun, Collective, Communicator, Container, ElementSize, Elements, File, Handle, Hints,
    KnownFile, Mode, Moved, Object, Offset, OpenFlags, Opened, Requested, SecondFile, Selection, Type, Whence,
};
use Does::{Closes, Opens, Uses};

/// All of them. Of several rows for one call the first counts whose values the trace has.
pub const ROWS: &[Row] = &[
    posix(Uses, &[], &[], r#"good("MPI_Barrier", MPI_Barrier(MPI_COMM_WORLD));"#),
    posix(Uses, &[], &[Handle, Offset], r#"same("lseek", {1}, lseek(fd[{0}], {1}, SEEK_SET));"#),
    posix(
        Opens,
        &["open", "openat", "openat2", "creat"],
        &[Opened, File, OpenFlags],
        r#"fd[{0}] = (int)good("open", open(path({1}), {2}, 0644));"#,
    ),
    posix(Closes, &["close"], &[Handle], r#"good("close", close(fd[{0}]));"#),
    posix(Uses, &["read"], &[Handle, Requested, Moved], r#"same("read", {2}, read(fd[{0}], buffer, {1}));"#),
    posix(Uses, &["write"], &[Handle, Requested, Moved], r#"same("write", {2}, write(fd[{0}], buffer, {1}));"#),
    posix(
        Uses,
        &["pread64"],
        &[Handle, Requested, Moved, Offset],
        r#"same("pread", {2}, pread(fd[{0}], buffer, {1}, {3}));"#,
    ),
    posix(
        Uses,
        &["pwrite64"],
        &[Handle, Requested, Moved, Offset],
        r#"same("pwrite", {2}, pwrite(fd[{0}], buffer, {1}, {3}));"#,
    ),
    posix(Uses, &["readv"], &[Handle, Requested, Moved], r#"same("readv", {2}, readv(fd[{0}], vector({1}), 1));"#),
    posix(Uses, &["writev"], &[Handle, Requested, Moved], r#"same("writev", {2}, writev(fd[{0}], vector({1}), 1));"#),
    posix(
        Uses,
        &["preadv", "preadv2"],
        &[Handle, Requested, Moved, Offset],
        r#"same("preadv", {2}, preadv(fd[{0}], vector({1}), 1, {3}));"#,
    ),
    posix(
        Uses,
        &["pwritev", "pwritev2"],
        &[Handle, Requested, Moved, Offset],
        r#"same("pwritev", {2}, pwritev(fd[{0}], vector({1}), 1, {3}));"#,
    ),
    posix(Uses, &["lseek"], &[Handle, Argument, Whence, Offset], r#"same("lseek", {3}, lseek(fd[{0}], {1}, {2}));"#),
    posix(Uses, &["fsync"], &[Handle], r#"good("fsync", fsync(fd[{0}]));"#),
    posix(Uses, &["fdatasync"], &[Handle], r#"good("fdatasync", fdatasync(fd[{0}]));"#),
    posix(Uses, &["syncfs"], &[Handle], r#"good("syncfs", syncfs(fd[{0}]));"#),
    posix(
        Uses,
        &["sync_file_range"],
        &[Handle, Offset, Requested],
        r#"good("sync_file_range", sync_file_range(fd[{0}], {1}, {2}, SYNC_FILE_RANGE_WRITE));"#,
    ),
    posix(Uses, &["ftruncate"], &[Handle, Offset], r#"good("ftruncate", ftruncate(fd[{0}], {1}));"#),
    posix(Uses, &["truncate"], &[KnownFile, Offset], r#"good("truncate", truncate(path({0}), {1}));"#),
    posix(Uses, &["fallocate"], &[Handle, Offset, Requested], r#"good("fallocate", fallocate(fd[{0}], 0, {1}, {2}));"#),
    posix(
        Uses,
        &["fadvise64"],
        &[Handle, Offset, Requested],
        r#"same("posix_fadvise", 0, posix_fadvise(fd[{0}], {1}, {2}, POSIX_FADV_NORMAL));"#,
    ),
    posix(Uses, &["readahead"], &[Handle, Offset, Requested], r#"good("readahead", readahead(fd[{0}], {1}, {2}));"#),
    posix(Uses, &["fstat", "newfstatat", "statx"], &[Handle], r#"good("fstat", fstat(fd[{0}], &status));"#),
    posix(Uses, &["stat", "newfstatat", "statx"], &[KnownFile], r#"good("stat", stat(path({0}), &status));"#),
    posix(Uses, &["lstat"], &[KnownFile], r#"good("lstat", lstat(path({0}), &status));"#),
    posix(Uses, &["access", "faccessat", "faccessat2"], &[KnownFile], r#"good("access", access(path({0}), F_OK));"#),
    posix(Uses, &["unlink", "unlinkat"], &[KnownFile], r#"good("unlink", unlink(path({0})));"#),
    posix(
        Uses,
        &["rename", "renameat", "renameat2"],
        &[KnownFile, SecondFile],
        r#"good("rename", rename(path({0}), second({1})));"#,
    ),
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
        r#"good("{op}", {op}(file[{0}], {1}, MPI_BYTE, MPI_BYTE, "native", hints({2})));"#,
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
    netcdf(
        Opens,
        &["nc_create_par", "nc_open_par"],
        &[Opened, File, Mode, Communicator, Hints],
        r#"good("{op}", {op}(path({1}), {2}, communicator({3}), hints({4}), &nc[{0}]));"#,
    ),
    netcdf(Opens, &["nc_create", "nc_open"], &[Opened, File, Mode], r#"good("{op}", {op}(path({1}), {2}, &nc[{0}]));"#),
    netcdf(Closes, &["nc_close"], &[Handle], r#"good("{op}", {op}(nc[{0}])); forget(nc[{0}]);"#),
    netcdf(Uses, &["nc_def_var"], &[Handle, Object], r#"good("{op}", define(nc[{0}], &OBJECTS[{1}]));"#),
    netcdf(Uses, &["nc_enddef", "nc_redef", "nc_sync"], &[Handle], r#"good("{op}", {op}(nc[{0}]));"#),
    netcdf(
        Uses,
        &["nc_put_att_text"],
        &[Handle, Object, Elements],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), OBJECTS[{1}].attribute, {2}, (void *)buffer));"#,
    ),
    netcdf(
        Uses,
        &["nc_put_att_*"],
        &[Handle, Object, Elements, Type],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), OBJECTS[{1}].attribute, {3}, {2}, (void *)buffer));"#,
    ),
    netcdf(
        Uses,
        &["nc_get_att_*"],
        &[Handle, Object, Elements],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), OBJECTS[{1}].attribute, (void *)buffer));"#,
    ),
    netcdf(
        Uses,
        &["nc_put_var_*", "nc_get_var_*"],
        &[Handle, Object, ElementSize, Collective],
        r#"good("{op}", {op}(nc[{0}], accessed(nc[{0}], &OBJECTS[{1}], {3}), (void *)buffer));"#,
    ),
    netcdf(
        Uses,
        &["nc_put_vara_*", "nc_get_vara_*"],
        &[Handle, Object, ElementSize, Collective, Selection],
        r#"good("{op}", {op}(nc[{0}], accessed(nc[{0}], &OBJECTS[{1}], {3}), {start}, {count}, (void *)buffer));"#,
    ),
    netcdf(
        Uses,
        &["nc_put_var1_*", "nc_get_var1_*"],
        &[Handle, Object, ElementSize, Collective, Selection],
        r#"good("{op}", {op}(nc[{0}], accessed(nc[{0}], &OBJECTS[{1}], {3}), {start}, (void *)buffer));"#,
    ),
    netcdf(
        Uses,
        &["nc_put_vars_*", "nc_get_vars_*"],
        &[Handle, Object, ElementSize, Collective, Selection],
        r#"good("{op}", {op}(nc[{0}], accessed(nc[{0}], &OBJECTS[{1}], {3}), {start}, {count}, NULL, (void *)buffer));"#,
    ),
    netcdf(
        Uses,
        &["nc_put_varm_*", "nc_get_varm_*"],
        &[Handle, Object, ElementSize, Collective, Selection],
        r#"good("{op}", {op}(nc[{0}], accessed(nc[{0}], &OBJECTS[{1}], {3}), {start}, {count}, NULL, NULL, (void *)buffer));"#,
    ),
    pnetcdf(
        Opens,
        &["ncmpi_create", "ncmpi_open"],
        &[Opened, File, Mode, Communicator, Hints],
        r#"good("{op}", {op}(communicator({3}), path({1}), {2}, hints({4}), &nc[{0}]));"#,
    ),
    pnetcdf(Closes, &["ncmpi_close"], &[Handle], r#"good("{op}", {op}(nc[{0}])); forget(nc[{0}]);"#),
    pnetcdf(Uses, &["ncmpi_def_var"], &[Handle, Object], r#"good("{op}", define(nc[{0}], &OBJECTS[{1}]));"#),
    pnetcdf(
        Uses,
        &[
            "ncmpi_enddef",
            "ncmpi_redef",
            "ncmpi_sync",
            "ncmpi_begin_indep_data",
            "ncmpi_end_indep_data",
            "ncmpi_flush",
            "ncmpi_sync_numrecs",
        ],
        &[Handle],
        r#"good("{op}", {op}(nc[{0}]));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_wait_all", "ncmpi_wait"],
        &[Handle],
        r#"good("{op}", {op}(nc[{0}], NC_REQ_ALL, NULL, NULL));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_put_att_text"],
        &[Handle, Object, Elements],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), OBJECTS[{1}].attribute, {2}, (void *)buffer));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_put_att_*"],
        &[Handle, Object, Elements, Type],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), OBJECTS[{1}].attribute, {3}, {2}, (void *)buffer));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_get_att_*"],
        &[Handle, Object, Elements],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), OBJECTS[{1}].attribute, (void *)buffer));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_put_var_*", "ncmpi_get_var_*"],
        &[Handle, Object, ElementSize],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), (void *)buffer));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_put_vara_*", "ncmpi_get_vara_*"],
        &[Handle, Object, ElementSize, Selection],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), {start}, {count}, (void *)buffer));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_put_var1_*", "ncmpi_get_var1_*"],
        &[Handle, Object, ElementSize, Selection],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), {start}, (void *)buffer));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_put_vars_*", "ncmpi_get_vars_*"],
        &[Handle, Object, ElementSize, Selection],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), {start}, {count}, NULL, (void *)buffer));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_put_varm_*", "ncmpi_get_varm_*"],
        &[Handle, Object, ElementSize, Selection],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), {start}, {count}, NULL, NULL, (void *)buffer));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_put_varn_*", "ncmpi_get_varn_*"],
        &[Handle, Object, ElementSize, Selection],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), 1, pieces({start}), pieces({count}), (void *)buffer));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_iput_var_*", "ncmpi_iget_var_*"],
        &[Handle, Object, ElementSize],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), (void *)buffer, &request));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_iput_vara_*", "ncmpi_iget_vara_*"],
        &[Handle, Object, ElementSize, Selection],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), {start}, {count}, (void *)buffer, &request));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_iput_var1_*", "ncmpi_iget_var1_*"],
        &[Handle, Object, ElementSize, Selection],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), {start}, (void *)buffer, &request));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_iput_vars_*", "ncmpi_iget_vars_*"],
        &[Handle, Object, ElementSize, Selection],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), {start}, {count}, NULL, (void *)buffer, &request));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_iput_varm_*", "ncmpi_iget_varm_*"],
        &[Handle, Object, ElementSize, Selection],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), {start}, {count}, NULL, NULL, (void *)buffer, &request));"#,
    ),
    pnetcdf(
        Uses,
        &["ncmpi_iput_varn_*", "ncmpi_iget_varn_*"],
        &[Handle, Object, ElementSize, Selection],
        r#"good("{op}", {op}(nc[{0}], variable(nc[{0}], &OBJECTS[{1}]), 1, pieces({start}), pieces({count}), (void *)buffer, &request));"#,
    ),
    netcdf(Uses, &["nc__enddef"], &[Handle], r#"good("enddef", NC(enddef)(nc[{0}]));"#),
    pnetcdf(Uses, &["ncmpi__enddef"], &[Handle], r#"good("enddef", NC(enddef)(nc[{0}]));"#),
];

/// Types in names of functions of NetCDF: their bytes and their numbers.
const TYPES: &[(&str, i64, i64)] = &[
    ("schar", 1, 1),
    ("text", 1, 2),
    ("short", 2, 3),
    ("int", 4, 4),
    ("float", 4, 5),
    ("double", 8, 6),
    ("uchar", 1, 7),
    ("ubyte", 1, 7),
    ("ushort", 2, 8),
    ("uint", 4, 9),
    ("long", 8, 10),
    ("longlong", 8, 10),
    ("ulonglong", 8, 11),
];

/// The type in the name of a function: its bytes and its number.
pub fn element_type(op: &str) -> Option<(i64, i64)> {
    let named = |part: &str| TYPES.iter().find(|(name, ..)| *name == part);
    op.split('_').find_map(named).map(|(_, bytes, number)| (*bytes, *number))
}

/// A row with the name of the function, which is the number of it among those that the program has.
pub const fn function(row: usize, op: usize) -> usize {
    op * ROWS.len() + row
}

/// The row, and the number of the name.
pub const fn parts(function: usize) -> (usize, usize) {
    (function % ROWS.len(), function / ROWS.len())
}

/// The rows of a call of a layer, with their numbers.
pub fn of(layer: Layer, op: &str) -> impl Iterator<Item = (usize, &'static Row)> {
    ROWS.iter().enumerate().filter(move |(_, row)| row.layer == layer && row.covers(op))
}
