//! Every call in Fortran: each has a statement, which compiles and runs.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use crate::replay_code::Language;
use crate::replay_code::advise::advise;
use crate::replay_code::advise_tests::{built, described, ran_in, run};
use crate::replay_code::calls::{Arg, Row, element_type, function, named, parts, rows};
use crate::replay_code::fortran::statements::{self, of};
use crate::replay_code::fortran::syntax::{literal, number, wrapped};
use crate::replay_code::fortran::{has, sources};
use crate::replay_code::program::{File, Object, Program};
use crate::replay_code::ranks::{Expr, Group, Step, Value, group};
use crate::vocabulary::Layer;

/// Types in names of functions of `PnetCDF` in C.
const TYPES: [&str; 12] =
    ["text", "schar", "short", "int", "float", "double", "uchar", "ushort", "uint", "long", "longlong", "ulonglong"];

fn ops(layer: Layer) -> Vec<String> {
    let own = rows().filter(|row| row.layer == layer).flat_map(|row| row.ops.iter());
    own.flat_map(|op| {
        let types = if op.contains('*') { &TYPES[..] } else { &[""] };
        types.iter().map(|name| op.replace('*', name)).collect::<Vec<_>>()
    })
    .collect()
}

#[test]
fn every_call_has_a_statement() {
    for layer in [Layer::Hdf5, Layer::Pnetcdf] {
        let ops = ops(layer);
        assert!(ops.len() > 20);
        for op in ops {
            assert!(of(&op).is_some(), "{op}");
        }
    }
    assert_eq!(of("nc_close"), None);
}

#[test]
fn functions_have_the_types_of_fortran() {
    for (op, function, data, other) in [
        ("H5Dwrite", "h5dwrite_f", "bytes", false),
        ("ncmpi_enddef", "nfmpi_enddef", "bytes", false),
        ("ncmpi_put_vara_double_all", "nfmpi_put_vara_double_all", "doubles", false),
        ("ncmpi_iget_var1_float", "nfmpi_iget_var1_real", "reals", false),
        ("ncmpi_put_att_text", "nfmpi_put_att_text", "text", false),
        ("ncmpi_get_var_longlong", "nfmpi_get_var_int8", "longs", false),
        ("ncmpi_put_varn_uint_all", "nfmpi_put_varn_int_all", "ints", true),
        ("ncmpi_put_vara_uchar", "nfmpi_put_vara_int1", "bytes", true),
        ("ncmpi_put_var_double_all", "put_var_all", "doubles", false),
    ] {
        assert_eq!(statements::function(op), function);
        assert_eq!(statements::data(op), data);
        assert_eq!(statements::other(op), other.then(|| function.to_owned()));
    }
}

#[test]
fn texts_and_numbers_are_those_of_fortran() {
    assert_eq!(literal(""), "\"\"");
    assert_eq!(literal("it's \"x\" & y"), "\"it's \"\"x\"\" & y\"");
    assert_eq!(literal("a\n\u{e9}"), "\"a\" // char(10) // char(195) // char(169)");
    let long = literal(&"ab".repeat(80));
    assert_eq!((long.matches(" // ").count(), long.matches('"').count()), (2, 6));
    let numbers = [5, -5, i64::from(i32::MIN), 1 << 40, i64::MIN].map(number);
    let texts = ["5", "-5", "-2147483648_int64", "1099511627776_int64", "(-9223372036854775807_int64 - 1)"];
    assert_eq!(numbers, texts);
    let lines = wrapped("  ", &format!("call x({}, \"a b\")", vec!["\"  two  words\""; 20].join(", ")));
    assert!(lines.lines().count() > 2 && lines.lines().all(|line| line.len() <= 120), "{lines}");
    assert!(lines.lines().rev().skip(1).all(|line| line.ends_with(" &")), "{lines}");
    assert_eq!(lines.matches("\"  two  words\"").count(), 20);
}

#[test]
fn other_layers_and_names_with_blanks_are_refused() {
    for layer in [Layer::Syscall, Layer::Mpiio, Layer::Netcdf] {
        let why = has(layer).unwrap_err().to_string();
        assert!(why.contains("hdf5 and pnetcdf"), "{why}");
    }
    let work = tempfile::tempdir().unwrap();
    let (program, groups) = described("hdf5", work.path());
    let refused = |change: &dyn Fn(&mut Program)| {
        let mut program = program.clone();
        change(&mut program);
        sources(&program, &groups, false).map(drop).unwrap_err().to_string()
    };
    let named = refused(&|program| program.objects[0].path = "/field ".into());
    assert!(named.contains("`/field ` ends with a blank"), "{named}");
    let hint = refused(&|program| program.hints.push(vec![("cb_nodes".into(), " 2".into())]));
    assert!(hint.contains("the hint ` 2`"), "{hint}");
}

#[test]
fn changes_for_findings_are_those_of_c() {
    let work = tempfile::tempdir().unwrap();
    let (mut program, mut groups) = described("hdf5", work.path());
    let rules = ["collective-broken", "one-writer", "hdf5-metadata", "hdf5-chunk-cache", "fill-values"];
    let notes = advise(&mut program, &mut groups, &rules);
    assert!(notes.iter().all(|note| !note.contains("not in the calls")), "{notes:?}");
    let (text, _) = ran_in(Language::Fortran, &program, &groups, &work.path().join("fixed"));
    for part in [
        "collective_metadata = 1\n",
        "chunk_cache = 67108864\n",
        "no_fill = 1\n",
        "call add_hint(1, \"cb_config_list\", \"*:1\")",
        "access_by(0, 1)",
        ", by(1))",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// What calls of a program that makes every call are about.
#[derive(Clone, Copy)]
struct About {
    object: i64,
    handle: i64,
    element: i64,
}

fn call(program: &mut Program, op: &str, about: About) -> Step {
    let row = named(op).unwrap_or_else(|| panic!("{op}"));
    program.ops.push(op.to_owned());
    let function = function(row, program.ops.len() - 1);
    let (row, _): (&Row, _) = parts(function).unwrap();
    let args = row.args.iter().flat_map(|arg| match arg {
        Arg::Handle | Arg::Opened => vec![about.handle],
        Arg::Object => vec![about.object],
        Arg::ElementSize => vec![about.element],
        Arg::Elements => vec![2],
        Arg::Type => vec![element_type(op).unwrap().1],
        // `NC_64BIT_DATA`, `NC_WRITE`; `H5F_ACC_TRUNC`, `H5F_ACC_RDWR`
        Arg::Mode => vec![match op {
            "ncmpi_create" => 0x20,
            "H5Fcreate" => 2,
            _ => 1,
        }],
        Arg::Selection => vec![1, 2, 2, 3],
        _ => vec![0],
    });
    let args = args.map(|value| Expr { base: Value::Same(value), steps: Vec::new() }).collect();
    Step::Call { function, args, think_ns: 0 }
}

fn object(path: &str, attribute: Option<&str>, size: i64) -> Object {
    Object {
        file: 0,
        path: path.into(),
        attribute: attribute.map(Into::into),
        is_group: path == "/group",
        dims: if attribute.is_some() { vec![2] } else { vec![4, 6] },
        chunk: Vec::new(),
        size,
        filters: String::new(),
    }
}

/// A program without calls, of one file.
fn empty(layer: Layer, objects: Vec<Object>, handles: i64) -> Program {
    Program {
        layer,
        ranks: vec![Vec::new(); 4],
        files: vec![File { path: "field.dat".into(), name: "field.dat".into(), found: None }],
        ops: Vec::new(),
        objects,
        text: [1, 3].into(),
        hints: Vec::new(),
        communicators: Vec::new(),
        switches: BTreeMap::new(),
        handles,
        requests: 0,
        buffer: 4096,
        calls: BTreeMap::new(),
        left_out: BTreeMap::new(),
        notes: BTreeSet::new(),
    }
}

fn all_ranks(program: &Program, steps: Vec<Step>) -> Vec<Group> {
    let mut groups = group(&program.ranks);
    groups[0].steps = steps;
    groups
}

/// What a program prints about a file, without the line that has its name.
fn dump(program: &str, file: &Path) -> String {
    let out = Command::new(program).arg(file).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    text.split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap()
}

/// Text and numbers are two variables, each with an attribute.
#[test]
fn every_call_of_pnetcdf_compiles_and_runs() {
    let objects = vec![
        object("/field", None, 8),
        object("/words", None, 1),
        object("/field", Some("numbers"), 8),
        object("/words", Some("text"), 1),
    ];
    let mut program = empty(Layer::Pnetcdf, objects, 1);
    let of = |object: i64| About { object, handle: 0, element: 8 };
    let mut steps = Vec::new();
    let mut add = |op: &str, about: About| steps.push(call(&mut program, op, about));
    add("ncmpi_create", of(0));
    add("ncmpi_def_var", of(0));
    add("ncmpi_def_var", of(1));
    for name in TYPES {
        add(&format!("ncmpi_put_att_{name}"), of(if name == "text" { 3 } else { 2 }));
    }
    add("ncmpi_enddef", of(0));
    let access: Vec<String> =
        ops(Layer::Pnetcdf).into_iter().filter(|op| op.contains("_var") && !op.contains("def_var")).collect();
    let variable = |op: &str| of(i64::from(op.split('_').any(|part| part == "text")));
    // All is written before any is read: so all is zeros.
    for way in ["put_", "get_"] {
        let blocking: Vec<&String> = access.iter().filter(|op| op.starts_with(&format!("ncmpi_{way}"))).collect();
        let queued: Vec<&String> = access.iter().filter(|op| op.starts_with(&format!("ncmpi_i{way}"))).collect();
        for op in &blocking {
            add(&format!("{op}_all"), variable(op));
        }
        add("ncmpi_begin_indep_data", of(0));
        for op in blocking.iter().chain(&queued) {
            add(op, variable(op));
        }
        add("ncmpi_wait", of(0));
        add("ncmpi_end_indep_data", of(0));
        for op in &queued {
            add(op, variable(op));
        }
        add("ncmpi_wait_all", of(0));
    }
    for op in ["ncmpi_flush", "ncmpi_sync", "ncmpi_sync_numrecs", "ncmpi_redef", "ncmpi__enddef"] {
        add(op, of(0));
    }
    for name in TYPES {
        add(&format!("ncmpi_get_att_{name}"), of(if name == "text" { 3 } else { 2 }));
    }
    for op in ["ncmpi_close", "ncmpi_open", "ncmpi_close"] {
        add(op, of(0));
    }
    let groups = all_ranks(&program, steps);
    let work = tempfile::tempdir().unwrap();
    let [fortran, c] = [Language::Fortran, Language::C].map(|language| {
        let output = work.path().join(format!("{language:?}"));
        let (_, bytes) = ran_in(language, &program, &groups, &output);
        (dump("ncdump", &output.join("field.dat")), bytes)
    });
    assert_eq!(fortran.0, c.0);
    assert!(fortran.1 == c.1 && c.1.len() > 4 * 6 * 9);
    let notes = sources(&program, &groups, false).unwrap().notes;
    assert!(notes[0].contains("`ncmpi_put_vara_uint_all` is `nfmpi_put_vara_int_all`"), "{notes:?}");
}

#[test]
fn every_call_of_hdf5_compiles_and_runs() {
    let objects = vec![
        object("/group", None, 0),
        object("/field", None, 8),
        object("/field", Some("numbers"), 4),
        object("/odd", None, 3),
    ];
    let mut program = empty(Layer::Hdf5, objects, 4);
    program.text.clear();
    let mut steps = Vec::new();
    let file = About { object: 0, handle: 0, element: 0 };
    let group = About { object: 0, handle: 1, element: 0 };
    let field = About { object: 1, handle: 2, element: 8 };
    let attribute = About { object: 2, handle: 3, element: 4 };
    let odd = About { object: 3, handle: 3, element: 3 };
    for (op, about) in [
        ("H5Fcreate", file),
        ("H5Gcreate2", group),
        ("H5Gclose", group),
        ("H5Dcreate2", field),
        ("H5Dcreate1", odd),
        ("H5Dwrite", odd),
        ("H5Dread", odd),
        ("H5Dclose", odd),
        ("H5Acreate2", attribute),
        ("H5Awrite", attribute),
        ("H5Aclose", attribute),
        ("H5Dwrite", field),
        ("H5Fflush", file),
        ("H5Dread", field),
        ("H5Dclose", field),
        ("H5Fclose", file),
        ("H5Fopen", file),
        ("H5Gopen2", group),
        ("H5Gclose", group),
        ("H5Oopen", field),
        ("H5Dread", field),
        ("H5Oclose", field),
        ("H5Aopen", attribute),
        ("H5Aread", attribute),
        ("H5Aclose", attribute),
        ("H5Fclose", file),
    ] {
        steps.push(call(&mut program, op, about));
    }
    let groups = all_ranks(&program, steps);
    let work = tempfile::tempdir().unwrap();
    let dumps = [Language::Fortran, Language::C].map(|language| {
        let output = work.path().join(format!("{language:?}"));
        ran_in(language, &program, &groups, &output);
        dump("h5dump", &output.join("field.dat"))
    });
    assert_eq!(dumps[0], dumps[1]);
    for part in ["GROUP \"group\"", "ATTRIBUTE \"numbers\"", "( 4, 6 )", "H5T_OPAQUE"] {
        assert!(dumps[0].contains(part), "{part}: {}", dumps[0]);
    }
}

/// `-p` makes directories and the files that were there before, and removes others.
#[test]
fn what_was_there_before_is_made() {
    let work = tempfile::tempdir().unwrap();
    let files = [("a/b/old.dat", Some(9)), ("a/new.dat", None)];
    for (layer, dump_of) in [(Layer::Hdf5, "h5dump"), (Layer::Pnetcdf, "ncdump")] {
        let mut filtered = object("/field", None, 8);
        filtered.chunk = vec![2, 3];
        filtered.filters = "shuffle,deflate(4),fletcher32".into();
        let mut objects = vec![filtered, object("/words", None, 1)];
        if layer == Layer::Hdf5 {
            objects.push(object("/field", Some("numbers"), 4));
        }
        let mut program = empty(layer, objects, 1);
        program.text = [1].into();
        program.files = files.map(|(name, found)| File { path: name.into(), name: name.into(), found }).into();
        let groups = group(&program.ranks);
        let dumps = [Language::Fortran, Language::C].map(|language| {
            let output = work.path().join(format!("{layer}-{language:?}"));
            built(language, &program, &groups, &output);
            let earlier = output.join("a/new.dat");
            std::fs::create_dir(output.join("a")).unwrap();
            std::fs::write(&earlier, "x").unwrap();
            let prepare = |dir: &Path| run(&output, &[OsStr::new("-p"), dir.as_os_str()]);
            assert!(prepare(&output).status.success() && !earlier.exists());
            // A file is no directory.
            let refused = prepare(&output.join("Makefile"));
            let why = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert!(!refused.status.success() && why.contains("mkdir ") && why.contains(": Not a directory"), "{why}");
            dump(dump_of, &output.join("a/b/old.dat"))
        });
        assert!(dumps[0] == dumps[1] && dumps[0].contains("words"), "{}\n{}", dumps[0], dumps[1]);
    }
}

/// Values that are a table of the ranks, and calls that one rank makes alone.
#[test]
fn ranks_make_their_own_calls() {
    let objects = vec![object("/field", None, 8)];
    let mut program = empty(Layer::Pnetcdf, objects, 1);
    let about = About { object: 0, handle: 0, element: 8 };
    let mut add = |op: &str| call(&mut program, op, about);
    let begin = ["ncmpi_create", "ncmpi_def_var", "ncmpi_enddef", "ncmpi_begin_indep_data"].map(&mut add);
    let end = ["ncmpi_end_indep_data", "ncmpi_close"].map(&mut add);
    let mut write = add("ncmpi_put_vara_double");
    let Step::Call { args, .. } = &mut write else { panic!("{write:?}") };
    // Rows 3, 1 and 0 by a table of the ranks 0, 1 and 3; an element of each repetition.
    let start = args.len() - 4;
    args[start].base = Value::Table(vec![3, 1, 0]);
    args[start + 1] = Expr { base: Value::Same(0), steps: vec![(0, Value::Affine { base: 1, step: 0 })] };
    args[start + 2].base = Value::Same(1);
    args[start + 3].base = Value::Same(1);
    let repeated = Step::Loop { depth: 0, count: Value::Table(vec![6, 5, 4]), body: vec![write] };
    let steps = [begin.to_vec(), vec![repeated], end.to_vec()].concat();
    let alone = [begin.to_vec(), end.to_vec()].concat();
    let groups = [Group { ranks: vec![0, 1, 3], steps }, Group { ranks: vec![2], steps: alone }];
    let work = tempfile::tempdir().unwrap();
    let (text, fortran) = ran_in(Language::Fortran, &program, &groups, &work.path().join("fortran"));
    for part in ["t1(0:2) = [integer(int64) :: 4, 2, 1]", "do i = 0, t0(member) - 1", "case (3)\n      member = 2\n"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (_, c) = ran_in(Language::C, &program, &groups, &work.path().join("c"));
    assert!(fortran == c);
}
