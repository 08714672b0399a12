//! Copying through the terminal: an escape sequence (OSC 52) that most terminals take, also over ssh.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// The sequence that puts a text into the clipboard of the terminal.
pub fn sequence(text: &str) -> String {
    format!("\x1b]52;c;{}\x07", BASE64_STANDARD.encode(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_in_base64_between_the_ends_of_the_sequence() {
        assert_eq!(sequence("foo"), "\x1b]52;c;Zm9v\x07");
        assert_eq!(sequence("\u{ff}\u{fe}"), "\x1b]52;c;w7/Dvg==\x07");
    }
}
