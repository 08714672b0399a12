//! The colours of a theme, as tables: which are readable depends on the background, which the terminal does not name.

use ratatui::style::Color;
use serde::{Deserialize, Serialize};

use crate::tui::theme::Tone;
use crate::vocabulary::Layer;

/// A set of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Palette {
    /// None: bold, underlined and reversed text only.
    #[default]
    #[serde(rename = "none")]
    Mono,
    /// Of 256 colours, those readable on black.
    #[serde(rename = "dark")]
    Dark,
    /// Of 256 colours, those readable on white.
    #[serde(rename = "light")]
    Light,
    /// Of the 16 of every terminal, those readable on black and on white.
    #[serde(rename = "16")]
    Sixteen,
}

/// The colours of a tone; `None` is the terminal's own.
struct Row {
    dark: u8,
    light: u8,
    sixteen: Option<Color>,
}

const fn row(dark: u8, light: u8, sixteen: Color) -> Row {
    Row { dark, light, sixteen: Some(sixteen) }
}

const DIM: Row = row(245, 240, Color::DarkGray);
const HEAD: Row = row(80, 24, Color::LightBlue);
const GOOD: Row = row(78, 22, Color::LightBlue);
const WARN: Row = row(221, 94, Color::Magenta);
const BAD: Row = row(210, 124, Color::LightRed);
const WRITE: Row = row(213, 90, Color::LightMagenta);
const APP: Row = Row { dark: 252, light: 238, sixteen: None };
const LIBRARY: Row = row(153, 25, Color::LightBlue);
const HDF5: Row = row(111, 19, Color::LightBlue);
const MPIIO: Row = row(177, 54, Color::Magenta);
const MPI: Row = row(219, 127, Color::LightMagenta);
const STDIO: Row = row(114, 28, Color::DarkGray);
const SYSCALL: Row = Row { dark: 222, light: 130, sixteen: None };
const KERNEL: Row = row(116, 23, Color::DarkGray);
const BLOCK: Row = row(209, 88, Color::Red);

impl Palette {
    /// In the order in which one key goes through them.
    const ALL: [Self; 4] = [Self::Dark, Self::Light, Self::Sixteen, Self::Mono];

    /// The one that comes after it, and after the last the first.
    #[must_use]
    pub fn next(self) -> Self {
        Self::ALL.into_iter().skip_while(|p| *p != self).nth(1).unwrap_or(Self::Dark)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Mono => "no colours",
            Self::Dark => "colours for a dark background",
            Self::Light => "colours for a light background",
            Self::Sixteen => "16 colours, for any background",
        }
    }

    /// Of a tone; `None` is the terminal's own.
    pub fn colour(self, tone: Tone) -> Option<Color> {
        let row = row_of(tone)?;
        match self {
            Self::Mono => None,
            Self::Dark => Some(Color::Indexed(row.dark)),
            Self::Light => Some(Color::Indexed(row.light)),
            Self::Sixteen => row.sixteen,
        }
    }

    /// What fits a terminal: `COLORFGBG` has its background, where the terminal sets that; 256 colours are in its name.
    pub fn of(term: Option<&str>, colorterm: Option<&str>, background: Option<&str>) -> Self {
        let many = colorterm.is_some() || term.is_some_and(|t| t.contains("256color"));
        // The last part: the middle one is the font's in some terminals.
        let background = background.and_then(|text| text.rsplit(';').next()?.parse::<u8>().ok());
        match background.filter(|_| many) {
            Some(7 | 9..=15) => Self::Light,
            Some(0..=6 | 8) => Self::Dark,
            _ => Self::Sixteen,
        }
    }
}

fn row_of(tone: Tone) -> Option<&'static Row> {
    Some(match tone {
        Tone::Plain | Tone::Strong => return None,
        Tone::Dim => &DIM,
        Tone::Head => &HEAD,
        Tone::Good | Tone::Read => &GOOD,
        Tone::Warn => &WARN,
        Tone::Bad => &BAD,
        Tone::Write => &WRITE,
        Tone::Layer(layer) => match layer {
            Layer::App => &APP,
            Layer::Hdf5 => &HDF5,
            Layer::Mpiio => &MPIIO,
            Layer::Mpi => &MPI,
            Layer::Stdio => &STDIO,
            Layer::Syscall => &SYSCALL,
            Layer::Vfs | Layer::Fs => &KERNEL,
            Layer::Block => &BLOCK,
            // Libraries above those.
            _ => &LIBRARY,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::LAYERS;

    const BLACK: [u8; 3] = [0; 3];
    const WHITE: [u8; 3] = [255; 3];

    /// As WCAG 2 defines it.
    fn luminance(rgb: [u8; 3]) -> f64 {
        let linear = |c: u8| {
            let c = f64::from(c) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(rgb[0]) + 0.7152 * linear(rgb[1]) + 0.0722 * linear(rgb[2])
    }

    fn contrast(a: [u8; 3], b: [u8; 3]) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// What xterm shows, of whose palette numbers from 16 on are the same everywhere.
    fn rgb(colour: Color) -> [u8; 3] {
        match colour {
            Color::Red => [205, 0, 0],
            Color::Green => [0, 205, 0],
            Color::Yellow => [205, 205, 0],
            Color::Blue => [0, 0, 238],
            Color::Magenta => [205, 0, 205],
            Color::Cyan => [0, 205, 205],
            Color::DarkGray => [127, 127, 127],
            Color::LightRed => [255, 0, 0],
            Color::LightBlue => [92, 92, 255],
            Color::LightMagenta => [255, 0, 255],
            Color::Indexed(n @ 232..) => [8 + (n - 232) * 10; 3],
            Color::Indexed(n @ 16..) => {
                let level = |part: u8| [0, 95, 135, 175, 215, 255][usize::from(part)];
                [level((n - 16) / 36), level((n - 16) / 6 % 6), level((n - 16) % 6)]
            }
            other => panic!("{other:?} looks different in each terminal"),
        }
    }

    fn tones() -> impl Iterator<Item = Tone> {
        let plain = [Tone::Dim, Tone::Head, Tone::Good, Tone::Warn, Tone::Bad, Tone::Read, Tone::Write];
        plain.into_iter().chain(LAYERS.map(Tone::Layer))
    }

    fn least(palette: Palette, background: [u8; 3]) -> (f64, Tone) {
        let of = |tone| Some((contrast(rgb(palette.colour(tone)?), background), tone));
        tones().filter_map(of).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, Tone::Plain))
    }

    #[test]
    fn contrast_is_that_of_the_standard() {
        assert!((contrast(BLACK, WHITE) - 21.0).abs() < 1e-9);
        // Blue on black, as terminals have it: what no theme may use.
        assert!(contrast(rgb(Color::Blue), BLACK) < 2.5);
    }

    #[test]
    fn every_colour_is_readable_on_its_background() {
        // WCAG 2 wants 4.5 of text; of 16 colours none has that on black and on white, and 3 is for large text.
        for (palette, background, wanted) in [
            (Palette::Dark, BLACK, 4.5),
            (Palette::Light, WHITE, 4.5),
            (Palette::Sixteen, BLACK, 3.0),
            (Palette::Sixteen, WHITE, 3.0),
        ] {
            let (least, tone) = least(palette, background);
            assert!(least >= wanted, "{palette:?} on {background:?}: {tone:?} has {least:.2}");
        }
    }

    #[test]
    fn what_is_bad_looks_like_nothing_else_that_is_no_layer() {
        for palette in [Palette::Dark, Palette::Light, Palette::Sixteen] {
            for tone in [Tone::Dim, Tone::Head, Tone::Good, Tone::Warn, Tone::Write, Tone::Plain] {
                assert_ne!(palette.colour(tone), palette.colour(Tone::Bad), "{palette:?} {tone:?}");
            }
            assert_ne!(palette.colour(Tone::Read), palette.colour(Tone::Write));
        }
    }

    #[test]
    fn the_terminal_chooses_and_without_a_background_what_is_readable_on_both() {
        let many = Some("xterm-256color");
        assert_eq!(Palette::of(many, None, Some("15;0")), Palette::Dark);
        assert_eq!(Palette::of(many, None, Some("0;default;15")), Palette::Light);
        assert_eq!(Palette::of(Some("xterm"), Some("truecolor"), Some("0;7")), Palette::Light);
        assert_eq!(Palette::of(Some("xterm"), None, Some("0;15")), Palette::Sixteen);
        assert_eq!(Palette::of(many, None, Some("0;default")), Palette::Sixteen);
        assert_eq!(Palette::of(many, None, None), Palette::Sixteen);
    }

    #[test]
    fn one_key_goes_through_all_of_them() {
        let mut seen = vec![Palette::Dark];
        while seen.len() < Palette::ALL.len() {
            seen.push(seen[seen.len() - 1].next());
        }
        assert_eq!(seen, Palette::ALL);
        assert_eq!(Palette::Mono.next(), Palette::Dark);
    }
}
