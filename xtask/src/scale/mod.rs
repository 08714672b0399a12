//! How queries grow with the size of a machine: datasets of 1, 10, ... nodes made of a recorded run, the views on
//! `DuckDB` and on Spark, and the report.

mod table;
mod taken;

use anyhow::{Context, Result, anyhow, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use self::taken::{Answer, Size, dataset_below, taken};
use crate::{Tree, programs, setup, shell, venv};

/// What is asked for on the command line.
#[derive(Debug, Clone, clap::Args)]
pub struct Wish {
    /// How many nodes, one size after the other
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    nodes: Vec<u32>,
    /// The recorded run that datasets are made of; without it a small parallel HDF5 program is recorded, which needs
    /// root
    #[arg(long)]
    from: Option<PathBuf>,
    /// Ranks of each node
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    ranks: u32,
    /// Calls of each node, about
    #[arg(long, default_value_t = 500_000)]
    spans: u64,
    /// How long the job runs, in seconds
    #[arg(long, default_value_t = 3600, value_parser = clap::value_parser!(u64).range(60..=86_400))]
    seconds: u64,
    /// What the durations of calls are drawn from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only these views and rules
    #[arg(long, value_delimiter = ',')]
    views: Vec<String>,
    /// Seconds after which a question is given up
    #[arg(long, default_value_t = 300)]
    limit: u64,
    /// Memory that an engine may use
    #[arg(long, default_value = "6GB")]
    memory: String,
    /// Where datasets are made, on a disk: some 15 MB for each node
    #[arg(long, default_value = "/var/tmp")]
    dir: PathBuf,
    /// Leave the datasets there
    #[arg(long)]
    keep: bool,
}

/// What runs queries.
pub const ENGINES: [&str; 2] = ["duckdb", "spark"];

/// Makes the datasets of each size, asks all questions, and prints tables.
pub fn run(tree: &Tree, wish: &Wish) -> Result<()> {
    venv::make(tree)?;
    shell::run(Command::new("cargo").args(["build", "--release", "--bin", "iotrace-bpf", "--example", "scale"]))?;
    let work = wish.dir.join(format!("iotrace-scale-{}", std::process::id()));
    fs::create_dir(&work).with_context(|| format!("cannot make {}", work.display()))?;
    let scale = Scale { tree, wish, work };
    let sizes = scale.sizes();
    if !wish.keep {
        fs::remove_dir_all(&scale.work).with_context(|| format!("cannot remove {}", scale.work.display()))?;
    }
    let sizes = sizes?;
    print!("{}", table::tables(&sizes));
    let wrong: Vec<&str> = sizes.iter().flat_map(|size| size.wrong.iter().map(String::as_str)).collect();
    if wrong.is_empty() { Ok(()) } else { bail!("{}", wrong.join("\n")) }
}

struct Scale<'a> {
    tree: &'a Tree,
    wish: &'a Wish,
    work: PathBuf,
}

impl Scale<'_> {
    fn sizes(&self) -> Result<Vec<Size>> {
        let from = match &self.wish.from {
            Some(from) => from.clone(),
            None => self.record()?,
        };
        self.wish.nodes.iter().map(|nodes| self.size(&from, *nodes)).collect()
    }

    fn program(&self, name: &str) -> PathBuf {
        self.tree.target.join("release").join(name)
    }

    /// A run of the program of the demo, on four ranks.
    fn record(&self) -> Result<PathBuf> {
        if !shell::is_root() {
            bail!(
                "recording needs root: run sudo -E env PATH=\"$PATH\" cargo xtask scale, or give a dataset with --from"
            );
        }
        setup::all()?;
        let demo = programs::compile(&self.tree.root, &self.tree.target, "demo").map_err(|e| anyhow!(e))?;
        let dataset = self.work.join("run.iotrace");
        let mut command = Command::new(self.program("iotrace-bpf"));
        // A compute node has no disk of its own.
        command.args(["--layers", "hdf5,mpiio,mpi,stdio,syscall", "--quiet", "-o"]).arg(&dataset).arg("--");
        command.args([&programs::openmpi("mpirun"), "--allow-run-as-root", "--oversubscribe", "-np", "4"]);
        command.arg(demo).arg(self.work.join("out"));
        shell::run(&mut command)?;
        Ok(dataset)
    }

    fn size(&self, from: &Path, nodes: u32) -> Result<Size> {
        let datasets = self.work.join(format!("{nodes}-nodes"));
        let truth = self.generate(from, nodes, &datasets)?;
        let mut size = Size::of(nodes, &datasets, &truth)?;
        println!("{}", size.line());
        for command in ["report", "runs"] {
            let mut asked = Command::new(self.program("iotrace-bpf"));
            asked.arg(command).arg(&datasets).arg("--json");
            let out = self.work.join(format!("{nodes}-{command}.json"));
            let (answer, ended) = taken(&mut asked, &out, self.wish.limit * 4)?;
            println!("{command}: {}", answer.line());
            if command == "report" && ended {
                size.compare_report(&out, &truth)?;
            }
            size.answers.push(("iotrace-bpf", command.to_owned(), answer));
        }
        let mut notes = Vec::new();
        for engine in ENGINES {
            let note = self.work.join(format!("{nodes}-{engine}.jsonl"));
            self.ask(engine, &datasets, &note)?;
            size.answers.extend(Answer::read(&note)?.into_iter().map(|(what, answer)| (engine, what, answer)));
            notes.push(note);
        }
        let compared = self.python().arg("compare").args(&notes).output().context("comparing the answers")?;
        let text = String::from_utf8_lossy(&compared.stdout);
        println!("{text}");
        if !compared.status.success() {
            size.wrong.extend(text.lines().skip(1).map(|line| format!("{nodes} nodes: {line}")));
        }
        size.compare_calls(&truth);
        if !self.wish.keep {
            fs::remove_dir_all(&datasets).with_context(|| format!("cannot remove {}", datasets.display()))?;
        }
        Ok(size)
    }

    /// Makes the datasets; returns what their calls come to.
    fn generate(&self, from: &Path, nodes: u32, datasets: &Path) -> Result<serde_json::Value> {
        let Wish { ranks, spans, seconds, seed, .. } = self.wish;
        let mut command = Command::new(self.program("examples/scale"));
        command.arg(from).arg(datasets).args(["--nodes", &nodes.to_string(), "--ranks", &ranks.to_string()]);
        command.args(["--spans", &spans.to_string(), "--seconds", &seconds.to_string(), "--seed", &seed.to_string()]);
        let out = command.stderr(Stdio::inherit()).output().context("cannot start the program that makes datasets")?;
        if !out.status.success() {
            bail!("making datasets of {nodes} nodes failed: {}", out.status);
        }
        serde_json::from_slice(&out.stdout).context("what was made")
    }

    fn python(&self) -> Command {
        let mut command = Command::new(self.tree.target.join("venv/bin/python"));
        command.arg("tests/common/readers/scale.py");
        command
    }

    /// Asks an engine all questions.
    fn ask(&self, engine: &str, datasets: &Path, note: &Path) -> Result<()> {
        let spill = self.work.join("spill");
        fs::create_dir_all(&spill).with_context(|| format!("cannot make {}", spill.display()))?;
        let views = dataset_below(datasets)?.join(if engine == "spark" { "views-spark.sql" } else { "views.sql" });
        let mut command = self.python();
        command.arg(engine).arg(datasets).arg(views).arg(note).arg("--temp").arg(&spill);
        command.arg("--rules").arg(self.program("iotrace-bpf"));
        command.args(["--memory", &self.wish.memory, "--limit", &self.wish.limit.to_string()]);
        if !self.wish.views.is_empty() {
            command.args(["--only", &self.wish.views.join(",")]);
        }
        shell::run(&mut command)
    }
}
