//! The files of a package, as they are installed.

use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{NAME, anew, licences, quiet};

/// Where a kind of package installs.
pub struct Layout {
    /// Above `bin`, `lib` and `share`.
    pub prefix: &'static str,
    /// Where zsh of that distribution looks for completions.
    zsh: &'static str,
    /// Where the unit finds the program.
    program: &'static str,
}

/// For `tar -C /usr/local --strip-components=1`; the configuration is copied by hand.
pub const ARCHIVE: Layout = Layout { prefix: "", zsh: "site-functions", program: "/usr/local/bin/iotrace-bpf" };
pub const DEB: Layout = Layout { prefix: "usr", zsh: "vendor-completions", program: "/usr/bin/iotrace-bpf" };
pub const RPM: Layout = Layout { prefix: "usr", zsh: "site-functions", program: "/usr/bin/iotrace-bpf" };

/// Of systemd. The services call the program once.
const UNITS: &[&str] = &["iotrace-bpf.service", "iotrace-bpf-hive.service", "iotrace-bpf-hive.timer"];
/// How they do.
const UNIT_PROGRAM: &str = "ExecStart=/usr/local/bin/iotrace-bpf ";

/// Documents, and examples of what is set up around the tracer.
const DOCUMENTS: &[(&str, &str)] = &[
    ("README.md", "README.md"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
    ("bpf/LICENSE", "LICENSE-GPL-2.0-bpf"),
    ("dist/prometheus/rules.yml", "prometheus/rules.yml"),
    ("dist/grafana/iotrace-bpf.json", "grafana/iotrace-bpf.json"),
    ("dist/slurm/prolog.sh", "slurm/prolog.sh"),
    ("dist/slurm/epilog.sh", "slurm/epilog.sh"),
    ("dist/slurm/task_prolog.sh", "slurm/task_prolog.sh"),
    ("dist/iotrace-bpf.lua", "iotrace-bpf.lua"),
    ("dist/Containerfile", "Containerfile"),
];

/// What is in every package, made once.
pub struct Parts {
    /// Stripped.
    pub program: PathBuf,
    pages: PathBuf,
    /// For bash, fish and zsh.
    completions: [Vec<u8>; 3],
    licences: String,
}

impl Parts {
    /// Has the tracer write its manual and completions into `work`.
    pub fn make(program: PathBuf, work: &Path) -> Result<Parts> {
        let pages = work.join("man");
        anew(&pages)?;
        quiet(Command::new(&program).arg("man").arg(&pages))?;
        let completions = |shell| quiet(Command::new(&program).args(["completions", shell]));
        let completions = [completions("bash")?, completions("fish")?, completions("zsh")?];
        Ok(Parts { program, pages, completions, licences: licences::text()? })
    }

    /// Puts the files of a package into `root`.
    pub fn lay_out(&self, layout: &Layout, root: &Path) -> Result<()> {
        anew(root)?;
        let prefix = root.join(layout.prefix);
        put(&prefix.join("bin").join(NAME), &read(&self.program)?, 0o755)?;
        for name in UNITS {
            put(&prefix.join("lib/systemd/system").join(name), unit(name, layout)?.as_bytes(), 0o644)?;
        }
        put(&root.join("etc/iotrace-bpf.toml"), &read(Path::new("dist/iotrace-bpf.toml"))?, 0o644)?;
        let share = prefix.join("share");
        let [bash, fish, zsh] = &self.completions;
        put(&share.join("bash-completion/completions/iotrace-bpf"), bash, 0o644)?;
        put(&share.join("fish/vendor_completions.d/iotrace-bpf.fish"), fish, 0o644)?;
        put(&share.join("zsh").join(layout.zsh).join("_iotrace-bpf"), zsh, 0o644)?;
        let documents = share.join("doc").join(NAME);
        for (from, to) in DOCUMENTS {
            put(&documents.join(to), &read(Path::new(from))?, 0o644)?;
        }
        // Texts that messages and the manual point to, with the pictures in them.
        for file in files(Path::new("docs"))? {
            put(&documents.join(&file), &read(&file)?, 0o644)?;
        }
        put(&documents.join("THIRD-PARTY.txt"), self.licences.as_bytes(), 0o644)?;
        self.manual(&share.join("man/man1"))
    }

    fn manual(&self, to: &Path) -> Result<()> {
        for page in files(&self.pages)? {
            let name = page.file_name().context("a page without a name")?;
            put(&to.join(name), &read(&page)?, 0o644)?;
            quiet(Command::new("gzip").args(["--best", "--no-name"]).arg(to.join(name)))?;
        }
        Ok(())
    }
}

/// A unit, with the program where the package has it.
fn unit(name: &str, layout: &Layout) -> Result<String> {
    let text = String::from_utf8(read(&Path::new("dist").join(name))?)?;
    if text.matches(UNIT_PROGRAM).count() != usize::from(name.ends_with(".service")) {
        bail!("dist/{name} has no line, or several, with {UNIT_PROGRAM}");
    }
    Ok(text.replace(UNIT_PROGRAM, &format!("ExecStart={} ", layout.program)))
}

/// Writes a file, and the directories above it, with the same rights whatever the umask.
pub fn put(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let write = || {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        fs::write(path, bytes)?;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// All files in a directory and below, by name.
pub fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut left) = (Vec::new(), vec![dir.to_path_buf()]);
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))? {
            let path = entry?.path();
            if path.is_dir() { left.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}
