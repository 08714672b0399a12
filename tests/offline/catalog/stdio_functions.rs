//! Every function of the installed C library that has to do with streams is in the catalog, or there is a reason.

use iotrace_bpf::catalog::{self, Family};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::{Command, Stdio};

const LIBC: &str = "/lib/x86_64-linux-gnu/libc.so.6";

/// Headers with functions that take a `FILE*`, besides stdio.h.
const HEADERS: [&str; 12] = [
    "argp.h",
    "grp.h",
    "gshadow.h",
    "malloc.h",
    "mntent.h",
    "obstack.h",
    "printf.h",
    "pwd.h",
    "shadow.h",
    "stdio_ext.h",
    "stdlib.h",
    "wchar.h",
];

/// Why functions are not in the catalog. A name that ends with `*` stands for all that begin so.
const LEFT_OUT: [(&str, &[&str]); 8] = [
    ("internals of the library, below the functions that are traced", &["_IO_*"]),
    (
        "called by inlined getc_unlocked and putc_unlocked when the buffer is used up; what went through it before is \
         not to be seen, and the system calls are traced",
        &["__overflow", "__uflow", "__underflow", "__woverflow", "__wuflow", "__wunderflow"],
    ),
    (
        "on strings in memory",
        &[
            "__asprintf",
            "__asprintf_chk",
            "__isoc99_sscanf",
            "__isoc99_swscanf",
            "__isoc99_vsscanf",
            "__isoc99_vswscanf",
            "__isoc23_sscanf",
            "__isoc23_swscanf",
            "__isoc23_vsscanf",
            "__isoc23_vswscanf",
            "__obstack_*",
            "__snprintf*",
            "__sprintf_chk",
            "__swprintf_chk",
            "__vasprintf_chk",
            "__vsnprintf*",
            "__vsprintf_chk",
            "__vsscanf",
            "__vswprintf_chk",
            "asprintf",
            "obstack_printf",
            "obstack_vprintf",
            "snprintf",
            "sprintf",
            "sscanf",
            "swprintf",
            "swscanf",
            "vasprintf",
            "vsnprintf",
            "vsprintf",
            "vsscanf",
            "vswprintf",
            "vswscanf",
        ],
    ),
    (
        "ask or set something of a stream or forget what it holds, and move, position and flush nothing",
        &[
            "__fbufsize",
            "__flbf",
            "__fpending",
            "__fpurge",
            "__freadable",
            "__freading",
            "__fsetlocking",
            "__fwritable",
            "__fwriting",
            "clearerr",
            "clearerr_unlocked",
            "feof",
            "feof_unlocked",
            "ferror",
            "ferror_unlocked",
            "flockfile",
            "ftrylockfile",
            "funlockfile",
            "fwide",
        ],
    ),
    (
        "about names of files: those that do anything are traced as the system calls that they are",
        &["ctermid", "cuserid", "remove", "rename", "renameat", "renameat2", "tempnam", "tmpnam", "tmpnam_r"],
    ),
    (
        "records of system files, read and written by functions that are traced",
        &[
            "__endmntent",
            "__getmntent_r",
            "__setmntent",
            "addmntent",
            "endmntent",
            "fgetgrent*",
            "fgetpwent*",
            "fgetsgent*",
            "fgetspent*",
            "getmntent*",
            "malloc_info",
            "putgrent",
            "putpwent",
            "putsgent",
            "putspent",
            "setmntent",
        ],
    ),
    (
        "what printf calls, and what changes it",
        &["__printf_fp", "parse_printf_format", "printf_size", "printf_size_info", "register_printf_*"],
    ),
    ("messages, traced as system calls", &["argp_help", "argp_state_help"]),
];

/// What the preprocessor makes of these headers.
fn preprocessed(headers: &[&str]) -> String {
    let mut cc = Command::new("cc");
    cc.args(["-E", "-P", "-D_GNU_SOURCE", "-U_FORTIFY_SOURCE", "-x", "c", "-"]);
    let mut cc = cc.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let source: String = headers.iter().flat_map(|header| ["#include <", header, ">\n"]).collect();
    cc.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
    let out = cc.wait_with_output().unwrap();
    assert!(out.status.success());
    String::from_utf8(out.stdout).unwrap()
}

/// The functions that are declared, with their declarations.
fn declared(text: &str) -> BTreeMap<String, String> {
    let declarations = text.split([';', '{', '}']).map(|d| d.split_whitespace().collect::<Vec<_>>().join(" "));
    let functions = declarations.filter(|d| d.starts_with("extern") && d.contains('('));
    functions
        .map(|d| {
            let before = d.split('(').next().unwrap().trim_end();
            (before.rsplit([' ', '*']).next().unwrap().to_owned(), d)
        })
        .collect()
}

/// The functions that the library exports, and where they are.
fn exported() -> BTreeMap<String, BTreeSet<String>> {
    let out = Command::new("nm").args(["-D", "--defined-only", LIBC]).output().unwrap();
    assert!(out.status.success());
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in String::from_utf8(out.stdout).unwrap().lines() {
        let [address, kind, name] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        if ["T", "W", "i"].contains(&kind) {
            let name = name.split('@').next().unwrap();
            all.entry(name.to_owned()).or_default().insert(address.to_owned());
        }
    }
    all
}

#[test]
fn every_function_on_streams_is_traced_or_has_a_reason() {
    let mut functions = declared(&preprocessed(&["stdio.h"]));
    functions.extend(declared(&preprocessed(&HEADERS)).into_iter().filter(|(_, d)| d.contains("FILE")));
    assert!(functions.len() > 150, "{}", functions.len());
    for name in ["fopen", "getline", "fputws", "fscanf", "putpwent"] {
        assert!(functions.contains_key(name), "{name}");
    }
    let exported = exported();
    // Fortified and underscored names are declared nowhere, or only when they are used.
    let plain = |name: &str| {
        let name = name.trim_start_matches('_').trim_end_matches("_chk");
        name.strip_prefix("isoc99_").or(name.strip_prefix("isoc23_")).unwrap_or(name).to_owned()
    };
    let on_streams = |name: &str| {
        functions.contains_key(name)
            || functions.contains_key(&plain(name))
            || name.starts_with("_IO_")
            || ["printf", "scanf", "erflow", "uflow", "wchar"].iter().any(|part| name.contains(part))
    };
    let rows: BTreeSet<&str> = catalog::rows().iter().filter(|r| r.family == Family::Libc).map(|r| r.symbol).collect();
    let traced: BTreeSet<&String> = rows.iter().filter_map(|symbol| exported.get(*symbol)).flatten().collect();
    let reason = |name: &str| {
        let fits = |pattern: &str| pattern.strip_suffix('*').map_or(pattern == name, |start| name.starts_with(start));
        LEFT_OUT.iter().find(|(_, names)| names.iter().any(|n| fits(n))).map(|(why, _)| *why)
    };
    let mut wrong = Vec::new();
    for (name, addresses) in exported.iter().filter(|(name, _)| on_streams(name)) {
        // One code under many names is traced under one of them.
        let is_traced = addresses.iter().all(|a| traced.contains(a));
        match (is_traced, reason(name)) {
            (false, None) => wrong.push(format!("{name} is not in the catalog, and there is no reason")),
            (true, Some(_)) if !name.starts_with("_IO_") => wrong.push(format!("{name} is traced, and has a reason")),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(rows.len() > 120);
}
