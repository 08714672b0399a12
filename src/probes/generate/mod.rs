//! `iotrace-bpf probes generate`: a catalog file for a library, from its functions and what is known of their types.

mod dwarf;
mod guess;
#[cfg(feature = "headers")]
mod header;
#[cfg(not(feature = "headers"))]
#[path = "no_header.rs"]
mod header;
mod passing;
mod signature;

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use object::elf::FileHeader64;
use object::read::elf::ElfFile;
use object::{LittleEndian, Object as _, ObjectSymbol as _, SymbolKind};

use crate::base::text::escape;
use crate::catalog::Catalog;
use crate::catalog::symbol::{is_of_the_language, plain_name};
use crate::loader::code::elf::Elf;
use crate::vocabulary::{Kind, Layer};
use dwarf::Symbol;
use guess::{Function, Guess};

/// What to make a catalog of.
pub struct Options<'a> {
    pub library: &'a Path,
    pub header: Option<&'a Path>,
    pub layer: Layer,
}

/// Of a library with more functions only those with a name of I/O are taken.
const MANY: usize = 500;
/// Functions by which the library is recognised.
const CHARACTERISTIC: usize = 3;

/// Writes the catalog file, as text.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<()> {
    let shown = options.library.display();
    let bytes = std::fs::read(options.library).with_context(|| format!("cannot read {shown}"))?;
    Elf::parse(&bytes, |_| false).map_err(|why| anyhow!("{shown}: {why}"))?;
    let symbols = exported(&bytes).with_context(|| shown.to_string())?;
    if symbols.is_empty() {
        bail!("{shown} exports no functions");
    }
    let (functions, from) = functions(options, &bytes, &symbols)?;
    let text = catalog(options, &functions, &from);
    // What is written must be read again.
    Catalog::built_in().add_file("the catalog made", &text).context("this is a bug of iotrace-bpf")?;
    Ok(out.write_all(text.as_bytes())?)
}

/// The functions that a library offers to others.
fn exported(bytes: &[u8]) -> Result<Vec<Symbol>> {
    let file = ElfFile::<FileHeader64<LittleEndian>>::parse(bytes)?;
    let of_runtime = |name: &str| matches!(name, "_init" | "_fini") || is_of_the_language(name);
    let mut symbols: Vec<Symbol> = file
        .dynamic_symbols()
        .filter(|s| s.is_definition() && s.is_global() && s.kind() == SymbolKind::Text)
        .filter_map(|s| {
            let name = s.name().ok()?.split('@').next()?.to_owned();
            Some(Symbol { name, address: s.address() })
        })
        .filter(|s| !s.name.is_empty() && !of_runtime(&s.name))
        .collect();
    symbols.sort_by(|a, b| a.name.cmp(&b.name));
    symbols.dedup_by(|a, b| a.name == b.name);
    Ok(symbols)
}

/// The functions with what is known of their types, and where that is from.
fn functions(options: &Options, bytes: &[u8], symbols: &[Symbol]) -> Result<(Vec<Function>, String)> {
    let (mut signatures, from) = if let Some(header) = options.header {
        let names = symbols.iter().map(|s| s.name.as_str()).collect::<HashSet<_>>();
        (header::signatures(header, &names)?, format!("types from {}", header.display()))
    } else if let Some((signatures, path)) =
        dwarf::signatures(options.library, bytes, symbols, Path::new(dwarf::DEBUG_ROOT))?
    {
        (signatures, format!("types from the debug information in {}", path.display()))
    } else {
        let none = "no debug information and no --header: kinds by name only, no arguments, bytes or paths";
        (HashMap::new(), none.to_owned())
    };
    let function = |symbol: &Symbol| Function {
        symbol: symbol.name.clone(),
        name: plain_name(&symbol.name),
        signature: signatures.remove(&symbol.name),
    };
    Ok((symbols.iter().map(function).collect(), from))
}

fn catalog(options: &Options, functions: &[Function], from: &str) -> String {
    let name = options.library.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let guesses = guess::guess(functions);
    let many = functions.len() > MANY;
    let taken: Vec<(&Function, &Guess)> =
        functions.iter().zip(&guesses).filter(|(_, guess)| !many || guess.kind.is_some()).collect();
    let mut text = format!(
        "# {}: {}.\n# Guessed from names and types: correct what is wrong, remove what is of no interest.\n",
        escape(&name),
        escape(from)
    );
    let left_out = functions.len() - taken.len();
    if left_out > 0 {
        text += &format!("# Left out: {left_out} functions whose names do not suggest I/O.\n");
    }
    let library = name.split('.').next().unwrap_or(&name);
    let symbols: Vec<String> =
        guess::characteristic(functions, &guesses, CHARACTERISTIC).iter().map(|s| quoted(s)).collect();
    text += &format!(
        "\n[[library]]\nname = {}\nlayer = {}\n# A file that defines these is the library.\nsymbols = [{}]\n",
        quoted(library),
        quoted(options.layer.name()),
        symbols.join(", ")
    );
    for (function, guess) in taken {
        text += &row(function, guess);
    }
    text
}

fn row(function: &Function, guess: &Guess) -> String {
    let mut text = String::from("\n");
    if let Some(signature) = &function.signature {
        text += &format!("# {}\n", escape(signature.text(&function.name)));
    }
    if let Some(note) = guess.note {
        text += &format!("# Note: {note}.\n");
    }
    text += &format!("[[library.function]]\nsymbol = {}\n", quoted(&function.symbol));
    let op = Some(function.name.clone()).filter(|name| *name != function.symbol);
    let values = [
        ("op", op),
        ("kind", guess.kind.map(|kind: Kind| kind.name().to_owned())),
        ("role", guess.role.map(str::to_owned)),
        ("handle", guess.handle.clone()),
        ("len", guess.len.clone()),
        ("off", guess.off.clone()),
        ("got", guess.got.clone()),
        ("path", guess.path.clone()),
        ("path2", guess.path2.clone()),
        ("fails", guess.fails.map(str::to_owned)),
    ];
    for (key, value) in values {
        if let Some(value) = value {
            text += &format!("{key} = {}\n", quoted(&value));
        }
    }
    text
}

/// A TOML string.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}
