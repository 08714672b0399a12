//! Names of functions as people write them, against the symbols of files: C++ and Rust names, copies made by compilers.

use std::collections::HashSet;
use std::fmt::{self, Write as _};

/// Longer names are not taken apart (bytes). Templates make names of some thousands.
const LONGEST_MANGLED: usize = 16 << 10;
/// A name that stands for a longer one neither: each of its parts can stand for all before it, twice.
const LONGEST: usize = 64 << 10;

/// Names that are looked for.
#[derive(Debug, Clone, Default)]
pub struct Names {
    names: HashSet<&'static str>,
    /// What the mangled form of one of them contains.
    parts: Vec<String>,
}

impl Names {
    pub fn new(names: impl IntoIterator<Item = &'static str>) -> Self {
        let names: HashSet<&'static str> = names.into_iter().collect();
        let parts = names.iter().map(|name| mangled_part(name)).collect();
        Self { names, parts }
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The name that a symbol of a file stands for.
    pub fn meant_by(&self, symbol: &str) -> Option<&'static str> {
        if self.names.is_empty() {
            return None;
        }
        let known = |name: &str| self.names.get(name).copied();
        let function = without_copy(symbol)?;
        // Taking apart a name takes a microsecond, and large programs have a million.
        let mangled = is_mangled(function) && self.parts.iter().any(|part| function.contains(part.as_str()));
        known(function).or_else(|| if mangled { spellings(function).iter().find_map(|name| known(name)) } else { None })
    }
}

/// The last part of a name, as it stands in mangled names: `4step` in that of `ns::step`. Empty where it may look otherwise.
fn mangled_part(name: &str) -> String {
    let plain = without_templates(name);
    let last = plain.rsplit("::").next().unwrap_or(&plain).trim_start_matches('~');
    let word = !last.is_empty() && last.chars().all(|c| c.is_alphanumeric() || c == '_');
    if word && !last.starts_with("operator") { format!("{}{last}", last.len()) } else { String::new() }
}

/// The function of which a symbol is the code: GCC and Clang make copies of functions for some arguments. Parts that were
/// moved out of a function are not the function.
fn without_copy(symbol: &str) -> Option<&str> {
    let Some((function, suffix)) = symbol.split_once('.').filter(|(function, _)| !function.is_empty()) else {
        return Some(symbol);
    };
    let copy = |word: &str| {
        matches!(word, "constprop" | "isra" | "lto_priv" | "llvm" | "clone") || word.bytes().all(|b| b.is_ascii_digit())
    };
    suffix.split('.').all(copy).then_some(function)
}

/// The companion of a function that holds what is rarely executed.
pub fn cold_part_of(symbol: &str) -> Option<&str> {
    let (function, number) = symbol.split_once(".cold")?;
    (number.is_empty() || number.starts_with('.')).then_some(function)
}

/// A symbol as people call the function: demangled, or as it is.
pub fn plain_name(symbol: &str) -> String {
    if is_mangled(symbol) { demangle(symbol).unwrap_or_else(|| symbol.to_owned()) } else { symbol.to_owned() }
}

/// Is it a copy of a function of the C++ library, as programs carry them?
pub fn is_of_the_language(symbol: &str) -> bool {
    ["_ZNSt", "_ZNKSt", "_ZSt", "_ZNS", "_ZNKS", "_ZdlPv", "_Znwm"].iter().any(|prefix| symbol.starts_with(prefix))
}

fn is_mangled(symbol: &str) -> bool {
    symbol.starts_with("_Z") || symbol.starts_with("_R")
}

/// How people may write a mangled name: with and without arguments of templates and unnamed namespaces.
fn spellings(mangled: &str) -> Vec<String> {
    let Some(whole) = demangle(mangled) else { return Vec::new() };
    let plain = whole.replace("(anonymous namespace)::", "").replace("[abi:cxx11]", "");
    let bare = without_templates(&plain);
    vec![whole, plain, bare]
}

/// A C++ or Rust name without its arguments and result.
fn demangle(mangled: &str) -> Option<String> {
    if mangled.len() > LONGEST_MANGLED {
        return None;
    }
    let mut name = Short(String::new());
    if let Ok(rust) = rustc_demangle::try_demangle(mangled) {
        write!(name, "{rust:#}").ok()?;
        return Some(name.0);
    }
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    cpp_demangle::Symbol::new(mangled).ok()?.structured_demangle(&mut name, &options).ok()?;
    Some(name.0)
}

/// Text that does not become long.
struct Short(String);

impl fmt::Write for Short {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        if self.0.len() + more.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(more);
        Ok(())
    }
}

fn without_templates(name: &str) -> String {
    let (mut out, mut depth) = (String::with_capacity(name.len()), 0_usize);
    for c in name.chars() {
        match c {
            // Operators: <, <<, <=, >, >>, >=, ->
            '<' | '>' if depth == 0 && out.rsplit("::").next().is_some_and(|last| last.starts_with("operator")) => {
                out.push(c);
            }
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            c if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(names: &'static [&'static str], symbol: &str) -> Option<&'static str> {
        Names::new(names.iter().copied()).meant_by(symbol)
    }

    #[test]
    fn a_symbol_stands_for_its_name_and_copies_for_the_original() {
        let names = &["step", "a.out"];
        assert_eq!(meant(names, "step"), Some("step"));
        for copy in ["step.constprop.0", "step.isra.0.constprop.3", "step.lto_priv.2", "step.llvm.123"] {
            assert_eq!(meant(names, copy), Some("step"), "{copy}");
        }
        for other in ["step.cold", "step.part.0", "steps", "step2", "_step", ".step", ""] {
            assert_eq!(meant(names, other), None, "{other}");
        }
    }

    #[test]
    fn cpp_names_without_arguments() {
        // As g++ 12 mangles them: sim::Solver::step(int), sim::save<double>(...), a static function and a clone of it.
        let cases = [
            ("sim::Solver::step", "_ZN3sim6Solver4stepEi"),
            ("sim::save", "_ZN3sim4saveIdEEvPKT_m"),
            ("sim::save<double>", "_ZN3sim4saveIdEEvPKT_m"),
            ("load", "_ZL4loadPKc"),
            ("load", "_ZL4loadPKc.constprop.0"),
            ("load", "_ZN12_GLOBAL__N_14loadEv"),
            ("(anonymous namespace)::load", "_ZN12_GLOBAL__N_14loadEv"),
            ("sim::Solver::Solver", "_ZN3sim6SolverC1Ev"),
            ("sim::Solver::~Solver", "_ZN3sim6SolverD2Ev"),
            ("sim::Solver::operator<<", "_ZN3sim6SolverlsEi"),
            ("sim::Solver::name", "_ZNK3sim6Solver4nameB5cxx11Ev"),
            ("_ZN3sim6Solver4stepEi", "_ZN3sim6Solver4stepEi"),
        ];
        for (name, symbol) in cases {
            assert_eq!(Names::new([name]).meant_by(symbol), Some(name), "{symbol}");
        }
        for (name, symbol) in
            [("step", cases[0].1), ("sim::Solver", cases[0].1), ("sim::Solver::step(int)", cases[0].1)]
        {
            assert_eq!(Names::new([name]).meant_by(symbol), None, "{name}");
        }
    }

    #[test]
    fn rust_names() {
        let names = &["app::io::save"];
        assert_eq!(meant(names, "_ZN3app2io4save17h0123456789abcdefE"), Some("app::io::save"));
        assert_eq!(meant(names, "_RNvNtCs1234_3app2io4save"), Some("app::io::save"));
    }

    #[test]
    fn names_that_are_long_or_stand_for_long_ones_are_not_taken_apart() {
        let long = format!("_ZN{}4stepEv", "1a".repeat(LONGEST_MANGLED));
        assert_eq!(plain_name(&long), long);
        assert_eq!(meant(&["step", "f"], &long), None);
        // Each of the arguments is the one before it twice.
        let twice = |n: usize| match n {
            0 => "1AIiiE".to_owned(),
            1 => "1BIS0_S0_E".to_owned(),
            n => format!("1BIS{0}_S{0}_E", char::from_digit(n as u32 * 2, 36).unwrap_or('0').to_ascii_uppercase()),
        };
        let bomb = format!("_Z1fI{}EvT_", (0..18).map(twice).collect::<String>());
        assert!(plain_name(&bomb).len() <= LONGEST, "{}", plain_name(&bomb).len());
        let mut short = Short(String::new());
        assert!((0..LONGEST).all(|_| short.write_str("a").is_ok()));
        assert!(short.write_str("a").is_err());
    }

    #[test]
    fn what_is_rarely_executed_is_known_by_its_function() {
        assert_eq!(cold_part_of("step.cold"), Some("step"));
        assert_eq!(cold_part_of("step.constprop.0.cold.3"), Some("step.constprop.0"));
        assert_eq!(cold_part_of("step.colder"), None);
    }
}
