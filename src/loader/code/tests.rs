//! ELF reading and planning on real libraries, on programs built here, and on broken files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;

use crate::catalog::{self, Catalog, Family, Row};
use crate::loader::code::accessor::{self, Callee};
use crate::loader::code::elf::{Binding, Elf, ElfError, Symbol, Target};
use crate::loader::code::outline::Outline;
use crate::loader::code::plan::{Plan, Planner};
use crate::loader::code::prologue::InsnClass;
use crate::vocabulary::Layer;

const LIBC: &str = "/lib/x86_64-linux-gnu/libc.so.6";
const LIBMPI: &str = "/lib/x86_64-linux-gnu/libmpi.so.40";
const LIBHDF5: &str = "/lib/x86_64-linux-gnu/libhdf5_openmpi.so.103";
const LIBPNETCDF: &str = "/lib/x86_64-linux-gnu/libpnetcdf.so.0d";
const LIBMPICH: &str = "/lib/x86_64-linux-gnu/libmpich.so.12";
const LIBRARIES: [&str; 4] = [LIBC, LIBMPI, LIBHDF5, LIBMPICH];

fn read(path: impl AsRef<Path>) -> Vec<u8> {
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.as_ref().display()))
}

fn planner() -> Planner {
    Planner::new(Catalog::built_in())
}

fn planned(bytes: &[u8]) -> (Elf, Plan) {
    let planner = planner();
    let elf = Elf::parse(bytes, |name| planner.takes(name)).unwrap();
    let plan = planner.plan("the file", &elf, bytes, &|_| true);
    (elf, plan)
}

fn output(program: &str, args: &[&str]) -> String {
    let out = Command::new(program).args(args).output().unwrap_or_else(|e| panic!("{program}: {e}"));
    assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Builds a C program.
fn build(dir: &tempfile::TempDir, source: &str, flags: &[&str]) -> PathBuf {
    let c = dir.path().join("program.c");
    let exe = dir.path().join("program");
    std::fs::write(&c, source).unwrap();
    let mut args = vec!["-O1", "-o", exe.to_str().unwrap(), c.to_str().unwrap()];
    args.extend(flags);
    output("cc", &args);
    exe
}

/// The executable segments as readelf shows them: (file offset, address, size in the file).
fn executable_segments(path: &str) -> Vec<(u64, u64, u64)> {
    let hex = |s: &str| u64::from_str_radix(s.trim_start_matches("0x"), 16).unwrap();
    let text = output("readelf", &["-lW", path]);
    let lines = text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>());
    // LOAD offset virtual physical file-size memory-size R E align
    lines
        .filter(|f| f.first() == Some(&"LOAD") && f[6..f.len() - 1].concat().contains('E'))
        .map(|f| (hex(f[1]), hex(f[2]), hex(f[4])))
        .collect()
}

/// Defined functions as nm shows them: name without version -> addresses.
fn functions(path: &str, table: &[&str]) -> BTreeMap<String, BTreeSet<u64>> {
    let mut found: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for line in output("nm", &[table, &["--defined-only", path]].concat()).lines() {
        let fields: Vec<_> = line.split_whitespace().collect();
        if let [address, "T" | "W", name] = fields[..] {
            let name = name.split('@').next().unwrap();
            found.entry(name.to_owned()).or_default().insert(u64::from_str_radix(address, 16).unwrap());
        }
    }
    found
}

fn code_offsets(symbols: &[Symbol]) -> BTreeSet<u64> {
    let offset = |s: &Symbol| if let Target::Code(offset) = s.target { Some(offset) } else { None };
    symbols.iter().filter_map(offset).collect()
}

#[test]
fn offsets_of_real_libraries_are_those_that_binutils_give() {
    for path in LIBRARIES {
        let segments = executable_segments(path);
        let expected = functions(path, &["-D"]);
        let to_file = |&address: &u64| {
            let (offset, start, _) = segments.iter().find(|s| (s.1..s.1 + s.2).contains(&address)).unwrap();
            address - start + offset
        };
        let elf = Elf::parse(&read(path), |_| true).unwrap();
        let mut compared = 0;
        for (name, addresses) in &expected {
            let found = &elf.symbols[name];
            let found: Vec<_> = found.iter().filter(|s| s.target != Target::Data).copied().collect();
            if found.iter().all(|s| s.target == Target::Data || s.size == 0) {
                // Linker-made section marks (nm shows them as text).
                continue;
            }
            assert_eq!(code_offsets(&found), addresses.iter().map(to_file).collect(), "{name} in {path}");
            compared += 1;
        }
        assert!(compared > 400, "{compared} functions of {path}");
    }
}

#[test]
fn real_libraries_are_recognised_by_what_they_export() {
    let libraries = [
        (LIBC, &[Family::Libc][..]),
        (LIBMPI, &[Family::OpenMpi, Family::OpenMpi4]),
        (LIBHDF5, &[Family::Hdf5]),
        (LIBMPICH, &[Family::Mpich]),
    ];
    for (path, families) in libraries {
        let (elf, plan) = planned(&read(path));
        assert_eq!(plan.families, families, "{path}");
        assert!(!elf.go && elf.build_id.as_ref().is_some_and(|id| id.len() == 20));
        let hex: Vec<_> = elf.build_id.unwrap().iter().map(|b| format!("{b:02x}")).collect();
        let id = hex.concat();
        assert!(output("readelf", &["-n", path]).contains(&id), "{path}: {id}");
    }
    // Uses HDF5 and C functions, defines none of them.
    let (_, plan) = planned(&read("/lib/x86_64-linux-gnu/libhdf5_openmpi_hl.so.100"));
    assert_eq!(plan, Plan::default());
}

#[test]
fn every_row_of_a_family_has_a_probe_or_a_reason() {
    let rows = catalog::rows();
    for path in LIBRARIES {
        let (_, plan) = planned(&read(path));
        for (spec, row) in (0..).zip(&rows).filter(|(_, r)| plan.families.contains(&r.family)) {
            let probes = plan.probes.iter().filter(|p| p.spec == spec).count();
            let settled: Vec<_> = plan.settled.iter().filter(|c| c.symbol == row.symbol).collect();
            assert!(probes + settled.len() > 0, "{}", row.symbol);
            assert!(settled.iter().all(|c| c.reason.is_some() && c.target == "the file" && c.tier.is_none()));
        }
        let offsets: BTreeSet<_> = plan.probes.iter().map(|p| p.offset).collect();
        assert_eq!(offsets.len(), plan.probes.len(), "two probes at one offset in {path}");
    }
}

#[test]
fn the_version_of_a_library_is_read_from_its_file() {
    let version = |program: &str, args: &[&str], before: &str| {
        let text = output(program, args);
        let rest = text.split_once(before).unwrap().1;
        rest.split_whitespace().next().unwrap().to_owned()
    };
    let versions = [
        (LIBHDF5, Family::Hdf5, version("h5dump", &["--version"], "Version ")),
        (LIBMPI, Family::OpenMpi, version("mpirun", &["--version"], "(Open MPI) ")),
        (LIBPNETCDF, Family::Pnetcdf, version("pkg-config", &["--print-provides", "pnetcdf"], "pnetcdf = ")),
        (LIBC, Family::Libc, version("getconf", &["GNU_LIBC_VERSION"], "glibc ")),
    ];
    for (path, family, version) in versions {
        let bytes = read(path);
        let (elf, _) = planned(&bytes);
        assert_eq!(crate::loader::code::version::of(family, &elf, &bytes), Some(version), "{path}");
    }
    let bytes = read("/bin/true");
    let (elf, _) = planned(&bytes);
    for family in Family::LIBRARIES {
        assert_eq!(crate::loader::code::version::of(family, &elf, &bytes), None);
    }
}

/// What a plan did not probe: symbol, status, reason.
fn settled(plan: &Plan) -> Vec<(&str, &str, &str)> {
    plan.settled.iter().map(|c| (c.symbol.as_str(), c.status, c.reason.as_deref().unwrap())).collect()
}

#[test]
fn hdf5_and_mpi_are_probed_whole() {
    for path in [LIBHDF5, LIBMPI, LIBMPICH] {
        let (_, plan) = planned(&read(path));
        let exported = functions(path, &["-D"]);
        let rows = catalog::rows();
        let rows = rows.iter().filter(|r| plan.families.contains(&r.family));
        let left_out = |r: &&Row| r.secondary && exported.contains_key(r.symbol);
        let (without, symbols): (Vec<&Row>, Vec<&Row>) = rows.partition(left_out);
        // Some functions of the catalog are of other versions.
        let symbols = symbols.iter().map(|r| r.symbol);
        let (has, lacks): (Vec<_>, Vec<_>) = symbols.partition(|symbol| exported.contains_key(*symbol));
        let (skipped, absent): (Vec<_>, Vec<_>) = settled(&plan).into_iter().partition(|s| s.1 == "skipped");
        let names = |rows: &[&Row]| rows.iter().map(|r| r.symbol).collect::<Vec<_>>();
        assert_eq!(skipped.iter().map(|s| s.0).collect::<Vec<_>>(), names(&without), "{path}");
        let lacks: Vec<_> = lacks.iter().map(|symbol| (*symbol, "absent", "the file does not define it")).collect();
        assert_eq!(absent, lacks, "{path}");
        let mut probed: Vec<_> = plan.probes.iter().map(|p| p.symbol).collect();
        probed.dedup();
        assert_eq!(probed, has, "{path}");
        assert!(has.len() > 20, "{path}");
    }
}

/// An accessor, a function that calls it, and one that calls another function before it.
const ACCESSOR: &str = "
    unsigned long H5T_get_size(unsigned long *t) { return t[2]; }
    __attribute__((noinline)) void *H5T_path_find(void *a, void *b) { __asm__ volatile(\"\"); return a ? a : b; }
    unsigned long opens(unsigned long *t) { return H5T_get_size(t) + 1; }
    unsigned long moves(unsigned long *t) { return H5T_path_find(t, 0) ? H5T_get_size(t) + 1 : 0; }
";

#[test]
fn all_calls_of_an_accessor_are_found_or_none() {
    let work = tempfile::tempdir().unwrap();
    let found = |options: &[&str]| {
        let bytes = read(build(&work, ACCESSOR, &[&["-shared", "-fPIC", "-fno-inline"], options].concat()));
        let elf = Elf::parse(&bytes, |name| name.starts_with("H5T_") || name == "opens").unwrap();
        let callee =
            |name: &str| Callee::new(&bytes, elf.symbols[name][0].vaddr, elf.slots.get(name).copied()).unwrap();
        let opens = elf.symbols["opens"][0];
        let calls = accessor::calls_not_after(&bytes, &callee("H5T_get_size"), &callee("H5T_path_find"))?;
        assert!(calls.iter().all(|at| (opens.vaddr..opens.vaddr + opens.size).contains(at)), "{calls:x?}");
        Some(calls.len())
    };
    assert_eq!(found(&[]), Some(1));
    assert_eq!(found(&["-Wl,-Bsymbolic"]), Some(1));
    assert_eq!(found(&["-fcf-protection=full", "-Wl,-z,ibtplt"]), Some(1));
    // Through the global offset table, and without a table of where functions begin.
    assert_eq!(found(&["-fno-plt"]), None);
    assert_eq!(found(&["-Wl,--no-eh-frame-hdr"]), None);
}

/// What only turns a handle into a number or back, which the Fortran bindings do at each call.
const CONVERSIONS: [&str; 4] = ["MPI_File_c2f", "MPI_File_f2c", "MPI_File_fromint", "MPI_File_toint"];

#[test]
fn every_function_of_mpi_on_files_has_a_row() {
    for path in [LIBMPI, LIBMPICH] {
        let bytes = read(path);
        let elf = Elf::parse(&bytes, |name| name.starts_with("MPI_File_")).unwrap();
        let (_, plan) = planned(&bytes);
        let rows = catalog::rows();
        let known: BTreeSet<_> = rows.iter().filter(|r| plan.families.contains(&r.family)).map(|r| r.symbol).collect();
        let exported = elf.symbols.keys().map(String::as_str).filter(|name| !CONVERSIONS.contains(name));
        let without: Vec<_> = exported.filter(|name| !known.contains(name)).collect();
        assert_eq!(without, [""; 0], "{path}");
    }
}

#[test]
fn both_names_of_an_mpi_function_are_one_probe() {
    let elf = Elf::parse(&read(LIBMPI), |name| name.contains("MPI_File_")).unwrap();
    let public: Vec<_> = elf.symbols.keys().filter(|n| n.starts_with("MPI_File_")).collect();
    assert!(public.len() > 50);
    for name in public {
        let twin = &elf.symbols[&format!("P{name}")];
        assert_eq!(code_offsets(&elf.symbols[name]), code_offsets(twin), "{name}");
        assert_eq!(code_offsets(twin).len(), 1, "{name}");
        assert_eq!((elf.symbols[name][0].binding, twin[0].binding), (Binding::Weak, Binding::Global));
    }
}

#[test]
fn large_file_names_of_the_c_library_are_aliases() {
    let (elf, plan) = planned(&read(LIBC));
    let merged: Vec<_> = settled(&plan).into_iter().filter(|s| s.2.starts_with("alias of")).collect();
    assert!(merged.contains(&("fopen64", "skipped", "alias of fopen at the same address")), "{merged:?}");
    assert!(merged.contains(&("fseeko64", "skipped", "alias of fseeko at the same address")), "{merged:?}");
    let starts = code_offsets(&elf.symbols["fopen"]);
    let probe = plan.probes.iter().find(|p| p.symbol == "fopen").unwrap();
    assert!(starts.contains(&probe.offset) || starts.iter().any(|s| (1..60).contains(&(probe.offset - s))));
    // What C23 added came with glibc 2.38.
    let rest = settled(&plan).into_iter().filter(|s| s.1 != "skipped");
    let rest: Vec<_> = rest.filter(|s| s.1 != "absent" || !s.0.starts_with("__isoc23_")).collect();
    assert_eq!(rest, []);
}

/// The address of the variable that a probe leads to, given where the breakpoint of the probe is.
fn variable_of(path: &str, plan: &Plan, symbol: &str) -> (u64, bool) {
    let probe = plan.probes.iter().find(|p| p.symbol == symbol).unwrap();
    let segments = executable_segments(path);
    let (offset, start, _) = segments.iter().find(|s| (s.0..s.0 + s.2).contains(&probe.offset)).unwrap();
    let variable = probe.variable.unwrap();
    // As the kernel side takes it apart.
    let cookie = probe.cookie();
    assert_eq!((cookie & 0xffff, cookie >> 24 & 1), (u64::from(probe.spec), u64::from(variable.indirect)));
    assert_eq!(cookie.cast_signed() >> 29, variable.distance);
    ((probe.offset - offset + start).wrapping_add_signed(variable.distance), variable.indirect)
}

#[test]
fn functions_on_a_standard_stream_know_where_its_variable_is() {
    // In the library by way of the global offset table: the program may have a copy of the variable.
    let relocations = output("readelf", &["--relocs", "--wide", LIBC]);
    let (_, plan) = planned(&read(LIBC));
    for (symbol, name) in [("puts", "stdout"), ("getchar", "stdin"), ("perror", "stderr"), ("printf", "stdout")] {
        let slot = relocations.lines().find(|l| l.contains("GLOB_DAT") && l.contains(&format!(" {name}@@"))).unwrap();
        let slot = u64::from_str_radix(slot.split(' ').next().unwrap(), 16).unwrap();
        assert_eq!(variable_of(LIBC, &plan, symbol), (slot, true), "{symbol}");
    }
    assert_eq!(plan.probes.iter().find(|p| p.symbol == "fputs").unwrap().variable, None);

    // In a static program directly.
    let dir = tempfile::tempdir().unwrap();
    let source = "#include <stdio.h>\nint main(void) { FILE *f = fopen(\"x\", \"w\"); fwrite(\"\", 1, 1, f); fclose(f); puts(\"\"); return 0; }";
    let exe = build(&dir, source, &["-static", "-fno-builtin"]);
    let path = exe.to_str().unwrap();
    let symbols = output("nm", &[path]);
    let stdout = symbols.lines().find_map(|l| l.strip_suffix(" D stdout")).unwrap();
    let (_, plan) = planned(&read(&exe));
    assert_eq!(variable_of(path, &plan, "puts"), (u64::from_str_radix(stdout, 16).unwrap(), false));
}

/// The instruction that objdump shows at an address: (mnemonic, operands).
fn objdump_at(path: &str, address: u64) -> (String, String) {
    let args = [
        "-d",
        "--no-show-raw-insn",
        &format!("--start-address={address:#x}"),
        &format!("--stop-address={:#x}", address + 16),
        path,
    ];
    let text = output("objdump", &args);
    let line = text.lines().find(|l| l.trim_start().starts_with(&format!("{address:x}:"))).unwrap();
    let insn = line.split_once(':').unwrap().1.trim();
    let (mnemonic, operands) = insn.split_once(' ').unwrap_or((insn, ""));
    (mnemonic.to_owned(), operands.trim().to_owned())
}

#[test]
fn the_probed_instructions_are_those_that_objdump_shows() {
    for path in LIBRARIES {
        let segments = executable_segments(path);
        let (_, plan) = planned(&read(path));
        for probe in &plan.probes {
            let (offset, start, _) = segments.iter().find(|s| (s.0..s.0 + s.2).contains(&probe.offset)).unwrap();
            let (mnemonic, operands) = objdump_at(path, probe.offset - offset + start);
            let expected = probe.text.split(' ').next().unwrap();
            // AT&T mnemonics carry a size suffix.
            assert!(mnemonic.starts_with(expected), "{}: {mnemonic} is not {}", probe.symbol, probe.text);
            if let Some((_, register)) = probe.text.split_once(' ') {
                assert_eq!(operands, format!("%{register}"), "{}", probe.symbol);
            }
            let cheap =
                mnemonic == "push" || mnemonic.starts_with("nop") || mnemonic.starts_with('j') || mnemonic == "call";
            assert_eq!(cheap, probe.class == InsnClass::Emulated, "{}: {mnemonic} {operands}", probe.symbol);
        }
    }
}

#[test]
fn layers_not_selected_and_go_programs_are_skipped() {
    let bytes = read(LIBHDF5);
    let planner = planner();
    let mut elf = Elf::parse(&bytes, |name| planner.takes(name)).unwrap();
    let all_skipped = |plan: &Plan, why: &str| {
        assert_eq!(plan.families, [Family::Hdf5]);
        assert!(plan.probes.is_empty() && plan.settled.len() > 10);
        assert!(plan.settled.iter().all(|c| c.status == "skipped" && c.reason.as_deref() == Some(why)));
    };
    all_skipped(&planner.plan("x", &elf, &bytes, &|l| l != Layer::Hdf5), "layer not selected");
    elf.go = true;
    let mut of_go = planner.plan("x", &elf, &bytes, &|_| true);
    let whole: Vec<_> = of_go.settled.extract_if(.., |c| c.symbol.is_empty()).collect();
    assert_eq!(whole.iter().map(|c| (c.layer, c.status)).collect::<Vec<_>>(), [(Layer::App, "skipped")]);
    all_skipped(&of_go, "Go program: return probes would corrupt its stacks");
    // Where no library is to be traced it is nothing to speak of.
    let none = planner.plan("x", &elf, &bytes, &|l| l == Layer::Syscall);
    assert_eq!(none.settled.iter().find(|c| c.layer == Layer::App), None);
}

#[test]
fn a_row_that_the_library_lacks_is_absent_and_a_data_symbol_is_refused() {
    let bytes = read(LIBMPI);
    let mut rows = catalog::rows();
    rows.retain(|r| r.family == Family::OpenMpi);
    rows.truncate(3);
    rows[1].symbol = "MPI_File_of_the_future";
    rows[2].symbol = "ompi_mpi_comm_world";
    let planner = Planner::new(Catalog::of(rows));
    let elf = Elf::parse(&bytes, |name| planner.takes(name)).unwrap();
    let plan = planner.plan("x", &elf, &bytes, &|_| true);
    assert_eq!(plan.probes.iter().map(|p| (p.spec, p.symbol)).collect::<Vec<_>>(), [(0, "MPI_File_read")]);
    assert_eq!(
        settled(&plan),
        [
            ("MPI_File_of_the_future", "absent", "the file does not define it"),
            ("ompi_mpi_comm_world", "refused", "not a function")
        ]
    );
}

#[test]
fn verdicts_become_coverage() {
    let (_, plan) = planned(&read(LIBMPI));
    let probe = &plan.probes[0];
    let attached = probe.verdict("lib", Ok("uprobe.session"));
    assert_eq!((attached.status, attached.tier, attached.reason), ("attached", Some("uprobe.session"), None));
    assert_eq!(attached.offset, Some(probe.offset as i64));
    let refused = probe.verdict("lib", Err("EPERM".into()));
    assert_eq!((refused.status, refused.tier, refused.reason), ("refused", None, Some("EPERM".into())));
}

#[test]
fn versions_of_one_name_are_all_found() {
    // glibc keeps several of these for programs linked long ago.
    let elf = Elf::parse(&read(LIBC), |name| name == "pthread_cond_wait" || name == "memcpy").unwrap();
    assert_eq!(code_offsets(&elf.symbols["pthread_cond_wait"]).len(), 2);
    assert!(elf.symbols["memcpy"].iter().any(|s| s.target == Target::Ifunc), "{:?}", elf.symbols["memcpy"]);
}

#[test]
fn version_suffixes_of_an_unstripped_library_are_taken_off() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("versions");
    std::fs::write(&script, "V1 { global: fopen; fwrite; fclose; local: *; }; V2 { global: fopen; } V1;").unwrap();
    let source = r#"
        int fopen_old(int a) { return a; }
        int fopen_new(int a) { return a + 2; }
        __asm__(".symver fopen_old, fopen@V1");
        __asm__(".symver fopen_new, fopen@@V2");
        int fwrite(int a) { return a + 3; }
        int fclose(int a) { return a + 4; }
    "#;
    let script = format!("-Wl,--version-script={}", script.display());
    let exe = build(&dir, source, &["-shared", "-fPIC", "-fno-builtin", "-nostdlib", &script]);
    let symtab = output("nm", &[exe.to_str().unwrap()]);
    assert!(symtab.contains(" fopen@@V2") && symtab.contains(" fopen@V1"), "{symtab}");
    let bytes = read(&exe);
    let elf = Elf::parse(&bytes, |_| true).unwrap();
    assert!(elf.symbols.keys().all(|name| !name.contains('@')), "{:?}", elf.symbols.keys());
    let (elf, plan) = planned(&bytes);
    assert_eq!(code_offsets(&elf.symbols["fopen"]).len(), 2);
    let probed: Vec<_> = plan.probes.iter().map(|p| p.symbol).collect();
    assert_eq!(probed, ["fopen", "fopen", "fclose", "fwrite"]);
    assert_eq!(plan.probes[0].spec, plan.probes[1].spec);
    // In both symbol tables, counted once.
    assert_eq!(elf.symbols["fclose"].len(), 1);
}

#[test]
fn a_function_in_data_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let source = r#"
        __asm__(".data; .globl fread; .type fread, @function; fread: .byte 0xc3; .size fread, 1; .text");
        int fopen, fwrite, fclose;
    "#;
    let (elf, plan) = planned(&read(build(&dir, source, &["-shared", "-fPIC", "-fno-builtin", "-nostdlib"])));
    assert_eq!(elf.symbols["fread"][0].target, Target::Outside);
    let why = "its address is in no executable segment of the file";
    assert!(settled(&plan).contains(&("fread", "refused", why)), "{:?}", settled(&plan));
}

const STDIO: &str = r#"
#include <stdio.h>
int main(void) {
    char buffer[9];
    FILE *f = fopen("/dev/null", "r+");
    fwrite("x", 1, 1, f); fread(buffer, 1, 9, f);
    return fclose(f);
}"#;

#[test]
fn a_static_program_is_a_c_library() {
    let dir = tempfile::tempdir().unwrap();
    let exe = build(&dir, STDIO, &["-static", "-no-pie"]);
    let path = exe.to_str().unwrap();
    let bytes = read(&exe);
    let (elf, plan) = planned(&bytes);
    assert_eq!(plan.families, [Family::Libc]);
    assert!(elf.symbols.values().flatten().all(|s| s.binding != Binding::Local));
    let segments = executable_segments(path);
    let expected = functions(path, &[]);
    for name in ["fopen", "fread", "fwrite", "fclose"] {
        let probe = plan.probes.iter().find(|p| p.symbol == name).unwrap();
        let address = *expected[name].first().unwrap();
        let (offset, start, _) = segments.iter().find(|s| (s.1..s.1 + s.2).contains(&address)).unwrap();
        assert!((0..60).contains(&(probe.offset - (address - start + offset))), "{name}");
    }
    let header = output("readelf", &["-h", path]);
    let entry = header.lines().find_map(|l| l.trim().strip_prefix("Entry point address:")).unwrap().trim();
    let entry = u64::from_str_radix(entry.trim_start_matches("0x"), 16).unwrap();
    let (offset, start, _) = segments.iter().find(|s| (s.1..s.1 + s.2).contains(&entry)).unwrap();
    assert_eq!(crate::loader::code::elf::entry(&read(path)[..4096]), Ok(Some(entry - start + offset)));

    output("strip", &[path]);
    let (elf, plan) = planned(&read(&exe));
    assert!(elf.symbols.is_empty());
    let verdicts: Vec<_> = plan.settled.iter().map(|c| (c.layer, c.symbol.as_str(), c.status)).collect();
    assert_eq!((plan.probes, verdicts), (vec![], vec![(Layer::App, "", "refused")]));
}

#[test]
fn a_static_program_has_what_it_uses_of_the_c_library() {
    let dir = tempfile::tempdir().unwrap();
    let source = r#"#include <stdio.h>
        int main(int n, char **v) { return fprintf(stdout, "%s", v[0]) < n; }"#;
    for flag in ["-static", "-static-pie"] {
        let exe = build(&dir, source, &[flag, "-fno-builtin"]);
        let (elf, plan) = planned(&read(&exe));
        assert!(elf.is_static && elf.has_functions, "{flag}");
        assert_eq!(plan.families, [Family::Libc]);
        assert!(plan.probes.iter().any(|p| p.symbol == "fprintf"), "{flag}");
        assert!(settled(&plan).contains(&("fgets", "absent", "the file does not define it")), "{flag}");
        output("strip", &[exe.to_str().unwrap()]);
        let stripped = read(&exe);
        let mut without_sections = stripped.clone();
        without_sections[40..48].fill(0);
        for bytes in [stripped, without_sections] {
            let (elf, plan) = planned(&bytes);
            assert!(elf.is_static && !elf.has_functions && plan.families.is_empty(), "{flag}");
            assert_eq!(plan.settled.len(), 1);
        }
    }
    // Needs a loader, or is it; and a library is no program.
    for path in ["/bin/true", "/lib64/ld-linux-x86-64.so.2", LIBMPI] {
        assert!(!Elf::parse(&read(path), |_| false).unwrap().is_static, "{path}");
    }
}

#[test]
fn probes_of_a_cet_build_lie_behind_endbr64() {
    let dir = tempfile::tempdir().unwrap();
    // Stands in for a library: the names count, not what they do.
    let source = r"
        extern int other(void *, int);
        __attribute__((weak)) int other(void *p, int n) { return p != 0 && n; }
        __attribute__((noinline)) int fopen(void *p, int n) { int a = other(p, n); return a + other(p, a) + n; }
        int fwrite(void *p, int n) { return fopen(p, n) + other(p, n); }
        int fclose(void *p) { return other(p, 1) + fwrite(p, 2) ; }
        static int fread(void *p) { return fclose(p) + 3; }
        int (*reader)(void *) = fread;
    ";
    let flags = ["-fcf-protection=full", "-shared", "-fPIC", "-fno-builtin", "-nostdlib"];
    let bytes = read(build(&dir, source, &flags));
    let (elf, plan) = planned(&bytes);
    assert_eq!(plan.families, [Family::Libc]);
    assert_eq!(elf.symbols["fread"][0].binding, Binding::Local);
    assert_eq!(crate::loader::code::elf::entry(&bytes), Ok(None));
    for name in ["fopen", "fwrite", "fclose"] {
        let start = *code_offsets(&elf.symbols[name]).first().unwrap() as usize;
        assert_eq!(bytes[start..start + 4], [0xf3, 0x0f, 0x1e, 0xfa], "{name}");
        let probe = plan.probes.iter().find(|p| p.symbol == name).unwrap();
        assert_eq!((probe.offset, probe.class), (start as u64 + 4, InsnClass::Emulated), "{name}: {}", probe.text);
        assert!(probe.text.starts_with("push r"), "{name}: {}", probe.text);
    }
}

#[test]
fn a_private_function_of_a_public_name_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let source = r#"
        #include <stdio.h>
        int helper(int);
        int main(void) {
            FILE *f = fopen("/dev/null", "r+");
            fwrite("x", 1, 1, f);
            return fclose(f) + helper(3);
        }"#;
    let mine = dir.path().join("mine.c");
    std::fs::write(
        &mine,
        "static __attribute__((noinline)) int fclose(int x) { return x * x; } int helper(int x) { return fclose(x); }",
    )
    .unwrap();
    let exe = build(&dir, source, &["-static", "-fno-builtin", mine.to_str().unwrap()]);
    let both = output("nm", &[exe.to_str().unwrap()]);
    assert_eq!(both.lines().filter(|l| l.ends_with(" fclose")).count(), 2, "{both}");
    let (elf, _) = planned(&read(&exe));
    assert_eq!(elf.symbols["fclose"].len(), 1);
    assert_ne!(elf.symbols["fclose"][0].binding, Binding::Local);
}

#[test]
fn go_is_known_by_its_sections_or_by_its_build_information() {
    let dir = tempfile::tempdir().unwrap();
    let plain = "int main(void) { return 0; }";
    for (flag, source) in [
        (true, r#"__attribute__((section(".go.buildinfo"), used)) int x = 1; int main(void) { return 0; }"#),
        (true, r#"__attribute__((section(".gopclntab"), used)) int x = 1; int main(void) { return 0; }"#),
        (true, r#"__attribute__((aligned(16))) char x[] = "\xff Go buildinf:"; int main(void) { return 0; }"#),
        // The same in read-only data: a program that looks for Go programs.
        (false, r#"__attribute__((aligned(16))) const char x[] = "\xff Go buildinf:"; int main(void) { return 0; }"#),
        (false, plain),
    ] {
        let elf = Elf::parse(&read(build(&dir, source, &[])), |_| false).unwrap();
        assert_eq!(elf.go, flag, "{source}");
    }
    // As position-independent Go programs have it; a C linker would merge it with others.
    let exe = build(&dir, plain, &[]);
    output("objcopy", &["--rename-section", ".comment=.data.rel.ro.gopclntab", exe.to_str().unwrap()]);
    assert!(Elf::parse(&read(&exe), |_| false).unwrap().go);
}

#[test]
fn files_of_another_kind_are_named() {
    let parse = |bytes: &[u8]| Elf::parse(bytes, |_| true);
    assert_eq!(parse(b""), Err(ElfError::NotElf));
    assert_eq!(parse(b"#!/bin/sh\n"), Err(ElfError::NotElf));
    assert_eq!(parse(b"\x7fEL"), Err(ElfError::NotElf));
    assert_eq!(parse(b"\x7fELF"), Err(ElfError::Truncated(4)));
    assert_eq!(parse(b"\x7fELF\x02\x01\x01"), Err(ElfError::Truncated(7)));
    let real = read("/bin/true");
    let changed = |at: usize, bytes: &[u8]| {
        let mut copy = real.clone();
        copy[at..at + bytes.len()].copy_from_slice(bytes);
        parse(&copy).unwrap_err()
    };
    assert_eq!(changed(4, &[1]), ElfError::Bits32);
    assert_eq!(changed(18, &[183, 0]), ElfError::Machine(183));
    assert_eq!(changed(5, &[2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 22]), ElfError::Machine(22));
    assert_eq!(changed(16, &[1, 0]), ElfError::Type(1));
    assert_eq!(changed(16, &[4, 0]), ElfError::Type(4));
    assert_eq!(changed(40, &[0; 8]), ElfError::NoSections);
    let far = changed(40, &[0xff; 8]);
    assert!(matches!(far, ElfError::Damaged { what: "section headers", .. }), "{far}");
    let far = changed(32, &[0xff; 8]);
    assert!(matches!(far, ElfError::Damaged { what: "program headers", .. }), "{far}");
    let relocatable = ElfError::Type(1).to_string();
    assert!(relocatable.contains("type 1"), "{relocatable}");
}

/// Reads and plans, as the loader does; only that it ends without a panic counts.
fn survives(bytes: &[u8]) -> Result<usize, ElfError> {
    let elf = Elf::parse(bytes, |_| true)?;
    let planner = planner();
    let mut all = elf.clone();
    // All rows planned, each at some symbol of the file.
    let some = elf.symbols.values().cycle();
    let catalog = planner.catalog();
    let names = catalog.libraries().iter().flat_map(|l| l.symbols.iter().copied());
    for (symbols, name) in some.zip(names.chain(catalog.rows().iter().map(|row| row.symbol))) {
        all.symbols.insert(name.to_owned(), symbols.clone());
    }
    Ok(planner.plan("x", &all, bytes, &|_| true).probes.len())
}

#[test]
fn truncated_files_are_errors() {
    let real = read("/bin/true");
    assert!(survives(&real).is_ok());
    // The section headers are the last thing in the file.
    for length in (0..real.len()).step_by(97) {
        assert!(survives(&real[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn damaged_headers_do_not_panic() {
    let dir = tempfile::tempdir().unwrap();
    let real = read(build(&dir, STDIO, &[]));
    // File header and program headers.
    for at in 0..64 + 56 * 13 {
        for value in [0, 1, 0x7f, 0xff, !real[at]] {
            let mut copy = real.clone();
            copy[at] = value;
            let _ = survives(&copy);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn mutated_files_do_not_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40), end: prop::sample::Index) {
        let mut bytes = read("/bin/true");
        let length = bytes.len();
        for (at, value) in changes {
            // Half of the damage where it hurts: the headers at both ends.
            let at = at.index(2 * length);
            let at = if at < length { at } else if at % 2 == 0 { at % 800 } else { length - 1 - at % 1900 };
            bytes[at] = value;
        }
        let mut outline = Outline::default();
        let _ = (survives(&bytes), outlined(&mut outline, &bytes));
        bytes.truncate(end.index(length));
        let _ = (survives(&bytes), outlined(&mut outline, &bytes));
    }
}

/// What is read of a file for its symbols gives the same as all of it, but for relocations.
fn outlined(outline: &mut Outline, bytes: &[u8]) -> bool {
    let part = |buffer: &mut [u8], at: u64| {
        buffer.copy_from_slice(&bytes[at as usize..][..buffer.len()]);
        Ok(())
    };
    let Ok(read) = outline.of(bytes.len(), part) else { return false };
    let Ok(of_part) = Elf::parse(read, |_| true) else { return false };
    let whole = Elf::parse(bytes, |_| true);
    let slots = whole.as_ref().map(|elf| elf.slots.clone()).unwrap_or_default();
    assert_eq!(Ok(Elf { slots, ..of_part }), whole);
    true
}

#[test]
fn the_outline_of_a_file_has_its_symbols() {
    let mut outline = Outline::default();
    let (mut files, mut read_bytes, mut all_bytes) = (0, 0, 0);
    let there = ["/usr/bin", "/usr/lib/x86_64-linux-gnu"].into_iter().flat_map(|dir| std::fs::read_dir(dir).unwrap());
    let mut paths: Vec<_> = there.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    paths.sort();
    // Large and small ones, programs and libraries, one after the other in one buffer.
    for path in paths.iter().step_by(5) {
        let bytes = read(path);
        let is_elf = Elf::parse(&bytes, |_| false).is_ok();
        assert_eq!(outlined(&mut outline, &bytes), is_elf, "{}", path.display());
        if is_elf {
            files += 1;
            all_bytes += bytes.len();
            read_bytes += outline.bytes();
        }
    }
    assert!(files > 100, "{files} files");
    assert!(read_bytes < all_bytes / 2, "{read_bytes} of {all_bytes} bytes of {files} files");
}
