//! `iotrace-bpf completions` and `man`: what packages install besides the program, from the definition of its options.

use crate::cli::Cli;
use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use clap_complete::Shell;
use std::fs;
use std::io::Write;
use std::path::Path;

/// Prints the completions for a shell.
pub fn completions(shell: Shell, out: &mut dyn Write) -> Result<()> {
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    // Into memory first: the generator panics where it cannot write.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut text);
    // clap_complete 4.6.11 writes the dash in our name in two ways into bash's, which then completes no command's options.
    let text = String::from_utf8(text)?.replace("iotrace__subcmd__bpf", "iotrace__bpf");
    out.write_all(text.as_bytes())?;
    Ok(())
}

/// Writes the manual into a directory: a page for the program, and one for each command.
pub fn pages(dir: &Path) -> Result<()> {
    let page = dir.join("iotrace-bpf.1");
    let write = || {
        fs::create_dir_all(dir)?;
        clap_mangen::generate_to(Cli::command(), dir)?;
        fs::write(&page, unfilled(&fs::read_to_string(&page)?))
    };
    write().with_context(|| format!("cannot write the manual into {}", dir.display()))
}

/// The page of the program, with the lines at the end of `--help` as they are there, not filled.
fn unfilled(page: &str) -> String {
    let page = page.replace(".SH EXTRA\n", ".SH EXAMPLES AND EXIT STATUS\n.nf\n");
    page.replace(".SH VERSION\n", ".fi\n.SH VERSION\n")
}
