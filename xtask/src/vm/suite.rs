//! Which live tests run in the virtual machines and where, the script that runs them there, and what came of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// In the job's directory: datasets that the host compares with SQL when the machine is off.
pub const KEPT: &str = "kept";

/// What a test needs of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Any kernel that the tracer runs on.
    Nothing,
    /// More probes on a library than the tracer sets one by one.
    ManyProbes,
}

/// The line of `iotrace-bpf doctor` that shows that there can be many probes.
const MANY_PROBES: &str = "ok +uprobe\\.(multi|session)";
const TOO_FEW: &str =
    "needs more probes on a library than the 20 that are set one by one on a kernel without uprobe.multi";

const TOO_SLOW: &str = "takes long in emulation";

/// A file of tests.
pub struct File {
    pub name: &'static str,
    /// Where it runs; the first one first.
    pub volumes: &'static [&'static str],
    pub needs: Needs,
    /// Tests in it that need more than the others.
    pub need_many_probes: &'static [&'static str],
    /// Tests in it that make so many calls, or traces, that they take long in emulation.
    pub too_slow: &'static [&'static str],
    /// Modules of the kernel that it needs, loaded just before it: with more of them traces begin more slowly.
    pub modules: &'static str,
}

const ALL: &[&str] = &["ext4", "null_blk", "xfs"];
const ONE: &[&str] = &["ext4"];
/// For what loads modules, so that nothing is slow for long.
const LAST: &[&str] = &["xfs"];

/// A file of tests with defaults for all but its name.
const PLAIN: File =
    File { name: "", volumes: ONE, needs: Needs::Nothing, need_many_probes: &[], too_slow: &[], modules: "" };

/// In the order in which they run. Emulation is slow, so this is not all of them: one of each mechanism.
pub const SUITE: &[File] = &[
    File { name: "calls::syscalls", too_slow: &["ordinary_programs_match_strace"], ..PLAIN },
    File { name: "storage::block", volumes: ALL, ..PLAIN },
    File { name: "calls::async_kernel", ..PLAIN },
    File { name: "calls::cache", ..PLAIN },
    File { name: "calls::vfs", ..PLAIN },
    File { name: "storage::overlay", ..PLAIN },
    File { name: "targets::cgroup", ..PLAIN },
    File {
        name: "targets::attach",
        need_many_probes: &["everything_after_the_attach_is_seen_until_the_target_ends"],
        ..PLAIN
    },
    File { name: "targets::system", too_slow: &["every_process_of_the_node_is_traced_as_itself"], ..PLAIN },
    File { name: "robustness::clock", ..PLAIN },
    File { name: "robustness::tiers", ..PLAIN },
    File { name: "libraries::stdio", needs: Needs::ManyProbes, ..PLAIN },
    File {
        name: "libraries::mpi_hdf5",
        needs: Needs::ManyProbes,
        too_slow: &["the_report_shows_every_layer_and_agrees_with_sql"],
        ..PLAIN
    },
    File {
        name: "robustness::errors",
        too_slow: &[
            "a_full_disk_fails_the_trace_and_not_the_command",
            "a_bad_output_directory_is_refused_before_the_command_starts",
            "calls_that_find_no_room_are_counted",
        ],
        ..PLAIN
    },
    File { name: "storage::levels", volumes: LAST, modules: "raid0", ..PLAIN },
    File { name: "storage::writeback", volumes: LAST, modules: "btrfs", ..PLAIN },
    File { name: "storage::rpc", volumes: LAST, modules: "fuse", ..PLAIN },
    File { name: "storage::nfs", volumes: LAST, modules: "nfsd nfsv3 nfsv4", ..PLAIN },
];

/// The factor by which tests wait longer where the processor is emulated.
const SLOWER: u32 = 8;
/// A file of tests that takes longer is stopped.
const LIMIT_OF_A_FILE: Duration = Duration::from_mins(10);

/// The file systems that tests work on.
pub const VOLUMES: &[&str] = ALL;

/// A file of tests as it was built. The names of its tests begin with its own.
pub struct Built {
    pub file: &'static File,
    /// The program with the live tests.
    pub path: String,
    pub tests: Vec<String>,
}

/// The script that the machine runs, with the tests that are ignored where a module is missing. It reports on the console
/// where it is: lines that begin with `@`. `modules` is what `lib/modules` is in.
pub fn script(root: &Path, job: &Path, modules: &Path, tracer: &str, built: &[Built]) -> String {
    let (job, modules) = (job.display(), modules.display());
    // The system's own Python first: that of a version manager is a script, which starts forty processes.
    let path = format!("/usr/sbin:/usr/bin:/sbin:/bin:{}", std::env::var("PATH").unwrap_or_default());
    let mut script = format!(
        "export PATH='{path}' HOME=/root OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export IOTRACE_TEST_SLOWER={slower} IOTRACE_TEST_CLOCK=1 IOTRACE_TEST_COMPARE_LATER='{job}/{KEPT}'
mkdir -p '{job}/{KEPT}'
cd '{root}'
n=/sys/kernel/config/nullb/nullb0
if mkdir $n 2>/dev/null && echo 256 >$n/size && echo 1 >$n/memory_backed && echo 1 >$n/power; then
	mkfs.ext4 -qF /dev/nullb0 && mount /dev/nullb0 /mnt/null_blk
fi
echo \"@kernel $(uname -r)\"
'{tracer}' doctor >'{job}/doctor' 2>&1
many=no; grep -Eq '{MANY_PROBES}' '{job}/doctor' && many=yes
run() {{ # volume, name, modules, file, options
	local volume=$1 name=$2 modules=$3 file=$4; shift 4
	if ! mountpoint -q /mnt/$volume && [ $volume = null_blk ]; then
		echo \"@left-out $volume $name this kernel has no null_blk\"
		return
	fi
	echo \"@begin $volume $name\"
	mountpoint /mnt/$volume || return
	[ -z \"$modules\" ] || modprobe -d '{modules}' -a $modules || return
	export IOTRACE_TEST_DIR=/mnt/$volume/work IOTRACE_TEST_TIERS='{job}'/$volume.tiers
	mkdir -p $IOTRACE_TEST_DIR
	timeout {seconds} $file --test-threads=1 --include-ignored --exact \"$@\" 2>&1 | tee '{job}'/$volume.$name.log
	local failed; failed=$(sed -nE '/^failures:$/,$s/^    ([a-z0-9_:]+)$/\\1/p' '{job}'/$volume.$name.log | sort -u)
	if [ -n \"$failed\" ]; then
		echo \"@again $volume $name\"
		timeout {seconds} $file --test-threads=1 --include-ignored --exact $failed 2>&1 | tee '{job}'/$volume.$name.again.log
	fi
	echo \"@end $volume $name\"
	rm -rf $IOTRACE_TEST_DIR
}}
",
        root = root.display(),
        slower = SLOWER,
        seconds = LIMIT_OF_A_FILE.as_secs(),
    );
    for volume in VOLUMES {
        for Built { file, path, tests } in built.iter().filter(|b| b.file.volumes.contains(volume)) {
            let name = file.name;
            let each = |tests: &[&str], text: &dyn Fn(&str) -> String| -> String {
                tests.iter().map(|test| text(test)).collect::<Vec<_>>().concat()
            };
            let left_out =
                |tests, why| each(tests, &|test| format!("echo '@left-out {volume} {name}::{test} {why}'\n\t"));
            let run = |left_out: &[&[&str]]| {
                let is_left_out =
                    |test: &str| left_out.iter().any(|l| l.iter().any(|l| test == format!("{name}::{l}")));
                let tests: Vec<&str> = tests.iter().map(String::as_str).filter(|test| !is_left_out(test)).collect();
                format!("run {volume} {name} '{}' '{path}' {}", file.modules, tests.join(" "))
            };
            let slow = left_out(file.too_slow, TOO_SLOW);
            let all = format!("{slow}{}", run(&[file.too_slow]));
            let few = match file.needs {
                Needs::ManyProbes => format!("echo '@left-out {volume} {name} {TOO_FEW}'"),
                Needs::Nothing => {
                    let few = left_out(file.need_many_probes, TOO_FEW);
                    format!("{few}{slow}{}", run(&[file.too_slow, file.need_many_probes]))
                }
            };
            let _ = writeln!(script, "if [ $many = yes ]; then\n\t{all}\nelse\n\t{few}\nfi");
        }
    }
    script.push_str(
        "echo @done\nsync\numount /mnt/null_blk /mnt/ext4 /mnt/xfs 2>/dev/null\nexec /bin/busybox poweroff -f\n",
    );
    script
}

/// What came of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    Failed,
    /// It did not come to its end, or did not begin.
    Unfinished,
}

/// The verdicts of a file of tests, from what it printed. Of `tests`, those that were left out are not asked for here.
///
/// A program that a test starts may write into the line of the test, so that the line does not decide: the list of
/// failures at the end, and that there is an end.
pub fn verdicts(log: &str, tests: &[String]) -> BTreeMap<String, Verdict> {
    let ended = log.lines().any(|line| line.starts_with("test result: "));
    let failures = log.rsplit("\nfailures:\n").next().filter(|_| log.contains("\nfailures:\n")).unwrap_or_default();
    let failed: Vec<&str> = failures.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    let verdict = |test: &String| {
        let line = log.lines().find_map(|line| line.strip_prefix(&format!("test {test} ... ")));
        match line {
            Some("ok") => Verdict::Passed,
            _ if failed.contains(&test.as_str()) || line == Some("FAILED") => Verdict::Failed,
            Some(_) if ended => Verdict::Passed,
            _ => Verdict::Unfinished,
        }
    };
    tests.iter().map(|test| (test.clone(), verdict(test))).collect()
}

/// A line of the console about the run.
#[derive(Debug, PartialEq, Eq)]
pub enum ConsoleLine<'a> {
    Kernel(&'a str),
    Begin {
        volume: &'a str,
        name: &'a str,
    },
    /// What failed runs a second time.
    Again {
        volume: &'a str,
        name: &'a str,
    },
    End {
        volume: &'a str,
        name: &'a str,
    },
    LeftOut {
        volume: &'a str,
        name: &'a str,
        why: &'a str,
    },
    Done,
    /// A test's own line.
    Test(&'a str),
}

/// Reads a line of the console.
pub fn parse_line(line: &str) -> Option<ConsoleLine<'_>> {
    if line.starts_with("test ") && line.contains(" ... ") {
        return Some(ConsoleLine::Test(line));
    }
    let mut fields = line.strip_prefix('@')?.splitn(4, ' ');
    let mut next = || fields.next().unwrap_or_default();
    match next() {
        "kernel" => Some(ConsoleLine::Kernel(next())),
        "begin" => Some(ConsoleLine::Begin { volume: next(), name: next() }),
        "again" => Some(ConsoleLine::Again { volume: next(), name: next() }),
        "end" => Some(ConsoleLine::End { volume: next(), name: next() }),
        "left-out" => Some(ConsoleLine::LeftOut { volume: next(), name: next(), why: next() }),
        "done" => Some(ConsoleLine::Done),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tests: &[&str]) -> Vec<String> {
        tests.iter().map(|t| (*t).to_owned()).collect()
    }

    #[test]
    fn verdicts_come_from_what_a_test_file_prints() {
        let log = "running 3 tests\ntest a ... ok\ntest b ... FAILED\ntest c ... umount: busy\nok\n\nfailures:\n\n\
                   ---- b stdout ----\nfailed\n\nfailures:\n    b\n\ntest result: FAILED. 2 passed; 1 failed\n";
        let verdicts = verdicts(log, &names(&["a", "b", "c", "d"]));
        let of = |test: &str| verdicts[test];
        assert_eq!((of("a"), of("b"), of("c")), (Verdict::Passed, Verdict::Failed, Verdict::Passed));
        assert_eq!(of("d"), Verdict::Unfinished);
    }

    #[test]
    fn what_did_not_end_has_not_passed() {
        let verdicts = verdicts("running 2 tests\ntest a ... ok\ntest b ... ", &names(&["a", "b", "c"]));
        assert_eq!(verdicts["a"], Verdict::Passed);
        assert_eq!((verdicts["b"], verdicts["c"]), (Verdict::Unfinished, Verdict::Unfinished));
    }

    #[test]
    fn the_console_s_lines_are_read() {
        assert_eq!(parse_line("@kernel 6.1.0"), Some(ConsoleLine::Kernel("6.1.0")));
        assert_eq!(
            parse_line("@begin xfs storage::block"),
            Some(ConsoleLine::Begin { volume: "xfs", name: "storage::block" })
        );
        assert_eq!(
            parse_line("@end xfs storage::block"),
            Some(ConsoleLine::End { volume: "xfs", name: "storage::block" })
        );
        assert_eq!(
            parse_line("@again xfs storage::block"),
            Some(ConsoleLine::Again { volume: "xfs", name: "storage::block" })
        );
        let left_out = ConsoleLine::LeftOut { volume: "xfs", name: "libraries::stdio", why: "needs more probes" };
        assert_eq!(parse_line("@left-out xfs libraries::stdio needs more probes"), Some(left_out));
        assert_eq!(parse_line("test a ... ok"), Some(ConsoleLine::Test("test a ... ok")));
        assert_eq!(
            (parse_line("@done"), parse_line("[ 1.0] EXT4-fs"), parse_line("test of it")),
            (Some(ConsoleLine::Done), None, None)
        );
    }

    #[test]
    fn each_test_file_exists_and_runs_somewhere() {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/live");
        for file in SUITE {
            let text = std::fs::read_to_string(tests.join(format!("{}.rs", file.name.replace("::", "/")))).unwrap();
            assert!(!file.volumes.is_empty() && file.volumes.iter().all(|p| VOLUMES.contains(p)), "{}", file.name);
            for test in file.need_many_probes.iter().chain(file.too_slow) {
                assert!(text.contains(&format!("fn {test}()")), "{test} is not in {}", file.name);
            }
        }
    }

    #[test]
    fn the_script_runs_or_names_every_file() {
        let built = |file: &'static File| {
            let left_out = file.need_many_probes.iter().chain(file.too_slow);
            let tests = left_out.chain(&["one"]).map(|test| format!("{}::{test}", file.name)).collect();
            Built { file, path: "/t/live".to_owned(), tests }
        };
        let built: Vec<Built> = SUITE.iter().map(built).collect();
        let script = script(Path::new("/r"), Path::new("/j"), Path::new("/k"), "/t/iotrace-bpf", &built);
        for file in SUITE {
            for volume in file.volumes {
                let run = format!("run {volume} {0} '{1}' '/t/live' ", file.name, file.modules);
                assert!(script.contains(&run), "{run}");
                assert!(script.contains(&format!("{run}{}::one\n", file.name)) || !file.need_many_probes.is_empty());
                let left_out = script.contains(&format!("@left-out {volume} {} ", file.name));
                assert_eq!(left_out, file.needs == Needs::ManyProbes, "{}", file.name);
            }
        }
        let checked = std::process::Command::new("bash").args(["-n", "-c", &script]).status().unwrap();
        assert!(checked.success());
    }
}
