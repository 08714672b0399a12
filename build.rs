//! Compiles `bpf/iotrace.bpf.c` and writes its skeleton to `OUT_DIR/iotrace.skel.rs`.

use anyhow::{Context as _, Result};
use libbpf_cargo::SkeletonBuilder;
use std::path::PathBuf;

fn main() -> Result<()> {
    println!("cargo:rerun-if-changed=bpf");
    let out = PathBuf::from(std::env::var("OUT_DIR").context("OUT_DIR is set by cargo")?);
    for name in ["iotrace", "trial"] {
        SkeletonBuilder::new()
            .source(format!("bpf/{name}.bpf.c"))
            .clang_args(["-Ibpf", "-mcpu=v3", "-Wall", "-Werror"])
            .build_and_generate(out.join(format!("{name}.skel.rs")))
            .with_context(|| {
                format!("bpf/{name}.bpf.c: is clang installed? `cargo xtask setup` installs what is missing")
            })?;
    }
    Ok(())
}
