//! Cuts the kernel's type dump down to the types the BPF programs touch: `bpf/vmlinux/x86_64/vmlinux.h`.

use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::{setup, shell};

const ROOTS: &str = "bpf/vmlinux/roots.txt";
const HEADER: &str = "bpf/vmlinux/x86_64/vmlinux.h";
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Writes the header anew from the running kernel's types.
pub fn run(root: &Path) -> Result<()> {
    setup::packages(&[setup::BPFTOOL])?;
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").context("cannot read the kernel's version")?;
    let version: String = release.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let dump = shell::output("bpftool", &["btf", "dump", "file", BTF, "format", "c"])?;
    let roots = fs::read_to_string(root.join(ROOTS)).with_context(|| format!("cannot read {ROOTS}"))?;
    let header = trim(&dump, &list(&roots))?;
    let first = format!(
        "/* Made by `cargo xtask vmlinux` from the types of Linux {}, cut down to {ROOTS}. Do not edit. */\n",
        version.trim_end_matches('.')
    );
    fs::write(root.join(HEADER), first + &header).with_context(|| format!("cannot write {HEADER}"))?;
    println!("{HEADER}: {} lines", header.lines().count() + 1);
    Ok(())
}

/// The lines of the list of roots, without comments.
fn list(roots: &str) -> Vec<&str> {
    roots.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// What a top-level block of the dump defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Name<'a> {
    Struct(&'a str),
    Union(&'a str),
    Enum(&'a str),
    Typedef(&'a str),
}

/// One member of a struct or union: its lines, and its own members when it is a nested struct or union.
struct Member<'a> {
    name: Option<&'a str>,
    lines: Vec<&'a str>,
    inner: Vec<Member<'a>>,
}

/// The dump, taken apart.
struct Dump<'a> {
    prologue: &'a str,
    epilogue: &'a str,
    /// Each block's lines, in the dump's order, in which a type stands before those that hold it by value.
    blocks: Vec<Vec<&'a str>>,
    by_name: HashMap<Name<'a>, usize>,
    /// The block of an enumeration constant.
    by_constant: HashMap<&'a str, usize>,
}

/// Keeps the types that `roots` name and what those need, in the order of `dump`.
///
/// A root is the name of a struct, union, enum or typedef, or a constant of an enum without a name. `NAME: MEMBER...`
/// keeps only those members, found through nested structs without a name too; BPF programs find members by name when
/// they are loaded, so what is left out does not matter. What a member points at is declared and not defined.
///
/// Fails when the dump has no such type or member, and when it is not a dump.
pub fn trim(dump: &str, roots: &[&str]) -> Result<String> {
    let dump = Dump::parse(dump)?;
    let mut chosen: HashMap<usize, Vec<&str>> = HashMap::new();
    // Blocks to keep, and whether their size must be known: a typedef behind a pointer does not need what it names.
    let mut work: Vec<(usize, bool)> = Vec::new();
    for root in roots {
        let (name, members) = root.split_once(':').unwrap_or((root, ""));
        let block = dump.find(name.trim()).with_context(|| format!("the kernel has no type or constant {name}"))?;
        let members: Vec<&str> = members.split_whitespace().collect();
        if !members.is_empty() {
            chosen.insert(block, members);
        }
        work.push((block, true));
    }

    let mut kept: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    let mut declared: BTreeSet<Name> = BTreeSet::new();
    let mut done: HashSet<(usize, bool)> = HashSet::new();
    while let Some((block, by_value)) = work.pop() {
        if !done.insert((block, by_value)) {
            continue;
        }
        let lines = match chosen.get(&block) {
            Some(members) => only(&dump.blocks[block], members)?,
            None => dump.blocks[block].clone(),
        };
        for (name, value) in dump.needs(&lines) {
            match (name, dump.by_name.get(&name)) {
                (Name::Struct(_) | Name::Union(_), _) if !(value && by_value) => {
                    declared.insert(name);
                }
                (_, Some(body)) => work.push((*body, value && by_value)),
                (_, None) => bail!("the dump does not define {name:?}, which {} needs", dump.blocks[block][0]),
            }
        }
        kept.insert(block, lines);
    }

    let mut out = String::from(dump.prologue);
    for name in &declared {
        let (keyword, tag) = match name {
            Name::Struct(tag) => ("struct", tag),
            Name::Union(tag) => ("union", tag),
            Name::Enum(_) | Name::Typedef(_) => continue,
        };
        let _ = writeln!(out, "{keyword} {tag};");
    }
    for lines in kept.values() {
        out += "\n";
        for line in lines {
            out += line;
            out += "\n";
        }
    }
    out += "\n";
    out += dump.epilogue;
    Ok(out)
}

impl<'a> Dump<'a> {
    fn parse(text: &'a str) -> Result<Self> {
        let is_type = |line: &str| ["typedef ", "struct ", "union ", "enum "].iter().any(|w| line.starts_with(w));
        let mut at = 0;
        let start = text.lines().find_map(|line| {
            let here = at;
            at += line.len() + 1;
            is_type(line).then_some(here)
        });
        let end = text.rfind("#ifndef BPF_NO_PRESERVE_ACCESS_INDEX");
        let (Some(start), Some(end)) = (start, end) else { bail!("not a type dump of bpftool") };
        if end < start {
            bail!("not a type dump of bpftool: it has no end");
        }

        let mut dump = Dump {
            prologue: &text[..start],
            epilogue: &text[end..],
            blocks: Vec::new(),
            by_name: HashMap::new(),
            by_constant: HashMap::new(),
        };
        let mut lines = text[start..end].lines();
        while let Some(first) = lines.next() {
            if !is_type(first) {
                continue;
            }
            let mut block = vec![first];
            // A block ends with the first line at the margin that ends a declaration.
            while !block.last().is_some_and(|l| l.ends_with(';') && !l.starts_with('\t')) {
                block.push(lines.next().with_context(|| format!("the dump ends inside `{first}`"))?);
            }
            dump.add(block);
        }
        Ok(dump)
    }

    fn add(&mut self, block: Vec<&'a str>) {
        let first = block[0];
        let number = self.blocks.len();
        let mut words = words(first);
        let name = match (words.next(), words.next()) {
            (Some("typedef"), _) => block.last().and_then(|last| declarator(last)).map(Name::Typedef),
            // A declaration alone defines nothing: `trim` writes its own.
            (Some("struct" | "union"), _) if first.ends_with(';') && !first.ends_with("{};") => return,
            (Some("struct"), Some(tag)) => Some(Name::Struct(tag)),
            (Some("union"), Some(tag)) => Some(Name::Union(tag)),
            (Some("enum"), Some(tag)) => Some(Name::Enum(tag)),
            _ => None,
        };
        if first.starts_with("enum") {
            for constant in block.iter().skip(1).filter_map(|line| self::words(line).next()) {
                self.by_constant.insert(constant, number);
            }
        }
        if let Some(name) = name {
            self.by_name.insert(name, number);
        }
        self.blocks.push(block);
    }

    fn find(&self, name: &'a str) -> Option<usize> {
        [Name::Struct(name), Name::Union(name), Name::Enum(name), Name::Typedef(name)]
            .iter()
            .find_map(|n| self.by_name.get(n))
            .or_else(|| self.by_constant.get(name))
            .copied()
    }

    /// The types that a block's lines mention, and whether their size must be known there.
    fn needs(&self, lines: &[&'a str]) -> Vec<(Name<'a>, bool)> {
        let mut out = Vec::new();
        if lines[0].starts_with("enum") || lines[0].starts_with("typedef enum {") {
            return out;
        }
        for line in lines.iter().filter(|l| !l.ends_with('{') && !l.trim_start().starts_with('}')) {
            let value = !line.contains(['*', '(']);
            let own = declarator(line);
            let mut words = words(line).peekable();
            while let Some(word) = words.next() {
                let name = match word {
                    "struct" => words.next().map(Name::Struct),
                    "union" => words.next().map(Name::Union),
                    "enum" => words.next().map(Name::Enum),
                    _ if Some(word) == own => None,
                    _ => Some(Name::Typedef(word)).filter(|n| self.by_name.contains_key(n)),
                };
                out.extend(name.map(|n| (n, value)));
            }
        }
        out
    }
}

/// The block with only `members`, those of nested structs without a name moved to the outside.
fn only<'a>(block: &[&'a str], members: &[&str]) -> Result<Vec<&'a str>> {
    let [first, body @ .., last] = block else { bail!("`{}` has no members", block.concat()) };
    let all = parse_members(&mut body.iter().copied());
    let mut out = vec![*first];
    for wanted in members {
        let member = find_member(&all, wanted).with_context(|| format!("`{first}` has no member {wanted}"))?;
        let depth = member.lines[0].chars().take_while(|c| *c == '\t').count();
        // The dump indents with one tab for each level: leave the member one.
        out.extend(member.lines.iter().filter_map(|line| line.get(depth.saturating_sub(1)..)));
    }
    out.push(*last);
    Ok(out)
}

fn parse_members<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Vec<Member<'a>> {
    let mut out = Vec::new();
    while let Some(line) = lines.next() {
        if !line.ends_with('{') {
            out.push(Member { name: declarator(line), lines: vec![line], inner: Vec::new() });
            continue;
        }
        let mut nested = vec![line];
        let mut depth = 1;
        while depth > 0 {
            let Some(line) = lines.next() else { break };
            depth += i32::from(line.ends_with('{')) - i32::from(line.trim_start().starts_with('}'));
            nested.push(line);
        }
        let name = nested.last().and_then(|last| declarator(last));
        let inner = parse_members(&mut nested[1..nested.len() - 1].iter().copied());
        out.push(Member { name, lines: nested, inner });
    }
    out
}

fn find_member<'m, 'a>(members: &'m [Member<'a>], wanted: &str) -> Option<&'m Member<'a>> {
    members
        .iter()
        .find(|m| m.name == Some(wanted))
        .or_else(|| members.iter().filter(|m| m.name.is_none()).find_map(|m| find_member(&m.inner, wanted)))
}

/// The name that a line of C declares: `x` of `struct a *x[3];`, `int (*x)(int);`, `} x;`, `unsigned int x: 1;`.
fn declarator(line: &str) -> Option<&str> {
    let line = line.trim().strip_suffix(';')?;
    let line = line.split("__attribute__").next().unwrap_or(line);
    let line = match line.split_once("(*") {
        Some((_, inner)) => inner.split([')', '[']).next()?,
        // A function type: the name stands before the arguments.
        None => line.split(['[', ':', '(']).next()?,
    };
    let name = line.rsplit(|c: char| !is_word(c)).find(|w| !w.is_empty())?;
    // `long: 64` is padding.
    let padding = matches!(name, "long" | "int" | "short" | "char") && !line.trim().contains(' ');
    (!padding).then_some(name)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !is_word(c)).filter(|w| !w.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "\
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

#ifndef BPF_NO_PRESERVE_ACCESS_INDEX
#pragma clang attribute push (__attribute__((preserve_access_index)), apply_to = record)
#endif

typedef unsigned int __u32;

typedef __u32 u32;

typedef struct small small_t;

struct unused;

enum {
	FIRST = 0,
	SECOND = -1,
};

enum color {
	RED = 0,
};

struct small {
	u32 a;
};

struct other {
	int (*call)(struct far *, enum color);
	small_t *behind;
};

struct empty {};

typedef struct {
	int counter;
} atomic_t;

struct big {
	struct small value;
	long: 64;
	struct other *pointer;
	union {
		struct {
			atomic_t deep[4];
			unsigned int bit: 1;
		};
		struct {
			struct other held;
		} named;
	};
	enum color color;
};

#ifndef BPF_NO_KFUNC_PROTOTYPES
extern void bpf_something(struct big *) __weak __ksym;
#endif

#ifndef BPF_NO_PRESERVE_ACCESS_INDEX
#pragma clang attribute pop
#endif

#endif /* __VMLINUX_H__ */
";

    /// The part between prologue and epilogue.
    fn kept(roots: &[&str]) -> String {
        let out = trim(DUMP, roots).unwrap();
        let (start, end) = (DUMP.find("typedef").unwrap(), DUMP.rfind("#ifndef").unwrap());
        let body = out.strip_prefix(&DUMP[..start]).expect("starts with the prologue");
        body.strip_suffix(&DUMP[end..]).expect("ends with the epilogue").to_string()
    }

    #[test]
    fn a_typedef_brings_what_it_names() {
        assert_eq!(kept(&["u32"]), "\ntypedef __u32 u32;\n\n".replacen('\n', "\ntypedef unsigned int __u32;\n\n", 1));
    }

    #[test]
    fn pointers_bring_a_declaration_and_values_the_whole() {
        let other = kept(&["other"]);
        assert!(other.starts_with("struct far;\nstruct small;\n"), "{other}");
        assert!(other.contains("typedef struct small small_t;"), "{other}");
        assert!(other.contains("enum color {"), "{other}");
        assert!(!other.contains("struct small {"), "{other}");
        let big = kept(&["big"]);
        for part in ["struct small {", "struct other {", "} atomic_t;", "\tlong: 64;\n", "typedef __u32 u32;"] {
            assert!(big.contains(part), "{part} is not in {big}");
        }
    }

    #[test]
    fn a_type_reached_both_ways_is_defined() {
        let both = kept(&["other", "small_t"]);
        assert!(both.contains("struct small {"), "{both}");
    }

    #[test]
    fn chosen_members_are_found_in_nested_aggregates_without_a_name() {
        assert_eq!(
            kept(&["big: bit deep pointer"]),
            "struct other;\n\ntypedef struct {\n\tint counter;\n} atomic_t;\n\n\
             struct big {\n\tunsigned int bit: 1;\n\tatomic_t deep[4];\n\tstruct other *pointer;\n};\n\n"
        );
    }

    #[test]
    fn a_nested_member_with_a_name_is_kept_whole() {
        let big = kept(&["big: named"]);
        assert!(big.contains("struct big {\n\tstruct {\n\t\tstruct other held;\n\t} named;\n};\n"), "{big}");
        assert!(big.contains("struct other {"), "{big}");
        assert!(trim(DUMP, &["big: held"]).is_err());
    }

    #[test]
    fn enums_without_a_name_are_found_by_a_constant() {
        assert_eq!(kept(&["SECOND"]), "\nenum {\n\tFIRST = 0,\n\tSECOND = -1,\n};\n\n");
        assert_eq!(kept(&["empty"]), "\nstruct empty {};\n\n");
    }

    #[test]
    fn what_does_not_exist_is_named() {
        let error = |roots: &[&str]| format!("{:#}", trim(DUMP, roots).unwrap_err());
        assert!(error(&["nothing"]).contains("nothing"));
        assert!(error(&["big: nothing"]).contains("no member nothing"));
        // Only declared in the dump.
        assert!(error(&["unused"]).contains("unused"));
        assert!(error(&["u32: x"]).contains("has no members"));
        assert!(trim("", &[]).is_err());
        assert!(trim("struct a {\n\tint b;\n", &[]).is_err());
        let cut = "typedef int a;\n\nstruct b {\n#ifndef BPF_NO_PRESERVE_ACCESS_INDEX\n";
        assert!(format!("{:#}", trim(cut, &[]).unwrap_err()).contains("ends inside `struct b {`"));
    }

    #[test]
    fn the_checked_in_header_has_every_root() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let header = fs::read_to_string(root.join(HEADER)).unwrap();
        let roots = fs::read_to_string(root.join(ROOTS)).unwrap();
        let again = trim(&header, &list(&roots)).unwrap();
        assert_eq!(again, header, "the header is not what trimming with {ROOTS} gives");
    }
}
