//! Programs run with a tracer as they do without: the same output and status alone, under a tracer, and beside the
//! trace of another process. The table is in docs/reliability.md.

use crate::common::live::{self, Running};
use crate::common::machine::group::Group;
use crate::common::{programs, ways};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What takes longer hangs. Alone, none takes a tenth of it.
const HANGS: Duration = Duration::from_secs(45);

/// A program of the table.
struct Program {
    name: &'static str,
    /// Words: `@name` is a program of `tests/programs`, `%name` a file there, `python` the one with the tests'
    /// packages.
    command: &'static [&'static str],
    /// Of the tracer that it runs under.
    options: &'static [&'static str],
    status: i32,
    /// Its standard error is the same each time.
    stderr: bool,
}

const fn program(name: &'static str, command: &'static [&'static str], status: i32) -> Program {
    Program { name, command, options: &[], status, stderr: true }
}

/// One with another output on its standard error each time, or none of interest.
const fn chatty(name: &'static str, command: &'static [&'static str], status: i32) -> Program {
    Program { stderr: false, ..program(name, command, status) }
}

const NODE: &str = "const fs = require('fs'); let sum = 0; \
    for (let i = 0; i < 200; i++) { fs.writeFileSync('f' + i, String(i)); sum += Number(fs.readFileSync('f' + i)); } \
    fs.promises.readFile('f7').then(text => { console.log(sum, String(text)); process.exitCode = 3; });";
const ERLANG: &str = "[file:write_file(\"f\" ++ integer_to_list(I), <<\"text\">>) || I <- lists:seq(1, 50)], \
    {ok, Text} = file:read_file(\"f7\"), io:format(\"~s ~p~n\", [Text, lists:sum(lists:seq(1, 100))]), halt(3).";
const WHEEL: &str = "import h5py, numpy\nwith h5py.File('a.h5', 'w') as f:\n    f['x'] = numpy.arange(1000)\n\
    with h5py.File('a.h5') as f:\n    print(int(f['x'][:].sum()))\nraise SystemExit(3)";
const GO: &str = "mkdir go && \"$0\" go 500 > /dev/null && cat go/* | cksum; exit 3";

const LANGUAGES: [Program; 16] = [
    program("C", &["@harmless"], 3),
    program("C, static", &["@harmless_static"], 3),
    program("C, static, at any address", &["@harmless_static_pie"], 3),
    program("C, static, musl", &["@harmless_musl"], 3),
    program("C, address sanitizer", &["@harmless_asan"], 3),
    program("C++, an exception caught in a callback", &["@thrown", "inside", "."], 0),
    program("ucontext, the first stack above", &["@switched"], 0),
    program("ucontext, the first stack below", &["@switched", "below"], 0),
    Program { options: &["--phase", "step"], ..program("ucontext, in phases", &["@fibers"], 0) },
    program("greenlet", &["python", "%greenlets_read.py"], 0),
    program("h5py, a wheel", &["python", "-c", WHEEL], 3),
    program("Go", &["sh", "-c", GO, "@files_go"], 3),
    program("Go with C", &["sh", "-c", GO, "@cgo_stdio"], 3),
    program("Java", &["java", "%Harmless.java"], 3),
    program("Node.js", &["node", "-e", NODE], 3),
    program("Erlang", &["erl", "-noshell", "-eval", ERLANG], 3),
];

const GDB: &str = "gdb -q -batch -nx -iex 'set debuginfod enabled off' -ex 'set print thread-events off' \
    -ex 'set print inferior-events off' -ex 'set print frame-arguments none' -ex 'handle SIGUSR1 nostop noprint' -ex 'break main' -ex 'break popen' \
    -ex 'run > text_out 2>&1' -ex 'info symbol $pc' -ex continue -ex 'info symbol $pc' -ex continue \
    -ex 'print $_exitcode' \"$0\" > all 2> /dev/null; grep -E '^\\$1|in section' all; cat text_out";
const MAKE: &str = "printf 'all: a b\\na:\\n\\t@echo a > a && sleep 0.1 && cat a\\nb: a\\n\\t@cat a a > b; wc -c b\\n' > Makefile \
    && make -s -j2";
const GIT: &str = "export HOME=$PWD GIT_CONFIG_NOSYSTEM=1; git init -q r && cd r && seq 2000 > f && git add f \
    && git -c user.name=a -c user.email=a@b commit -q -m one --date '2020-01-01T00:00:00Z' && git gc -q && git fsck \
    && git log --format=%s && git show HEAD:f | cksum";
const SQL: &str = "create table t(a); with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) \
    insert into t select i from n; update t set a = a + 1; select sum(a), count(*) from t; pragma integrity_check;";
const FIO: &str = "fio --name=t --rw=randrw --size=2m --bs=4k --ioengine=libaio --iodepth=8 --verify=crc32c --output=text_out \
    && fio --name=t --rw=randwrite --size=2m --bs=4k --ioengine=psync --thread --numjobs=2 --output=text_out && echo fine";

const TOOLS: [Program; 11] = [
    chatty("valgrind", &["valgrind", "-q", "--error-exitcode=9", "@harmless"], 3),
    program("gdb, a breakpoint in main and one in the C library", &["sh", "-c", GDB, "@harmless"], 0),
    program("strace -f", &["strace", "-f", "-o", "calls", "@harmless"], 3),
    chatty("perf record", &["perf", "record", "-q", "-o", "perf.data", "@harmless"], 3),
    chatty(
        "perf record -g of a shell",
        &["perf", "record", "-q", "-g", "-o", "perf.data", "sh", "-c", "echo a | cat"],
        0,
    ),
    program("set -m", &["bash", "-c", "set -m; python3 -c 'print(1)'; echo next"], 0),
    program("set -m, in the background", &["bash", "-c", "set -m; sleep 0.2 & wait %1; echo $?; (exit 4); echo $?"], 0),
    program("make -j2", &["sh", "-c", MAKE], 0),
    chatty("git", &["sh", "-c", GIT], 0),
    program("sqlite3", &["sqlite3", "t.db", SQL], 0),
    chatty("fio", &["sh", "-c", FIO], 0),
];

/// Runs a command on a terminal; what the terminal shows of its own accord is left out.
const ON_TERMINAL: &str = "set -o pipefail; script -qec \"$0\" /dev/null | tr -dc '0-9\\n'";
const PAGE: &str = "data:text/html,<p>hello";
const CHROMIUM: &str = "export HOME=$(mktemp -d) && cd \"$HOME\" && chromium --headless --disable-gpu --dump-dom \
    'data:text/html,<p>hello'; status=$?; rm -rf \"$HOME\"; exit $status";

/// A user without rights executes a program that has root's; the directory is the program's own.
const SETUID: &str = "cp \"$(command -v id)\" rights && chmod u+s rights && \
    test \"$(setpriv --reuid=65534 --regid=65534 --clear-groups ./rights -u)\" = 0 && exit 3";

const USERS: [Program; 14] = [
    program("a set-user-ID program", &["sh", "-c", SETUID], 3),
    program("sudo", &["sudo", "-n", "sh", "-c", "id -u; exit 3"], 3),
    program("sudo to another user", &["sudo", "-n", "-u", "nobody", "sh", "-c", "id -u; exit 3"], 3),
    program("su", &["su", "nobody", "-s", "/bin/sh", "-c", "id -u; exit 3"], 3),
    program("sudo on a terminal", &["bash", "-c", ON_TERMINAL, "sudo -n sh -c 'id -u; test -t 0 && exit 3'"], 3),
    program(
        "su on a terminal",
        &["bash", "-c", ON_TERMINAL, "su nobody -s /bin/sh -c 'id -u; test -t 0 && exit 3'"],
        3,
    ),
    program(
        "runuser with a terminal of its own",
        &["bash", "-c", ON_TERMINAL, "runuser --pty -u nobody -- sh -c 'id -u; test -t 0 && exit 3'"],
        3,
    ),
    program("runuser", &["runuser", "-u", "nobody", "--", "sh", "-c", "id -u; exit 3"], 3),
    program("nsenter", &["nsenter", "--mount=/proc/self/ns/mnt", "sh", "-c", "echo inside; exit 3"], 3),
    program("unshare", &["unshare", "--fork", "--pid", "--mount-proc", "sh", "-c", "echo $$; exit 3"], 3),
    program(
        "bubblewrap",
        &[
            "bwrap",
            "--ro-bind",
            "/",
            "/",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            "--unshare-all",
            "sh",
            "-c",
            "echo $$; exit 3",
        ],
        3,
    ),
    program(
        "setpriv",
        &["setpriv", "--reuid=65534", "--clear-groups", "--no-new-privs", "sh", "-c", "id -u; exit 3"],
        3,
    ),
    chatty(
        "chromium, headless",
        &["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=profile", "--dump-dom", PAGE],
        0,
    ),
    chatty("chromium, headless, in its sandbox", &["runuser", "-u", "nobody", "--", "sh", "-c", CHROMIUM], 0),
];

/// What came of a run.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    /// `None`: it hung.
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Program {
    /// Runs it in a new directory, alone or under a tracer, until it ends or hangs. Nothing of it is left.
    fn run(&self, dir: &Path, traced: bool) -> Outcome {
        fs::create_dir(dir).unwrap();
        let group = Group::new("harmless");
        let started = self.command.iter().map(|word| match word.split_at_checked(1) {
            Some(("@", name)) => programs::build(name),
            Some(("%", name)) => ways::script(name),
            _ if *word == "python" => ways::python(),
            _ => word.into(),
        });
        let into = "exec \"$@\" > out 2> err < /dev/null";
        let mut command = Command::new("sh");
        let own = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", group.0.display());
        command.args(["-c", &own, "sh"]).current_dir(dir);
        if traced {
            command.arg(env!("CARGO_BIN_EXE_iotrace-bpf")).args(self.options).args(["-o", "run.iotrace", "--"]);
        }
        command.args(["sh", "-c", into, "sh"]).args(started).stdin(Stdio::null());
        for name in ["SUDO_UID", "SUDO_GID", "SUDO_USER"] {
            command.env_remove(name);
        }
        let text_out = File::create(dir.join("tracer")).unwrap();
        let mut child = command.stdout(text_out.try_clone().unwrap()).stderr(text_out).spawn().unwrap();
        let limit = Instant::now() + HANGS * u32::try_from(live::slower()).unwrap();
        let mut ended = None;
        while ended.is_none() && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(10));
            ended = child.try_wait().unwrap();
        }
        fs::write(group.0.join("cgroup.kill"), "1").unwrap();
        let _ = child.wait();
        let read = |name: &str| String::from_utf8_lossy(&fs::read(dir.join(name)).unwrap_or_default()).into_owned();
        let stderr = if self.stderr { read("err") } else { String::new() };
        Outcome { status: ended.map(|status| status.code().unwrap_or(-1)), stdout: read("out"), stderr }
    }

    /// How a run is not as it is to be.
    fn differs(&self, how: &str, outcome: &Outcome, alone: &Outcome, dir: &Path) -> Option<String> {
        if outcome == alone {
            return None;
        }
        let mut text = format!("{}, {how}: ", self.name);
        match outcome.status {
            None => text += "hangs",
            Some(status) => write!(text, "status {status}, and not {}", self.status).unwrap(),
        }
        for (what, other, expected) in
            [("output", &outcome.stdout, &alone.stdout), ("errors", &outcome.stderr, &alone.stderr)]
        {
            if other != expected {
                write!(text, "\n  {what}: {:?}\n  and not {:?}", start_of(other), start_of(expected)).unwrap();
            }
        }
        let text_out = fs::read_to_string(dir.join("tracer")).unwrap_or_default();
        write!(text, "\n  output: {:?}", start_of(&text_out)).unwrap();
        Some(text)
    }
}

fn start_of(text: &str) -> String {
    text.chars().take(400).collect()
}

/// Each of them runs as it does alone.
fn run_unharmed(table: &[Program]) {
    let work = live::scratch();
    let dir = |n: usize, how: &str| work.path().join(format!("{n}-{how}"));
    let mut failed = Vec::new();
    let alone: Vec<Outcome> =
        table.iter().enumerate().map(|(n, program)| program.run(&dir(n, "alone"), false)).collect();
    for (program, alone) in table.iter().zip(&alone) {
        assert_eq!(alone.status, Some(program.status), "{} by itself: {alone:?}", program.name);
    }
    {
        let [looped, truth] = ["looped", "truth"].map(|name| work.path().join(name));
        fs::create_dir(&looped).unwrap();
        let looper = Command::new(programs::build("looper")).arg(&looped).arg(&truth).arg("3600").spawn();
        let looper = Running(looper.unwrap());
        live::until("looper", || live::truth(&truth).ready);
        let mut traced = ways::Attached::to(work.path(), &[], looper.pid());
        for (n, program) in table.iter().enumerate() {
            let dir = dir(n, "beside");
            failed.extend(program.differs("beside a trace", &program.run(&dir, false), &alone[n], &dir));
        }
        assert!(traced.goes_on(), "the tracer beside them has ended");
        live::send(looper.pid(), nix::sys::signal::Signal::SIGKILL);
        assert!(traced.data().calls("fwrite").count() > 10);
    }
    for (n, program) in table.iter().enumerate() {
        let dir = dir(n, "under");
        failed.extend(program.differs("under a tracer", &program.run(&dir, true), &alone[n], &dir));
    }
    assert!(failed.is_empty(), "{} of {} runs differ:\n{}", failed.len(), 2 * table.len(), failed.join("\n"));
}

#[test]
fn languages_and_libraries() {
    run_unharmed(&LANGUAGES);
}

#[test]
fn tools() {
    run_unharmed(&TOOLS);
}

#[test]
fn other_users_and_namespaces() {
    run_unharmed(&USERS);
}
