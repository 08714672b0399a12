//! Runs a kernel in QEMU with the host's files, and passes on its console, line by line.

use anyhow::{Context, Result, anyhow, bail};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use super::kernels::Kernel;

const DISK_BYTES: u64 = 1 << 30;
const MEMORY: &str = "3072M";
/// Where distributions have the server of shared directories.
const VIRTIOFSD: &[&str] = &["/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd", "/usr/lib/virtiofsd"];

/// A machine that takes longer is stopped. The whole suite takes some 9 to 20 minutes in it.
const LIMIT: Duration = Duration::from_mins(40);

/// How a machine ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum End {
    /// It switched itself off.
    #[default]
    Off,
    /// The kernel panicked; its message.
    Panic(String),
    TimeOut,
}

/// Boots `kernel`, which runs `job/job.sh`; every line of the console goes to the file `console` and to `line`.
pub fn run(kernel: &Kernel, initramfs: &Path, job: &Path, console: &Path, mut line: impl FnMut(&str)) -> Result<End> {
    let state = job.join("run");
    fs::create_dir_all(&state).with_context(|| format!("cannot make {}", state.display()))?;
    let disks = [disk(&state, "ext4", &["-q", "-F"])?, disk(&state, "xfs", &["-q", "-f"])?];
    let (root, out) = (state.join("root.sock"), state.join("job.sock"));
    let _root = Server::start(&root, Path::new("/"), true)?;
    let _out = Server::start(&out, job, false)?;

    // Version 7.2, of Debian 12. With 10.0 (of its backports) programs of the guest die of segmentation faults after a minute
    // of tests, on both kernels: `mount`, `mountpoint`, the tracer. With four levels of page tables it is not faster.
    let mut command = Command::new("qemu-system-x86_64");
    // Several threads would run code that another one is just patching: guests die of a breakpoint that is gone already.
    // With erms and fsrm kernels clear and copy pages by instructions that are emulated byte by byte: together with what is
    // not cleared at all (init_on_alloc, huge pages) a fifth of a trace's time. Page tables of four levels rather than five
    // (la57) are some twentieth.
    let machine =
        ["-M", "q35", "-accel", "tcg,thread=single,tb-size=512", "-cpu", "max,-erms,-fsrm,-la57", "-smp", "2"];
    command.args(machine).args(["-m", MEMORY]);
    command.args([
        "-object",
        &format!("memory-backend-memfd,id=mem,size={MEMORY},share=on"),
        "-numa",
        "node,memdev=mem",
    ]);
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot"]);
    command.arg("-kernel").arg(&kernel.image).arg("-initrd").arg(initramfs);
    // QEMU translates code once for each address at which it runs: where each process has other ones (ASLR), all of a
    // program and of its libraries again and again. That took a third of a trace.
    let arguments = "console=ttyS0 quiet mitigations=off norandmaps random.trust_cpu=on tsc=reliable no_timer_check \
                 panic=-1 init_on_alloc=0 transparent_hugepage=madvise";
    command.args(["-append", &format!("{arguments} job={}", job.display())]);
    for (socket, tag) in [(&root, "root"), (&out, "job")] {
        command.args(["-chardev", &format!("socket,id={tag},path={}", socket.display())]);
        command.args(["-device", &format!("vhost-user-fs-pci,chardev={tag},tag={tag}")]);
    }
    for (n, disk) in disks.iter().enumerate() {
        command.args(["-drive", &format!("file={},if=none,id=d{n},format=raw,cache=unsafe", disk.display())]);
        command.args(["-device", &format!("virtio-blk-pci,drive=d{n}")]);
    }
    let machine = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut machine = Running(machine.spawn().context("cannot start qemu-system-x86_64")?);
    let stdout = machine.0.stdout.take().context("no console")?;
    let mut log = File::create(console).with_context(|| format!("cannot write {}", console.display()))?;

    let (send, lines) = mpsc::channel();
    thread::spawn(move || {
        for bytes in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            if send.send(bytes).is_err() {
                break;
            }
        }
    });
    let start = Instant::now();
    let mut end = End::Off;
    loop {
        match lines.recv_timeout(LIMIT.saturating_sub(start.elapsed())) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let text = text.trim_end_matches('\r');
                writeln!(log, "{text}").with_context(|| format!("cannot write {}", console.display()))?;
                if let Some(at) = text.find("Kernel panic") {
                    end = End::Panic(text[at..].to_owned());
                }
                line(text);
            }
            Err(RecvTimeoutError::Timeout) => return Ok(End::TimeOut),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = machine.0.wait().context("cannot wait for QEMU")?;
    if !status.success() {
        let mut why = String::new();
        if let Some(mut stderr) = machine.0.stderr.take() {
            let _ = std::io::Read::read_to_string(&mut stderr, &mut why);
        }
        bail!("QEMU failed: {status}\n{}", why.trim_end());
    }
    Ok(end)
}

/// A new disk with a file system; it takes no more room than what is written to it.
fn disk(dir: &Path, fs_type: &str, options: &[&str]) -> Result<PathBuf> {
    let path = dir.join(format!("{fs_type}.img"));
    let _ = fs::remove_file(&path);
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    file.set_len(DISK_BYTES).with_context(|| format!("cannot write {}", path.display()))?;
    let make = format!("mkfs.{fs_type}");
    let out = Command::new(&make).args(options).arg(&path).output().with_context(|| format!("cannot start {make}"))?;
    if !out.status.success() {
        bail!("{make} failed: {}", String::from_utf8_lossy(&out.stderr));
    }
    Ok(path)
}

/// A process that does not outlive this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Serves a directory of the host to the machine.
struct Server(#[expect(dead_code, reason = "ends with it")] Group);

impl Server {
    fn start(socket: &Path, source: &Path, read_only: bool) -> Result<Self> {
        let program = VIRTIOFSD.iter().find(|p| Path::new(p).is_file()).ok_or_else(|| {
            anyhow!("virtiofsd is not in {}: apt-get install qemu-system-common virtiofsd", VIRTIOFSD.join(", "))
        })?;
        let _ = fs::remove_file(socket);
        let seen = if read_only { socket.with_extension("root") } else { source.to_path_buf() };
        fs::create_dir_all(&seen).with_context(|| format!("cannot make {}", seen.display()))?;
        let options = ["-o", "sandbox=chroot", "-o", if read_only { "cache=always" } else { "cache=auto" }, "-f"];
        let mut command = if read_only {
            // A view of its own, gone with the process: of all that is mounted, the tree itself only to be read.
            let script = "mount --make-rprivate / && mount --rbind \"$1\" \"$2\" && mount -o remount,bind,ro \"$2\" && shift 2 && exec \"$@\"";
            let mut unshare = Command::new("unshare");
            unshare.args(["-m", "sh", "-c", script, "sh"]).arg(source).arg(&seen).arg(program);
            unshare
        } else {
            Command::new(program)
        };
        command.arg(format!("--socket-path={}", socket.display()));
        command.arg("-o").arg(format!("source={}", seen.display())).args(options);
        let log = socket.with_extension("log");
        let log = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).process_group(0);
        let mut server = Group(command.spawn().context("cannot start virtiofsd")?);
        let limit = Instant::now() + Duration::from_secs(20);
        while !socket.exists() {
            if server.0.try_wait().is_ok_and(|status| status.is_some()) || Instant::now() > limit {
                bail!("virtiofsd does not serve {}; see {}", source.display(), socket.with_extension("log").display());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(Self(server))
    }
}

/// A process that does not outlive this, nor do its children.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        // The server forks, and the standard library kills single processes only.
        let _ = Command::new("kill").args(["--", &format!("-{}", self.0.id())]).stderr(Stdio::null()).status();
        let _ = self.0.wait();
    }
}
