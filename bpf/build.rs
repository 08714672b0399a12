//! Compiles `iotrace.bpf.c` and `trial.bpf.c`, and writes to `OUT_DIR` the objects, compressed, and the names of the types in
//! the first one. What they declare must be what `skeleton/` has, which Rust is compiled with: `cargo xtask skeleton`
//! renews it.

use anyhow::{Context as _, Result, bail, ensure};
use libbpf_cargo::SkeletonBuilder;
use libbpf_rs::btf::{Btf, BtfKind, BtfType};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Set by `cargo xtask skeleton`: `skeleton/` is to be written, not compared.
const RENEW: &str = "IOTRACE_BPF_RENEW_SKELETON";

/// In lines of a skeleton that are not kept: the object's bytes, and maps of constants, which clang makes as it likes.
const OTHERS: [&str; 6] = ["static DATA: ", "link_section", ".rodata.str", ".rodata.cst", " rodata_str", " rodata_cst"];
/// Where an object has a map that the skeleton has not.
const UNEXPECTED_MAP: &str = "panic!(\"encountered unexpected map";
/// How a type begins.
const TYPE: &str = "\n#[derive(";

fn main() {
    if let Err(error) = build() {
        for line in format!("{error:#}").lines() {
            println!("cargo::error={line}");
        }
    }
}

fn build() -> Result<()> {
    println!("cargo:rerun-if-changed=.");
    println!("cargo:rerun-if-env-changed={RENEW}");
    let out = PathBuf::from(std::env::var("OUT_DIR").context("OUT_DIR is set by cargo")?);
    // The object has the names of its sources, without the directory of this checkout.
    let here = std::env::var("CARGO_MANIFEST_DIR").context("CARGO_MANIFEST_DIR is set by cargo")?;
    let names = format!("-ffile-prefix-map={here}=./bpf");
    for name in ["iotrace", "trial"] {
        let (object, skeleton) = (out.join(format!("{name}.bpf.o")), out.join(format!("{name}.skel.rs")));
        SkeletonBuilder::new()
            .source(format!("{name}.bpf.c"))
            .obj(&object)
            .clang_args(["-I.", "-mcpu=v3", "-Wall", "-Werror", &names])
            // Nobody reads the skeleton: as text of Rust the object is four times as long, and formatting it takes seconds.
            .reference_obj(true)
            .rustfmt("no rustfmt")
            .build_and_generate(&skeleton)
            .with_context(|| {
                format!("bpf/{name}.bpf.c: is clang installed? `cargo xtask setup` installs what is missing")
            })?;
        compress(&object).with_context(|| format!("compressing the object of bpf/{name}.bpf.c"))?;
        let declared = declared(&std::fs::read_to_string(&skeleton)?, name)?;
        compare(&Path::new("skeleton").join(format!("{name}.rs")), &declared)?;
    }
    let types = types(&out.join("iotrace.bpf.o")).context("types of bpf/iotrace.bpf.c")?;
    std::fs::write(out.join("iotrace.types"), types.join("\n")).context("types of bpf/iotrace.bpf.c")
}

/// Of 1 MB a fifth is left, and the program is to stay small (`cargo xtask dist --check`).
fn compress(object: &Path) -> Result<()> {
    const LEVEL: i32 = 19;
    let compressed = zstd::bulk::compress(&std::fs::read(object)?, LEVEL)?;
    Ok(std::fs::write(object.with_extension("o.zst"), compressed)?)
}

/// What the library is compiled with: a skeleton that takes its object from there (`src/base/objects.rs`), and that is the same
/// whatever clang compiled it. The kernel's types differ by what a clang keeps of them, and so do maps of constants.
fn declared(skeleton: &str, name: &str) -> Result<String> {
    let ours = skeleton.lines().filter(|line| !OTHERS.iter().any(|other| line.contains(other)));
    let ours = ours.map(|line| if line.contains(UNEXPECTED_MAP) { "_ => {}" } else { line.trim() });
    let text: String = ours.flat_map(|line| [line, "\n"]).collect();
    let parts = text.split_once("pub mod types {\n").and_then(|(maps, rest)| {
        let (types, skeletons) = rest.split_once("\n}\npub struct Open")?;
        Some((maps, types, skeletons))
    });
    let (maps, types, skeletons) = parts.context("libbpf-cargo writes skeletons in another form")?;
    let data =
        format!("static DATA: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(crate::base::objects::{name});");
    Ok(format!("{data}\n{maps}pub mod types {{\n{}\n}}\npub struct Open{skeletons}", own_types(types)))
}

/// The types of `bpf/`, without those of the kernel: what points to these points to anything.
fn own_types(types: &str) -> String {
    let (own, kernels): (Vec<&str>, Vec<&str>) = types.split(TYPE).partition(|text| type_name(text).is_none_or(is_own));
    let kernels: BTreeSet<&str> = kernels.into_iter().filter_map(type_name).collect();
    let mut pointers = own.join(TYPE);
    for name in kernels {
        for end in [",", ";"] {
            pointers = pointers.replace(&format!("*mut {name}{end}"), &format!("*mut std::ffi::c_void{end}"));
        }
    }
    pointers
}

/// What stands before the first type has no name.
fn type_name(text: &str) -> Option<&str> {
    let (_, rest) = ["pub struct ", "pub union ", "pub enum "].into_iter().find_map(|kind| text.split_once(kind))?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// Types without a name in C are numbered, by what they are in.
fn is_own(name: &str) -> bool {
    let name = name.strip_prefix("__anon_").unwrap_or(name);
    name.starts_with("iot_") || name.starts_with(char::is_numeric) || ["rodata", "data", "bss"].contains(&name)
}

/// Fails where the library would be compiled with something else than the object declares.
fn compare(file: &Path, declared: &str) -> Result<()> {
    if std::env::var_os(RENEW).is_some() {
        return std::fs::write(file, declared).with_context(|| format!("cannot write bpf/{}", file.display()));
    }
    let known = std::fs::read_to_string(file).with_context(|| format!("cannot read bpf/{}", file.display()))?;
    if let Some((at, (old, new))) = known.lines().zip(declared.lines()).enumerate().find(|(_, (old, new))| old != new) {
        bail!(
            "bpf/{}:{} has `{}`, the program now `{}`: run `cargo xtask skeleton`, and build again",
            file.display(),
            at + 1,
            old.trim(),
            new.trim()
        );
    }
    ensure!(known == declared, "bpf/{} is out of date: run `cargo xtask skeleton`, and build again", file.display());
    Ok(())
}

/// The names of the structures, unions and enumerations that an object knows, as the kernel calls them.
fn types(object: &Path) -> Result<Vec<String>> {
    let btf = Btf::from_path(object)?;
    let mut names = BTreeSet::new();
    for id in 1..btf.len() as u32 {
        let Some(of) = btf.type_by_id::<BtfType<'_>>(id.into()) else { continue };
        let kinds = [BtfKind::Struct, BtfKind::Union, BtfKind::Enum, BtfKind::Enum64];
        if let Some(name) = of.name().and_then(|name| name.to_str()).filter(|_| kinds.contains(&of.kind())) {
            // Behind "___" stands which of several definitions it is (libbpf, bpf_core_essential_name_len).
            names.insert(name.split("___").next().unwrap_or(name).to_owned());
        }
    }
    Ok(names.into_iter().collect())
}
