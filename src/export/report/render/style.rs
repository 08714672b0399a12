//! Lines of text whose pieces have a meaning: colours follow from it.

use crate::base::text::{columns, cut_end};
use crate::vocabulary::Layer;

/// What a piece of text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    #[default]
    Plain,
    /// Titles.
    Strong,
    /// Of little weight.
    Dim,
    Good,
    Warn,
    /// Failed, lost, critical.
    Bad,
    Layer(Layer),
    /// What system calls wait for: nothing, a turn, the device.
    Cpu,
    Queue,
    Device,
}

impl Tone {
    /// The parameters of the terminal's sequence (SGR, ECMA-48), from its 16 colours.
    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "1",
            Self::Dim => "2",
            Self::Good | Self::Cpu => "32",
            Self::Warn => "1;33",
            Self::Bad => "1;31",
            Self::Queue => "33",
            Self::Device => "31",
            Self::Layer(Layer::App | Layer::Stdio) => "34",
            Self::Layer(Layer::Mpiio) => "95",
            Self::Layer(Layer::Mpi) => "94",
            Self::Layer(layer) if layer.is_library() => "35",
            Self::Layer(_) => "36",
        }
    }
}

/// A line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line(Vec<(Tone, String)>);

impl Line {
    pub fn plain(text: impl Into<String>) -> Self {
        Self::of(Tone::Plain, text)
    }

    pub fn of(tone: Tone, text: impl Into<String>) -> Self {
        Self::default().then(tone, text)
    }

    #[must_use]
    pub fn then(mut self, tone: Tone, text: impl Into<String>) -> Self {
        self.0.push((tone, text.into()));
        self
    }

    /// In at most `width` columns, the end cut; with colours or without.
    pub fn print(&self, width: usize, colours: bool) -> String {
        let all: usize = self.0.iter().map(|(_, text)| columns(text)).sum();
        let mut left = width;
        let mut out = String::new();
        for (tone, text) in &self.0 {
            let text = if all > width { cut_end(text, left) } else { text.clone() };
            left = left.saturating_sub(columns(&text));
            match tone.code() {
                code if colours && !code.is_empty() && !text.is_empty() => {
                    out += &format!("\x1b[{code}m{text}\x1b[0m");
                }
                _ => out += &text,
            }
        }
        out.truncate(out.trim_end_matches(' ').len());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_before_it_is_coloured() {
        let line = Line::of(Tone::Bad, "failed").then(Tone::Plain, " 12 x in /scratch");
        assert_eq!(line.print(100, false), "failed 12 x in /scratch");
        assert_eq!(line.print(10, false), "failed 12…");
        assert_eq!(line.print(10, true), "\x1b[1;31mfailed\x1b[0m 12…");
        assert_eq!(line.print(4, true), "\x1b[1;31mfai…\x1b[0m");
    }
}
