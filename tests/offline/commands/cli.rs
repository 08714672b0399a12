//! The command line: help, wrong usage and what cannot be read; nothing here needs root.
use assert_cmd::Command;
use assert_cmd::assert::Assert;
use predicates::str::contains;

fn run(args: &[&str]) -> Assert {
    let mut command = Command::cargo_bin("iotrace-bpf").unwrap();
    // The width that help is wrapped to.
    command.args(args).env_remove("COLUMNS").assert()
}

fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

#[test]
fn help() {
    insta::assert_snapshot!(stdout(&run(&["--help"]).success()));
}

#[test]
fn help_of_report() {
    insta::assert_snapshot!(stdout(&run(&["report", "--help"]).success()));
}

#[test]
fn wrong_usage_exits_with_2_and_a_reason() {
    let cases: &[(&[&str], &str)] = &[
        (&["replay"], "<DIR>"),
        (&["replay", "d", "--where", "layer=hdf"], "at character 7 of \"layer=hdf\": no such layer"),
        (&["-p", "1", "--batch", "--where", "dur>10"], "expected a time with its unit"),
        (&["-p", "1", "-n", "3"], "--batch"),
        (&["-p", "1", "--json"], "--batch"),
        (&["-p", "1", "--batch", "-d", "10ms"], "expected 100ms to 24h"),
        (&["-p", "1", "--batch", "-d", "1"], "a time needs its unit: 1s, 1ms or 1m"),
        (&[], "sudo iotrace-bpf -- COMMAND ARGS..."),
        (&["-o", "d"], "<COMMAND>..."),
        (&["repot", "d"], "Did you mean the command 'report'?"),
        (&["--frob", "--", "true"], "--frob"),
        (&["./app"], "A command to trace goes after --"),
        (&["-p", "abc"], "expected the number of a process"),
        (&["-p", "1,x"], "'x'"),
        (&["-p", "0"], "expected the number of a process"),
        (&["-p", "1", "--", "true"], "cannot be used with"),
        (&["--layers", "disk", "--", "true"], "layers are: netcdf"),
        (&["--phase", "f@", "--", "true"], "expected FUNCTION or FUNCTION@BINARY"),
        (&["--phase", "", "--", "true"], "expected FUNCTION or FUNCTION@BINARY"),
        (&["probes", "check"], "<PATH>..."),
        (&["probes", "check", "-p", "x"], "expected the number of a process"),
        (&["probes", "generate"], "<LIB.so>"),
        (&["probes", "generate", "l.so", "--layer", "vfs"], "layers of functions are: app, netcdf"),
        (&["--duration", "1y", "--", "true"], "unknown unit"),
        (&["--duration", "30", "--", "true"], "a time needs its unit: 30s, 30ms or 30m"),
        (&["--rotate-time", "60", "-o", "d", "--", "true"], "a time needs its unit: 60s, 60ms or 60m"),
        (&["--stacks", "slow=10", "--", "true"], "a time needs its unit: 10s, 10ms or 10m"),
        (&["--detail", "slow=hdf5:10", "--", "true"], "a time needs its unit: 10s, 10ms or 10m"),
        (&["--flight", "30s", "-o", "d", "--trigger", "stuck=5", "--", "true"], "a time needs its unit: 5s, 5ms or 5m"),
        (&["--ring-size", "1K", "--", "true"], "expected 1M to 64G"),
        (&["--ring-size", "67108864", "--", "true"], "a size needs its unit (K, M, G or T): 16M, 1G"),
        (&["--keep-size", "20", "-o", "d", "--", "true"], "a size needs its unit (K, M, G or T): 16M, 1G"),
        (&["--metrics", "9464", "--", "true"], "expected an address of this machine and a port"),
        (&["--metrics", "localhost:9464", "--", "true"], "expected an address of this machine and a port"),
        (&["--metrics", "127.0.0.1:99999", "--", "true"], "expected an address of this machine and a port"),
        (&["--force", "--", "true"], "--output"),
        (&["--flight", "30s", "--", "true"], "--output <DIR>"),
        (&["--flight", "500ms", "-o", "d", "--", "true"], "expected 1s or more"),
        (&["--flight", "30s", "-o", "d", "--rotate-time", "1h", "--", "true"], "cannot be used with"),
        (&["--flight", "30s", "-o", "d", "--force", "--", "true"], "cannot be used with"),
        (&["--flight", "30s", "-o", "d", "--aggregate", "--", "true"], "cannot be used with"),
        (&["--trigger", "error", "-o", "d", "--", "true"], "--flight <TIME>"),
        (&["--flight", "30s", "-o", "d", "--trigger", "slow", "--", "true"], "triggers are: slow=TIME"),
        (&["--flight", "30s", "-o", "d", "--flight-memory", "1K", "--", "true"], "expected 1M to 64G"),
        (&["--quiet", "--batch", "--", "true"], "cannot be used with"),
        (&["--report", "r", "--flight", "30s", "-o", "d", "--", "true"], "have no report at the end"),
        (&["--report", "r", "--rotate-time", "1h", "-o", "d", "--", "true"], "have no report at the end"),
        (&["--detail", "slow", "--aggregate=no", "--", "true"], "with --aggregate=no all are"),
        (&["report"], "<DIR>"),
        (&["probes", "frob"], "frob"),
    ];
    for (args, expected) in cases {
        run(args).code(2).stderr(contains(*expected)).stdout("");
    }
}

#[test]
fn each_kind_of_mistake_has_one_exit_status() {
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/mpi_hdf5");
    let work = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = work.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (rules, power) = (file("rules.toml", "[no-rule]\noff = true\n"), file("power.toml", "[class.tape]\n"));
    let (probes, options) = (file("probes.toml", "[[library]]\n"), file("options.toml", "frob = 1\n"));
    let none = work.path().join("none").to_str().unwrap().to_owned();
    let cases: &[(u8, &[&str])] = &[
        (0, &["--help"]),
        (0, &["-h"]),
        (0, &["--version"]),
        (0, &["help", "report"]),
        (0, &["report", fixture]),
        (0, &["rules", "show", "sync-per-record"]),
        // A word or a value.
        (2, &[]),
        (2, &["--frob"]),
        (2, &["probes"]),
        (2, &["report"]),
        (2, &["rules", "show", "sync-per-recrod"]),
        (2, &["compare", fixture]),
        (2, &["query", fixture, "--metric", "calls", "--by", "device", "--layer", "hdf5"]),
        (2, &["export", fixture, "--to", "csv"]),
        (2, &["export", fixture, "--to", "csv", "--table", "span"]),
        (2, &["export", fixture, "--to", "otf2"]),
        (2, &["report", fixture, "--format", "csv"]),
        (2, &["report", fixture, "--json", "--section", "files"]),
        (2, &["report", fixture, "--sort", "tmie"]),
        (2, &["compare", fixture, fixture, "--fail-if", "tmie>1%"]),
        (2, &["--layers", "app", "--", "true"]),
        // A name or number that the trace does not have.
        (2, &["whatif", fixture, "--device", "NOPE=2x"]),
        (2, &["whatif", fixture, "--ranks-writing", "99"]),
        (2, &["replay-code", fixture, "-o", &none, "--layer", "netcdf"]),
        (2, &["replay-code", fixture, "-o", &none, "--file", "nope"]),
        (2, &["query", fixture, "--metric", "requests", "--device", "sdz"]),
        (2, &["query", fixture, "--metric", "latency", "--layer", "block", "--device", "sdz"]),
        // A file of settings: wrong, or not there.
        (2, &["--config", &options]),
        (2, &["--config", "/no/such"]),
        (2, &["report", fixture, "--rules", &rules]),
        (2, &["report", fixture, "--rules", "/no/such"]),
        (2, &["query", fixture, "--metric", "energy", "--power", &power]),
        (2, &["query", fixture, "--metric", "energy", "--power", "/no/such"]),
        (2, &["probes", "list", "--probes", &probes]),
        (2, &["--probes", &probes, "--", "true"]),
        // What was looked for was found.
        (3, &["compare", fixture, fixture, "--fail-if", "time>-1%"]),
        // Data that cannot be read, or not be written.
        (125, &["report", "/no/such"]),
        (125, &["compare", fixture, "/no/such"]),
        (125, &["query", "/no/such", "--metric", "calls"]),
        (125, &["export", fixture, "--to", "csv", "-o", "/"]),
        (125, &["export", fixture, "--to", "csv", "--table", "spans", "-o", &rules]),
        (125, &["probes", "check", "/no/such"]),
        (125, &["repair", "/no/such"]),
    ];
    for (code, args) in cases {
        let assert = run(args).code(i32::from(*code));
        let (out, erred) = (&assert.get_output().stdout, &assert.get_output().stderr);
        let erred = String::from_utf8_lossy(erred);
        assert!(*code != 0 || (!out.is_empty() && erred.is_empty()), "{args:?}: {erred}");
        assert!(!matches!(code, 2 | 125) || (out.is_empty() && !erred.is_empty()), "{args:?}: {erred}");
        assert!(*code != 125 || erred.starts_with("iotrace-bpf: "), "{args:?}: {erred}");
    }
}

#[test]
fn the_short_help_and_the_guide_fit_a_screen() {
    let short = stdout(&run(&["-h"]).success());
    assert!((24..=40).contains(&short.lines().count()) && short.lines().all(|line| line.len() <= 80), "{short}");
    let guide = String::from_utf8(run(&[]).get_output().stderr.clone()).unwrap();
    assert_eq!(guide, iotrace_bpf::cli::help::GUIDE);
}

#[test]
fn the_commands_that_symptoms_lead_through_are_right() {
    let text = include_str!("../../../docs/symptoms.md");
    // A quoted text goes on in the lines below.
    let typed = text.lines().filter_map(|line| line.strip_prefix("$ ")).filter(|line| !line.contains('"'));
    let mut commands = 0;
    for line in typed.filter_map(|line| line.trim_start_matches("sudo ").strip_prefix("iotrace-bpf ")) {
        let line = line.split(" #").next().unwrap().trim_end().trim_end_matches(" &");
        let words = ["iotrace-bpf"].into_iter().chain(line.split_whitespace());
        let parsed = iotrace_bpf::config::parse(words.map(Into::into).collect());
        assert!(parsed.is_ok(), "{line}: {parsed:?}");
        commands += 1;
    }
    assert!(commands > 15, "{commands}");
}

/// What docs/symptoms.md has below a command: the lines to the next one.
fn outputs_of_symptoms() -> Vec<(Vec<&'static str>, Vec<&'static str>)> {
    let text = include_str!("../../../docs/symptoms.md");
    let mut all: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    let mut taken = false;
    for line in text.lines() {
        let command = line.strip_prefix("$ iotrace-bpf ").map(|typed| typed.split(" #").next().unwrap());
        if let Some(typed) = command.filter(|typed| !typed.contains('"')) {
            all.push((typed.split_whitespace().collect(), Vec::new()));
            taken = true;
        } else if line.starts_with("```") || line.starts_with("$ ") {
            taken = false;
        } else if taken {
            all.last_mut().unwrap().1.push(line);
        }
    }
    all
}

/// The names in a line of columns.
fn columns(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|name| !name.is_empty()).collect()
}

#[test]
fn outputs_in_symptoms_have_the_headings_and_columns_of_the_program() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/report");
    let work = tempfile::tempdir().unwrap();
    // Datasets may get an index beside them.
    let of = |name: &str| work.path().join(name).to_str().unwrap().to_owned();
    let copied = std::process::Command::new("cp").arg("-R").arg(format!("{fixtures}/.")).arg(work.path()).status();
    assert!(copied.unwrap().success());
    let mut seen = 0;
    for (typed, shown) in outputs_of_symptoms() {
        let (action, section) = (typed[0], typed.contains(&"--section"));
        let datasets = typed.iter().filter(|word| word.ends_with(".iotrace")).count();
        let mut args = vec![action.to_owned()];
        args.extend(["sqlite", "fio"].iter().take(datasets).map(|name| of(name)));
        args.extend(typed[1 + datasets..].iter().map(|word| (*word).to_owned()));
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        let printed = stdout(&run(&words).success());
        let printed: Vec<&str> = printed.lines().collect();
        let at = |lines: &[&str], start: &str| lines.iter().position(|line| line.starts_with(start));
        match action {
            "report" if section => {
                let heading = |line: &str| line.split(':').next().unwrap().to_owned();
                assert_eq!((shown[0], heading(shown[1])), (printed[0], heading(printed[1])), "{typed:?}");
                let names = columns(printed[2]);
                assert!(columns(shown[2]).iter().all(|name| names.contains(name)), "{typed:?}: {}", printed[2]);
            }
            "report" => {
                for lines in [&shown, &printed] {
                    let findings = at(lines, "Findings").unwrap();
                    assert!(lines[0].starts_with("command   ") && lines[findings - 1].is_empty(), "{lines:?}");
                    assert!(["run       ", "..."].iter().any(|start| lines[1].starts_with(start)), "{lines:?}");
                }
            }
            "compare" => {
                for lines in [&shown, &printed] {
                    assert!(lines[0].starts_with("A  ") && lines[1].starts_with("B  "), "{lines:?}");
                    assert_eq!((lines[2], columns(lines[3])), ("", vec!["figure", "A", "B", "change"]));
                }
            }
            "query" => assert_eq!(columns(shown[0]), columns(printed[0]), "{typed:?}"),
            _ => continue,
        }
        seen += 1;
    }
    assert!(seen >= 10, "{seen}");
}

#[test]
fn messages_have_colours_only_where_there_is_a_terminal_that_wants_them() {
    for args in [&["-h"][..], &["--help"], &["--frob"], &["doctor", "--help"]] {
        let assert = run(args);
        let output = assert.get_output();
        assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b), "{args:?}");
    }
}

#[test]
fn what_is_no_dataset_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (missing, file, other) = (dir.path().join("missing"), dir.path().join("file"), dir.path().join("other"));
    std::fs::write(&file, "text").unwrap();
    std::fs::create_dir(&other).unwrap();
    for (path, expected) in [(&missing, "No such file"), (&file, "not a directory"), (&other, "is no dataset")] {
        let path = path.to_str().unwrap();
        for action in [&["report"][..], &["replay", "--batch"]] {
            run(&[action, &[path]].concat()).code(125).stderr(contains(path)).stderr(contains(expected)).stdout("");
        }
    }
    std::fs::write(other.join("spans-00001.parquet"), "text").unwrap();
    run(&["report", other.to_str().unwrap()]).code(125).stderr(contains("spans-00001.parquet: not readable"));
}

#[test]
fn the_catalog_is_listed() {
    let list = stdout(&run(&["probes", "list"]).success());
    let line = |list: &str, symbol: &str| -> Vec<String> {
        let line = list.lines().find(|l| l.contains(symbol)).unwrap();
        line.split_whitespace().map(str::to_owned).collect()
    };
    let write = "MPI_File_write_at_all";
    assert_eq!(line(&list, "LAYER"), ["LAYER", "LIBRARY", "FUNCTION", "OPERATION", "KIND"]);
    assert_eq!(line(&list, write), ["mpiio", "Open", "MPI", write, write, "write"]);
    assert_eq!(line(&list, "__fread_chk")[3..], ["__fread_chk", "fread", "read"]);

    let dir = tempfile::tempdir().unwrap();
    let catalog = dir.path().join("my.toml");
    let text = "[[library]]\nname = 'engine'\nfile = 'libengine.so'\n[[library.function]]\nsymbol = 'run'\n";
    std::fs::write(&catalog, text).unwrap();
    let with = ["probes", "list", "--probes", catalog.to_str().unwrap()];
    let list = stdout(&run(&with).success());
    assert_eq!(line(&list, "engine"), ["app", "engine", "run", "run", "other"]);
    let json: serde_json::Value =
        serde_json::from_str(&stdout(&run(&[&with[..], &["--json"]].concat()).success())).unwrap();
    let rows = json.as_array().unwrap();
    assert_eq!(rows.len(), list.lines().count() - 1);
    let last = serde_json::json!({"layer": "app", "library": "engine", "symbol": "run", "op": "run", "kind": "other"});
    assert_eq!(rows[rows.len() - 1], last);
    assert!(rows.iter().any(|r| r["symbol"] == "pwrite64" && r["layer"] == "syscall"));
}

#[test]
fn a_catalog_file_that_is_wrong_is_named_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bad.toml");
    std::fs::write(&path, "[[library]]\nname = 'x'\nfile = 'x'\n[[library.function]]\nsymbol = 'f'\nlen = 'arg12'\n")
        .unwrap();
    let path = path.to_str().unwrap();
    let expected = format!("{path}:6: function \"f\": len: argument 12 is not read: 0 to 11 are");
    run(&["probes", "list", "--probes", path]).code(2).stderr(contains(expected)).stdout("");
    run(&["probes", "list", "--probes", "/no/such.toml"]).code(2).stderr(contains("cannot read /no/such.toml"));
}

#[test]
fn a_file_of_options_that_is_wrong_is_named_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("options.toml");
    let path = path.to_str().unwrap();
    for (text, expected) in [
        ("pid = 1\nfrob = true\n", "options.toml:2: frob: no such key; keys are the long options: "),
        ("pid = 1\nduration = 'soon'\n", "options.toml:2: duration: invalid value 'soon'"),
        ("pid = [\n", "options.toml:"),
        ("pid = 1\nkeep-size = '20G'\n", "--output <DIR>"),
        (
            "output = 'd'\nflight = '30s'\ntrigger = ['crash', 'slow=1y']\n",
            "options.toml:3: trigger: invalid value 'slow=1y'",
        ),
    ] {
        std::fs::write(path, text).unwrap();
        run(&["--config", path]).code(2).stderr(contains(expected)).stdout("");
        run(&["-p", "1", &format!("--config={path}")]).code(2).stderr(contains(expected)).stdout("");
    }
    std::fs::write(path, [0xff]).unwrap();
    run(&["--config", path]).code(2).stderr(contains("options.toml: stream did not contain valid UTF-8")).stdout("");
    run(&["--config", "/no/such.toml"]).code(2).stderr(contains("cannot read /no/such.toml")).stdout("");
    run(&["--config", "/dev/zero"]).code(2).stderr(contains("/dev/zero: longer than 1 MiB")).stdout("");
}

/// Builds a C program.
fn build(dir: &std::path::Path, name: &str, flags: &[&str]) -> String {
    let (source, program) = (dir.join("p.c"), dir.join(name));
    std::fs::write(&source, "void step(void) {}\nint main(void) { step(); return 0; }\n").unwrap();
    let mut cc = std::process::Command::new("cc");
    assert!(cc.args(["-O0", "-o"]).arg(&program).arg(&source).args(flags).status().unwrap().success());
    program.to_str().unwrap().to_owned()
}

#[test]
fn what_would_be_attached_to_a_file_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let program = build(dir.path(), "program", &[]);
    let args = ["probes", "check", &program, "--phase", "step", "--phase", "nowhere"];
    let text = stdout(&run(&args).success());
    let line =
        |symbol: &str| -> Vec<&str> { text.lines().find(|l| l.contains(symbol)).unwrap().split_whitespace().collect() };
    assert!(text.starts_with(&format!("{program}: phases\n")), "{text}");
    assert_eq!(line("step")[..2], ["app", "step"]);
    assert_eq!(line("step")[3..], ["push", "rbp", "emulated", "probe", "attach"]);
    assert_eq!(
        line("nowhere")[..],
        ["app", "nowhere", "-", "-", "-", "-", "absent", "the", "file", "does", "not", "define", "it"]
    );
    let json: serde_json::Value =
        serde_json::from_str(&stdout(&run(&[&args[..], &["--json"]].concat()).success())).unwrap();
    let function = |at: usize| json[0]["functions"][at].clone();
    assert_eq!((&function(0)["symbol"], &function(0)["status"]), (&"step".into(), &"attach".into()));
    assert_eq!(format!("{:#x}", function(0)["offset"].as_i64().unwrap()), line("step")[2]);
    assert_eq!((&function(1)["status"], &function(1)["offset"]), (&"absent".into(), &serde_json::Value::Null));

    // A real library, and one of its functions under two names.
    let libc = "/lib/x86_64-linux-gnu/libc.so.6";
    let text = stdout(&run(&["probes", "check", libc]).success());
    assert!(text.lines().any(|l| l.contains(" fwrite ") && l.ends_with("attach")), "{text}");
    assert!(text.lines().any(|l| l.contains("alias   alias of fopen at the same address")), "{text}");
    // Nothing of the catalog.
    assert_eq!(stdout(&run(&["probes", "check", &program]).success()), format!("{program}: nothing of the catalog\n"));
}

#[test]
fn a_file_that_cannot_be_checked_has_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let program = std::fs::read(build(dir.path(), "program", &[])).unwrap();
    let stripped = build(dir.path(), "stripped", &["-static", "-s"]);
    for (path, expected) in [
        ("/no/such".to_owned(), "cannot read /no/such"),
        (dir.path().to_str().unwrap().to_owned(), "is no file"),
        (file("text", b"#!/bin/sh\n"), "not an ELF file"),
        (file("empty", b""), "not an ELF file"),
        (file("head", &program[..30]), "truncated"),
        (file("half", &program[..program.len() / 2]), "truncated"),
        (
            stripped,
            "has no symbols: it is linked statically and stripped, so no function in it can be found; use a build with symbols",
        ),
    ] {
        run(&["probes", "check", &path]).code(125).stderr(contains(&path)).stderr(contains(expected)).stdout("");
        run(&["probes", "generate", &path]).code(125).stdout("");
    }
    let last = std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap();
    run(&["probes", "check", "-p", last.trim()]).code(125).stderr(contains("no such process"));
}

#[test]
fn what_would_be_attached_to_a_process_is_shown() {
    let own = std::process::id().to_string();
    let text = stdout(&run(&["probes", "check", "-p", &own]).success());
    let libc = text.lines().find(|l| l.contains("libc.so.6: ")).unwrap();
    assert!(libc.ends_with("C library"), "{libc}");
    assert!(text.lines().any(|l| l.contains(" fread ") && l.ends_with("attach")), "{text}");
}

#[test]
fn a_catalog_is_made_and_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = dir.path().join("c.toml");
    let make =
        ["probes", "generate", "/lib/x86_64-linux-gnu/libmpi.so.40", "--layer", "mpi", "-o", catalog.to_str().unwrap()];
    run(&make).success().stdout("");
    run(&make).code(125).stderr(contains("File exists"));
    let text = std::fs::read_to_string(&catalog).unwrap();
    assert!(text.starts_with("# libmpi.so.40: no debug information and no --header: kinds by name only"), "{text}");
    let list = stdout(&run(&["probes", "list", "--probes", catalog.to_str().unwrap()]).success());
    assert!(
        list.lines().any(|l| l.split_whitespace().eq(["mpi", "libmpi", "MPI_Win_create", "MPI_Win_create", "open"])),
        "{list}"
    );
}
