//! Which public functions of HDF5 have no row in the catalog, and why.

use crate::common::sql;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use iotrace_bpf::catalog::{self, Family};

/// Functions without a row, by how their names begin (the longest beginning counts), and why nothing is missed.
const LEFT_OUT: &[(&str, &str)] = &[
    ("H5Aget_name", "the name of an attribute that is open: in memory"),
    ("H5Ddebug", "prints what is in memory"),
    ("H5E", "errors: in memory"),
    ("H5ESfree_err_info", "errors of an event set: in memory"),
    ("H5ESget_", "errors and numbers of an event set: in memory"),
    ("H5ESinsert_request", "for those who write connectors"),
    ("H5ESregister_", "functions that an event set calls"),
    ("H5FD", "for those who write drivers: programs call H5F and H5D"),
    ("H5Fget_", "what is known of an open file: in memory"),
    ("H5Freset_", "sets counters back to 0"),
    ("H5I", "identifiers: in memory"),
    ("H5Lis_registered", "classes of links: in memory"),
    ("H5Lregister", "classes of links: in memory"),
    ("H5Lunpack_elink_val", "takes a value apart"),
    ("H5Lunregister", "classes of links: in memory"),
    ("H5Oare_mdc_flushes_disabled", "asks what is in memory"),
    ("H5Otoken_", "compares and writes tokens: in memory"),
    ("H5PL", "where plugins are looked for"),
    ("H5P", "classes of lists, and properties of a program's own"),
    ("H5Padd_merge_committed_dtype_path", "types that a copy may share"),
    ("H5Pcopy_prop", "a property by its name"),
    ("H5Pencode", "a list as bytes in memory"),
    ("H5Pfree_merge_committed_dtype_paths", "types that a copy may share"),
    ("H5Pget", "asks what is in memory"),
    (
        "H5Pset_",
        "functions that the library calls, encodings and limits: they move nothing and choose no way of moving",
    ),
    ("H5Rcopy", "references: in memory"),
    ("H5Rdestroy", "references: in memory"),
    ("H5Requal", "references: in memory"),
    ("H5Rget_", "what a reference has by itself: in memory"),
    ("H5S", "asks what a dataspace in memory is like"),
    ("H5T", "types: in memory"),
    ("H5VL", "for those who write connectors"),
    ("H5Z", "which filters there are: in memory"),
    ("H5allocate_memory", "memory"),
    ("H5atclose", "functions that the library calls"),
    ("H5check_version", "compares numbers"),
    ("H5dont_atexit", "sets a flag"),
    ("H5free_memory", "memory"),
    ("H5garbage_collect", "memory"),
    ("H5get_", "numbers of the library"),
    ("H5is_library_", "asks what is in memory"),
    ("H5open", "every constant of the headers calls it"),
    ("H5resize_memory", "memory"),
    ("H5set_free_list_limits", "memory"),
];

fn output(program: &str, args: &[&str]) -> String {
    let out = Command::new(program).args(args).output().unwrap_or_else(|e| panic!("{program}: {e}"));
    assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// The functions that a library exports.
fn exported(library: &str) -> BTreeSet<String> {
    let text = output("nm", &["-D", "--defined-only", library]);
    let functions = text.lines().filter_map(|l| l.split_once(" T ")).map(|(_, name)| name.split('@').next().unwrap());
    functions.map(str::to_owned).collect()
}

/// Public functions are called so: `H5` and the letters of a part, then a small letter.
fn is_public(name: &str) -> bool {
    let rest = name.strip_prefix("H5").map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_uppercase()));
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
}

/// What the installed headers declare.
fn declared(module: &str) -> BTreeSet<String> {
    let flags = output("pkg-config", &["--cflags-only-I", module]);
    let directories = flags.split_whitespace().filter_map(|f| f.strip_prefix("-I")).filter(|d| d.contains("hdf5"));
    let headers = directories.flat_map(|d| fs::read_dir(d).unwrap().map(|e| e.unwrap().path()));
    let public = headers.filter(|p| p.file_name().unwrap().to_string_lossy().ends_with("public.h"));
    let mut names = BTreeSet::new();
    for header in public {
        let text = fs::read_to_string(header).unwrap();
        for declaration in text.split("H5_DLL ").skip(1) {
            let name = declaration.split('(').next().unwrap().split([' ', '*', '\n']).next_back().unwrap();
            names.insert(name.to_owned());
        }
    }
    names
}

fn reason(name: &str) -> Option<&'static str> {
    let fits = LEFT_OUT.iter().filter(|(beginning, _)| name.starts_with(beginning));
    fits.max_by_key(|(beginning, _)| beginning.len()).map(|(beginning, _)| *beginning)
}

#[test]
fn every_public_function_has_a_row_or_a_reason() {
    let rows = catalog::rows();
    let covered: BTreeSet<&str> = rows.iter().filter(|r| r.family == Family::Hdf5).map(|r| r.symbol).collect();
    let find = "import h5py, glob, os; p = os.path.dirname(h5py.__file__)
print([f for f in glob.glob(p + '/../h5py.libs/libhdf5-*') if '_hl' not in f][0])";
    let wheel = output(sql::python().to_str().unwrap(), &["-c", find]);
    let debian = |name: &str| format!("/usr/lib/x86_64-linux-gnu/libhdf5_{name}.so");
    let mut used: BTreeMap<&str, usize> = LEFT_OUT.iter().map(|(beginning, _)| (*beginning, 0)).collect();
    for (library, module) in [
        (debian("serial"), Some("hdf5-serial")),
        (debian("openmpi"), Some("hdf5-openmpi")),
        (wheel.trim().to_owned(), None),
    ] {
        let functions = exported(&library);
        if let Some(module) = module {
            let declared = declared(module);
            let here: Vec<_> = functions.intersection(&declared).collect();
            assert!(here.len() > 500 && here.iter().all(|name| is_public(name)), "{here:?}");
        }
        let public: Vec<_> = functions.iter().filter(|name| is_public(name)).collect();
        assert!(public.iter().filter(|f| covered.contains(f.as_str())).count() > 250, "{library}");
        for name in public.iter().filter(|f| !covered.contains(f.as_str())) {
            let beginning = reason(name).unwrap_or_else(|| panic!("{name} of {library} has neither row nor reason"));
            *used.get_mut(beginning).unwrap() += 1;
        }
    }
    let unused: Vec<_> = used.iter().filter(|(_, n)| **n == 0).collect();
    assert!(unused.is_empty(), "reasons for nothing: {unused:?}");
}
