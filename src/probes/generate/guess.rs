//! Guesses from names and types what a function does: kind, handle, length, path, and how it reports failure.

mod names;

use std::collections::HashSet;

use crate::probes::generate::guess::names::{common_prefix, kind, named, words};
use crate::probes::generate::signature::{Param, Shape, Signature, Type};
use crate::vocabulary::Kind;

/// A function of a library.
#[derive(Debug, Clone)]
pub struct Function {
    /// As in the symbol table.
    pub symbol: String,
    /// As people call it, without namespaces.
    pub name: String,
    pub signature: Option<Signature>,
}

/// A row of a catalog file; texts are values as they stand there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guess {
    pub kind: Option<Kind>,
    pub role: Option<&'static str>,
    pub handle: Option<String>,
    pub len: Option<String>,
    pub off: Option<String>,
    pub got: Option<String>,
    pub path: Option<String>,
    pub path2: Option<String>,
    pub fails: Option<&'static str>,
    /// What the reader of the file should know.
    pub note: Option<&'static str>,
}

const PATHS: &[&str] = &["path", "pathname", "file", "filename", "fname", "fn", "name", "url", "uri"];
const FILES: &[&str] = &["path", "pathname", "file", "filename", "fname", "url", "uri", "from", "to", "old", "new"];
const HANDLES: &[&str] = &["fd", "id", "ncid", "handle", "file", "fh", "h", "hid"];
const LENGTHS: &[&str] =
    &["len", "length", "size", "count", "n", "num", "nbytes", "bytes", "nitems", "nmemb", "nelems", "nelem", "amount"];
const ITEM_SIZES: &[&str] = &["size", "elsize", "elemsize", "itemsize", "width"];
const ITEMS: &[&str] = &["n", "nmemb", "nitems", "count", "num", "nelems", "nelem"];
const OFFSETS: &[&str] = &["off", "offset", "pos", "position"];

/// A row for each function, in their order.
pub fn guess(functions: &[Function]) -> Vec<Guess> {
    let prefix = common_prefix(functions);
    let kinds: Vec<Option<Kind>> = functions.iter().map(|f| kind(f, prefix.as_deref())).collect();
    let opens = functions.iter().zip(&kinds).filter(|(_, kind)| **kind == Some(Kind::Open));
    let opened: Vec<Opened> = opens.filter_map(|(f, _)| Opened::by(f.signature.as_ref()?)).collect();
    let handles = Handles {
        types: opened.iter().map(|o| o.ty.clone()).collect(),
        // Where opens give the handle through a pointer, results are codes.
        codes: opened.iter().any(|o| o.out.is_some()),
    };
    functions.iter().zip(kinds).map(|(f, kind)| one(f, kind, &handles)).collect()
}

fn is_buffer(p: &Param, kind: Kind) -> bool {
    let Some((to, constant)) = p.ty.pointee() else { return false };
    let data = matches!(to.shape, Shape::Void | Shape::Int { .. } | Shape::Float { .. });
    data && !named(&p.name, PATHS) && (kind == Kind::Write || !constant)
}

fn is_text(p: &Param) -> bool {
    p.ty.pointee().is_some_and(|(to, constant)| constant && to.is_char())
}

fn is_number(ty: &Type) -> bool {
    matches!(ty.shape, Shape::Int { bytes: 4..=8, .. })
}

/// What an open makes: as its result, or through a pointer.
struct Opened {
    ty: Type,
    out: Option<usize>,
}

impl Opened {
    fn by(signature: &Signature) -> Option<Self> {
        // struct store *open(...)
        let is_handle = |ty: &Type| {
            ty.pointee().is_some_and(|(to, _)| matches!(to.shape, Shape::Struct(_) | Shape::Void | Shape::Unknown))
        };
        if is_handle(&signature.result) {
            return Some(Self { ty: signature.result.clone(), out: None });
        }
        // int open(..., struct store **out), herr_t open(..., hid_t *id)
        let out = signature.params.iter().rposition(|p| {
            p.ty.pointee().is_some_and(|(to, constant)| {
                !constant && (is_handle(to) || (is_number(to) && named(&p.name, HANDLES)))
            })
        });
        if let Some(at) = out {
            let ty = signature.params[at].ty.pointee().map(|(to, _)| to.clone())?;
            return Some(Self { ty, out });
        }
        // int open(const char *path)
        (is_number(&signature.result) && signature.params.iter().any(is_text))
            .then(|| Self { ty: signature.result.clone(), out: None })
    }
}

struct Handles {
    types: Vec<Type>,
    codes: bool,
}

impl Handles {
    /// Is this argument such a handle? A plain number must be called so.
    fn is(&self, p: &Param) -> bool {
        let plain = |ty: &Type| matches!(ty.name.as_str(), "int" | "unsigned int" | "long" | "long int");
        self.types.iter().any(|ty| ty.text() == p.ty.text() && (!plain(ty) || named(&p.name, HANDLES)))
    }
}

fn one(function: &Function, kind: Option<Kind>, handles: &Handles) -> Guess {
    let mut guess = Guess { kind, ..Guess::default() };
    let Some(signature) = &function.signature else { return guess };
    let positions = signature.positions();
    let arg = |at: usize| positions.get(at).copied().flatten();
    let params = || signature.params.iter().enumerate().filter(|(at, _)| arg(*at).is_some());
    let source = |name: &str, at: usize| arg(at).map(|n| format!("{name}{n}"));
    guess.fails = fails(&signature.result, handles.codes);
    if signature.params.iter().any(|p| p.ty.shape == Shape::Unknown) {
        guess.note = Some("where its arguments are passed is known up to the first structure by value only");
    }
    let texts: Vec<usize> = params().filter(|(_, p)| is_text(p)).map(|(at, _)| at).collect();
    let path = texts.iter().copied().find(|at| named(&signature.params[*at].name, PATHS));
    guess.path = path.or(texts.first().copied().filter(|_| kind == Some(Kind::Open))).and_then(|at| source("arg", at));
    on_names(function, signature, &texts, &mut guess, &source);
    if guess.role.is_some() {
        return guess;
    }
    match (kind, kind.filter(|k| *k == Kind::Open).and_then(|_| Opened::by(signature))) {
        (_, Some(opened)) => open(&opened, &source, &mut guess),
        (Some(Kind::Close), None) => {
            let by_address = |p: &Param| {
                p.ty.pointee().is_some_and(|(to, _)| handles.is(&Param { name: p.name.clone(), ty: to.clone() }))
            };
            let own = params().find(|(_, p)| handles.is(p)).and_then(|(at, _)| value(&signature.params[at], arg(at)?));
            let address = params().find(|(_, p)| by_address(p)).and_then(|(at, _)| Some(format!("in({})", arg(at)?)));
            guess.handle = own.or(address);
        }
        _ => {
            let own = params().find(|(_, p)| handles.is(p));
            guess.handle = own.and_then(|(at, p)| value(p, arg(at)?));
        }
    }
    if let Some(kind @ (Kind::Read | Kind::Write)) = kind {
        moved(signature, kind, handles, &arg, &mut guess);
    }
    if matches!(kind, Some(Kind::Read | Kind::Write | Kind::Seek)) {
        let off = params().find(|(_, p)| is_number(&p.ty) && named(&p.name, OFFSETS));
        guess.off = off.and_then(|(at, p)| value(p, arg(at)?));
    }
    guess
}

/// Functions that change the names of files.
fn on_names(
    function: &Function,
    signature: &Signature,
    texts: &[usize],
    guess: &mut Guess,
    source: &dyn Fn(&str, usize) -> Option<String>,
) {
    let words = words(&function.name);
    let has = |verbs: &[&str]| words.iter().any(|word| verbs.contains(&word.as_str()));
    let of_files: Vec<usize> = texts.iter().copied().filter(|at| named(&signature.params[*at].name, FILES)).collect();
    match of_files.as_slice() {
        [from, to] if has(&["rename", "move"]) => {
            guess.role = Some("rename");
            (guess.path, guess.path2) = (source("arg", *from), source("arg", *to));
        }
        [file] if has(&["unlink", "delete", "remove"]) && texts.len() == 1 => {
            guess.role = Some("unlink");
            guess.path = source("arg", *file);
        }
        _ => {}
    }
}

fn open(opened: &Opened, source: &dyn Fn(&str, usize) -> Option<String>, guess: &mut Guess) {
    match (opened.out, &opened.ty.shape) {
        (Some(_), Shape::Int { bytes: ..=4, .. }) => {
            guess.note = Some("its handle, a 32-bit number behind a pointer, cannot be read");
        }
        (Some(at), _) => {
            guess.handle = source("out(", at).map(|text| format!("{text})"));
            guess.fails = Some("nonzero");
        }
        (None, shape) => {
            guess.handle = Some("ret".to_owned());
            guess.fails = Some(match shape {
                Shape::Pointer { .. } => "zero",
                Shape::Int { bytes: 8, .. } => "negative",
                _ => "negative-int",
            });
        }
    }
}

/// An argument as the source of a number.
fn value(p: &Param, position: u8) -> Option<String> {
    match p.ty.shape {
        // What is above the 32 bits of a number in its register is not defined.
        Shape::Int { bytes: 4, .. } => Some(format!("int{position}")),
        Shape::Int { .. } | Shape::Pointer { .. } => Some(format!("arg{position}")),
        _ => None,
    }
}

/// Bytes asked for and moved.
fn moved(signature: &Signature, kind: Kind, handles: &Handles, arg: &dyn Fn(usize) -> Option<u8>, guess: &mut Guess) {
    let params = || signature.params.iter().enumerate();
    let numbers: Vec<(usize, &Param)> =
        params().filter(|(at, p)| arg(*at).is_some() && is_number(&p.ty) && !handles.is(p)).collect();
    let find = |names: &[&str]| numbers.iter().find(|(_, p)| named(&p.name, names)).copied();
    // `size_t` is a size whatever its name is.
    let nameless = || numbers.iter().find(|(_, p)| p.ty.name == "size_t" && !named(&p.name, OFFSETS)).copied();
    let buffer = params().find(|(_, p)| is_buffer(p, kind)).and_then(|(_, p)| p.ty.pointee());
    let element = match buffer.map(|(to, _)| &to.shape) {
        Some(Shape::Int { bytes, .. } | Shape::Float { bytes }) => *bytes,
        _ => 1,
    };
    let in_words = matches!(signature.result.shape, Shape::Int { bytes: 8, .. });
    match (find(ITEM_SIZES), find(ITEMS)) {
        (Some((size, _)), Some((items, _))) if size != items && element == 1 => {
            let (Some(size), Some(items)) = (arg(size), arg(items)) else { return };
            guess.len = Some(format!("mul({size},{items})"));
            guess.got = Some(if in_words { format!("ret_times({size})") } else { "asked".to_owned() });
        }
        _ => {
            let Some((at, p)) = find(LENGTHS).or_else(nameless) else { return };
            let Some(position) = arg(at) else { return };
            guess.len = if element > 1 { Some(format!("scaled({position},{element})")) } else { value(p, position) };
            let ret = if element > 1 { format!("ret_scaled({element})") } else { "ret".to_owned() };
            guess.got = Some(if in_words { ret } else { "asked".to_owned() });
        }
    }
    if !in_words && guess.got.is_some() {
        guess.note = Some("its result is taken for a code, not for a number of bytes");
    }
}

/// How a result shows that the call failed.
fn fails(result: &Type, codes: bool) -> Option<&'static str> {
    match result.shape {
        Shape::Pointer { .. } | Shape::Bool => Some("zero"),
        Shape::Int { bytes: 4, .. } if codes => Some("nonzero"),
        Shape::Int { bytes: 4, signed: true } => Some("negative-int"),
        Shape::Int { bytes: 8, signed: true } => Some("negative"),
        Shape::Enum => Some("nonzero"),
        _ => None,
    }
}

/// The first functions by which a file is recognised as the library: opens, else those with the longest names.
pub fn characteristic(functions: &[Function], guesses: &[Guess], at_most: usize) -> Vec<String> {
    let mut all: Vec<(bool, &str)> =
        functions.iter().zip(guesses).map(|(f, g)| (g.kind != Some(Kind::Open), f.symbol.as_str())).collect();
    all.sort_by_key(|(other, symbol)| (*other, std::cmp::Reverse(symbol.len()), *symbol));
    let mut seen = HashSet::new();
    all.into_iter().map(|(_, symbol)| symbol.to_owned()).filter(|s| seen.insert(s.clone())).take(at_most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::generate::signature::tests::{constant, double, int, opaque, signature, to};

    fn function(name: &str, signature: Option<Signature>) -> Function {
        Function { symbol: name.to_owned(), name: name.to_owned(), signature }
    }

    #[test]
    fn without_types_the_name_gives_the_kind() {
        let names = [
            ("store_open", Some(Kind::Open)),
            ("store_put", Some(Kind::Write)),
            ("store_get_count", Some(Kind::Meta)),
            ("store_get", Some(Kind::Read)),
            ("store_open_for_write", Some(Kind::Open)),
            ("store_close", Some(Kind::Close)),
            ("store_flush", Some(Kind::Sync)),
            ("store_version", None),
            ("store_gzread", Some(Kind::Read)),
            ("store_thread", None),
            ("store", Some(Kind::Write)),
        ];
        let functions: Vec<Function> = names.iter().map(|(name, _)| function(name, None)).collect();
        for (guess, (name, kind)) in guess(&functions).into_iter().zip(names) {
            assert_eq!(guess, Guess { kind, ..Guess::default() }, "{name}");
        }
    }

    #[allow(clippy::unnecessary_wraps, reason = "it stands for the values of a guess")]
    fn text(value: &str) -> Option<String> {
        Some(value.to_owned())
    }

    /// Functions of a library whose handles are pointers.
    fn store_functions() -> [Function; 8] {
        let store = || to(opaque("struct store"));
        let void = || Type::void();
        [
            function("st_open", Some(signature(store(), &[("path", constant(int("char"))), ("flags", int("int"))]))),
            function(
                "st_put",
                Some(signature(
                    int("ssize_t"),
                    &[("s", store()), ("buf", constant(void())), ("n", int("size_t")), ("off", int("off_t"))],
                )),
            ),
            function(
                "st_get",
                Some(signature(
                    int("long"),
                    &[("s", store()), ("x", double()), ("v", to(double())), ("count", int("size_t"))],
                )),
            ),
            function("st_get_size", Some(signature(int("long"), &[("s", store())]))),
            function(
                "st_write_items",
                Some(signature(
                    int("size_t"),
                    &[("buf", constant(void())), ("size", int("size_t")), ("n", int("size_t")), ("s", store())],
                )),
            ),
            function("st_close", Some(signature(int("int"), &[("s", store())]))),
            function(
                "st_rename",
                Some(signature(int("int"), &[("from", constant(int("char"))), ("to", constant(int("char")))])),
            ),
            function("st_remove", Some(signature(int("int"), &[("path", constant(int("char")))]))),
        ]
    }

    /// Their guesses, in the same order.
    fn store_guesses() -> [Guess; 8] {
        [
            Guess {
                kind: Some(Kind::Open),
                handle: text("ret"),
                path: text("arg0"),
                fails: Some("zero"),
                ..Guess::default()
            },
            Guess {
                kind: Some(Kind::Write),
                handle: text("arg0"),
                len: text("arg2"),
                off: text("arg3"),
                got: text("ret"),
                fails: Some("negative"),
                ..Guess::default()
            },
            Guess {
                kind: Some(Kind::Read),
                handle: text("arg0"),
                len: text("scaled(2,8)"),
                got: text("ret_scaled(8)"),
                fails: Some("negative"),
                ..Guess::default()
            },
            Guess { kind: Some(Kind::Meta), handle: text("arg0"), fails: Some("negative"), ..Guess::default() },
            Guess {
                kind: Some(Kind::Write),
                handle: text("arg3"),
                len: text("mul(1,2)"),
                got: text("ret_times(1)"),
                ..Guess::default()
            },
            Guess { kind: Some(Kind::Close), handle: text("arg0"), fails: Some("negative-int"), ..Guess::default() },
            Guess {
                kind: Some(Kind::Meta),
                role: Some("rename"),
                path: text("arg0"),
                path2: text("arg1"),
                fails: Some("negative-int"),
                ..Guess::default()
            },
            Guess {
                kind: Some(Kind::Meta),
                role: Some("unlink"),
                path: text("arg0"),
                fails: Some("negative-int"),
                ..Guess::default()
            },
        ]
    }

    #[test]
    fn a_library_with_pointers_as_handles() {
        let functions = store_functions();
        for ((guess, expected), function) in guess(&functions).into_iter().zip(store_guesses()).zip(&functions) {
            assert_eq!(guess, expected, "{}", function.symbol);
        }
        assert_eq!(characteristic(&functions, &guess(&functions), 2), ["st_open", "st_write_items"]);
    }

    #[test]
    fn a_library_with_codes_as_results() {
        let h = |name: &str| opaque(name);
        let functions = [
            function(
                "lib_create",
                Some(signature(int("int"), &[("name", constant(int("char"))), ("out", to(to(h("struct file"))))])),
            ),
            function(
                "lib_write",
                Some(signature(
                    int("int"),
                    &[("f", to(h("struct file"))), ("data", constant(int("float_t"))), ("len", int("int"))],
                )),
            ),
            function("lib_close", Some(signature(int("int"), &[("f", to(to(h("struct file"))))]))),
        ];
        let [open, write, close] = <[Guess; 3]>::try_from(guess(&functions)).unwrap();
        assert_eq!((open.handle, open.fails, open.path), (text("out(1)"), Some("nonzero"), text("arg0")));
        assert_eq!((write.handle, write.len, write.got), (text("arg0"), text("scaled(2,8)"), text("asked")));
        assert_eq!((write.fails, write.note.is_some()), (Some("nonzero"), true));
        assert_eq!((close.handle, close.fails), (text("in(0)"), Some("nonzero")));
    }

    #[test]
    fn numbers_as_handles_must_be_called_so() {
        let functions = [
            function("dev_open", Some(signature(int("int"), &[("", constant(int("char")))]))),
            function(
                "dev_read",
                Some(signature(int("long"), &[("fd", int("int")), ("buf", to(Type::void())), ("", int("size_t"))])),
            ),
            function("dev_sync", Some(signature(int("int"), &[("level", int("int"))]))),
        ];
        let [open, read, sync] = <[Guess; 3]>::try_from(guess(&functions)).unwrap();
        assert_eq!((open.handle, open.path, open.fails), (text("ret"), text("arg0"), Some("negative-int")));
        assert_eq!((read.handle, read.len, read.got), (text("int0"), text("arg2"), text("ret")));
        assert_eq!(sync.handle, None);
    }
}
