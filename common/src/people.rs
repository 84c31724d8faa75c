//! What a backend says of a user: the name and the avatar that apps show beside the user's items, and more.
//!
//! ```text
//!   Person ┬ card    name, avatar: joined to each page that shows an item of the user
//!          └ attrs   a JSON object for the app: in the answer about the user alone
//! ```
//!
//! Invariant: no part of a [`Person`] ever enters a log. A page is joined with what is stored when the page is read, so
//! a change shows on the next page and costs no change of any feed (S7).

use compact_str::CompactString;
use serde::Serialize;

use crate::Body;

/// How many Unicode scalar values a name may have. With four bytes for each, it takes at most 400 bytes.
pub const NAME_MAX: usize = 100;

/// How many bytes an avatar may have: as many as browsers and networks of caches take in a URL.
pub const AVATAR_MAX_BYTES: usize = 2048;

/// How many bytes of JSON the attributes of a user may have.
pub const ATTRS_MAX_BYTES: usize = 4 * 1024;

/// What apps show beside the items of a user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Card {
    /// The name to show, as [`check_name`] allows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<CompactString>,
    /// Where the picture is, as [`check_avatar`] allows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avatar: Option<CompactString>,
}

impl Card {
    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.name.is_none() && self.avatar.is_none()
    }
}

/// All that is stored of a user besides the name by which backends know the user.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Person {
    /// What apps show beside the user's items.
    #[serde(flatten)]
    pub card: Card,
    /// The app's own attributes, kept byte for byte, as [`attrs`] allows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attrs: Option<Body>,
}

/// Whether this may be the name of a user: one line of 1 to [`NAME_MAX`] characters that shows something. `Err` says
/// what is wrong with it.
pub fn check_name(name: &str) -> Result<(), String> {
    let characters = name.chars().count();
    if characters == 0 || characters > NAME_MAX {
        return Err(format!("must have 1 to {NAME_MAX} characters, this one has {characters}"));
    }
    if let Some(c) = name.chars().find(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        return Err(format!("must be one line without control characters, this one holds {c:?}"));
    }
    if name.trim().is_empty() {
        return Err("must hold more than spaces".to_owned());
    }
    Ok(())
}

/// Whether this may be an avatar: a URL that begins with `https://` or `http://`, or a path that begins with one `/`,
/// in the characters that RFC 3986 allows, of at most [`AVATAR_MAX_BYTES`]. `Err` says what is wrong with it.
///
/// Apps load a picture from the avatar. A URL of another scheme could carry a script (`javascript:`) or a whole picture
/// (`data:`), and a path that begins with `//` would name a host.
pub fn check_avatar(avatar: &str) -> Result<(), String> {
    if avatar.len() > AVATAR_MAX_BYTES {
        return Err(format!("must have at most {AVATAR_MAX_BYTES} bytes, this one has {}", avatar.len()));
    }
    let host = avatar.strip_prefix("https://").or_else(|| avatar.strip_prefix("http://"));
    let begins_well = match host {
        Some(host) => host.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '['),
        None => avatar.starts_with('/') && !avatar.starts_with("//"),
    };
    if !begins_well {
        return Err("must be a URL that begins with https:// or http:// and a host, or a path that begins with one /"
            .to_owned());
    }
    match avatar.chars().find(|&c| !is_of_url(c)) {
        Some(c) => Err(format!("must hold only characters of a URL, this one holds {c:?}; escape it with %")),
        None => Ok(()),
    }
}

/// Whether RFC 3986 allows this character in a URL.
fn is_of_url(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(c)
}

/// Takes JSON text as the attributes of a user: an object of at most [`ATTRS_MAX_BYTES`] that every parser reads, as
/// [`Body::parse`] says. `Err` says what is wrong with it.
pub fn attrs(json: String) -> Result<Body, String> {
    if json.len() > ATTRS_MAX_BYTES {
        return Err(format!("must have at most {ATTRS_MAX_BYTES} bytes of JSON, this one has {}", json.len()));
    }
    if !json.starts_with('{') {
        return Err("must be a JSON object".to_owned());
    }
    Body::parse(json).map_err(|why| format!("must be as the body of an item: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s7_a_name_is_one_line_that_shows_something() {
        for fine in ["Ann", "王小明", "O’Brien \"x\" <b>", "👩‍👩‍👧", "عمر", " a ", &"😀".repeat(NAME_MAX)]
        {
            assert_eq!(check_name(fine), Ok(()), "{fine:?}");
        }
        let long = "ä".repeat(NAME_MAX + 1);
        let cases = [
            ("", "1 to 100 characters, this one has 0"),
            (&long, "this one has 101"),
            ("a\nb", "'\\n'"),
            ("a\u{7f}", "control"),
            ("a\u{85}b", "control"),
            ("a\u{2028}b", "one line"),
            ("a\u{2029}b", "one line"),
            (" \u{3000}\u{a0}", "more than spaces"),
        ];
        for (name, why) in cases {
            assert!(check_name(name).expect_err(name).contains(why), "{name:?}");
        }
    }

    #[test]
    fn s7_an_avatar_is_loaded_from_the_web_or_from_a_path() {
        let long = format!("https://a/{}", "x".repeat(AVATAR_MAX_BYTES - 10));
        for fine in ["https://cdn.example/a.png?s=1#x", "http://[::1]:8080/a", "/a/%C3%A4.png", "/", &long] {
            assert_eq!(check_avatar(fine), Ok(()), "{fine}");
        }
        let too_long = format!("{long}x");
        let bad = [
            "",
            "a.png",
            "//evil.example/a",
            "javascript:alert(1)",
            "data:image/png;base64,AA==",
            "https://",
            "https:///a",
        ];
        for avatar in bad {
            assert!(check_avatar(avatar).expect_err(avatar).contains("begins with https://"), "{avatar}");
        }
        for avatar in ["/\\evil.example", "https://a/b c", "https://a/\"><script>", "https://a/ä", "/a\n", "/a\0"] {
            assert!(check_avatar(avatar).expect_err(avatar).contains("characters of a URL"), "{avatar}");
        }
        assert!(check_avatar(&too_long).expect_err("long").contains("at most 2048 bytes, this one has 2049"));
    }

    #[test]
    fn s7_attributes_are_a_small_object_that_every_parser_reads() {
        let of_size = |size: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(size - 8));
        for fine in ["{}".to_owned(), "{\"a\" : [1.0,\n null]}".to_owned(), of_size(ATTRS_MAX_BYTES)] {
            assert_eq!(attrs(fine.clone()).map(|attrs| attrs.get().to_owned()), Ok(fine));
        }
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(Body::MAX_DEPTH), "]".repeat(Body::MAX_DEPTH));
        let cases = [
            ("[1]".to_owned(), "a JSON object"),
            ("null".to_owned(), "a JSON object"),
            (of_size(ATTRS_MAX_BYTES + 1), "at most 4096 bytes of JSON, this one has 4097"),
            (deep, "nests at most 128"),
            ("{\"a\":1e400}".to_owned(), "double"),
            ("{\"a\":\"\\ud800\"}".to_owned(), "surrogate"),
        ];
        for (json, why) in cases {
            assert!(attrs(json.clone()).expect_err(&json).contains(why), "{json}");
        }
    }

    #[test]
    fn s7_what_is_not_known_of_a_person_is_not_written() {
        assert_eq!(serde_json::to_string(&Person::default()).unwrap(), "{}");
        let card = Card { name: Some("Ann".into()), avatar: None };
        let person = Person { card, attrs: Some(attrs("{\"a\" :1}".to_owned()).unwrap()) };
        assert_eq!(serde_json::to_string(&person).unwrap(), "{\"name\":\"Ann\",\"attrs\":{\"a\" :1}}");
        assert!(Card::default().is_empty() && !person.card.is_empty());
    }
}
