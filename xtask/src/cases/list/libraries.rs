//! Cases whose cause is in how a program uses a library of data formats or MPI-IO.

use super::{Case, Setting, at, case, plain};

pub const CASES: &[Case] = &[
    Case {
        prepare: "{bin}/case_chunks make {dir}/data.h5",
        ..case(
            "chunk-cache",
            "hdf5-chunk-cache",
            "chunks of 2 MiB do not fit the chunk cache, so 32 reads decompress each of them 32 times; a larger cache",
            plain("{bin}/case_chunks rows {dir}/data.h5"),
            plain("{bin}/case_chunks rows-cached {dir}/data.h5"),
        )
    },
    case(
        "attribute",
        "hdf5-metadata",
        "an attribute is written and flushed 20000 times; once",
        plain("{bin}/case_chunks attribute {dir}/data.h5"),
        plain("{bin}/case_chunks attribute-once {dir}/data.h5"),
    ),
    case(
        "h5-flush",
        "hdf5-metadata",
        "H5Fflush after each of 10000 rows; when the file is closed",
        plain("{bin}/case_chunks flushed {dir}/data.h5"),
        plain("{bin}/case_chunks flushed-once {dir}/data.h5"),
    ),
    case(
        "h5py-elements",
        "element-at-a-time",
        "h5py reads 10000 numbers one by one; as a slice",
        plain("{python} {cases}/elements.py h5py each {dir}/data.h5 10000"),
        plain("{python} {cases}/elements.py h5py slice {dir}/data.h5 10000"),
    ),
    case(
        "netcdf4-elements",
        "element-at-a-time",
        "netCDF4 for Python reads 2000 numbers one by one; as a slice",
        plain("{python} {cases}/elements.py netcdf4 each {dir}/data.nc 2000"),
        plain("{python} {cases}/elements.py netcdf4 slice {dir}/data.nc 2000"),
    ),
    case(
        "conversion",
        "layer-overhead",
        "HDF5 converts doubles to floats of the other byte order; writes doubles",
        plain("{bin}/case_chunks converted {dir}/data.h5"),
        plain("{bin}/case_chunks native {dir}/data.h5"),
    ),
    case(
        "h5-fill",
        "fill-values",
        "HDF5 fills a dataset on a FUSE file system that is then written; H5D_FILL_TIME_NEVER",
        at(Setting::Fuse, "{bin}/case_chunks filled {dir}/data.h5"),
        at(Setting::Fuse, "{bin}/case_chunks unfilled {dir}/data.h5"),
    ),
    case(
        "netcdf-fill",
        "fill-values",
        "NetCDF fills a variable that is then written; NC_NOFILL",
        plain("{bin}/case_classic filled {dir}/data.nc"),
        plain("{bin}/case_classic unfilled {dir}/data.nc"),
    ),
    case(
        "header-growth",
        "header-growth",
        "each of 16 definitions moves the data behind the header; nc__enddef with room",
        plain("{bin}/case_classic grown {dir}/data.nc"),
        plain("{bin}/case_classic roomy {dir}/data.nc"),
    ),
    case(
        "blocking-puts",
        "blocking-puts",
        "1024 blocking puts of PnetCDF; iput and one wait",
        plain("{openmpi} -np 4 {bin}/case_puts blocking {dir}/data.nc 1024 256"),
        plain("{openmpi} -np 4 {bin}/case_puts combined {dir}/data.nc 1024 256"),
    ),
    case(
        "strided-fuse",
        "independent-strided",
        "four ranks write pieces of 512 bytes in turn to a FUSE file system; in one collective call",
        at(Setting::Fuse, "{mpich} -np 4 {bin}/case_ranks_mpich strided {dir}/file 8192 512"),
        at(Setting::Fuse, "{mpich} -np 4 {bin}/case_ranks_mpich view-all {dir}/file 8192 512"),
    ),
    case(
        "strided-fuse-openmpi",
        "independent-strided",
        "the same with Open MPI",
        at(Setting::Fuse, "{openmpi} -np 4 {bin}/case_ranks strided {dir}/file 8192 512"),
        at(Setting::Fuse, "{openmpi} -np 4 {bin}/case_ranks view-all {dir}/file 8192 512"),
    ),
    Case {
        prepare: "{bin}/case_reads make {dir}/file 256",
        cold: true,
        // Without data sieving each piece is a call, and writers of a file in the page cache wait for each other.
        also: &["small-transfers", "independent-strided", "lock-wait"],
        ..case(
            "data-sieving",
            "data-sieving",
            "a strided independent write through a view reads, changes and writes blocks; romio_ds_write=disable",
            plain("{mpich} -np 4 {bin}/case_ranks_mpich view {dir}/file 16384 4096"),
            plain("{mpich} -np 4 {bin}/case_ranks_mpich view {dir}/file 16384 4096 romio_ds_write disable"),
        )
    },
    case(
        "rank-small",
        "small-transfers",
        "MPI_File_write_at of 64 bytes; of all in one call",
        plain("{openmpi} -np 2 {bin}/case_ranks blocks {dir}/file 200000 64"),
        plain("{openmpi} -np 2 {bin}/case_ranks block {dir}/file 200000 64"),
    ),
    Case {
        // Writers of a file in the page cache wait for each other.
        also: &["lock-wait", "cpu-wait"],
        ..case(
            "overlapping-ranks",
            "conflicting-ranks",
            "each of two ranks writes all pieces at the same places; each its own",
            plain("{openmpi} -np 2 {bin}/case_ranks overlapping {dir}/file 64 4096"),
            plain("{openmpi} -np 2 {bin}/case_ranks blocks {dir}/file 64 4096"),
        )
    },
    Case {
        prepare: "{bin}/case_reads make {dir}/file 192",
        cold: true,
        also: &["lock-wait", "cpu-wait"],
        ..case(
            "misaligned-ranks",
            "misaligned-shared",
            "pieces of four ranks meet inside pages that are not in the page cache; whole pages",
            plain("{mpich} -np 4 {bin}/case_ranks_mpich strided {dir}/file 2400 20000"),
            plain("{mpich} -np 4 {bin}/case_ranks_mpich strided {dir}/file 2400 20480"),
        )
    },
    case(
        "own-files",
        "file-per-process",
        "four ranks create 1500 files each on a FUSE file system; one file",
        at(Setting::Fuse, "{openmpi} -np 4 {bin}/case_ranks files {dir}/file 1500 1024"),
        at(Setting::Fuse, "{openmpi} -np 4 {bin}/case_ranks block {dir}/file 1500 1024"),
    ),
    case(
        "gathered",
        "one-writer",
        "rank 0 gathers and writes what all have; each rank writes its own",
        plain("{openmpi} -np 4 {bin}/case_ranks gathered {dir}/file 32 2097152"),
        plain("{openmpi} -np 4 {bin}/case_ranks block {dir}/file 32 2097152"),
    ),
    case(
        "late-rank",
        "collective-wait",
        "three ranks wait in collective writes for one that computes; each computes as much",
        plain("{mpich} -np 4 {bin}/case_ranks_mpich late {dir}/file 20 65536"),
        plain("{mpich} -np 4 {bin}/case_ranks_mpich even {dir}/file 20 65536"),
    ),
    case(
        "late-rank-openmpi",
        "collective-wait",
        "the same with Open MPI",
        plain("{openmpi} -np 4 {bin}/case_ranks late {dir}/file 20 65536"),
        plain("{openmpi} -np 4 {bin}/case_ranks even {dir}/file 20 65536"),
    ),
];
