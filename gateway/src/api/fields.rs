//! Reads the fields of a JSON object one by one, so that each error can say which value is wrong, what it was and what
//! it should be, with a JSON pointer to it.
//!
//! Nothing is guessed: unknown and repeated names are refused, `null` does not mean "absent", and a number in a string
//! is not a number.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::str::FromStr;

use feedgate_common::FeedId;
use feedgate_common::named::NamedFeeds;
use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::problem::{Problem, short};

/// The fields of one object, none of them unknown or repeated.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    /// The JSON pointer to the object itself; "" for the whole body.
    at: String,
    members: Vec<(Cow<'a, str>, &'a RawValue)>,
}

/// One field of an object.
#[derive(Debug, Clone)]
pub(crate) struct Field<'a> {
    pointer: String,
    name: &'static str,
    raw: &'a RawValue,
}

impl<'a> Fields<'a> {
    /// Reads `raw` if it is an object that holds only `known` names; `at` is the pointer to it.
    pub(crate) fn of(raw: &'a RawValue, at: impl Into<String>, known: &[&str]) -> Result<Self, Problem> {
        let at = at.into();
        // One more than there are known names is already an unknown or a repeated one.
        let members = Members { keep: known.len() + 1 };
        let Ok(members) = serde_json::Deserializer::from_str(raw.get()).deserialize_map(members) else {
            let detail = format!("this must be a JSON object with {}, not {}", list(known), short(raw.get()));
            return Err(Problem::at_pointer(at, detail));
        };
        for (i, (name, _)) in members.iter().enumerate() {
            let pointer = || format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
            if !known.contains(&&**name) {
                let detail = format!("unknown field {:?}; known are {}", short(name), list(known));
                return Err(Problem::at_pointer(pointer(), detail));
            }
            if members[..i].iter().any(|(earlier, _)| earlier == name) {
                return Err(Problem::at_pointer(pointer(), format!("field {name:?} stands twice; give it once")));
            }
        }
        Ok(Self { at, members })
    }

    /// Reads `raw` if it is an object, with any names.
    pub(crate) fn any(raw: &'a RawValue) -> Result<Self, Problem> {
        let mut json = serde_json::Deserializer::from_str(raw.get());
        let members = json.deserialize_map(Members { keep: usize::MAX }).map_err(|_| {
            Problem::at_pointer(String::new(), format!("this must be a JSON object, not {}", short(raw.get())))
        })?;
        Ok(Self { at: String::new(), members })
    }

    /// The field with this name; `None` if the object does not have it.
    pub(crate) fn get(&self, name: &'static str) -> Option<Field<'a>> {
        let (_, raw) = self.members.iter().find(|(member, _)| member == name)?;
        Some(Field { pointer: format!("{}/{name}", self.at), name, raw })
    }

    /// The field with this name; fails if the object does not have it.
    pub(crate) fn required(&self, name: &'static str) -> Result<Field<'a>, Problem> {
        let missing = || Problem::at_pointer(format!("{}/{name}", self.at), format!("field {name:?} is missing"));
        self.get(name).ok_or_else(missing)
    }
}

impl<'a> Field<'a> {
    /// The value as it is written in the request.
    pub(crate) fn raw(&self) -> &'a RawValue {
        self.raw
    }

    /// A problem at this field; `why` says what is wrong.
    pub(crate) fn refuse(&self, why: impl Display) -> Problem {
        Problem::at_pointer(self.pointer.clone(), format!("field {:?}: {why}", self.name))
    }

    /// The value, which must be a string.
    pub(crate) fn string(&self) -> Result<String, Problem> {
        serde_json::from_str(self.raw.get()).map_err(|_| self.wrong("a string"))
    }

    /// The value, which must be a string of 1 to `max` bytes or characters, as `unit` says, without control characters.
    pub(crate) fn printable(&self, max: usize, unit: Unit) -> Result<String, Problem> {
        let text = self.string()?;
        let len = match unit {
            Unit::Bytes => text.len(),
            Unit::Characters => text.chars().count(),
        };
        if len == 0 || len > max {
            return Err(self.refuse(format_args!("must have 1 to {max} {unit}, this one has {len}")));
        }
        match text.chars().find(|c| c.is_control()) {
            Some(c) => Err(self.refuse(format_args!("must be printable, this one holds {c:?}"))),
            None => Ok(text),
        }
    }

    /// The value, which must be a string that reads as a name.
    pub(crate) fn name<T: FromStr<Err: Display>>(&self) -> Result<T, Problem> {
        self.string()?.parse().map_err(|why| self.refuse(why))
    }

    /// The value, which must be an integer of 64 bits.
    pub(crate) fn integer(&self) -> Result<i64, Problem> {
        serde_json::from_str(self.raw.get())
            .map_err(|_| self.wrong("an integer of 64 bits, written without a fraction or an exponent"))
    }

    /// The value, which must be an integer from 0 of 64 bits.
    pub(crate) fn count(&self) -> Result<u64, Problem> {
        serde_json::from_str(self.raw.get())
            .map_err(|_| self.wrong("an integer from 0, written without a fraction or an exponent"))
    }

    /// The feed that the value names.
    pub(crate) fn feed(&self, named: &NamedFeeds) -> Result<FeedId, Problem> {
        let (name, known) = (self.string()?, named.names());
        let no_such = || self.refuse(format_args!("there is no feed named {:?}; there is {known}", short(&name)));
        named.by_name(&name).ok_or_else(no_such)
    }

    /// The feeds that the value names, which must be a list of 1 to `max` names.
    pub(crate) fn feeds(&self, max: usize, named: &NamedFeeds) -> Result<Vec<FeedId>, Problem> {
        self.entries(self.list(max)?).map(|entry| entry.feed(named)).collect()
    }

    /// The elements of the value, which must be a list of 1 to `max` of them, as they are written in the request.
    pub(crate) fn list(&self, max: usize) -> Result<Vec<&'a RawValue>, Problem> {
        match self.elements(max)? {
            (_, 0) => Err(self.refuse(format_args!("must hold 1 to {max} entries, it is empty"))),
            (_, n) if n > max => Err(self.refuse(format_args!("must hold 1 to {max} entries, this one has {n}"))),
            (all, _) => Ok(all),
        }
    }

    /// The first `keep` elements of the value, which must be a list, and how many it has.
    fn elements(&self, keep: usize) -> Result<(Vec<&'a RawValue>, usize), Problem> {
        elements(self.raw, keep).ok_or_else(|| self.wrong("a list"))
    }

    /// The JSON pointer to the field in the request.
    pub(crate) fn pointer(&self) -> &str {
        &self.pointer
    }

    /// The names in the value, which must be a list of 1 to `max` strings; a problem says which of them is wrong.
    pub(crate) fn names<T: FromStr<Err: Display>>(&self, max: usize) -> Result<Vec<T>, Problem> {
        self.read_names(self.list(max)?)
    }

    /// Reads a list of names as [`names`](Self::names) does, but the list may be empty.
    pub(crate) fn names_if_any<T: FromStr<Err: Display>>(&self, max: usize) -> Result<Vec<T>, Problem> {
        match self.elements(max)? {
            (_, n) if n > max => Err(self.refuse(format_args!("must hold at most {max} entries, this one has {n}"))),
            (all, _) => self.read_names(all),
        }
    }

    fn read_names<T: FromStr<Err: Display>>(&self, all: Vec<&'a RawValue>) -> Result<Vec<T>, Problem> {
        self.entries(all).map(|entry| entry.name()).collect()
    }

    /// These elements of the value as fields of their own, so that a problem says which of them is wrong.
    fn entries(&self, all: Vec<&'a RawValue>) -> impl Iterator<Item = Field<'a>> {
        all.into_iter().enumerate().map(|(i, raw)| Field {
            pointer: format!("{}/{i}", self.pointer),
            name: self.name,
            raw,
        })
    }

    /// The fields of the value, which may hold only `known` names; `None` if it is not an object.
    pub(crate) fn object(&self, known: &[&str]) -> Option<Result<Fields<'a>, Problem>> {
        self.raw.get().starts_with('{').then(|| Fields::of(self.raw, self.pointer.clone(), known))
    }

    fn wrong(&self, right: &str) -> Problem {
        self.refuse(format_args!("must be {right}, not {}", short(self.raw.get())))
    }
}

/// The unit in which a length is counted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unit {
    /// The bytes of the text in UTF-8.
    Bytes,
    /// The Unicode scalar values of the text.
    Characters,
}

impl Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes => "bytes",
            Self::Characters => "characters",
        })
    }
}

/// The first `keep` elements of a list as they are written, and how many the list has; `None` if `raw` is no list. An
/// element that is not kept takes no memory: a body of some megabytes has room for millions.
pub(super) fn elements(raw: &RawValue, keep: usize) -> Option<(Vec<&RawValue>, usize)> {
    serde_json::Deserializer::from_str(raw.get()).deserialize_seq(Elements { keep }).ok()
}

struct Elements {
    keep: usize,
}

impl<'de> Visitor<'de> for Elements {
    type Value = (Vec<&'de RawValue>, usize);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut kept = Vec::new();
        while kept.len() < self.keep
            && let Some(element) = list.next_element()?
        {
            kept.push(element);
        }
        let mut count = kept.len();
        while list.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok((kept, count))
    }
}

struct Members {
    keep: usize,
}

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while members.len() < self.keep
            && let Some(member) = map.next_entry()?
        {
            members.push(member);
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(members)
    }
}

/// The names in quotes, with commas between them.
fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use feedgate_common::UserId;

    use super::*;

    fn raw(json: &str) -> &RawValue {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn each_refusal_shows_where_and_what() {
        let cases = [
            ("[1]", "", "must be a JSON object"),
            (r#"{"autor":"a"}"#, "/autor", "unknown field \"autor\"; known are \"author\""),
            (r#"{"a/~":1}"#, "/a~1~0", "unknown field"),
            (r#"{"author":"a","author":"a"}"#, "/author", "stands twice"),
        ];
        for (json, pointer, detail) in cases {
            let problem = serde_json::to_value(Fields::of(raw(json), "", &["author"]).unwrap_err()).unwrap();
            assert_eq!(problem["pointer"], pointer, "{json}");
            assert!(problem["detail"].as_str().unwrap().contains(detail), "{json}: {problem}");
        }
    }

    #[test]
    fn an_escaped_name_is_the_name() {
        let fields = Fields::of(raw(r#"{"\u0061uthor":"a"}"#), "", &["author"]).unwrap();
        assert_eq!(fields.required("author").unwrap().string().unwrap(), "a");
    }

    #[test]
    fn a_list_that_may_be_empty_is_so_however_it_is_written() {
        let one = |json: &'static str| Fields::of(raw(json), "", &["x"]).unwrap().required("x").unwrap();
        for empty in [r#"{"x":[]}"#, "{\"x\":[ \n ]}"] {
            assert_eq!(one(empty).names_if_any::<UserId>(2).unwrap(), []);
            assert!(one(empty).names::<UserId>(2).is_err());
        }
        assert_eq!(one(r#"{"x":["a","b"]}"#).names_if_any::<UserId>(2).unwrap().len(), 2);
        for wrong in [r#"{"x":["a","b","c"]}"#, r#"{"x":null}"#, r#"{"x":"a"}"#, r#"{"x":[1]}"#] {
            assert!(one(wrong).names_if_any::<UserId>(2).is_err(), "{wrong}");
        }
        let too_many =
            serde_json::to_value(one(r#"{"x":["a","b","c"]}"#).names_if_any::<UserId>(2).unwrap_err()).unwrap();
        assert_eq!(too_many["detail"], "field \"x\": must hold at most 2 entries, this one has 3");
    }

    #[test]
    fn a_list_that_is_too_long_is_counted_and_not_kept() {
        let long = format!("[{}0]", "0,".repeat(999));
        let (kept, count) = elements(raw(&long), 3).unwrap();
        assert_eq!((kept.len(), kept.capacity() < 10, count), (3, true, 1000));
        let json = format!("{{\"x\":{long}}}");
        let problem = Fields::of(raw(&json), "", &["x"]).unwrap().required("x").unwrap().list(3).unwrap_err();
        let detail = "field \"x\": must hold 1 to 3 entries, this one has 1000";
        assert_eq!(serde_json::to_value(problem).unwrap()["detail"], detail);
        let many = format!("{{{}\"x\":0}}", "\"x\":0,".repeat(999));
        let members = serde_json::Deserializer::from_str(&many).deserialize_map(Members { keep: 2 }).unwrap();
        assert_eq!((members.len(), members.capacity() < 10), (2, true));
    }

    #[test]
    fn values_are_not_coerced() {
        let one = |json: &'static str| Fields::of(raw(json), "/ops/3", &["x"]).unwrap().required("x").unwrap();
        for not_integer in
            [r#"{"x":"1"}"#, r#"{"x":1.0}"#, r#"{"x":1e3}"#, r#"{"x":null}"#, r#"{"x":9223372036854775808}"#]
        {
            assert!(one(not_integer).integer().is_err(), "{not_integer}");
        }
        for not_string in [r#"{"x":1}"#, r#"{"x":null}"#, r#"{"x":["a"]}"#, r#"{"x":"\ud800"}"#] {
            assert!(one(not_string).string().is_err(), "{not_string}");
        }
        assert!(one(r#"{"x":"äöü"}"#).printable(3, Unit::Characters).is_ok());
        assert!(one(r#"{"x":"äöü"}"#).printable(3, Unit::Bytes).is_err());
        assert!(one(r#"{"x":"a\tb"}"#).printable(9, Unit::Bytes).is_err());
        let problem = serde_json::to_value(one(r#"{"x":1}"#).string().unwrap_err()).unwrap();
        assert_eq!(problem["pointer"], "/ops/3/x");
        assert_eq!(problem["detail"], "field \"x\": must be a string, not 1");
    }
}
