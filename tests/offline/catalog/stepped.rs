//! Which probes of the catalog the kernel has to step, at ten times the cost of others, and why they cannot be elsewhere.

use crate::common::{live, sql};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const DEBIAN: [&str; 7] = [
    "libhdf5_serial.so.103",
    "libhdf5_openmpi.so.103",
    "libnetcdf.so.19",
    "libpnetcdf.so",
    "libc.so.6",
    "libmpi.so.40",
    "libmpich.so.12",
];

/// Functions that move an argument to another place, which is looked at, before they call or jump.
const ARGUMENTS_MOVE: [&str; 41] = [
    "MPI_File_read_all_end",
    "MPI_File_read_at_all_end",
    "MPI_File_write_all_end",
    "MPI_File_write_at_all_end",
    "__isoc99_vscanf",
    "__isoc99_vwscanf",
    "__vdprintf_chk",
    "__vfprintf_chk",
    "__vfwprintf_chk",
    "__vprintf_chk",
    "__vwprintf_chk",
    "aio_return",
    "fputc_unlocked",
    "getline",
    "getchar_unlocked",
    "getwchar_unlocked",
    "nc_create",
    "nc_create_par",
    "nc_create_par_fortran",
    "nc_def_var_blosc",
    "nc_def_var_zstandard",
    "nc_inq_var_blosc",
    "nc_inq_var_zstandard",
    "nc_open_mem",
    "nc_open_par",
    "nc_open_par_fortran",
    "nc_set_var_chunk_cache_ints",
    "nc_var_par_access",
    "ncmpi_inq_attlen",
    "ncmpi_inq_dimlen",
    "ompi_coll_tuned_barrier_intra_dec_fixed",
    "putc_unlocked",
    "putchar_unlocked",
    "putwc_unlocked",
    "putwchar_unlocked",
    "vdprintf",
    "vprintf",
    "vscanf",
    "vwprintf",
    "vwscanf",
    "setlinebuf",
];

/// Functions with variable arguments: they are entered and left where they have made their frame.
const VARIADIC: [&str; 10] = [
    "printf",
    "fprintf",
    "dprintf",
    "scanf",
    "fscanf",
    "__printf_chk",
    "__fprintf_chk",
    "__dprintf_chk",
    "__isoc99_scanf",
    "__isoc99_fscanf",
];

fn libraries() -> Vec<PathBuf> {
    let environment = sql::python().parent().unwrap().parent().unwrap().to_owned();
    let mut all: Vec<PathBuf> = DEBIAN.iter().map(|name| Path::new("/usr/lib/x86_64-linux-gnu").join(name)).collect();
    all.push(environment.join("lib/libmpi.so.40"));
    let wheels = glob::glob(environment.join("lib/python3.*/site-packages/*.libs/lib*.so*").to_str().unwrap()).unwrap();
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let wanted = |path: &PathBuf| ["libhdf5-", "libnetcdf-"].iter().any(|start| name(path).starts_with(start));
    all.extend(wheels.map(Result::unwrap).filter(wanted));
    all
}

#[test]
fn a_probe_is_stepped_only_where_no_instruction_of_the_function_can_be_emulated() {
    let libraries = libraries();
    // HDF5 of h5py and of netCDF4, and NetCDF.
    assert!(libraries.len() >= DEBIAN.len() + 4, "{libraries:?}");
    for path in &libraries {
        let out = live::tracer().args(["probes", "check", "--json"]).arg(path).output().unwrap();
        let files: Value = serde_json::from_slice(&out.stdout).unwrap();
        let functions = files[0]["functions"].as_array().unwrap();
        let stepped = functions.iter().filter(|f| f["cost"] == "stepped");
        // Behind a move of the stack pointer a return probe would not find the return address.
        let elsewhere = stepped.clone().filter(|f| f["instruction"] != "sub");
        let names = |list: &mut dyn Iterator<Item = &Value>| -> BTreeSet<String> {
            list.map(|f| f["symbol"].as_str().unwrap().to_owned()).collect()
        };
        let unknown: Vec<_> =
            names(&mut elsewhere.clone()).into_iter().filter(|f| !ARGUMENTS_MOVE.contains(&f.as_str())).collect();
        assert_eq!(unknown, [""; 0], "{}", path.display());
        if path.ends_with("libc.so.6") {
            let of = |name: &str| functions.iter().find(|f| f["symbol"] == name).unwrap();
            for name in VARIADIC.map(of) {
                let probe = ["instruction", "cost", "returns", "places"].map(|field| name[field].clone());
                assert_eq!(probe, [json!("je"), json!("emulated"), json!("place"), json!(1)], "{name}");
            }
        }
        if path.to_str().unwrap().contains("libhdf5") {
            let few = names(&mut stepped.clone());
            let rare = ["H5close", "H5Pset_fapl_hdfs"];
            assert!(few.iter().all(|f| rare.contains(&f.as_str())), "{}: {few:?}", path.display());
            for accessor in ["H5S_get_select_npoints", "H5T_get_size"] {
                let of = functions.iter().filter(|f| f["symbol"] == accessor);
                assert!(of.clone().count() > 1 && of.clone().all(|f| f["cost"] == "emulated"), "{accessor}");
            }
        }
    }
}
