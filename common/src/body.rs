//! The body of an item: any JSON value that the parser of every device can read.
//!
//! An item reaches the device of every follower. A device whose parser fails on it fails again at the same place for
//! ever. So even well-formed JSON is refused if common parsers give up on it.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

/// A JSON value, kept byte for byte as it came, of at most [`Body::MAX_BYTES`].
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Body(Arc<RawValue>);

impl Body {
    /// How many bytes of JSON a body may have.
    pub const MAX_BYTES: usize = 64 * 1024;

    /// How many arrays and objects may be nested in each other.
    pub const MAX_DEPTH: usize = 128;

    /// Takes JSON text from a backend. `Err` says what is wrong with it: more than [`Self::MAX_BYTES`] bytes, no JSON,
    /// more than [`Self::MAX_DEPTH`] levels, half of a surrogate pair, or a number beyond the range of a double.
    pub fn parse(json: String) -> Result<Self, String> {
        if json.len() > Self::MAX_BYTES {
            return Err(format!("a body holds at most {} bytes of JSON, this one has {}", Self::MAX_BYTES, json.len()));
        }
        let body = Self::stored(json)?;
        check(body.get()).map(|()| body)
    }

    /// Takes JSON text that a store has kept. [`Self::parse`] checked it when it was accepted, so here it must only be
    /// JSON.
    pub fn stored(json: String) -> Result<Self, String> {
        RawValue::from_string(json).map(|raw| Self(raw.into())).map_err(|e| format!("a body must be JSON: {e}"))
    }

    /// The JSON text of this body.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

/// Looks for JSON that breaks parsers. `json` is well-formed.
fn check(json: &str) -> Result<(), String> {
    let (mut at, mut depth) = (0, 0);
    while let Some(byte) = json.as_bytes().get(at) {
        match byte {
            b'"' => at = end_of_string(json.as_bytes(), at)?,
            b'-' | b'0'..=b'9' => at = end_of_number(json, at)?,
            b'[' | b'{' if depth == Body::MAX_DEPTH => {
                return Err(format!("a body nests at most {} arrays and objects, this one more", Body::MAX_DEPTH));
            }
            b'[' | b'{' => (at, depth) = (at + 1, depth + 1),
            b']' | b'}' => (at, depth) = (at + 1, depth - 1),
            _ => at += 1,
        }
    }
    Ok(())
}

/// The offset where the string that begins at `at` ends; an error if it has half of a surrogate pair.
fn end_of_string(json: &[u8], at: usize) -> Result<usize, String> {
    let mut at = at + 1;
    while let Some(byte) = json.get(at) {
        at += match (byte, escaped_unit(json, at)) {
            (b'"', _) => return Ok(at + 1),
            (_, Some(0xD800..=0xDBFF)) if matches!(escaped_unit(json, at + 6), Some(0xDC00..=0xDFFF)) => 12,
            (_, Some(unit @ 0xD800..=0xDFFF)) => {
                return Err(format!(
                    "a string of the body holds \\u{unit:04x}, which is half of a surrogate pair; escape both halves"
                ));
            }
            (_, Some(_)) => 6,
            (b'\\', None) => 2,
            _ => 1,
        };
    }
    Ok(at)
}

/// The UTF-16 code unit that is escaped as `\uXXXX` at `at`; `None` if there is no such escape.
fn escaped_unit(json: &[u8], at: usize) -> Option<u16> {
    let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The offset where the number that begins at `at` ends; an error if a double cannot hold it.
fn end_of_number(json: &str, at: usize) -> Result<usize, String> {
    let is_part = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    let len = json[at..].find(|c| !is_part(c)).unwrap_or(json.len() - at);
    let text = &json[at..at + len];
    if text.parse().is_ok_and(f64::is_finite) {
        return Ok(at + len);
    }
    let shown: String = text.chars().take(32).collect();
    Err(format!("the body holds the number {shown}, which is beyond the range of a double (±1.7976931348623157e308)"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refusal(json: &str) -> String {
        Body::parse(json.to_owned()).expect_err(json)
    }

    fn nested(depth: usize, (open, close): (&str, &str)) -> String {
        format!("{}1{}", open.repeat(depth), close.repeat(depth))
    }

    #[test]
    fn json_that_breaks_parsers_is_refused_and_named() {
        for kind in [("[", "]"), ("{\"a\":", "}")] {
            assert!(Body::parse(nested(Body::MAX_DEPTH, kind)).is_ok());
            assert!(refusal(&nested(Body::MAX_DEPTH + 1, kind)).contains("nests at most 128"));
            assert!(Body::parse(format!("[{}]", vec![nested(3, kind); 1000].join(","))).is_ok(), "wide is not deep");
        }
        for half in [r#""\ud800""#, r#""\uDC00""#, r#"{"\udfff":1}"#, r#"["a\\\ud83d\\ude00"]"#, r#""\ud83d\ud83d""#] {
            assert!(refusal(half).contains("surrogate"), "{half}");
        }
        for number in ["1e400", "-1e309", "[1, 1E+999]", &"9".repeat(310)] {
            assert!(refusal(number).contains("double"), "{number}");
        }
    }

    #[test]
    fn what_every_parser_reads_is_kept_to_the_byte() {
        let fine = [
            r#""\ud83d\ude00 \\ud800 \" [[[""#,
            "[1e308, -1E-400, 0.1e+2, 18446744073709551616]",
            "{\n\t\"a\" : 1.0,\r\n \"a\": \"\\u0000\u{2028}\" }",
        ];
        for json in fine {
            assert_eq!(Body::parse(json.to_owned()).map(|body| body.get().to_owned()), Ok(json.to_owned()));
        }
    }

    proptest! {
        /// serde_json reads a value into doubles and strings, as devices do, and goes some levels less deep.
        #[test]
        fn a_body_is_taken_exactly_if_a_parser_reads_it(
            text in proptest::sample::select(vec!["\"", "[", "{\"k\":"]),
            parts in proptest::collection::vec(proptest::sample::select(vec![
                r"\ud83d", r"\ude00", r"\ud800", r"\u0041", r"\\", r#"\""#, "u", "ud800", "1", "9e9", "9", "-", "[",
            ]), 0..8),
        ) {
            let close = match text { "\"" => "\"", "[" => "]", _ => "}" };
            let json = format!("{text}{}{close}", parts.concat());
            if Body::stored(json.clone()).is_ok() {
                prop_assert_eq!(Body::parse(json.clone()).is_ok(), serde_json::from_str::<serde_json::Value>(&json).is_ok());
            }
        }
    }
}
