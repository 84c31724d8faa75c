//! Puts JSON on one line, since each line of a text frame, or of NDJSON, is one message.
//!
//! A body is kept as its backend wrote it, so there may be line breaks between its tokens. A client would read each
//! part as a line of its own, and a hostile body could make such a line look like an item of another author.

/// Replaces the line breaks in `json` by spaces. That does not change the meaning: JSON escapes the line breaks in a
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
