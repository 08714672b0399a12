//! Copying through the terminal: an escape sequence (OSC 52) that most terminals take, also over ssh.

/// The sequence that puts a text into the clipboard of the terminal.
pub fn sequence(text: &str) -> String {
    format!("\x1b]52;c;{}\x07", base64(text.as_bytes()))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let byte = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let six = bits >> (18 - 6 * digit) & 63;
            out.push(if digit <= three.len() { char::from(DIGITS[six as usize]) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_in_base64_between_the_ends_of_the_sequence() {
        let all = ["", "f", "fo", "foo", "foob", "fooba", "foobar", "\u{ff}\u{fe}"].map(|t| base64(t.as_bytes()));
        assert_eq!(all, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy", "w7/Dvg=="]);
        assert_eq!(sequence("foo"), "\x1b]52;c;Zm9v\x07");
    }
}
