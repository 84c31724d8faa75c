//! Puts JSON on one line: each line of a text frame, or of NDJSON, is one message.
//!
//! A body is kept as its backend wrote it, so there may be line breaks between its tokens. Each part would be read as a
//! line of its own, and a body could be written so that one of these lines passes for an item of another author.

/// Replaces the line breaks in `json` by blanks, which does not change its meaning: JSON escapes line breaks in a
/// string.
pub(crate) fn one_line(json: &mut [u8]) {
    json.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_the_lines_said() {
        let mut json = "{\r\n\t\"a\\n\u{2028}\":\n 1.0}\r".to_owned().into_bytes();
        one_line(&mut json);
        assert_eq!(String::from_utf8(json).unwrap(), "{  \t\"a\\n\u{2028}\":  1.0} ");
    }
}
