//! Types of functions from a C header, preprocessed by the C compiler and parsed by tree-sitter.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use tree_sitter::{Node, Parser};

use crate::probes::generate::signature::{Param, Shape, Signature, Type};

/// Extensions of compilers, and qualifiers that are no part of a type.
const QUIET: &[&str] = &[
    "-D__attribute__(x)=",
    "-D__asm__(x)=",
    "-D__asm(x)=",
    "-Dasm(x)=",
    "-D__extension__=",
    "-D__inline=inline",
    "-D__inline__=inline",
    "-D__restrict=restrict",
    "-D__restrict__=restrict",
    "-D__const=const",
    "-D__signed__=signed",
    "-D__volatile__=volatile",
    "-D_Noreturn=",
];

/// The signatures of these functions that the header declares, by name. The compiler is `CC`, by default `cc`.
pub fn signatures(header: &Path, functions: &HashSet<&str>) -> Result<HashMap<String, Signature>> {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| OsString::from("cc"));
    let shown = compiler.to_string_lossy().into_owned();
    std::fs::metadata(header).with_context(|| format!("cannot read {}", header.display()))?;
    let mut command = Command::new(&compiler);
    command.args(["-E", "-P", "-x", "c"]).args(QUIET).arg(header);
    let out =
        command.output().with_context(|| format!("cannot start the C compiler {shown} (CC names another one)"))?;
    if !out.status.success() {
        let stderr = String::from_utf8_lossy(&out.stderr);
        bail!("{shown} cannot preprocess {} (CC names another compiler, such as mpicc):\n{stderr}", header.display());
    }
    declared(&String::from_utf8_lossy(&out.stdout), functions)
}

/// The signatures in a preprocessed text. What cannot be parsed is passed over.
fn declared(text: &str, functions: &HashSet<&str>) -> Result<HashMap<String, Signature>> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_c::LANGUAGE.into()).context("the C grammar")?;
    let tree = parser.parse(text, None).context("the C parser gave up")?;
    let mut source = Source { text, typedefs: HashMap::new() };
    let mut found = HashMap::new();
    let mut cursor = tree.walk();
    for node in tree.root_node().named_children(&mut cursor) {
        match node.kind() {
            "type_definition" => source.type_definition(node),
            "declaration" => source.declaration(node, functions, &mut found),
            _ => {}
        }
    }
    Ok(found)
}

struct Source<'a> {
    text: &'a str,
    typedefs: HashMap<String, Type>,
}

/// A declared name and its type; of a function also its parameters, its type being that of the result.
struct Declared<'tree> {
    name: String,
    ty: Type,
    params: Option<Node<'tree>>,
}

impl Source<'_> {
    fn of(&self, node: Node<'_>) -> &str {
        node.utf8_text(self.text.as_bytes()).unwrap_or_default()
    }

    fn type_definition(&mut self, node: Node<'_>) {
        let Some((base, constant)) = self.base(node) else { return };
        let mut cursor = node.walk();
        let declarators: Vec<Node<'_>> = node.children_by_field_name("declarator", &mut cursor).collect();
        for declarator in declarators {
            let declared = self.declarator(declarator, base.clone(), constant);
            let shape = if declared.params.is_some() { Shape::Unknown } else { declared.ty.shape };
            self.typedefs.insert(declared.name.clone(), Type { name: declared.name, shape });
        }
    }

    fn declaration(&self, node: Node<'_>, functions: &HashSet<&str>, found: &mut HashMap<String, Signature>) {
        let Some((base, constant)) = self.base(node) else { return };
        let mut cursor = node.walk();
        for declarator in node.children_by_field_name("declarator", &mut cursor) {
            let declared = self.declarator(declarator, base.clone(), constant);
            if let Some(params) = declared.params
                && functions.contains(declared.name.as_str())
            {
                let params = self.parameters(params);
                found.entry(declared.name).or_insert(Signature { params, result: declared.ty });
            }
        }
    }

    fn parameters(&self, list: Node<'_>) -> Vec<Param> {
        let mut cursor = list.walk();
        let mut params = Vec::new();
        for node in list.named_children(&mut cursor).filter(|n| n.kind() == "parameter_declaration") {
            let Some((base, constant)) = self.base(node) else {
                params.push(Param { name: String::new(), ty: Type::new("?", Shape::Unknown) });
                continue;
            };
            let declared = match node.child_by_field_name("declarator") {
                Some(declarator) => self.declarator(declarator, base, constant),
                None if base.shape == Shape::Void => continue,
                None => Declared { name: String::new(), ty: base, params: None },
            };
            params.push(Param { name: declared.name, ty: declared.ty });
        }
        params
    }

    /// The type that a declaration begins with, and whether it is constant.
    fn base(&self, node: Node<'_>) -> Option<(Type, bool)> {
        let specifier = node.child_by_field_name("type")?;
        let constant = self.is_constant(node);
        let ty = match specifier.kind() {
            "primitive_type" | "sized_type_specifier" | "type_identifier" => self.named(self.of(specifier)),
            kind @ ("struct_specifier" | "union_specifier" | "enum_specifier") => {
                let tag = specifier.child_by_field_name("name").map(|n| self.of(n)).unwrap_or_default();
                match kind {
                    "enum_specifier" => Type::new(format!("enum {tag}").trim_end(), Shape::Enum),
                    "union_specifier" => Type::new(format!("union {tag}").trim_end(), Shape::Unknown),
                    // By value its members would decide where it is passed.
                    _ => Type::new(format!("struct {tag}").trim_end(), Shape::Unknown),
                }
            }
            _ => return None,
        };
        Some((ty, constant))
    }

    fn is_constant(&self, node: Node<'_>) -> bool {
        let mut cursor = node.walk();
        node.named_children(&mut cursor).any(|child| child.kind() == "type_qualifier" && self.of(child) == "const")
    }

    fn named(&self, text: &str) -> Type {
        let words: Vec<&str> = text.split_whitespace().collect();
        let name = words.join(" ");
        self.typedefs.get(&name).cloned().unwrap_or_else(|| Type { shape: primitive(&words), name })
    }

    /// Applies a declarator to a type, from the outside in.
    fn declarator<'tree>(&self, node: Node<'tree>, ty: Type, constant: bool) -> Declared<'tree> {
        let inner = || node.child_by_field_name("declarator");
        let nameless = |ty: Type| Declared { name: String::new(), ty, params: None };
        let with = |ty: Type, constant: bool| match inner() {
            Some(inner) => self.declarator(inner, ty, constant),
            None => nameless(ty),
        };
        match node.kind() {
            "identifier" | "type_identifier" | "field_identifier" | "primitive_type" => {
                Declared { name: self.of(node).to_owned(), ty, params: None }
            }
            "pointer_declarator" | "abstract_pointer_declarator" | "array_declarator" | "abstract_array_declarator" => {
                with(Type::pointer(ty, constant), self.is_constant(node))
            }
            "function_declarator" | "abstract_function_declarator" => {
                let params = node.child_by_field_name("parameters");
                match inner() {
                    // A function itself; else a pointer to one.
                    Some(name) if matches!(name.kind(), "identifier" | "type_identifier") => {
                        Declared { name: self.of(name).to_owned(), ty, params }
                    }
                    Some(inner) => self.declarator(inner, Type::new("function", Shape::Unknown), false),
                    None => nameless(Type::new("function", Shape::Unknown)),
                }
            }
            "parenthesized_declarator" | "abstract_parenthesized_declarator" | "attributed_declarator" => {
                let mut cursor = node.walk();
                let inside = node.named_children(&mut cursor).find(|n| n.kind().contains("declarator"));
                let name = || node.named_child(0);
                match inside.or_else(name) {
                    Some(inside) => self.declarator(inside, ty, constant),
                    None => nameless(ty),
                }
            }
            "init_declarator" => with(ty, constant),
            _ => nameless(Type::new("?", Shape::Unknown)),
        }
    }
}

/// Types that the compiler and `stdint.h` name, by the words of their names. Sizes are those of Linux on `x86_64`.
fn primitive(words: &[&str]) -> Shape {
    let has = |word: &str| words.contains(&word);
    let int = |bytes: u8| Shape::Int { bytes, signed: !has("unsigned") };
    match words {
        ["void"] => return Shape::Void,
        ["bool" | "_Bool"] => return Shape::Bool,
        ["size_t" | "uintptr_t"] => return Shape::Int { bytes: 8, signed: false },
        ["ssize_t" | "intptr_t" | "ptrdiff_t" | "off_t"] => return Shape::Int { bytes: 8, signed: true },
        [name] if name.ends_with("_t") => {
            let (signed, rest) = if let Some(rest) = name.strip_prefix("uint") { (false, rest) } else { (true, *name) };
            return match rest.trim_start_matches("int") {
                "8_t" => Shape::Int { bytes: 1, signed },
                "16_t" => Shape::Int { bytes: 2, signed },
                "32_t" => Shape::Int { bytes: 4, signed },
                "64_t" => Shape::Int { bytes: 8, signed },
                _ => Shape::Unknown,
            };
        }
        _ => {}
    }
    let known = ["int", "char", "short", "long", "signed", "unsigned", "float", "double", "__int128"];
    if !words.iter().all(|word| known.contains(word)) {
        return Shape::Unknown;
    }
    if has("double") {
        Shape::Float { bytes: if has("long") { 16 } else { 8 } }
    } else if has("float") {
        Shape::Float { bytes: 4 }
    } else if has("__int128") {
        int(16)
    } else if has("char") {
        int(1)
    } else if has("short") {
        int(2)
    } else if has("long") {
        int(8)
    } else {
        int(4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, name: &str) -> String {
        let signatures = declared(text, &HashSet::from([name])).unwrap();
        let signature = &signatures[name];
        let positions: Vec<String> =
            signature.positions().iter().map(|r| r.map_or("-".to_owned(), |r| r.to_string())).collect();
        format!("{} [{}]", signature.text(name), positions.join(" "))
    }

    #[test]
    fn declarations_of_all_forms() {
        let text = "
            typedef unsigned long size_t;
            typedef long hid_t;
            typedef struct store *store_t;
            typedef int (*callback)(void *data, double x);
            typedef struct { double re, im; } pair;
            typedef double real, *reals;
            enum mode { A, B };
            extern store_t st_open(const char *path, enum mode mode);
            long int st_put(store_t s, const void *restrict buf, size_t n), st_get(store_t, void *, unsigned);
            int st_iterate(store_t s, callback cb, int (*other)(int, char), void *data[], ...);
            int st_real(real x, reals v, hid_t id, long double big, int n);
            void st_pair(pair p, int n);
            const char *st_error(void);
            struct stat *st_stat(char **names, const char *const *all);
            unsigned long long int st_count(), *st_counts(int);
            int other(void);
        ";
        let cases = [
            ("st_open", "store_t st_open(const char *path, enum mode mode) [0 1]"),
            ("st_put", "long int st_put(store_t s, const void *buf, size_t n) [0 1 2]"),
            ("st_get", "long int st_get(store_t, void *, unsigned) [0 1 2]"),
            ("st_iterate", "int st_iterate(store_t s, callback cb, function *other, void **data) [0 1 2 3]"),
            ("st_real", "int st_real(real x, reals v, hid_t id, long double big, int n) [- 0 1 - 2]"),
            ("st_pair", "void st_pair(pair p, int n) [- -]"),
            ("st_error", "const char *st_error(void) []"),
            ("st_stat", "struct stat *st_stat(char **names, const char *const *all) [0 1]"),
            ("st_count", "unsigned long long int st_count(void) []"),
            ("st_counts", "unsigned long long int *st_counts(int) [0]"),
        ];
        for (name, expected) in cases {
            assert_eq!(found(text, name), expected);
        }
        assert!(declared(text, &HashSet::from(["absent"])).unwrap().is_empty());
    }

    #[test]
    fn a_real_header_is_read() {
        let names = HashSet::from(["fopen", "fread", "fseek", "printf"]);
        let dir = tempfile::tempdir().unwrap();
        let header = dir.path().join("h.h");
        std::fs::write(&header, "#include <stdio.h>\n").unwrap();
        let found = signatures(&header, &names).unwrap();
        let text = |name: &str| found[name].text(name);
        assert_eq!(found.len(), 4);
        assert!(text("fopen").starts_with("FILE *fopen(const char *"), "{}", text("fopen"));
        assert_eq!(found["fread"].positions(), [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(found["fseek"].params[1].ty.shape, Shape::Int { bytes: 8, signed: true });
    }

    #[test]
    fn a_header_that_cannot_be_preprocessed_gives_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let header = dir.path().join("h.h");
        let none = HashSet::new();
        assert!(signatures(&header, &none).unwrap_err().to_string().contains("cannot read"));
        std::fs::write(&header, "#include <no/such/file.h>\n").unwrap();
        let error = signatures(&header, &none).unwrap_err().to_string();
        assert!(error.contains("no/such/file.h") && error.contains("CC names another compiler"), "{error}");
    }
}
