//! Files that define some symbols: what they are, and where their probes go.

use super::*;
use crate::loader::code::elf::{Symbol, Target};

fn library(symbols: BTreeMap<String, Vec<Symbol>>) -> Elf {
    Elf {
        symbols,
        slots: BTreeMap::new(),
        build_id: None,
        go: false,
        is_static: false,
        has_functions: true,
        program: false,
        unwinds: false,
        switches_stacks: false,
        symtab: true,
        dynamic: false,
    }
}

#[test]
fn an_offset_is_probed_once_whatever_its_symbols() {
    // endbr64; push %rbp; ret
    let bytes = [0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0xc3];
    let at = |offset, size| {
        vec![Symbol { target: Target::Code(offset), size, vaddr: 0x1000 + offset, binding: Binding::Global }]
    };
    let symbols = [
        ("fopen", at(0, 6)),
        // Another name, without a size: its probe alone would be at the start.
        ("fclose", at(0, 0)),
        // An entry in the middle, where the probe of the first is.
        ("fwrite", at(4, 2)),
        ("fread", at(99, 2)),
    ];
    let symbols = symbols.into_iter().map(|(name, at)| (name.to_owned(), at)).collect();
    let elf = library(symbols);
    let planner = Planner::new(Catalog::built_in());
    let rows = planner.catalog().rows();
    let plan = planner.plan("x", &elf, &bytes, &|_| true);
    let probes: Vec<_> = plan.probes.iter().map(|p| (p.symbol, p.offset, rows[usize::from(p.spec)].symbol)).collect();
    assert_eq!(probes, [("fopen", 4, "fopen")]);
    let verdict = |symbol: &str| {
        let c = plan.settled.iter().find(|c| c.symbol == symbol).unwrap();
        (c.status, c.reason.as_deref().unwrap(), c.offset)
    };
    let alias = "alias of fopen at the same address";
    assert_eq!(verdict("fclose"), ("skipped", alias, Some(0)));
    assert_eq!(verdict("fwrite"), ("skipped", alias, Some(4)));
    assert_eq!(verdict("fread"), ("refused", "the function ends within its first instruction", Some(99)));
    assert_eq!(verdict("fgets"), ("absent", "the file does not define it", None));
}

#[test]
fn private_names_do_not_make_a_public_library_another_one() {
    use Binding::{Global, Local};
    let named = |names: &[(&str, Binding)]| {
        let symbol = |binding| vec![Symbol { target: Target::Code(0), size: 0, vaddr: 0, binding }];
        let symbols = names.iter().map(|(name, binding)| ((*name).to_owned(), symbol(*binding))).collect();
        let elf = library(symbols);
        Family::LIBRARIES.into_iter().filter(|family| is(*family, &elf)).collect::<Vec<_>>()
    };
    let with = |dup_fn, open| {
        let names = [
            ("MPI_File_open", open),
            ("MPIR_Err_return_comm", Global),
            ("MPI_Abi_get_version", Global),
            ("MPIR_Dup_fn", dup_fn),
        ];
        named(&names)
    };
    assert_eq!(with(Global, Global), [Family::Mpich]);
    assert_eq!(with(Local, Global), [Family::MpiAbi]);
    // A library inside a program or another library.
    assert_eq!(with(Local, Local), [Family::Mpich]);
    let open_mpi = [("MPI_File_open", Global), ("ompi_mpi_comm_world", Global)];
    assert_eq!(named(&open_mpi), [Family::OpenMpi, Family::OpenMpi4]);
    let newer = [&open_mpi[..], &[("MPI_Session_init", Global)]].concat();
    assert_eq!(named(&newer), [Family::OpenMpi, Family::OpenMpi5]);
}
