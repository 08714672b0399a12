//! Styles and characters: what a tone looks like, Unicode or ASCII.

mod palette;

use ratatui::style::{Modifier, Style};

pub use crate::tui::theme::palette::Palette;
use crate::vocabulary::Layer;

/// What a piece of text means; colours follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    #[default]
    Plain,
    /// Of little weight.
    Dim,
    Strong,
    /// Heads of tables.
    Head,
    Good,
    Warn,
    /// Lost, failed, stuck.
    Bad,
    Read,
    Write,
    Layer(Layer),
}

/// The look of the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Theme {
    pub palette: Palette,
    pub ascii: bool,
}

impl Theme {
    /// As the user's environment wants it.
    pub fn of_environment() -> Self {
        Self::of(|name| std::env::var(name).ok())
    }

    /// As these variables want it; an empty one is as one that is not set.
    fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|v| !v.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
        Self {
            palette: if set("NO_COLOR").is_some() || set("TERM").is_some_and(|t| t == "dumb") {
                Palette::Mono
            } else {
                Palette::of(set("TERM").as_deref(), set("COLORTERM").as_deref(), set("COLORFGBG").as_deref())
            },
            ascii: !is_utf8(locale.as_deref()),
        }
    }

    pub fn style(self, tone: Tone) -> Style {
        let plain = Style::default();
        let bold = plain.add_modifier(Modifier::BOLD);
        if self.palette == Palette::Mono {
            return match tone {
                Tone::Strong | Tone::Head | Tone::Warn => bold,
                Tone::Bad => bold.add_modifier(Modifier::REVERSED),
                Tone::Dim => plain.add_modifier(Modifier::DIM),
                _ => plain,
            };
        }
        let style = if matches!(tone, Tone::Strong | Tone::Head | Tone::Warn | Tone::Bad) { bold } else { plain };
        self.palette.colour(tone).map_or(style, |colour| style.fg(colour))
    }

    /// A selected row.
    pub fn selected(focused: bool) -> Style {
        let style = Style::default();
        if focused { style.add_modifier(Modifier::REVERSED) } else { style.add_modifier(Modifier::UNDERLINED) }
    }

    /// Levels of a sparkline, from nothing up.
    pub fn levels(self) -> [&'static str; 9] {
        if self.ascii {
            [" ", ".", ".", ":", "-", "=", "+", "*", "#"]
        } else {
            [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]
        }
    }

    /// Parts of a cell, from the left.
    pub fn parts(self) -> [&'static str; 9] {
        if self.ascii {
            [" ", "-", "-", "-", "=", "=", "=", "#", "#"]
        } else {
            [" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"]
        }
    }

    /// Shades, from nothing up.
    pub fn shades(self) -> [&'static str; 5] {
        if self.ascii { [" ", ".", ":", "*", "#"] } else { [" ", "░", "▒", "▓", "█"] }
    }

    /// A separator.
    pub fn rule(self) -> &'static str {
        if self.ascii { "-" } else { "─" }
    }
}

/// Whether such a locale shows UTF-8. Without one, so that is what is set is not known, terminals of today do.
fn is_utf8(locale: Option<&str>) -> bool {
    locale.is_none_or(|l| {
        let l = l.to_ascii_lowercase();
        l.contains("utf-8") || l.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_chooses_the_characters() {
        assert!(is_utf8(Some("C.UTF-8")) && is_utf8(Some("de_DE.utf8")) && is_utf8(None));
        assert!(!is_utf8(Some("C")) && !is_utf8(Some("de_DE.ISO-8859-1")));
    }

    #[test]
    fn the_environment_chooses_the_colours() {
        let of = |set: &[(&str, &str)]| {
            Theme::of(|name| set.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(of(&[("TERM", "xterm")]), Theme { palette: Palette::Sixteen, ascii: false });
        assert_eq!(of(&[("TERM", "xterm"), ("NO_COLOR", "1")]).palette, Palette::Mono);
        assert_eq!(of(&[("TERM", "xterm-256color"), ("COLORFGBG", "0;15")]).palette, Palette::Light);
        assert_ne!(of(&[("NO_COLOR", "")]).palette, Palette::Mono, "as no-color.org has it");
        assert_eq!(of(&[("TERM", "dumb")]).palette, Palette::Mono);
        // The first that is set counts.
        assert!(of(&[("LC_ALL", "C"), ("LANG", "C.UTF-8")]).ascii);
        assert!(!of(&[("LC_ALL", ""), ("LC_CTYPE", "C.UTF-8"), ("LANG", "C")]).ascii);
    }

    #[test]
    fn without_colours_there_are_none() {
        let theme = Theme { palette: Palette::Mono, ascii: false };
        for tone in [Tone::Bad, Tone::Warn, Tone::Read, Tone::Layer(Layer::Block)] {
            let style = theme.style(tone);
            assert!(style.fg.is_none() && style.bg.is_none(), "{tone:?}");
        }
    }
}
