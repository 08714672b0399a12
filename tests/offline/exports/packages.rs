//! `cargo xtask dist`: the same packages each time, read by the programs that install and use what is in them.

use crate::common::packages::{TRACER, ending, make, output};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What a package installs, besides the manual and the documents.
const FILES: &[&str] = &[
    "/etc/iotrace-bpf.toml",
    "/usr/bin/iotrace-bpf",
    "/usr/lib/systemd/system/iotrace-bpf-hive.service",
    "/usr/lib/systemd/system/iotrace-bpf-hive.timer",
    "/usr/lib/systemd/system/iotrace-bpf.service",
    "/usr/share/bash-completion/completions/iotrace-bpf",
    "/usr/share/fish/vendor_completions.d/iotrace-bpf.fish",
];
const DOCUMENTS: &[&str] = &[
    "README.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "LICENSE-GPL-2.0-bpf",
    "THIRD-PARTY.txt",
    "prometheus/rules.yml",
    "grafana/iotrace-bpf.json",
    "slurm/prolog.sh",
    "slurm/epilog.sh",
    "slurm/task_prolog.sh",
    "iotrace-bpf.lua",
    "Containerfile",
];

#[test]
fn packages_are_the_same_each_time_and_their_readers_accept_them() {
    let work = tempfile::tempdir().unwrap();
    let dirs = ["one", "two"].map(|name| work.path().join(name));
    for dir in &dirs {
        make(dir);
    }
    let sums = dirs.each_ref().map(|dir| fs::read_to_string(dir.join("SHA256SUMS")).unwrap());
    assert_eq!(sums[0], sums[1]);
    assert_eq!(sums[0].lines().count(), 4, "{}", sums[0]);
    let dir = &dirs[0];
    output(Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(dir));

    let deb = work.path().join("deb");
    output(Command::new("dpkg-deb").arg("--extract").arg(ending(dir, ".deb")).arg(&deb));
    let rpm = work.path().join("rpm");
    fs::create_dir(&rpm).unwrap();
    let unpack = "rpm2cpio \"$0\" | cpio --extract --make-directories --quiet";
    output(Command::new("sh").args(["-c", unpack]).arg(ending(dir, ".rpm")).current_dir(&rpm));
    let listed = output(Command::new("rpm").args(["--query", "--list", "--package"]).arg(ending(dir, ".rpm")));
    let listed: BTreeSet<&str> = listed.lines().collect();
    output(Command::new("tar").arg("-xzf").arg(ending(dir, ".tar.gz")).arg("-C").arg(work.path()));

    let program = fs::read(deb.join("usr/bin/iotrace-bpf")).unwrap();
    for name in FILES {
        assert!(listed.contains(name), "{name}: {listed:?}");
        assert_eq!(fs::read(deb.join(&name[1..])).unwrap(), fs::read(rpm.join(&name[1..])).unwrap(), "{name}");
    }
    let archive = ending(work.path(), "-linux");
    // What the module file sets.
    assert!(archive.join("bin").is_dir() && archive.join("share/man/man1").is_dir());
    assert_eq!(fs::read(archive.join("bin/iotrace-bpf")).unwrap(), program);
    let shares = [deb.join("usr/share"), rpm.join("usr/share"), archive.join("share")];
    let named = documents_of_the_help();
    for name in named.iter().map(String::as_str).chain(DOCUMENTS.iter().copied()) {
        let texts = shares.each_ref().map(|share| fs::read(share.join("doc/iotrace-bpf").join(name)).expect(name));
        assert!(!texts[0].is_empty() && texts[1..].iter().all(|text| *text == texts[0]), "{name}");
    }
    for share in &shares {
        manual(&share.join("man/man1"));
        let zsh = if *share == shares[0] { "zsh/vendor-completions" } else { "zsh/site-functions" };
        completions(share, zsh);
    }

    debugger_finds_symbols(dir, &deb.join("usr/bin/iotrace-bpf"), work.path());
    licences(&deb.join("usr/share/doc/iotrace-bpf/THIRD-PARTY.txt"));
}

/// Each `docs/NAME.md` that the guide and the long help name.
fn documents_of_the_help() -> BTreeSet<String> {
    let help = output(Command::new(TRACER).arg("--help"));
    let texts = [iotrace_bpf::cli::help::GUIDE, help.as_str()];
    let words = texts.iter().flat_map(|text| text.split(|c: char| !(c.is_ascii_alphanumeric() || "/._-".contains(c))));
    let names = words.map(|word| word.trim_end_matches('.')).filter(|word| word.starts_with("docs/"));
    let names: BTreeSet<String> = names.map(str::to_owned).collect();
    for name in ["docs/symptoms.md", "docs/usage.md", "docs/metrics.md", "docs/dashboard.md"] {
        assert!(names.contains(name), "{name}: {names:?}");
    }
    names
}

/// The recipe for Spack compiles. The module file sets the paths that the tar file has, by the Lua in `rpm`.
#[test]
fn the_recipe_and_the_module_file_are_sound() {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("dist");
    let compile = "import sys; compile(open(sys.argv[1]).read(), sys.argv[1], 'exec')";
    output(Command::new("python3").args(["-c", compile]).arg(dist.join("spack/package.py")));
    let module = dist.join("iotrace-bpf.lua");
    let text = fs::read_to_string(&module).unwrap();
    let lua = format!(
        "%{{lua: local function text(what) assert(type(what) == 'string') end
        local all = {{help = text, whatis = text, pathJoin = function(a, b) return a .. '/' .. b end}}
        function all.prepend_path(name, path) print(name .. '=' .. path .. ' ') end
        assert(loadfile('{}', 't', all))()}}",
        module.display()
    );
    let set = output(Command::new("rpm").args(["--eval", &lua]));
    let root = text.split("local root = \"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(set.trim(), format!("PATH={root}/bin MANPATH={root}/share/man"));
}

/// `gdb` follows the name and the checksum in the program to the file beside it.
fn debugger_finds_symbols(packages: &Path, program: &Path, work: &Path) {
    let beside = work.join("beside");
    fs::create_dir(&beside).unwrap();
    fs::copy(program, beside.join("iotrace-bpf")).unwrap();
    let ask = |dir: &Path| {
        let mut gdb = Command::new("gdb");
        gdb.args(["--nx", "--batch", "--eval-command", "info address main"]).arg(dir.join("iotrace-bpf"));
        let out = gdb.output().unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
    };
    assert!(ask(&beside).contains("No symbol"), "{}", ask(&beside));
    fs::copy(packages.join("iotrace-bpf.debug"), beside.join("iotrace-bpf.debug")).unwrap();
    assert!(ask(&beside).contains("Symbol \"main\" is "), "{}", ask(&beside));
}

/// Each crate that is linked in is named, by another way to ask cargo, and so are the libraries in C.
fn licences(file: &Path) {
    let text = fs::read_to_string(file).unwrap();
    let mut cargo = Command::new("cargo");
    cargo.args(["tree", "--locked", "--package", "iotrace-bpf", "--edges", "normal", "--prefix", "none"]);
    cargo.args(["--target", "x86_64-unknown-linux-gnu", "--format", "{p}"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let tree = output(&mut cargo);
    let crates: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(" v").next()).collect();
    assert!(crates.len() > 100, "{tree}");
    for name in
        crates.iter().filter(|name| !name.starts_with("iotrace-bpf")).chain(&["libbpf", "libelf", "zlib", "glibc"])
    {
        let row = |line: &str| line.split(' ').next() == Some(name);
        assert!(text.lines().any(row), "{name}");
    }
    for part in ["Permission is hereby granted", "Apache License", "GNU LESSER GENERAL PUBLIC LICENSE"] {
        assert!(text.contains(part), "{part}");
    }
}

fn manual(pages: &Path) {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(pages).unwrap() {
        let page = entry.unwrap().path();
        output(Command::new("mandoc").args(["-T", "lint", "-W", "error"]).arg(&page));
        names.insert(page.file_name().unwrap().to_string_lossy().into_owned());
    }
    assert!(names.contains("iotrace-bpf-report.1.gz") && !names.contains("iotrace-bpf-man.1.gz"), "{names:?}");
    let mut man = Command::new("man");
    man.args(["--warnings", "--local-file"]).arg(pages.join("iotrace-bpf.1.gz"));
    let text = output(man.env("MANWIDTH", "160").env("MAN_KEEP_FORMATTING", "").env("LC_ALL", "C.UTF-8"));
    let wanted = ["--ring-size", "iotrace-bpf-report(1)", "-np 4 ./app    trace a command and all its children\n"];
    for part in wanted {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// What shells offer for the start of a command's and of an option's name.
fn completions(share: &Path, zsh_functions: &str) {
    let bash = "source \"$0\"; COMP_WORDS=(iotrace-bpf \"$@\"); COMP_CWORD=$#; $(complete -p iotrace-bpf |
        sed 's/.*-F \\([^ ]*\\).*/\\1/') iotrace-bpf \"${@: -1}\" iotrace-bpf; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let bash_offers = |words: &[&str]| {
        let file = share.join("bash-completion/completions/iotrace-bpf");
        output(Command::new("bash").args(["--norc", "-c", bash]).arg(file).args(words))
    };
    assert_eq!(bash_offers(&["rep"]).lines().collect::<Vec<_>>(), ["report", "replay-code", "replay", "repair"]);
    assert_eq!(bash_offers(&["report", "--cov"]), "--coverage\n");

    let fish_offers = |line: &str| {
        let file = share.join("fish/vendor_completions.d/iotrace-bpf.fish");
        let ask = format!("source {}; complete --do-complete '{line}'", file.display());
        let mut fish = Command::new("fish");
        let text = output(fish.args(["--no-config", "--command", &ask]).env("HOME", share));
        text.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect::<BTreeSet<_>>()
    };
    assert!(fish_offers("iotrace-bpf rep").contains("report"));
    assert!(fish_offers("iotrace-bpf report --cov").contains("--coverage"));

    // zsh completes on terminals only: it loads the function by its name, as it does for the first Tab.
    let zsh = "fpath=($0 $fpath); autoload -Uz compinit; compinit -u -D; print $_comps[iotrace-bpf]; \
        autoload +X _iotrace-bpf; print ${+functions[_iotrace-bpf]}";
    let zsh = output(Command::new("zsh").args(["-f", "-c", zsh]).arg(share.join(zsh_functions)));
    assert_eq!(zsh, "_iotrace-bpf\n1\n");
}
