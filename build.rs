//! Compiles `bpf/iotrace.bpf.c` and writes its skeleton to `OUT_DIR/iotrace.skel.rs`, and the names of the types in it
//! to `OUT_DIR/iotrace.types`.

use anyhow::{Context as _, Result};
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
    }
    let types = types(&out.join("iotrace.bpf.o")).context("types of bpf/iotrace.bpf.c")?;
    std::fs::write(out.join("iotrace.types"), types.join("\n")).context("types of bpf/iotrace.bpf.c")
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
