//! A real terminal for tests: a pane of tmux on a server of its own, that is typed into and read.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long anything may take to appear, also where the processor is emulated and others use it.
const LIMIT: Duration = Duration::from_mins(1);

/// So many were made by this process.
static PANES: AtomicU32 = AtomicU32::new(0);

/// A terminal; its server ends with it.
pub struct Pane {
    socket: PathBuf,
}

impl Pane {
    /// Runs a shell line in a terminal of that size.
    pub fn new(work: &Path, size: (u16, u16), line: &str) -> Self {
        // The server of the pane before may not have gone yet.
        let number = PANES.fetch_add(1, Ordering::Relaxed);
        let pane = Self { socket: work.join(format!("tmux.{number}")) };
        let (columns, lines) = (size.0.to_string(), size.1.to_string());
        // No user's own layout is shown or changed, also not that of the user who called sudo.
        let config = format!("XDG_CONFIG_HOME={}/config", work.display());
        // -u: whatever the locale of the test is, the terminal shows UTF-8.
        let new = ["-u", "new-session", "-d", "-x", &columns, "-y", &lines];
        let environment = ["-e", "LC_ALL=C.UTF-8", "-e", "SUDO_UID=", "-e", &config];
        let done = pane.tmux([&new[..], &environment, &[line]].concat());
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        pane
    }

    fn tmux<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Output {
        Command::new("tmux").arg("-S").arg(&self.socket).args(["-f", "/dev/null"]).args(args).output().unwrap()
    }

    /// What the terminal shows.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.tmux(["capture-pane", "-p"]).stdout).into_owned()
    }

    /// The same with the escape sequences of its colours; those back to the usual ones left out.
    pub fn coloured(&self) -> String {
        let text = String::from_utf8_lossy(&self.tmux(["capture-pane", "-p", "-e"]).stdout).into_owned();
        text.replace("\x1b[39m", "").replace("\x1b[49m", "")
    }

    /// Types keys, by the names that tmux has for them.
    pub fn keys(&self, keys: &[&str]) {
        assert!(self.tmux([&["send-keys"][..], keys].concat()).status.success());
    }

    /// Waits until the terminal shows all of these texts.
    pub fn shows(&self, wanted: &[&str]) -> String {
        let begun = Instant::now();
        loop {
            let text = self.text();
            if wanted.iter().all(|w| text.contains(w)) {
                return text;
            }
            assert!(begun.elapsed() < LIMIT, "the terminal does not show {wanted:?}, but:\n{text}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until the terminal does not show this text any more.
    pub fn shows_no(&self, unwanted: &str) {
        let begun = Instant::now();
        while self.text().contains(unwanted) {
            assert!(begun.elapsed() < LIMIT, "the terminal still shows {unwanted:?}:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until all of these texts are shown after keys.
    pub fn after(&self, keys: &[&str], wanted: &[&str]) -> String {
        self.keys(keys);
        self.shows(wanted)
    }

    /// A value of the pane, such as `pane_title`, `pane_pid`, `alternate_on`, `mouse_any_flag`.
    pub fn value(&self, name: &str) -> String {
        let value = self.tmux(["display-message", "-p", &format!("#{{{name}}}")]).stdout;
        String::from_utf8_lossy(&value).trim().to_owned()
    }

    /// Makes the terminal another size.
    pub fn resize(&self, columns: u16, lines: u16) {
        let (x, y) = (columns.to_string(), lines.to_string());
        assert!(self.tmux(["resize-window", "-x", &x, "-y", &y]).status.success());
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        self.tmux(["kill-server"]);
    }
}
