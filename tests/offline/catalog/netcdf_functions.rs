//! Every function of the installed `NetCDF` and `PnetCDF` libraries is in the catalog, or there is a reason.

use iotrace_bpf::catalog::{self, Family};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why functions are not in the catalog. A name that ends with `*` stands for all that begin so.
const LEFT_OUT: [(&str, &[&str]); 7] = [
    ("on names, texts and messages", &["nc_utf8*", "nc_strerror", "nc_strlcat", "ncmpi_strerror", "ncmpi_strerrno"]),
    (
        "on data in memory",
        &[
            "nc_free_*",
            "nc_reclaim_data*",
            "nc_copy_data*",
            "nc_dump_data",
            "nc_print_data",
            "nc_get_vlen_element",
            "nc_put_vlen_element",
        ],
    ),
    (
        "settings of the library, for files to come",
        &[
            "nc_set_default_format",
            "nc_get_default_format",
            "nc_set_chunk_cache*",
            "nc_get_chunk_cache*",
            "nc_set_alignment",
            "nc_get_alignment",
            "nc_set_meta_block_size*",
            "nc_get_meta_block_size*",
            "nc_set_log_level",
            "nc_def_user_format",
            "nc_inq_user_format",
            "nc_plugin_path_*",
            "nc_rc_get",
            "nc_rc_set",
            "nc_initialize",
            "nc_finalize",
            "ncmpi_set_default_format",
            "ncmpi_inq_default_format",
        ],
    ),
    (
        "return what the library itself knows or counts",
        &[
            "nc_inq_libvers",
            "nc_inq_filter_avail",
            "nc_inq_type_equal",
            "nc_get_var_chunk_cache*",
            "nc_show_metadata",
            "ncmpi_inq_libvers",
            "ncmpi_inq_malloc_*",
            "ncmpi_inq_files_opened",
            "ncmpi_inq_nreqs",
            "ncmpi_inq_buffer_*",
            "ncmpi_inq_put_size",
            "ncmpi_inq_get_size",
            "ncmpi_inq_file_info",
            "ncmpi_get_file_info",
        ],
    ),
    ("do nothing any more", &["nc_set_base_pe", "nc_inq_base_pe", "nc__pseudofd"]),
    ("internals of the library, below the functions that are traced", &["nc_get_NC", "nc_advise", "nc__testurl"]),
    ("of its client of HTTP", &["nc_http_*"]),
];

/// The libraries that the tests trace.
fn libraries() -> Vec<PathBuf> {
    let installed = |name: &str| {
        let out = Command::new("cc").arg(format!("-print-file-name=lib{name}.so")).output().unwrap();
        PathBuf::from(String::from_utf8(out.stdout).unwrap().trim())
    };
    let mut all: Vec<PathBuf> = ["netcdf", "netcdf_mpi", "pnetcdf"].into_iter().map(installed).collect();
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/venv/lib");
    let versions = std::fs::read_dir(python).unwrap().map(|entry| entry.unwrap().path());
    let libs = versions.map(|version| version.join("site-packages/netcdf4.libs")).find(|libs| libs.is_dir()).unwrap();
    let files = std::fs::read_dir(libs).unwrap().map(|entry| entry.unwrap().path());
    all.extend(files.filter(|file| file.to_string_lossy().contains("/libnetcdf-")));
    assert_eq!(all.len(), 4, "{all:?}");
    all
}

/// What a library defines for others, without versions.
fn exported(library: &Path) -> BTreeSet<String> {
    let out = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let functions = String::from_utf8(out.stdout).unwrap();
    let function = |line: &str| {
        let [_, kind, name] = line.split(' ').collect::<Vec<_>>().try_into().ok()?;
        matches!(kind, "T" | "W").then(|| name.split('@').next().unwrap().to_owned())
    };
    functions.lines().filter_map(function).collect()
}

fn rows() -> BTreeSet<&'static str> {
    let rows = catalog::rows().into_iter().filter(|r| matches!(r.family, Family::Netcdf | Family::Pnetcdf));
    rows.map(|r| r.symbol).collect()
}

fn stands_for(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |stem| name.starts_with(stem))
}

#[test]
fn every_function_has_a_row_or_a_reason() {
    let rows = rows();
    let all: BTreeSet<String> = libraries().iter().flat_map(|library| exported(library)).collect();
    let public: Vec<&String> = all.iter().filter(|n| n.starts_with("nc_") || n.starts_with("ncmpi_")).collect();
    assert!(public.len() > 1250, "{} functions", public.len());
    let patterns = || LEFT_OUT.iter().flat_map(|(_, patterns)| *patterns);
    for name in public {
        let reasons = patterns().filter(|p| stands_for(p, name)).count();
        assert_eq!(reasons + usize::from(rows.contains(name.as_str())), 1, "{name} has a row or one reason");
    }
    for pattern in patterns() {
        assert!(all.iter().any(|name| stands_for(pattern, name)), "{pattern} stands for nothing");
    }
}

#[test]
fn every_row_is_a_function_of_a_library() {
    let all: BTreeSet<String> = libraries().iter().flat_map(|library| exported(library)).collect();
    for row in rows() {
        assert!(all.contains(row), "no library has {row}");
    }
}

#[test]
fn functions_about_dimensions_are_in_every_library() {
    let libraries: Vec<BTreeSet<String>> = libraries().iter().map(|library| exported(library)).collect();
    let inner = catalog::rows().into_iter().filter(|r| r.inner().is_some());
    for row in inner.filter(|r| matches!(r.family, Family::Netcdf | Family::Pnetcdf)) {
        let own = libraries.iter().filter(|l| l.contains(row.family.sentinels()[0]));
        assert!(own.clone().count() > 0 && own.clone().all(|l| l.contains(row.symbol)), "{} is missing", row.symbol);
    }
}
