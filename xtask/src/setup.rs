//! What the project needs from the system: the one list of packages, and installing those that are missing.

use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::process::{Command, Stdio};

use crate::shell;

/// How one sees that a package is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// A program on the path.
    Program(&'static str),
    /// A module that `pkg-config` knows.
    Library(&'static str),
    /// A module that `python3` can import.
    Python(&'static str),
}

/// One package of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    /// Its name in Debian and Ubuntu.
    pub debian: &'static str,
    /// Its name in Fedora and RHEL.
    pub fedora: &'static str,
    pub sign: Sign,
    pub purpose: &'static str,
}

pub const fn package(debian: &'static str, fedora: &'static str, sign: Sign, purpose: &'static str) -> Package {
    Package { debian, fedora, sign, purpose }
}

/// What a task needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Needs {
    /// Building and `lint`
    Build,
    /// The demo and the tests as well
    Test,
    /// The virtual machines as well, and their kernels
    Vm,
}

/// What building and `lint` need.
pub const BUILD: &[Package] = &[
    package("clang", "clang", Sign::Program("clang"), "compiles the BPF programs"),
    package("clang-format", "clang-tools-extra", Sign::Program("clang-format"), "checks the format of C"),
    package("pkg-config", "pkgconf-pkg-config", Sign::Program("pkg-config"), "finds libraries"),
    package("libelf-dev", "elfutils-libelf-devel", Sign::Library("libelf"), "libbpf reads ELF files with it"),
    package("zlib1g-dev", "zlib-devel", Sign::Library("zlib"), "libelf needs it"),
    package("make", "make", Sign::Program("make"), "builds libbpf"),
    package("gcc", "gcc", Sign::Program("gcc"), "builds libbpf and the test programs"),
    package("binutils", "binutils", Sign::Program("ld"), "links"),
    VENV,
];

/// What the demo and the tests need besides.
const TESTS: &[Package] = &[
    package("musl-tools", "musl-gcc", Sign::Program("musl-gcc"), "compiles a program for another C library"),
    package("g++", "gcc-c++", Sign::Program("c++"), "compiles the C++ programs that the tests trace"),
    package(
        "gfortran",
        "gcc-gfortran",
        Sign::Program("gfortran"),
        "compiles the Fortran programs that the tests trace",
    ),
    package("golang-go", "golang", Sign::Program("go"), "compiles the Go programs that the tests trace"),
    // Not by `mpirun` and `mpicc`: MPICH has them, too.
    package("openmpi-bin", "openmpi", Sign::Program("ompi_info"), "runs the demo and the parallel tests"),
    package("libopenmpi-dev", "openmpi-devel", Sign::Library("ompi"), "compiles the demo"),
    package("mpich", "mpich", Sign::Program("mpiexec.hydra"), "the tests trace its launcher, too"),
    package("libmpich-dev", "mpich-devel", Sign::Library("mpich"), "compiles a program for it"),
    package("libnetcdff-dev", "netcdf-fortran-devel", Sign::Library("netcdf-fortran"), "a test program's NetCDF"),
    package("libhdf5-openmpi-dev", "hdf5-openmpi-devel", Sign::Library("hdf5-openmpi"), "the demo's HDF5"),
    package("libnetcdf-dev", "netcdf-devel", Sign::Library("netcdf"), "compiles the tests of NetCDF"),
    package("libnetcdf-mpi-dev", "netcdf-openmpi-devel", Sign::Library("netcdf-mpi"), "the same, parallel"),
    package("libpnetcdf-dev", "pnetcdf-openmpi-devel", Sign::Library("pnetcdf"), "compiles the tests of PnetCDF"),
    package("netcdf-bin", "netcdf", Sign::Program("ncdump"), "reads what the tests of NetCDF wrote"),
    package("libhdf5-dev", "hdf5-devel", Sign::Library("hdf5-serial"), "the tests' HDF5 without MPI"),
    package("hdf5-tools", "hdf5", Sign::Program("h5dump"), "reads what the demo wrote"),
    package("dwz", "dwz", Sign::Program("dwz"), "the tests read debug information that it has shared"),
    package("fio", "fio", Sign::Program("fio"), "the tests compare with its own counts"),
    package("strace", "strace", Sign::Program("strace"), "the tests compare with it"),
    package("default-jre-headless", "java-21-openjdk-headless", Sign::Program("java"), "runs Spark in the tests"),
    package("e2fsprogs", "e2fsprogs", Sign::Program("mkfs.ext4"), "the tests of the block layer make a file system"),
    package("xfsprogs", "xfsprogs", Sign::Program("mkfs.xfs"), "the tests of write-back make a file system"),
    package("btrfs-progs", "btrfs-progs", Sign::Program("mkfs.btrfs"), "the tests of quotas make a file system"),
    package("iproute2", "iproute", Sign::Program("ip"), "the tests of several nodes connect them"),
    package("mount", "util-linux", Sign::Program("losetup"), "the tests of the block layer make a device"),
    package("bindfs", "bindfs", Sign::Program("bindfs"), "the tests trace it, a FUSE daemon"),
    package("otf2-tools", "otf2", Sign::Program("otf2-print"), "reads the archives that the tests export"),
    package("tmux", "tmux", Sign::Program("tmux"), "the terminal of the dashboard's tests"),
    package("systemd", "systemd", Sign::Program("systemd-analyze"), "checks the unit of the service"),
    package(
        "prometheus",
        "golang-github-prometheus",
        Sign::Program("prometheus"),
        "the tests let it scrape the tracer, and ask it",
    ),
    // Programs that must run with a tracer as they do without.
    package(
        "default-jdk-headless",
        "java-21-openjdk-devel",
        Sign::Program("javac"),
        "a traced program is compiled by it",
    ),
    package("nodejs", "nodejs", Sign::Program("node"), "the tests trace it"),
    package("erlang-base", "erlang-erts", Sign::Program("erl"), "the tests trace it"),
    package("valgrind", "valgrind", Sign::Program("valgrind"), "the tests run it beside a trace"),
    package("gdb", "gdb", Sign::Program("gdb"), "the tests run it beside a trace"),
    package("bubblewrap", "bubblewrap", Sign::Program("bwrap"), "the tests trace it"),
    package("podman", "podman", Sign::Program("podman"), "the tests trace its containers"),
    package("docker.io", "moby-engine", Sign::Program("dockerd"), "the same"),
    package("runc", "runc", Sign::Program("runc"), "runs both"),
    package("sudo", "sudo", Sign::Program("sudo"), "the tests trace it"),
    package("chromium", "chromium", Sign::Program("chromium"), "the tests trace it, and open HTML reports"),
    package("git", "git", Sign::Program("git"), "the tests trace it"),
    package("sqlite3", "sqlite", Sign::Program("sqlite3"), "the tests trace it"),
    PERF,
    // What packages are made and tested with.
    package("rpm", "rpm-build", Sign::Program("rpmbuild"), "makes and reads packages"),
    package("rpm2cpio", "rpm", Sign::Program("rpm2cpio"), "the tests unpack a package with it"),
    package("cpio", "cpio", Sign::Program("cpio"), "the same"),
    package("dpkg", "dpkg", Sign::Program("dpkg-deb"), "makes and reads packages"),
    package("mmdebstrap", "mmdebstrap", Sign::Program("mmdebstrap"), "the tree in which the tests install one"),
    package("man-db", "man-db", Sign::Program("man"), "the tests read the manual with it"),
    package("mandoc", "mandoc", Sign::Program("mandoc"), "checks the manual"),
    package("fish", "fish", Sign::Program("fish"), "the tests ask it for completions"),
    package("zsh", "zsh", Sign::Program("zsh"), "the same"),
    package("procps", "procps-ng", Sign::Program("ps"), "the tests look at processes"),
];

/// What the benchmark compares with, besides.
pub const PEERS: &[Package] =
    &[BPFTOOL, package("bpftrace", "bpftrace", Sign::Program("bpftrace"), "is compared with"), PERF];

const PERF: Package = package("linux-perf", "perf", Sign::Program("perf"), "is compared with, and run beside a trace");

/// Needed only to regenerate `vmlinux.h`, and by the benchmark.
pub const BPFTOOL: Package = package("bpftool", "bpftool", Sign::Program("bpftool"), "prints the kernel's types");

/// What makes `python3 -m venv` work.
const VENV: Package =
    package("python3-venv", "python3", Sign::Python("ensurepip"), "runs DuckDB and pandas in the tests");

/// Installs what building, the demo and the tests need, as [`packages`] does.
pub fn all() -> Result<()> {
    packages(&[BUILD, TESTS].concat())
}

/// Installs those of `packages` that are missing; without the right or the means, fails and names the remedy.
pub fn packages(packages: &[Package]) -> Result<()> {
    let missing = missing(packages, is_there);
    if missing.is_empty() {
        return Ok(());
    }
    if !shell::is_root() || shell::which("apt-get").is_none() {
        bail!(advice(&missing));
    }
    let install = || {
        shell::run(Command::new("apt-get").arg("update"))?;
        let names = missing.iter().map(|p| p.debian);
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(["install", "--yes", "--no-install-recommends"]);
        shell::run(command.args(names))
    };
    install().with_context(|| advice(&missing))
}

/// Those of `packages` whose sign `is_there` does not see.
fn missing(packages: &[Package], is_there: impl Fn(Sign) -> bool) -> Vec<Package> {
    packages.iter().filter(|p| !is_there(p.sign)).copied().collect()
}

fn is_there(sign: Sign) -> bool {
    match sign {
        Sign::Program(name) => shell::which(name).is_some(),
        Sign::Library(name) => succeeds("pkg-config", &["--exists", name]),
        // A full `import` of some modules is slow; finding it is enough.
        Sign::Python(name) => {
            let find = format!("import importlib.util, sys; sys.exit(not importlib.util.find_spec('{name}'))");
            succeeds("python3", &["-I", "-S", "-c", &find])
        }
    }
}

fn succeeds(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Which packages are missing, what each is for, and the command that installs them.
fn advice(missing: &[Package]) -> String {
    let mut text = String::from("these packages are missing:\n");
    for p in missing {
        let _ = writeln!(text, "  {:20} {}", p.debian, p.purpose);
    }
    let names = |name: fn(&Package) -> &'static str| missing.iter().map(name).collect::<Vec<_>>().join(" ");
    let _ = writeln!(text, "Install them as root, then run this again:");
    let _ = writeln!(text, "  Debian, Ubuntu:  sudo apt-get update && sudo apt-get install {}", names(|p| p.debian));
    let _ = write!(text, "  Fedora, RHEL:    sudo dnf install {}", names(|p| p.fedora));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_missing() {
        assert_eq!(missing(TESTS, |_| true), []);
        let without_strace = missing(TESTS, |sign| sign != Sign::Program("strace"));
        assert_eq!(without_strace.iter().map(|p| p.debian).collect::<Vec<_>>(), ["strace"]);
        assert_eq!(missing(TESTS, |_| false).len(), TESTS.len());
    }

    #[test]
    fn advice_names_each_missing_package_and_the_command() {
        let missing = missing(&[BUILD, TESTS].concat(), |sign| !matches!(sign, Sign::Library("libelf" | "ompi")));
        let text = advice(&missing);
        assert!(text.contains("apt-get install libelf-dev libopenmpi-dev\n"), "{text}");
        assert!(text.contains("dnf install elfutils-libelf-devel openmpi-devel"), "{text}");
        assert!(text.contains("libbpf reads ELF files with it"), "{text}");
        assert!(!text.contains("strace"), "{text}");
    }

    #[test]
    fn signs_are_seen() {
        assert!(is_there(Sign::Program("sh")));
        assert!(!is_there(Sign::Program("no-such-program")));
        assert!(!is_there(Sign::Library("no-such-library")));
        assert!(!is_there(Sign::Python("no_such_module")));
    }

    #[test]
    fn no_package_stands_twice() {
        let mut names: Vec<&str> = [BUILD, TESTS].concat().iter().map(|p| p.debian).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), BUILD.len() + TESTS.len());
    }
}
