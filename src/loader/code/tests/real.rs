//! What is read of the libraries of this machine, and planned for them.

use std::collections::BTreeSet;

use crate::catalog::{self, Catalog, Family, Row};
use crate::loader::code::accessor::{self, Callee};
use crate::loader::code::elf::{Binding, Elf, Target};
use crate::loader::code::plan::{Plan, Planner};
use crate::loader::code::prologue::InsnClass;
use crate::loader::code::tests::{
    LIBC, LIBHDF5, LIBMPI, LIBMPICH, LIBPNETCDF, LIBRARIES, build, code_offsets, executable_segments, functions,
    output, planned, planner, read, settled,
};
use crate::vocabulary::Layer;

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
