//! Shows the tracer at work: builds it, and traces a small parallel HDF5 program.

use anyhow::{Context, Result, anyhow, bail};
use std::fs;
use std::io::IsTerminal as _;
use std::process::{Command, Stdio};

use crate::{Tree, programs, setup, shell};

/// Builds everything and runs the traced program; the tracer prints its report.
pub fn run(tree: &Tree) -> Result<()> {
    setup::all()?;
    let as_root = Root::find()?;
    crate::build_tracer()?;
    let program = programs::compile(&tree.root, &tree.target, "demo").map_err(|e| anyhow!(e))?;

    let dir = tree.target.join("demo");
    let dataset = dir.join("run.iotrace");
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let mut command = as_root.command(&tree.target.join("debug/iotrace-bpf").to_string_lossy());
    command.arg("-o").arg(&dataset).args(["--force", "--report", "-", "--"]);
    command.args([&programs::openmpi("mpirun"), "--allow-run-as-root", "--oversubscribe", "-np", "4"]);
    command.arg(program).arg(dir.join("out"));
    shell::run(&mut command)?;

    let spans = dataset.join("spans-*.parquet");
    println!("\nThe dataset is in {}. Ask it with DuckDB (https://duckdb.org), for example:\n", dataset.display());
    println!(
        "  duckdb -c \"SELECT layer, op, count(*) AS calls, sum(bytes) AS bytes, sum(self_ns) / 1e6 AS self_ms \
         FROM '{}' GROUP BY ALL ORDER BY self_ms DESC\"",
        spans.display()
    );
    Ok(())
}

/// How the traced part becomes root.
enum Root {
    Already,
    Sudo,
}

impl Root {
    fn find() -> Result<Self> {
        if shell::is_root() {
            return Ok(Root::Already);
        }
        let silent = || {
            let mut sudo = Command::new("sudo");
            sudo.args(["-n", "true"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            sudo.status().is_ok_and(|status| status.success())
        };
        if shell::which("sudo").is_some() && (std::io::stdin().is_terminal() || silent()) {
            return Ok(Root::Sudo);
        }
        bail!("tracing needs root, and sudo is not there or asks for a password; run as root: cargo xtask demo")
    }

    fn command(&self, program: &str) -> Command {
        match self {
            Root::Already => Command::new(program),
            Root::Sudo => {
                let mut sudo = Command::new("sudo");
                sudo.arg(program);
                sudo
            }
        }
    }
}
