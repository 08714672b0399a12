//! What a command that runs under the dashboard writes to its terminal.

use std::sync::Arc;

/// The last lines of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandOutput {
    /// The newest last.
    pub lines: Vec<OutputLine>,
    /// Lines before these that are not kept.
    pub before: u64,
    /// How the command ended, once it has.
    pub ended: Option<String>,
}

/// One line without its escape sequences. Its text is from a stranger, as all names are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputLine {
    /// Counted from the first line of the command.
    pub number: i64,
    pub text: Arc<str>,
}
