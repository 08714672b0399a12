//! Reads catalog files: libraries and functions of the user, in TOML. Errors name the file, the line and what is allowed.

use crate::base::usage::hint;
use crate::catalog::def::row;
use crate::catalog::library::{Catalog, Library, Pattern};
use crate::catalog::role::{Close, Data, Does, Dup, Names, Open, OpenedIn, Reopen, Values};
use crate::catalog::value::{position, source};
use crate::catalog::{Fails, Family, Role, Row, Src};
use crate::vocabulary::{self, KINDS, Kind, LAYERS, Layer, flag};
use anyhow::{Result, anyhow, bail};
use serde::Deserialize;
use std::collections::HashSet;
use std::fmt::Display;
use std::ops::Range;
use toml::Spanned;

type Text = Spanned<String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    library: Vec<Spanned<LibraryTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LibraryTable {
    name: Text,
    layer: Option<Text>,
    #[serde(default)]
    symbols: Vec<Text>,
    file: Option<Text>,
    #[serde(default)]
    function: Vec<Spanned<FunctionTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FunctionTable {
    symbol: Text,
    op: Option<Text>,
    kind: Option<Text>,
    role: Option<Text>,
    handle: Option<Text>,
    len: Option<Text>,
    off: Option<Text>,
    got: Option<Text>,
    path: Option<Text>,
    path2: Option<Text>,
    fails: Option<Text>,
    #[serde(default)]
    flags: Vec<Text>,
    object: Option<Text>,
}

const ROLES: &[(&str, Role)] = &[
    ("none", Role::None),
    ("use", Role::Use),
    ("open", Role::Open),
    ("close", Role::Close),
    ("reopen", Role::Reopen),
    ("dup", Role::Dup),
    ("unlink", Role::Unlink),
    ("rename", Role::Rename),
];
const FAILS: &[(&str, Fails)] = &[
    ("never", Fails::Never),
    ("negative", Fails::Negative),
    ("negative-int", Fails::NegativeInt),
    ("zero", Fails::Zero),
    ("nonzero", Fails::NonZero),
    ("eof", Fails::Eof),
    ("eof-int", Fails::EofInt),
];
const FLAGS: &[(&str, i32)] = &[("collective", flag::COLLECTIVE), ("nonblocking", flag::NONBLOCKING)];
const OBJECTS: &[&str] = &["dataset", "variable", "attribute", "group"];

impl Catalog {
    /// Adds the rows of a catalog file, whose name is for messages.
    pub fn add_file(&mut self, name: &str, text: &str) -> Result<()> {
        let source = SourceText { name, text };
        let file: File = toml::from_str(text).map_err(|e| source.error(e.span(), e.message()))?;
        if file.library.is_empty() {
            bail!("{name}: no [[library]] in it");
        }
        file.library.into_iter().try_for_each(|library| source.library(library, self))
    }
}

/// The text that is read, for messages.
struct SourceText<'a> {
    name: &'a str,
    text: &'a str,
}

impl SourceText<'_> {
    fn error(&self, at: Option<Range<usize>>, what: impl Display) -> anyhow::Error {
        let line = at.and_then(|at| self.text.get(..at.start)).map(|before| before.matches('\n').count() + 1);
        line.map_or_else(|| anyhow!("{}: {what}", self.name), |line| anyhow!("{}:{line}: {what}", self.name))
    }

    fn library(&self, table: Spanned<LibraryTable>, catalog: &mut Catalog) -> Result<()> {
        let at = table.span();
        let table = table.into_inner();
        let about = format!("library {:?}", table.name.get_ref());
        let fail = |at: Range<usize>, what: String| self.error(Some(at), format!("{about}: {what}"));
        let layer = table.layer.as_ref().map_or(Ok(Layer::App), |layer| {
            let known = Layer::parse(layer.get_ref()).filter(|known| known.is_in_files());
            known.ok_or_else(|| {
                let names = LAYERS.into_iter().filter(|layer| layer.is_in_files()).map(Layer::name);
                fail(layer.span(), wrong("layer", layer.get_ref(), names))
            })
        })?;
        if table.symbols.is_empty() && table.file.is_none() {
            let what = "needs symbols or file: a file that defines all symbols, and is called so, is the library";
            return Err(fail(at, what.into()));
        }
        let file = table
            .file
            .as_ref()
            .map(|file| Pattern::new(file.get_ref()).map_err(|e| fail(file.span(), format!("file: {e:#}"))));
        let symbols = table.symbols.iter().map(|symbol| self.name_of(symbol, "symbols")).collect::<Result<_>>()?;
        let family = catalog.add_library(Library {
            family: Family::Syscall, // until it has one
            name: self.name_of(&table.name, "name")?,
            layer,
            symbols,
            file: file.transpose()?,
            program: false,
        })?;
        let mut seen = HashSet::new();
        for function in &table.function {
            let at = function.get_ref().symbol.span();
            let row = self.row(family, layer, function.get_ref())?;
            if !seen.insert(row.symbol) {
                return Err(fail(at, format!("function {:?} stands twice", row.symbol)));
            }
            catalog.add_row(row).map_err(|e| self.error(Some(at), e))?;
        }
        Ok(())
    }

    /// A name that lasts as long as the program.
    fn name_of(&self, text: &Text, what: &str) -> Result<&'static str> {
        if text.get_ref().is_empty() {
            return Err(self.error(Some(text.span()), format!("{what}: empty")));
        }
        vocabulary::intern(text.get_ref())
    }

    fn row(&self, family: Family, layer: Layer, f: &FunctionTable) -> Result<Row> {
        let symbol = self.name_of(&f.symbol, "symbol")?;
        let fail = |at: &Text, key: &str, what: &str| {
            self.error(Some(at.span()), format!("function {symbol:?}: {key}: {what}"))
        };
        let word = |key: &str, text: &Option<Text>, known: &dyn Fn(&str) -> Option<usize>, all: &[&str]| {
            let Some(text) = text else { return Ok(None) };
            known(text.get_ref()).map(Some).ok_or_else(|| fail(text, key, &allowed(text.get_ref(), all)))
        };
        let kinds = KINDS.map(Kind::name);
        let kind = word("kind", &f.kind, &|t| kinds.iter().position(|k| *k == t), &kinds)?.map(|i| KINDS[i]);
        let of = |key: &str, text: &Option<Text>, names: &[&str]| {
            word(key, text, &|t| names.iter().position(|n| *n == t), names)
        };
        let role = of("role", &f.role, &ROLES.iter().map(|r| r.0).collect::<Vec<_>>())?.map(|i| ROLES[i].1);
        let fails = of("fails", &f.fails, &FAILS.iter().map(|r| r.0).collect::<Vec<_>>())?.map(|i| FAILS[i].1);
        let object = of("object", &f.object, OBJECTS)?.map(|i| OBJECTS[i]);
        let mut flags = 0;
        for text in &f.flags {
            let known = FLAGS.iter().find(|(name, _)| name == text.get_ref());
            let names: Vec<&str> = FLAGS.iter().map(|r| r.0).collect();
            flags |= known.ok_or_else(|| fail(text, "flags", &allowed(text.get_ref(), &names)))?.1;
        }
        let value = |key: &str, text: &Option<Text>| {
            let Some(text) = text else { return Ok(Src::None) };
            source(text.get_ref()).map_err(|what| fail(text, key, &what))
        };
        let argument = |key: &str, text: &Option<Text>| {
            let Some(text) = text else { return Ok(None) };
            let number = text.get_ref().strip_prefix("arg").unwrap_or(text.get_ref());
            position(number).map(Some).map_err(|what| fail(text, key, &what))
        };
        let [handle, len, off, got] =
            [("handle", &f.handle), ("len", &f.len), ("off", &f.off), ("got", &f.got)].map(|(k, t)| value(k, t));
        let (handle, len, off, got) = (handle?, len?, off?, got?);
        let (path, path2) = (argument("path", &f.path)?, argument("path2", &f.path2)?);
        let has = handle != Src::None;
        let role = role.unwrap_or(match kind {
            Some(Kind::Open) if has => Role::Open,
            Some(Kind::Close) if has => Role::Close,
            _ if has => Role::Use,
            _ => Role::None,
        });
        let kind = kind.unwrap_or(match role {
            Role::Open | Role::Reopen => Kind::Open,
            Role::Close | Role::CloseRange => Kind::Close,
            Role::Unlink | Role::Rename | Role::Exchange | Role::Link => Kind::Meta,
            Role::None | Role::Use | Role::Dup | Role::Inherit => Kind::Other,
        });
        let op = f.op.as_ref().map_or(Ok(symbol), |op| self.name_of(op, "op"))?;
        let values = Values { handle, len, off, got };
        if let Some((key, what)) = senseless(role, values, object, [path, path2]) {
            return Err(fail(&f.symbol, key, what));
        }
        let row = row(family, layer, symbol, kind).op(op).flags(flags).fails(fails.unwrap_or(Fails::Never)).done();
        Ok(Row { does: does(role, values), path, path2, object, ..row })
    }
}

/// What a function of this role does: of its values those that the role has a place for.
fn does(role: Role, Values { handle, len, off, got }: Values) -> Does {
    match role {
        Role::Open => {
            let opened_in = if off == Src::None { OpenedIn::Nothing } else { OpenedIn::Handle(off) };
            Does::Open(Open { handle, mode: len, opened_in, got })
        }
        Role::Close => Does::Close(Close { handle, position: Src::None }),
        Role::Reopen => Does::Reopen(Reopen { handle, old: off, mode: len }),
        Role::Dup => Does::Dup(Dup { handle, old: off, cloexec: got, command: Src::None }),
        Role::Unlink => Does::Names(Names::Unlink),
        Role::Rename => Does::Names(Names::Rename),
        Role::Exchange => Does::Names(Names::Exchange),
        Role::Link => Does::Names(Names::Link),
        Role::Use | Role::None | Role::CloseRange | Role::Inherit => {
            Does::Data(Data { uses: role == Role::Use, handle, len, off, got })
        }
    }
}

/// What a row cannot mean: the key, and why.
fn senseless(
    role: Role,
    Values { handle, len, off, got }: Values,
    object: Option<&str>,
    [path, path2]: [Option<u8>; 2],
) -> Option<(&'static str, &'static str)> {
    let has_handle = handle != Src::None;
    let at_entry = |src: Src| matches!(src, Src::In(_) | Src::InInt(_));
    let needs_handle = matches!(role, Role::Use | Role::Open | Role::Close | Role::Reopen | Role::Dup);
    match role {
        _ if needs_handle && !has_handle => Some(("role", "needs a handle")),
        Role::Dup if off == Src::None => Some(("role", "dup needs off, the handle that gets another name")),
        Role::Reopen if off == Src::None => Some(("role", "reopen needs off, the handle that it ends")),
        Role::Unlink if path.is_none() => Some(("role", "unlink needs path")),
        Role::Rename if path.is_none() || path2.is_none() => Some(("role", "rename needs path and path2")),
        _ if object.is_some() && role != Role::Open => Some(("object", "only with the role open")),
        _ if [len, off, got].into_iter().any(at_entry) => Some(("in(...) or in_int(...)", "is read for handle only")),
        _ if [handle, len, off].contains(&Src::Asked) => Some(("asked", "is for got only")),
        _ if got == Src::Asked && len == Src::None => Some(("got", "asked needs len")),
        _ => None,
    }
}

fn wrong<'a>(what: &str, found: &str, all: impl Iterator<Item = &'a str>) -> String {
    format!("{what}: {}", allowed(found, &all.collect::<Vec<_>>()))
}

fn allowed(found: &str, all: &[&str]) -> String {
    format!("{found:?} is none of: {}{}", all.join(", "), hint(found, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(text: &str) -> Result<Catalog> {
        let mut catalog = Catalog::built_in();
        catalog.add_file("my.toml", text)?;
        Ok(catalog)
    }

    fn function(lines: &str) -> Result<Row> {
        let catalog =
            add(&format!("[[library]]\nname = 'l'\nfile = 'l.so'\n[[library.function]]\nsymbol = 'f'\n{lines}"))?;
        let row = catalog.user_rows().next().copied();
        Ok(row.unwrap())
    }

    #[test]
    fn every_field_of_a_row_can_be_written() {
        let catalog = add(r#"
            [[library]]
            name = "store"
            layer = "pnetcdf"
            symbols = ["st_open", "st_put"]
            file = "libstore*.so*"

            [[library.function]]
            symbol = "st_open"
            kind = "open"
            handle = "ret"
            len = "int1"
            path = "arg0"
            fails = "zero"

            [[library.function]]
            symbol = "st_put_v2"
            op = "st_put"
            kind = "write"
            handle = "arg0"
            len = "mul(2,3)"
            off = "arg4"
            got = "asked"
            fails = "negative-int"
            flags = ["collective"]

            [[library.function]]
            symbol = "st_var"
            role = "open"
            handle = "out(2)"
            off = "arg0"
            path = "arg1"
            object = "variable"
            fails = "nonzero"

            [[library.function]]
            symbol = "st_rename"
            role = "rename"
            path = "arg0"
            path2 = "arg1"

            [[library]]
            name = "engine"
            symbols = ["engine_run"]
            [[library.function]]
            symbol = "engine_run"
        "#)
        .unwrap();
        let rows: Vec<Row> = catalog.user_rows().copied().collect();
        let base = |layer, symbol, kind| row(rows[0].family, layer, symbol, kind).fails(Fails::Never);
        let st = |symbol, kind| base(Layer::Pnetcdf, symbol, kind);
        let open = st("st_open", Kind::Open).opens(Src::Ret).mode(Src::Int(1)).path(0).fails(Fails::Zero);
        let put = st("st_put_v2", Kind::Write).op("st_put").handle(Src::Arg(0)).len(Src::Mul(2, 3)).off(Src::Arg(4));
        let put = put.got(Src::Asked).fails(Fails::NegativeInt).flags(flag::COLLECTIVE);
        let var = st("st_var", Kind::Open).opens(Src::Out(2)).opened_in(Src::Arg(0)).path(1);
        let var = var.object("variable").fails(Fails::NonZero);
        let rename = st("st_rename", Kind::Meta).changes(Names::Rename).path(0).path2(1);
        let run = base(Layer::App, "engine_run", Kind::Other).unrelated().family(Family::User(1));
        assert_eq!(rows[..4], [open.done(), put.done(), var.done(), rename.done()]);
        assert_eq!(rows[4], run.done());
        assert!(rows[4].is_phase());
        let store = catalog.library(rows[0].family).unwrap();
        assert_eq!(
            (store.name, store.layer, store.symbols.as_slice()),
            ("store", Layer::Pnetcdf, &["st_open", "st_put"][..])
        );
        let defines = |names: &'static [&str]| move |name: &str| names.contains(&name);
        assert!(store.is("/opt/libstore-2.so.1", false, defines(&["st_open", "st_put", "st_var"])));
        assert!(!store.is("/opt/libstore-2.so.1", false, defines(&["st_open"])));
        assert!(!store.is("/opt/liballin.so", false, defines(&["st_open", "st_put"])));
    }

    #[test]
    fn role_and_kind_follow_from_each_other() {
        let is = |lines: &str| function(lines).map(|r| (r.kind, r.role())).unwrap();
        assert_eq!(is("kind = 'open'\nhandle = 'ret'"), (Kind::Open, Role::Open));
        assert_eq!(is("kind = 'open'"), (Kind::Open, Role::None));
        assert_eq!(is("kind = 'close'\nhandle = 'in(0)'"), (Kind::Close, Role::Close));
        assert_eq!(is("kind = 'read'\nhandle = 'arg0'"), (Kind::Read, Role::Use));
        assert_eq!(is("role = 'close'\nhandle = 'arg0'"), (Kind::Close, Role::Close));
        assert_eq!(is("role = 'unlink'\npath = '0'"), (Kind::Meta, Role::Unlink));
        assert_eq!(is("handle = 'arg0'"), (Kind::Other, Role::Use));
        assert_eq!(is(""), (Kind::Other, Role::None));
    }

    #[test]
    fn errors_name_the_line_the_function_and_what_is_allowed() {
        let head = "[[library]]\nname = 'l'\nfile = 'l.so'\n";
        let with = |lines: &str| format!("{head}[[library.function]]\nsymbol = 'f'\n{lines}");
        let cases = [
            ("x".to_owned(), "my.toml:1: "),
            (String::new(), "my.toml: no [[library]] in it"),
            ("[[library]]\nname = 'l'\n".to_owned(), "my.toml:1: library \"l\": needs symbols or file"),
            ("[[library]]\nfile = 'l.so'\n".to_owned(), "my.toml:1: missing field `name`"),
            (format!("{head}layer = 'vfs'"), "my.toml:4: library \"l\": layer: \"vfs\" is none of: app, netcdf, "),
            (format!("{head}frob = 1"), "my.toml:4: unknown field `frob`, expected one of `name`, `layer`"),
            ("[[library]]\nname = 'l'\nfile = 'a['".to_owned(), "my.toml:3: library \"l\": file: \"a[\" is no pattern"),
            (with("kind = 'frob'"), "my.toml:6: function \"f\": kind: \"frob\" is none of: read, write, open"),
            (
                with("kind = 'wriet'"),
                "my.toml:6: function \"f\": kind: \"wriet\" is none of: read, write, open, close, meta, sync, seek, mmap, wait, \
                 other (did you mean \"write\"?)",
            ),
            (with("role = 'x'"), "my.toml:6: function \"f\": role: \"x\" is none of: none, use, open, close"),
            (with("fails = 'x'"), "my.toml:6: function \"f\": fails: \"x\" is none of: never, negative,"),
            (with("flags = ['x']"), "my.toml:6: function \"f\": flags: \"x\" is none of: collective"),
            (with("object = 'x'"), "my.toml:6: function \"f\": object: \"x\" is none of: dataset"),
            (
                with("len = 'x'"),
                "my.toml:6: function \"f\": len: \"x\" is no source of a value; sources are: none, arg0",
            ),
            (with("path = 'ret'"), "my.toml:6: function \"f\": path: \"ret\" is no position of an argument"),
            (with("handle = 'arg12'"), "my.toml:6: function \"f\": handle: argument 12 is not read: 0 to 11 are"),
            (with("handle = 1"), "my.toml:6: invalid type: integer `1`, expected a string"),
            (with("len = 'in(0)'"), "my.toml:5: function \"f\": in(...) or in_int(...): is read for handle only"),
            (with("role = 'open'"), "my.toml:5: function \"f\": role: needs a handle"),
            (with("got = 'asked'"), "my.toml:5: function \"f\": got: asked needs len"),
            (with("[[library.function]]\nsymbol = 'f'"), "my.toml:7: library \"l\": function \"f\" stands twice"),
            (with("[[library.function]]\nsymbol = ''"), "my.toml:7: symbol: empty"),
        ];
        for (text, expected) in cases {
            let error = add(&text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text}\n{error}\n{expected}");
        }
    }
}
