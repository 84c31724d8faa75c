//! Which fields of an item's body are its text. Backends name them, since Feedgate does not know its bodies.

use std::borrow::Cow;
use std::collections::HashMap;

use compact_str::CompactString;
use serde_json::value::RawValue;

use super::words::{Word, words};
use crate::Body;

/// How many fields may be named.
pub const FIELDS_MAX: usize = 16;

/// The most bytes of the name of a field.
pub const FIELD_MAX_BYTES: usize = 100;

/// How many words of one item are searched, over all of its fields. The words behind these are not found.
pub const WORDS_MAX: usize = 2000;

/// The version of the rules by which a text becomes words. With another version every index is built again.
const RULES: &str = "1";

/// The fields whose strings are the text of an item, by their names or paths such as `post.text`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFields(Vec<CompactString>);

impl TextFields {
    /// Takes names of fields. `Err` says what is wrong with them: there must be 1 to [`FIELDS_MAX`], each once, of 1 to
    /// [`FIELD_MAX_BYTES`] bytes on one line, and a dot stands between two names.
    pub fn new(fields: Vec<CompactString>) -> Result<Self, String> {
        if fields.is_empty() || fields.len() > FIELDS_MAX {
            return Err(format!("must name 1 to {FIELDS_MAX} fields, there are {}", fields.len()));
        }
        for (nth, field) in fields.iter().enumerate() {
            if field.is_empty() || field.len() > FIELD_MAX_BYTES || field.chars().any(char::is_control) {
                return Err(format!("must name fields of 1 to {FIELD_MAX_BYTES} bytes on one line, not {field:?}"));
            }
            if field.split('.').any(str::is_empty) {
                return Err(format!("must name fields such as \"text\" or \"post.text\", not {field:?}"));
            }
            if fields[..nth].contains(field) {
                return Err(format!("must name each field once, {field:?} stands twice"));
            }
        }
        Ok(Self(fields))
    }

    /// These fields and the version of the rules of words as one text, which says what an index was made of.
    pub fn recipe(&self) -> String {
        format!("{RULES}\n{}", self.0.join("\n"))
    }

    /// The fields of a recipe; `None` if it is one of other rules.
    pub fn of_recipe(recipe: &str) -> Option<Self> {
        let fields = recipe.strip_prefix(RULES)?.strip_prefix('\n')?;
        Self::new(fields.split('\n').map(CompactString::from).collect()).ok()
    }

    /// The words of an item with this body, at most [`WORDS_MAX`]. A field that is not there, or is no string, has
    /// none.
    pub fn words_of(&self, body: &Body) -> Vec<Word> {
        let mut all: Vec<Word> = vec![];
        for field in &self.0 {
            if let Some(text) = string_at(body.get(), field) {
                all.extend(words(&text, WORDS_MAX - all.len()));
            }
        }
        all
    }
}

/// The string at a path of a JSON value. Only the objects on the path are parsed, so no nesting is too deep.
fn string_at(json: &str, path: &str) -> Option<String> {
    let (name, rest) = match path.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (path, None),
    };
    let fields: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(json).ok()?;
    let value = fields.get(name)?.get();
    match rest {
        Some(rest) => string_at(value, rest),
        None => serde_json::from_str(value).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(names: &[&str]) -> TextFields {
        TextFields::new(names.iter().map(|name| (*name).into()).collect()).unwrap()
    }

    fn text(of: &TextFields, json: &str) -> String {
        let words = of.words_of(&Body::parse(json.to_owned()).unwrap());
        words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn s14_the_text_of_an_item_is_the_strings_that_are_named() {
        let of = fields(&["title", "post.text"]);
        assert_eq!(text(&of, r#"{"post": {"text": "b\u00e4r", "x": "no"}, "title": "A", "text": "no"}"#), "a bär");
        assert_eq!(text(&of, r#"{"post": "no", "title": ["no"]}"#), "");
        for none in ["\"title\"", "[]", "7", "null", r#"{"title": null, "post": {"text": 7}}"#] {
            assert_eq!(text(&of, none), "", "{none}");
        }
        let deep = format!(r#"{{"title": "deep", "x": {}1{}}}"#, "[".repeat(127), "]".repeat(127));
        assert_eq!(text(&of, &deep), "deep");
    }

    #[test]
    fn s14_two_fields_are_never_one_phrase() {
        let body = Body::parse(r#"{"a": "小", "b": "明"}"#.to_owned()).unwrap();
        assert!(fields(&["a", "b"]).words_of(&body).iter().all(|word| !word.joined));
    }

    #[test]
    fn an_item_has_so_many_words_and_no_more() {
        let json = format!(r#"{{"a": "{}", "b": "last"}}"#, "x ".repeat(WORDS_MAX - 1));
        assert!(text(&fields(&["a", "b"]), &json).ends_with("x last"));
        let json = json.replace("x \"", "x x\"");
        assert!(text(&fields(&["a", "b"]), &json).ends_with("x x"));
    }

    #[test]
    fn a_recipe_leads_back_to_its_fields() {
        let of = fields(&["title", "post.text"]);
        assert_eq!(TextFields::of_recipe(&of.recipe()), Some(of));
        assert_eq!(TextFields::of_recipe("0\ntext"), None);
    }

    #[test]
    fn wrong_fields_are_refused_and_named() {
        let refused = |names: &[&str]| TextFields::new(names.iter().map(|name| (*name).into()).collect()).unwrap_err();
        assert!(refused(&[]).contains("1 to 16 fields, there are 0"));
        assert!(refused(&["x"; 17]).contains("there are 17"));
        assert!(refused(&["a", "a"]).contains("\"a\" stands twice"));
        for bad in ["", "a\nb", &"x".repeat(101)] {
            assert!(refused(&[bad]).contains("on one line"), "{bad:?}");
        }
        for bad in [".", "a.", ".a", "a..b"] {
            assert!(refused(&[bad]).contains("such as \"text\""), "{bad:?}");
        }
    }
}
