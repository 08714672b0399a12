//! The project's own commands: `cargo xtask setup | demo | test | fuzz | vm | bench | soak | scale | cases | whatif | dist |
//! lint | vmlinux | skeleton`.
//!
//! Builds without any library of the system, so that it can install those that the tracer needs.

mod arrows;
mod bench;
mod cases;
mod demo;
mod dist;
mod fuzz;
mod kept;
mod lint;
#[path = "../../tests/common/programs.rs"]
#[allow(dead_code, reason = "tests need more of it")]
mod programs;
mod prose;
mod references;
mod scale;
mod setup;
mod shell;
mod soak;
mod speedscope;
mod test;
mod venv;
mod vm;
mod vmlinux;
#[path = "../../src/vocabulary.rs"]
#[allow(dead_code, reason = "only its layers are needed")]
mod vocabulary;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

#[derive(Parser)]
#[command(name = "cargo xtask", about, bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install the system packages that are missing (as root, with apt-get), or list them
    Setup {
        /// What they are for
        #[arg(value_enum, default_value_t = setup::Needs::Test)]
        needs: setup::Needs,
    },
    /// Build the tracer and trace a small parallel HDF5 program with it
    Demo,
    /// Run every test; the live ones need root
    Test {
        /// Leave out the tests that trace real programs
        #[arg(long)]
        no_live: bool,
        /// Passed on to the test runner, for example a part of a test's name
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Run live tests on Debian's kernels in QEMU, and write docs/kernels.md; needs root
    Vm {
        /// 6.1, 6.12 or all
        #[arg(default_value = "all")]
        kernel: String,
    },
    /// Measure what tracing costs, beside other tools; prints ratios, asserts nothing; needs root
    Bench {
        /// Only this
        group: Option<bench::Group>,
        /// Runs of each kind; the figures are medians
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
        rounds: u16,
        /// A directory on a disk, on a file system with direct I/O
        #[arg(long, default_value = "/var/tmp")]
        dir: PathBuf,
    },
    /// Feed what reads bytes of others with inputs that take new branches
    Fuzz {
        /// Of each target, its corpus included; 0: the corpus only
        #[arg(long, default_value_t = 60)]
        seconds: u32,
        /// One of them by its name, as in `fuzz/fuzz_targets`; otherwise all
        target: Option<String>,
    },
    /// Trace a mix of I/O for an hour, and fail when a tracer's memory or descriptors grow; needs root
    Soak(soak::Wish),
    /// Make datasets of the size of a large machine, and measure what views and report take; prints tables
    Scale(scale::Wish),
    /// Trace programs of known cause, and compare what the report says with what fixing saves; needs root
    Cases(cases::Wish),
    /// Compare what `whatif` answers with runs in which just that is different; needs root
    Whatif(cases::whatif::Wish),
    /// Build a static tracer, and packages of it: .tar.gz, .deb, .rpm
    Dist(dist::Wish),
    /// Check formats of Rust, C and Python, directions of imports, documents, clippy, rustdoc; any warning is a failure
    Lint {
        /// Only what needs no compiler: `.ci/run` has clippy and rustdoc look at what is built for the tests
        #[arg(long)]
        text: bool,
    },
    /// Make `bpf/vmlinux/x86_64/vmlinux.h` anew from the running kernel's types
    Vmlinux,
    /// Make `bpf/skeleton` anew, after a change of what the programs declare: maps, programs, types
    Skeleton,
}

/// What `bpf/build.rs` asks for before it writes the skeleton.
const RENEW_SKELETON: &str = "IOTRACE_BPF_RENEW_SKELETON";

/// The directories everything is relative to.
pub struct Tree {
    /// The checked-out project.
    pub root: PathBuf,
    /// Cargo's target directory.
    pub target: PathBuf,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent directory")?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
    let tree = Tree { root: root.to_path_buf(), target };
    env::set_current_dir(&tree.root).with_context(|| format!("cannot enter {}", tree.root.display()))?;
    match task {
        Task::Setup { needs } => {
            match needs {
                setup::Needs::Build => setup::packages(setup::BUILD)?,
                setup::Needs::Test => setup::all()?,
                setup::Needs::Vm => drop(vm::prepare(&tree, vm::KERNELS)?),
            }
            println!("Nothing is missing.");
            Ok(())
        }
        Task::Demo => demo::run(&tree),
        Task::Test { no_live, args } => test::run(&tree, no_live, &args),
        Task::Vm { kernel } => vm::run(&tree, &kernel),
        Task::Bench { group, rounds, dir } => bench::run(&tree, group, rounds, &dir),
        Task::Fuzz { seconds, target } => fuzz::run(&tree, seconds, target.as_deref()),
        Task::Soak(wish) => soak::run(&tree, &wish),
        Task::Scale(wish) => scale::run(&tree, &wish),
        Task::Cases(wish) => cases::run(&tree, &wish),
        Task::Whatif(wish) => cases::whatif::run(&tree, &wish),
        Task::Dist(wish) => dist::run(&tree, &wish),
        Task::Lint { text } => lint::run(&tree, text),
        Task::Vmlinux => vmlinux::run(&tree.root),
        Task::Skeleton => shell::run(
            Command::new("cargo").args(["build", "--package", "iotrace-bpf-objects"]).env(RENEW_SKELETON, "1"),
        ),
    }
}

/// Builds the tracer.
fn build_tracer() -> Result<()> {
    // A test beside it asks for the libraries' features that the tests have: alone, the tracer has its libraries compiled
    // anew in a second set of features, which takes longer than all of the rest.
    shell::run(Command::new("cargo").args(["build", "--workspace", "--bin", "iotrace-bpf", "--test", "offline"]))
}
