//! Compiles `bpf/iotrace.bpf.c` and writes its skeleton to `OUT_DIR/iotrace.skel.rs`, with the object compressed, and the
//! names of the types in it to `OUT_DIR/iotrace.types`.

use anyhow::{Context as _, Result, ensure};
use libbpf_cargo::SkeletonBuilder;
use libbpf_rs::btf::{Btf, BtfKind, BtfType};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn main() -> Result<()> {
    println!("cargo:rerun-if-changed=bpf");
    let out = PathBuf::from(std::env::var("OUT_DIR").context("OUT_DIR is set by cargo")?);
    // The object has the names of its sources, without the directory of this checkout.
    let root = std::env::var("CARGO_MANIFEST_DIR").context("CARGO_MANIFEST_DIR is set by cargo")?;
    let names = format!("-ffile-prefix-map={root}=.");
    for name in ["iotrace", "trial"] {
        SkeletonBuilder::new()
            .source(format!("bpf/{name}.bpf.c"))
            .obj(out.join(format!("{name}.bpf.o")))
            .clang_args(["-Ibpf", "-mcpu=v3", "-Wall", "-Werror", &names])
            // Nobody reads the skeleton: as text of Rust the object is four times as long, and formatting it takes seconds.
            .reference_obj(true)
            .rustfmt("no rustfmt")
            .build_and_generate(out.join(format!("{name}.skel.rs")))
            .with_context(|| {
                format!("bpf/{name}.bpf.c: is clang installed? `cargo xtask setup` installs what is missing")
            })?;
        compress(&out, name).with_context(|| format!("compressing the object of bpf/{name}.bpf.c"))?;
    }
    let types = types(&out.join("iotrace.bpf.o")).context("types of bpf/iotrace.bpf.c")?;
    std::fs::write(out.join("iotrace.types"), types.join("\n")).context("types of bpf/iotrace.bpf.c")
}

/// Has the skeleton take the object from compressed bytes: of 1 MB a fifth is left, and the program is to stay small
/// (`cargo xtask dist --check`).
fn compress(out: &Path, name: &str) -> Result<()> {
    const LEVEL: i32 = 19;
    let (object, skeleton) = (out.join(format!("{name}.bpf.o")), out.join(format!("{name}.skel.rs")));
    let compressed = out.join(format!("{name}.bpf.o.zst"));
    std::fs::write(&compressed, zstd::bulk::compress(&std::fs::read(&object)?, LEVEL)?)?;
    let is_data = |line: &&str| line.starts_with("static DATA: ") || line.contains("link_section");
    let text = std::fs::read_to_string(&skeleton)?;
    ensure!(text.lines().filter(is_data).count() == 2, "libbpf-cargo writes skeletons in another form");
    let kept: String = text.lines().filter(|line| !is_data(line)).flat_map(|line| [line, "\n"]).collect();
    let bytes = format!("include_bytes!({:?})", compressed.display().to_string());
    let data = format!(
        "static DATA: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| crate::skel::decompressed({bytes}));\n"
    );
    Ok(std::fs::write(&skeleton, data + &kept)?)
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
