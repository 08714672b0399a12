//! Packages of a tracer, made by each distribution's own programs. Times, owners, order and names of machines in them do
//! not depend on when and where they are made. Compressed by gzip: every dpkg and rpm reads that, and it is quick.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::tree::{ARCHIVE, DEB, Parts, RPM, files, put, read};
use super::{DEBIAN_MACHINE, MACHINE, NAME, SUMS, VERSION, anew, quiet, size};

/// What the program names as the file with its debug information.
const DEBUG: &str = "iotrace-bpf.debug";

/// Libraries that a tracer may need, and Debian's packages that have them; a static one needs none.
const DEBIAN_LIBRARIES: &[(&str, &str)] = &[
    ("libc.so.6", "libc6"),
    ("ld-linux-x86-64.so.2", "libc6"),
    ("libm.so.6", "libc6"),
    ("libgcc_s.so.1", "libgcc-s1"),
    ("libelf.so.1", "libelf1t64 | libelf1"),
    ("libz.so.1", "zlib1g"),
];

/// Writes all packages of a tracer into `output`, and gives their paths.
pub fn make(tracer: &Path, output: &Path, work: &Path, epoch: u64) -> Result<Vec<PathBuf>> {
    anew(work)?;
    fs::create_dir_all(output).with_context(|| format!("cannot make {}", output.display()))?;
    // Programs below change directories.
    let [output, work] = [output.canonicalize()?, work.canonicalize()?];
    let debug = output.join(DEBUG);
    let program = strip(tracer, &debug, &work)?;
    let parts = Parts::make(program, &work)?;
    let mut made = vec![
        debug,
        archive(&parts, &output, &work, epoch)?,
        deb(&parts, &output, &work, epoch)?,
        rpm(&parts, &output, &work, epoch)?,
    ];
    made.sort();
    let names = made.iter().filter_map(|path| path.file_name());
    let sums = quiet(Command::new("sha256sum").args(names).current_dir(&output))?;
    put(&output.join(SUMS), &sums, 0o644)?;
    made.push(output.join(SUMS));
    Ok(made)
}

/// Moves debug information and symbols out of the tracer: where debuggers look for them stands in what is left.
fn strip(tracer: &Path, debug: &Path, work: &Path) -> Result<PathBuf> {
    if !tracer.is_file() {
        bail!("there is no tracer {}", tracer.display());
    }
    let program = work.join(NAME);
    let objcopy = || Command::new("objcopy");
    quiet(objcopy().args(["--only-keep-debug", "--compress-debug-sections=zlib"]).arg(tracer).arg(debug))?;
    let link = format!("--add-gnu-debuglink={}", debug.display());
    quiet(objcopy().arg("--strip-all").arg(link).arg(tracer).arg(&program))?;
    put(debug, &read(debug)?, 0o644)?;
    Ok(program)
}

/// For any Linux: unpacked below `/usr/local`, or run where it is.
fn archive(parts: &Parts, output: &Path, work: &Path, epoch: u64) -> Result<PathBuf> {
    let top = format!("{NAME}-{VERSION}-{MACHINE}-linux");
    parts.lay_out(&ARCHIVE, &work.join("archive").join(&top))?;
    let file = output.join(format!("{top}.tar"));
    let mut tar = Command::new("tar");
    tar.args(["--create", "--format=gnu", "--sort=name", "--owner=root:0", "--group=root:0", "--mode=u=rwX,go=rX"]);
    tar.arg(format!("--mtime=@{epoch}")).arg("--file").arg(&file).arg("--directory").arg(work.join("archive")).arg(top);
    quiet(&mut tar)?;
    quiet(Command::new("gzip").args(["--no-name", "--force"]).arg(&file))?;
    Ok(file.with_extension("tar.gz"))
}

fn deb(parts: &Parts, output: &Path, work: &Path, epoch: u64) -> Result<PathBuf> {
    let root = work.join("deb");
    parts.lay_out(&DEB, &root)?;
    let copyright = format!(
        "{NAME} is MIT OR Apache-2.0; its programs in the kernel, bpf/, are GPL-2.0-only.\n\
         The texts, and the licences of what is linked into it, are in this directory.\n"
    );
    put(&root.join("usr/share/doc/iotrace-bpf/copyright"), copyright.as_bytes(), 0o644)?;
    let kibibytes: u64 = files(&root)?.iter().map(|file| Ok(size(file)?.div_ceil(1024))).sum::<Result<u64>>()?;
    let control = String::from_utf8(read(Path::new("dist/deb/control"))?)?
        .replace("@VERSION@", VERSION)
        .replace("@ARCHITECTURE@", DEBIAN_MACHINE)
        .replace("@SIZE@", &kibibytes.to_string())
        .replace("@DEPENDS@\n", &depends(&needed(&parts.program)?)?);
    let meta = root.join("DEBIAN");
    put(&meta.join("control"), control.as_bytes(), 0o644)?;
    put(&meta.join("conffiles"), b"/etc/iotrace-bpf.toml\n", 0o644)?;
    for script in ["postinst", "prerm", "postrm"] {
        put(&meta.join(script), &read(&Path::new("dist/deb").join(script))?, 0o755)?;
    }
    let file = output.join(format!("{NAME}_{VERSION}_{DEBIAN_MACHINE}.deb"));
    let mut build = Command::new("dpkg-deb");
    build.env("SOURCE_DATE_EPOCH", epoch.to_string()).args(["--root-owner-group", "-Zgzip", "-z6", "--build"]);
    quiet(build.arg(&root).arg(&file))?;
    Ok(file)
}

/// The names of the libraries that a program is linked with.
pub fn needed(program: &Path) -> Result<Vec<String>> {
    let text = String::from_utf8(quiet(Command::new("readelf").args(["--dynamic", "--wide"]).arg(program))?)?;
    let name = |line: &str| {
        Some(line.split_once("(NEEDED)")?.1.split_once('[')?.1.trim_end().trim_end_matches(']').to_owned())
    };
    Ok(text.lines().filter_map(name).collect())
}

/// The field of Debian's control file for these libraries.
fn depends(libraries: &[String]) -> Result<String> {
    let mut packages = Vec::new();
    for library in libraries {
        let package = DEBIAN_LIBRARIES.iter().find(|(name, _)| name == library);
        let (_, package) = package.with_context(|| format!("no package of Debian is known to have {library}"))?;
        if !packages.contains(package) {
            packages.push(*package);
        }
    }
    Ok(if packages.is_empty() { String::new() } else { format!("Depends: {}\n", packages.join(", ")) })
}

fn rpm(parts: &Parts, output: &Path, work: &Path, epoch: u64) -> Result<PathBuf> {
    let (root, top) = (work.join("rpm"), work.join("rpmbuild"));
    parts.lay_out(&RPM, &root)?;
    let mut build = Command::new("rpmbuild");
    build.env("SOURCE_DATE_EPOCH", epoch.to_string()).args(["-bb", "--quiet", "--target", MACHINE]);
    let define = |name: &str, value: &str| ["--define".to_owned(), format!("{name} {value}")];
    for (name, value) in [
        ("version", VERSION),
        ("tree", &root.display().to_string()),
        ("_topdir", &top.display().to_string()),
        ("_rpmdir", &top.join("made").display().to_string()),
        ("_rpmfilename", &format!("{NAME}-{VERSION}-1.{MACHINE}.rpm")),
        ("_buildhost", "localhost"),
        ("_binary_payload", "w6.gzdio"),
        // The names up to version 4.19, and from 4.20 on.
        ("use_source_date_epoch_as_buildtime", "1"),
        ("clamp_mtime_to_source_date_epoch", "1"),
        ("build_mtime_policy", "clamp_to_source_date_epoch"),
        // The files are as they are to be: stripped, compressed, with no link by build id.
        ("__os_install_post", "%{nil}"),
        ("debug_package", "%{nil}"),
        ("_build_id_links", "none"),
    ] {
        build.args(define(name, value));
    }
    quiet(build.arg("dist/rpm/iotrace-bpf.spec"))?;
    let made = files(&top.join("made"))?;
    let [package] = made.as_slice() else { bail!("rpmbuild made {} packages, not one", made.len()) };
    let file = output.join(package.file_name().context("a package without a name")?);
    put(&file, &read(package)?, 0o644)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_become_packages_of_debian() {
        let names = |of: &[&str]| of.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(depends(&[]).unwrap(), "");
        let some = names(&["libc.so.6", "libz.so.1", "ld-linux-x86-64.so.2"]);
        assert_eq!(depends(&some).unwrap(), "Depends: libc6, zlib1g\n");
        let error = depends(&names(&["libnew.so.7"])).unwrap_err();
        assert!(error.to_string().contains("libnew.so.7"), "{error}");
    }
}
