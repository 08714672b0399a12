//! Types of functions from DWARF debug information: in the library, or in the file of debug information that belongs to it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context as _, Result};
use gimli::{AttributeValue as Value, DwarfSections, EndianSlice, LittleEndian, SectionId, UnitOffset, UnitType};
use object::elf::FileHeader64;
use object::read::elf::ElfFile;
use object::{Object as _, ObjectSection as _};

use crate::probes::generate::signature::{Param, Shape, Signature, Type};

/// Where separate debug information is installed, by build-id.
pub const DEBUG_ROOT: &str = "/usr/lib/debug";

type Reader<'a> = EndianSlice<'a, LittleEndian>;
type Entry<'a> = gimli::DebuggingInformationEntry<Reader<'a>>;
type File<'a> = ElfFile<'a, FileHeader64<object::LittleEndian>>;

/// A function that is looked for: its symbol and its address.
#[derive(Debug, Clone)]
pub struct Symbol {
    pub name: String,
    pub address: u64,
}

/// The signatures of these functions, by symbol; `None` when there is no debug information. The second value is where it is.
pub fn signatures(
    library: &Path,
    bytes: &[u8],
    symbols: &[Symbol],
    root: &Path,
) -> Result<Option<(HashMap<String, Signature>, PathBuf)>> {
    let file = File::parse(bytes).with_context(|| library.display().to_string())?;
    if file.section_by_name(".debug_info").is_some() {
        return Ok(Some((read(&file, library, symbols, root)?, library.to_owned())));
    }
    let Some(path) = file.build_id().ok().flatten().and_then(|id| by_build_id(root, id)) else { return Ok(None) };
    let Ok(bytes) = std::fs::read(&path) else { return Ok(None) };
    let file = File::parse(bytes.as_slice()).with_context(|| path.display().to_string())?;
    Ok(Some((read(&file, &path, symbols, root)?, path)))
}

/// gdb's convention: `.build-id/ab/cdef.debug`.
fn by_build_id(root: &Path, id: &[u8]) -> Option<PathBuf> {
    let hex: Vec<String> = id.iter().map(|b| format!("{b:02x}")).collect();
    let (first, rest) = hex.split_first()?;
    Some(root.join(".build-id").join(first).join(rest.concat() + ".debug"))
}

/// What several files of debug information share, as `dwz` makes it: named in one of them.
fn shared(file: &File<'_>, path: &Path, root: &Path) -> Option<Vec<u8>> {
    let (name, id) = file.gnu_debugaltlink().ok().flatten()?;
    let name = Path::new(std::str::from_utf8(name).ok()?);
    let beside = path.parent().unwrap_or(Path::new("/")).join(name);
    std::fs::read(beside).or_else(|_| std::fs::read(by_build_id(root, id).unwrap_or_default())).ok()
}

fn sections<'a>(file: &File<'a>) -> Result<DwarfSections<Cow<'a, [u8]>>> {
    DwarfSections::load(|id: SectionId| {
        let section = file.section_by_name(id.name());
        section.map_or(Ok(Cow::Borrowed(&[][..])), |section| section.uncompressed_data()).context(id.name())
    })
}

fn read(file: &File<'_>, path: &Path, symbols: &[Symbol], root: &Path) -> Result<HashMap<String, Signature>> {
    let about = || format!("debug information of {}", path.display());
    let sup = shared(file, path, root);
    let sup = sup.as_deref().map(File::parse).transpose().with_context(about)?;
    let sup = sup.as_ref().map(sections).transpose().with_context(about)?;
    let sections = sections(file).with_context(about)?;
    let dwarf = sections.borrow_with_sup(sup.as_ref(), |section| EndianSlice::new(section, LittleEndian));
    let main = Info::new(&dwarf).with_context(about)?;
    let sup = dwarf.sup().map(Info::new).transpose().with_context(about)?;
    Types { main, sup }.functions(symbols).with_context(about)
}

/// The units of one file.
struct Info<'a> {
    dwarf: &'a gimli::Dwarf<Reader<'a>>,
    units: Vec<Rc<gimli::Unit<Reader<'a>>>>,
    starts: Vec<usize>,
}

impl<'a> Info<'a> {
    fn new(dwarf: &'a gimli::Dwarf<Reader<'a>>) -> gimli::Result<Self> {
        let (mut units, mut starts) = (Vec::new(), Vec::new());
        let mut headers = dwarf.units();
        while let Some(header) = headers.next()? {
            if matches!(header.type_(), UnitType::Compilation | UnitType::Partial) {
                starts.push(header.debug_info_offset().map_or(0, |at| at.0));
                units.push(Rc::new(dwarf.unit(header)?));
            }
        }
        Ok(Self { dwarf, units, starts })
    }

    /// The unit that holds this offset in the section.
    fn unit_of(&self, at: usize) -> Option<usize> {
        self.starts.partition_point(|start| *start <= at).checked_sub(1)
    }
}

/// An offset in the debug information.
#[derive(Clone, Copy)]
pub struct At {
    pub sup: bool,
    pub unit: usize,
    pub entry: UnitOffset,
}

pub struct Types<'a> {
    main: Info<'a>,
    sup: Option<Info<'a>>,
}

/// Types within types that are followed.
pub const DEPTH: usize = 24;

impl<'a> Types<'a> {
    fn info(&self, sup: bool) -> Option<&Info<'a>> {
        if sup { self.sup.as_ref() } else { Some(&self.main) }
    }

    pub fn unit(&self, at: At) -> Option<&Rc<gimli::Unit<Reader<'a>>>> {
        self.info(at.sup)?.units.get(at.unit)
    }

    pub fn entry(&self, at: At) -> Option<Entry<'a>> {
        self.unit(at)?.entry(at.entry).ok()
    }

    /// Where an attribute refers to.
    fn follow(&self, from: At, value: &Value<Reader<'a>>) -> Option<At> {
        let (sup, offset) = match value {
            Value::UnitRef(entry) => return Some(At { entry: *entry, ..from }),
            Value::DebugInfoRef(offset) => (from.sup, offset),
            Value::DebugInfoRefSup(offset) => (true, offset),
            _ => return None,
        };
        let info = self.info(sup)?;
        let unit = info.unit_of(offset.0)?;
        Some(At { sup, unit, entry: offset.to_unit_offset(&info.units.get(unit)?.header)? })
    }

    fn text(&self, at: At, value: Value<Reader<'a>>) -> Option<String> {
        let text = self.info(at.sup)?.dwarf.attr_string(self.unit(at)?, value).ok()?;
        Some(String::from_utf8_lossy(text.slice()).into_owned())
    }

    /// An attribute of an entry, or of the one that it completes, with where it stands.
    fn attribute(&self, at: At, name: gimli::DwAt) -> Option<(At, Value<Reader<'a>>)> {
        let mut at = at;
        for _ in 0..4 {
            let entry = self.entry(at)?;
            if let Some(value) = entry.attr_value(name) {
                return Some((at, value));
            }
            let origin = entry.attr_value(gimli::DW_AT_abstract_origin);
            at = self.follow(at, &origin.or_else(|| entry.attr_value(gimli::DW_AT_specification))?)?;
        }
        None
    }

    pub fn name(&self, at: At, name: gimli::DwAt) -> Option<String> {
        self.attribute(at, name).and_then(|(at, value)| self.text(at, value))
    }

    pub fn number(&self, at: At, name: gimli::DwAt) -> Option<u64> {
        match self.attribute(at, name)?.1 {
            Value::Encoding(encoding) => Some(u64::from(encoding.0)),
            Value::CallingConvention(convention) => Some(u64::from(convention.0)),
            value => value.udata_value(),
        }
    }

    fn functions(&self, symbols: &[Symbol]) -> Result<HashMap<String, Signature>> {
        let by_name: HashMap<&str, &Symbol> = symbols.iter().map(|s| (s.name.as_str(), s)).collect();
        let mut by_address: HashMap<u64, Vec<&Symbol>> = HashMap::new();
        for symbol in symbols {
            by_address.entry(symbol.address).or_default().push(symbol);
        }
        let mut found = HashMap::new();
        for (index, unit) in self.main.units.iter().enumerate() {
            let mut entries = unit.entries();
            while let Some(entry) = entries.next_dfs()? {
                if entry.tag != gimli::DW_TAG_subprogram || entry.attr(gimli::DW_AT_declaration).is_some() {
                    continue;
                }
                let at = At { sup: false, unit: index, entry: entry.offset };
                // The first range is the function's own; what is rarely executed may be elsewhere.
                let ranges = self.main.dwarf.die_ranges(unit, entry).and_then(|mut ranges| ranges.next());
                let address = ranges.ok().flatten().map(|range| range.begin);
                let linkage = self.name(at, gimli::DW_AT_linkage_name);
                let name = linkage.or_else(|| self.name(at, gimli::DW_AT_name)).unwrap_or_default();
                // Other names of a function stand at its address only.
                let named = by_name.get(name.as_str()).copied().filter(|_| address.is_some());
                let others = address.and_then(|address| by_address.get(&address)).into_iter().flatten().copied();
                let symbols: Vec<&Symbol> = named.into_iter().chain(others).collect();
                if let Some(first) = symbols.first().filter(|s| !found.contains_key(&s.name)) {
                    let signature = self.signature(at)?;
                    found.insert(first.name.clone(), signature.clone());
                    found.extend(symbols.iter().skip(1).map(|s| (s.name.clone(), signature.clone())));
                }
            }
        }
        Ok(found)
    }

    fn signature(&self, at: At) -> Result<Signature> {
        let mut params = Vec::new();
        if let Some(unit) = self.unit(at) {
            let mut tree = unit.entries_tree(Some(at.entry))?;
            let mut children = tree.root()?.children();
            while let Some(child) = children.next()? {
                let entry = child.entry();
                if entry.tag == gimli::DW_TAG_formal_parameter {
                    let at = At { entry: entry.offset, ..at };
                    params.push(Param {
                        name: self.name(at, gimli::DW_AT_name).unwrap_or_default(),
                        ty: self.type_of(at, true, 0),
                    });
                }
            }
        }
        Ok(Signature { params, result: self.type_of(at, true, 0) })
    }

    /// Where the type of an entry stands; nowhere for `void`.
    pub fn type_at(&self, at: At) -> Option<At> {
        let (at, value) = self.attribute(at, gimli::DW_AT_type)?;
        self.follow(at, &value)
    }

    /// The type of an entry. Of a structure `by_value` it is found out where it is passed.
    fn type_of(&self, at: At, by_value: bool, depth: usize) -> Type {
        let Some(at) = self.type_at(at) else { return Type::void() };
        let unknown = || Type::new("?", Shape::Unknown);
        let Some(entry) = self.entry(at).filter(|_| depth < DEPTH) else { return unknown() };
        let name = || self.name(at, gimli::DW_AT_name).unwrap_or_default();
        let bytes = self.number(at, gimli::DW_AT_byte_size);
        let inner = |by_value| self.type_of(at, by_value, depth + 1);
        let aggregate = |word: &str| {
            let tag = if name().is_empty() { word.to_owned() } else { format!("{word} {}", name()) };
            if by_value && self.is_passed_by_reference(at, 0) {
                return Type::pointer(Type::new(&tag, Shape::Struct(None)), true);
            }
            Type::new(&tag, Shape::Struct(if by_value { self.passing(at, bytes) } else { None }))
        };
        match entry.tag {
            gimli::DW_TAG_base_type => Type::new(&name(), base(self.number(at, gimli::DW_AT_encoding), bytes)),
            gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type => {
                let to = self.type_at(at).and_then(|to| self.entry(to));
                Type::pointer(inner(false), to.is_some_and(|to| to.tag == gimli::DW_TAG_const_type))
            }
            gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type => inner(by_value),
            gimli::DW_TAG_typedef => Type { name: name(), ..inner(by_value) },
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => aggregate("struct"),
            gimli::DW_TAG_union_type => aggregate("union"),
            gimli::DW_TAG_enumeration_type => match bytes {
                Some(4) => Type::new(&format!("enum {}", name()), Shape::Enum),
                bytes => Type::new(&format!("enum {}", name()), integer(bytes, true)),
            },
            gimli::DW_TAG_array_type => Type::pointer(inner(false), false),
            gimli::DW_TAG_unspecified_type => Type::void(),
            _ => unknown(),
        }
    }
}

fn integer(bytes: Option<u64>, signed: bool) -> Shape {
    bytes.and_then(|b| u8::try_from(b).ok()).map_or(Shape::Unknown, |bytes| Shape::Int { bytes, signed })
}

/// A base type: DWARF 5, 5.1.1.
pub fn base(encoding: Option<u64>, bytes: Option<u64>) -> Shape {
    let Some(encoding) = encoding.and_then(|e| u8::try_from(e).ok()) else { return Shape::Unknown };
    match gimli::DwAte(encoding) {
        gimli::DW_ATE_boolean => Shape::Bool,
        gimli::DW_ATE_float => {
            bytes.and_then(|b| u8::try_from(b).ok()).map_or(Shape::Unknown, |bytes| Shape::Float { bytes })
        }
        gimli::DW_ATE_signed | gimli::DW_ATE_signed_char => integer(bytes, true),
        gimli::DW_ATE_unsigned | gimli::DW_ATE_unsigned_char | gimli::DW_ATE_UTF => integer(bytes, false),
        _ => Shape::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const SOURCE: &str = "
        typedef long ssize;
        struct pair { double a, b; };
        struct mixed { int n; double x; };
        struct big { char text[24]; };
        union either { long n; double x; };
        enum mode { READ, WRITE };
        struct store { int fd; };
        struct store *st_open(const char *path, enum mode mode) { (void)path; (void)mode; return 0; }
        ssize st_put(struct store *s, struct pair p, const void *buf, unsigned long n) { (void)s; (void)p; (void)buf; return (ssize)n; }
        int st_mixed(struct mixed m, union either e, struct big b, _Bool on, float f, char *const *names) {
            return m.n + (int)e.n + b.text[0] + on + (int)f + names[0][0];
        }
        struct big st_big(void (*done)(int), long double x, int n) { struct big b = {{0}}; (void)done; (void)x; b.text[0] = (char)n; return b; }
        long st_other(long n) __attribute__((alias(\"st_alias\")));
        long st_alias(long n) { return n; }
        static int hidden(int n) { return n + 1; }
        int st_hidden(int n) { return hidden(n); }
    ";

    fn run(program: &str, args: &[&str]) {
        let out = Command::new(program).args(args).output().unwrap();
        assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    }

    /// A library with debug information, built in a directory.
    fn build(dir: &Path, name: &str) -> String {
        let (source, library) = (dir.join("st.c"), dir.join(name));
        std::fs::write(&source, SOURCE).unwrap();
        let (source, library) = (source.to_str().unwrap(), library.to_str().unwrap());
        run("cc", &["-shared", "-fPIC", "-g", "-O1", "-Wl,--build-id", "-o", library, source]);
        library.to_owned()
    }

    fn found(library: &str, root: &Path) -> Option<HashMap<String, String>> {
        let bytes = std::fs::read(library).unwrap();
        let symbols = crate::probes::generate::exported(&bytes).unwrap();
        let (signatures, _) = signatures(Path::new(library), &bytes, &symbols, root).unwrap()?;
        let text = |(name, signature): (&String, &Signature)| {
            let positions = signature.positions();
            let positions: Vec<String> = positions.iter().map(|r| r.map_or("-".into(), |r| r.to_string())).collect();
            (name.clone(), format!("{} [{}]", signature.text(name), positions.join(" ")))
        };
        Some(signatures.iter().map(text).collect())
    }

    fn check(found: &HashMap<String, String>) {
        for expected in [
            "struct store *st_open(const char *path, enum mode mode) [0 1]",
            "ssize st_put(struct store *s, struct pair p, const void *buf, long unsigned int n) [0 - 1 2]",
            "int st_mixed(struct mixed m, union either e, struct big b, _Bool on, float f, char *const *names) [- 1 - 2 - 3]",
            "struct big st_big(? *done, long double x, int n) [1 - 2]",
            "long int st_alias(long int n) [0]",
            "int st_hidden(int n) [0]",
        ] {
            let name = expected.split(['(', ' ']).find(|word| word.trim_start_matches('*').starts_with("st_")).unwrap();
            assert_eq!(found[name.trim_start_matches('*')], expected);
        }
        assert_eq!(found["st_other"], "long int st_other(long int n) [0]");
        assert!(!found.contains_key("hidden"));
    }

    #[test]
    fn types_and_registers_of_arguments_are_those_of_the_source() {
        let dir = tempfile::tempdir().unwrap();
        let library = build(dir.path(), "libst.so");
        check(&found(&library, dir.path()).unwrap());
        run("objcopy", &["--compress-debug-sections", &library]);
        check(&found(&library, dir.path()).unwrap());
    }

    #[test]
    fn separate_debug_information_is_found_by_its_build_id() {
        let dir = tempfile::tempdir().unwrap();
        let library = build(dir.path(), "libst.so");
        let bytes = std::fs::read(&library).unwrap();
        let id = File::parse(bytes.as_slice()).unwrap().build_id().unwrap().unwrap().to_vec();
        let debug = by_build_id(dir.path(), &id).unwrap();
        std::fs::create_dir_all(debug.parent().unwrap()).unwrap();
        run("objcopy", &["--only-keep-debug", &library, debug.to_str().unwrap()]);
        run("strip", &[&library]);
        check(&found(&library, dir.path()).unwrap());
        assert_eq!(found(&library, &dir.path().join("nowhere")), None);
    }

    #[test]
    fn what_dwz_moved_to_a_shared_file_is_found_there() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (build(dir.path(), "libst1.so"), build(dir.path(), "libst2.so"));
        let before = found(&one, dir.path()).unwrap();
        let shared = dir.path().join("shared");
        run("dwz", &["--multifile", shared.to_str().unwrap(), &one, &two]);
        let bytes = std::fs::read(&one).unwrap();
        assert!(File::parse(bytes.as_slice()).unwrap().gnu_debugaltlink().unwrap().is_some());
        assert_eq!(found(&one, dir.path()).unwrap(), before);
    }

    #[test]
    fn methods_of_cpp_have_their_object_as_first_argument() {
        let dir = tempfile::tempdir().unwrap();
        let (source, library) = (dir.path().join("x.cpp"), dir.path().join("libx.so"));
        let text = "#include <string>\nnamespace sim { struct Big { std::string s; };
            struct Solver { int n; int put(Big b, const char *name, long n); };
            int Solver::put(Big b, const char *name, long n) { return (int)(b.s.size() + n + name[0]) + this->n; } }";
        std::fs::write(&source, text).unwrap();
        let (source, library) = (source.to_str().unwrap(), library.to_str().unwrap());
        run("c++", &["-shared", "-fPIC", "-g", "-O1", "-o", library, source]);
        let found = found(library, dir.path()).unwrap();
        let put = &found["_ZN3sim6Solver3putENS_3BigEPKcl"];
        assert!(
            put.ends_with("(struct Solver *this, const struct Big *b, const char *name, long int n) [0 1 2 3]"),
            "{put}"
        );
    }
}
