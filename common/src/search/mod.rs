//! Search: which items and which users hold the words of a query. Pure functions; each home keeps an index for them.
//!
//! ```text
//!   text ─▶ words ─▶ marks ─▶ index of a home         what an item or a user is found by
//!   query ▶ phrases ▶ marks ─▶ candidates, newest first ─▶ read anew ─▶ does it match? ─▶ may the viewer see it?
//! ```
//!
//! A *mark* is a number made of a word, of an author or of a kind. An index knows only marks, and a thing that an index
//! finds is only a candidate: two words may have the same mark, an item may have changed since, and characters of a
//! phrase need not stand side by side. [`ItemQuery::takes`] decides by the item itself, so an edit or a delete is in
//! effect at once, and both homes answer alike.

mod fields;
mod words;

use std::collections::BTreeSet;

use compact_str::CompactString;
use xxhash_rust::xxh3::xxh3_64_with_seed;

pub use fields::{FIELD_MAX_BYTES, FIELDS_MAX, TextFields, WORDS_MAX};
pub use words::{Phrase, Word, phrases, words};

use crate::{Body, Item, Millis, UserId, UserNo};

/// How many characters a query may have.
pub const QUERY_MAX: usize = 200;

/// How many marks an index is asked for. The rest of a longer query is only looked for in the candidates that these
/// marks find.
const MARKS_MAX: usize = 16;

/// How many candidates one answer looks at. So a page may be shorter than asked and yet go on.
pub const LOOKED_AT: usize = 500;

/// A number made of a word, an author or a kind, by which an index finds things. Marks are stored, so the mark of a
/// word never changes.
pub type Mark = u32;

/// What is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// Search for items that live.
    Items = 0,
    /// Search for users of whom something is said.
    Users = 1,
}

impl Subject {
    /// The subject with this number, as it is stored.
    pub fn from_u8(number: u8) -> Option<Self> {
        [Self::Items, Self::Users].into_iter().find(|subject| *subject as u8 == number)
    }
}

/// The place of a thing among the results. The greatest places come first. The place of a thing never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SearchPlace {
    /// When an item was published, in Unix ms; 0 for a user.
    pub at: Millis,
    /// The id of an item; the number of a user.
    pub id: u64,
}

impl SearchPlace {
    /// The place of an item that was published at `at`.
    pub fn of_item(at: Millis, id: crate::ItemId) -> Self {
        Self { at, id: id.0 }
    }

    /// The place of a user: the user who was named last stands first.
    pub fn of_user(user: UserNo) -> Self {
        Self { at: 0, id: user.0.into() }
    }

    /// The place right behind this one.
    pub fn behind(self) -> Self {
        match self.id.checked_sub(1) {
            Some(id) => Self { id, ..self },
            None => Self { at: self.at.saturating_sub(1), id: u64::MAX },
        }
    }

    /// The place right before this one.
    pub fn before(self) -> Self {
        match self.id.checked_add(1) {
            Some(id) => Self { id, ..self },
            None => Self { at: self.at.saturating_add(1), id: 0 },
        }
    }
}

/// A question to an index: it asks for the things that have all of these marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// What is searched for.
    pub subject: Subject,
    /// The marks, at least one, each once.
    pub marks: Vec<Mark>,
    /// Only what stands strictly behind this place.
    pub behind: Option<SearchPlace>,
    /// Only what stands at this time or later, in Unix ms.
    pub since: Millis,
    /// Only what stands at this time or earlier.
    pub until: Millis,
    /// How many things are asked for at most; at least 1.
    pub limit: usize,
}

impl Look {
    /// The place before which no result stands.
    pub fn first(&self) -> SearchPlace {
        let newest = SearchPlace { at: self.until, id: u64::MAX };
        self.behind.map_or(newest, |behind| newest.min(behind.behind()))
    }
}

/// What an index has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hits {
    /// The candidates, those with the greatest places first, each once.
    pub places: Vec<SearchPlace>,
    /// The place behind which the search goes on; `None` if there is nothing behind the last candidate.
    pub next: Option<SearchPlace>,
    /// Whether the index is still being built, so that things may be missing.
    pub building: bool,
}

/// The conditions of a search for items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemQuery {
    /// The phrases that the text of the item must hold.
    pub phrases: Vec<Phrase>,
    /// The author of the items; `None` for any author.
    pub author: Option<UserNo>,
    /// The kind of the items; `None` for any kind.
    pub kind: Option<CompactString>,
    /// The times between which the items were published, in Unix ms, both included.
    pub published: (Millis, Millis),
}

impl ItemQuery {
    /// What the index is asked for, behind `behind` and at most `limit`.
    pub fn look(&self, behind: Option<SearchPlace>, limit: usize) -> Look {
        let of_author = self.author.map(author_mark);
        let of_kind = self.kind.as_deref().map(kind_mark);
        let of_words = self.phrases.iter().flat_map(Phrase::words).map(|word| mark(b'w', word));
        let marks: BTreeSet<Mark> = of_author.into_iter().chain(of_kind).chain(of_words).take(MARKS_MAX).collect();
        let (since, until) = self.published;
        Look { subject: Subject::Items, marks: Vec::from_iter(marks), behind, since, until, limit }
    }

    /// Whether this item, as it is now, is one of those that are looked for.
    pub fn takes(&self, fields: &TextFields, item: &Item) -> bool {
        let (since, until) = self.published;
        self.author.is_none_or(|author| author == item.author_no)
            && (self.kind.is_none() || self.kind == item.kind)
            && (since..=until).contains(&item.published_at)
            && are_in(&self.phrases, &fields.words_of(&item.body))
    }
}

/// What the index is asked for when users are looked for.
pub fn look_for_users(phrases: &[Phrase], behind: Option<SearchPlace>, limit: usize) -> Look {
    let marks: BTreeSet<Mark> =
        phrases.iter().flat_map(Phrase::words).map(|word| mark(b'u', word)).take(MARKS_MAX).collect();
    let marks = Vec::from_iter(marks);
    Look { subject: Subject::Users, marks, behind, since: Millis::MIN, until: Millis::MAX, limit }
}

/// Whether a user with this id and this name is one of those that are looked for.
pub fn takes_user(query: &[Phrase], id: &UserId, name: Option<&str>) -> bool {
    are_in(query, &words_of_user(id, name))
}

/// The marks by which an item is found, each once: those of its text and [`marks_of_kind`].
pub fn marks_of_item(fields: &TextFields, author: UserNo, kind: Option<&str>, body: &Body) -> BTreeSet<Mark> {
    let mut marks = marks_of_text(fields, body);
    marks.extend(marks_of_kind(author, kind));
    marks
}

/// The marks of the text of an item, each once. Making the marks reads the whole body, so do not call this on a thread
/// on which others wait.
pub fn marks_of_text(fields: &TextFields, body: &Body) -> BTreeSet<Mark> {
    fields.words_of(body).iter().map(|word| mark(b'w', &word.text)).collect()
}

/// The marks of an item by which it is found whatever its text.
pub fn marks_of_kind(author: UserNo, kind: Option<&str>) -> impl Iterator<Item = Mark> {
    [author_mark(author)].into_iter().chain(kind.map(kind_mark))
}

/// The marks by which a user is found, each once.
pub fn marks_of_user(id: &UserId, name: Option<&str>) -> BTreeSet<Mark> {
    words_of_user(id, name).iter().map(|word| mark(b'u', &word.text)).collect()
}

fn are_in(phrases: &[Phrase], words: &[Word]) -> bool {
    phrases.iter().all(|phrase| phrase.is_in(words))
}

/// The words of a user: those of the id, and those of the name.
fn words_of_user(id: &UserId, name: Option<&str>) -> Vec<Word> {
    let mut all = words(id.as_str(), usize::MAX);
    all.extend(words(name.unwrap_or_default(), usize::MAX));
    all
}

fn author_mark(author: UserNo) -> Mark {
    mark(b'a', &author.0.to_string())
}

fn kind_mark(kind: &str) -> Mark {
    mark(b'k', kind)
}

/// The mark of a text in one of the name spaces of marks.
fn mark(space: u8, text: &str) -> Mark {
    xxh3_64_with_seed(text.as_bytes(), space.into()) as Mark
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> TextFields {
        TextFields::new(vec!["text".into()]).unwrap()
    }

    fn item(text: &str) -> Item {
        let body = Body::parse(serde_json::json!({ "text": text }).to_string()).unwrap();
        Item { kind: Some("post".into()), body, published_at: 50, rank: 50, ..Item::sample(1) }
    }

    fn query(text: &str) -> ItemQuery {
        ItemQuery { phrases: phrases(text), author: None, kind: None, published: (Millis::MIN, Millis::MAX) }
    }

    #[test]
    fn s14_an_item_is_taken_if_all_of_the_query_is_true_of_it() {
        let (item, of) = (item("Big 王小明"), fields());
        let takes = |query: ItemQuery| query.takes(&of, &item);
        assert!(takes(query("小明 big")) && !takes(query("明小 big")) && !takes(query("小明 red")));
        for (author, is) in [(1, true), (2, false)] {
            assert_eq!(takes(ItemQuery { author: Some(UserNo(author)), ..query("big") }), is);
        }
        for (kind, is) in [("post", true), ("Post", false)] {
            assert_eq!(takes(ItemQuery { kind: Some(kind.into()), ..query("big") }), is);
        }
        for (published, is) in [((50, 50), true), ((51, 99), false), ((0, 49), false)] {
            assert_eq!(takes(ItemQuery { published, ..query("big") }), is);
        }
    }

    #[test]
    fn s14_what_a_query_takes_has_all_marks_that_the_index_is_asked_for() {
        let (item, of) = (item("Big red 王小明"), fields());
        let marks = marks_of_item(&of, item.author_no, item.kind.as_deref(), &item.body);
        for text in ["王小明", "red", "BIG 明", "red 小 big"] {
            let all = ItemQuery { author: Some(UserNo(1)), kind: Some("post".into()), ..query(text) };
            assert!(all.takes(&of, &item) && all.look(None, 9).marks.iter().all(|mark| marks.contains(mark)));
        }
        let (id, name) = ("ann.smith@example".parse().unwrap(), Some("安 Smith"));
        let marks = marks_of_user(&id, name);
        for text in ["ann.smith@example", "安", "smith 安", "example"] {
            assert!(takes_user(&phrases(text), &id, name), "{text}");
            assert!(look_for_users(&phrases(text), None, 9).marks.iter().all(|mark| marks.contains(mark)));
        }
        assert!(!takes_user(&phrases("bob"), &id, name) && !takes_user(&phrases("ann"), &id, None));
    }

    #[test]
    fn a_long_query_asks_the_index_for_a_bounded_number_of_marks() {
        let long = (0..100).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ");
        assert_eq!(query(&long).look(None, 9).marks.len(), MARKS_MAX);
        let author = ItemQuery { author: Some(UserNo(1)), ..query(&long) };
        assert!(author.look(None, 9).marks.contains(&author_mark(UserNo(1))), "the filters are always among them");
    }

    #[test]
    fn marks_are_stored_so_they_never_change() {
        assert_eq!(
            [mark(b'w', "hello"), mark(b'u', "hello"), mark(b'w', "明")],
            [639_881_079, 1_029_895_395, 3_542_218_226]
        );
    }

    #[test]
    fn a_look_begins_right_behind_the_place_and_not_later_than_until() {
        let look = |behind: Option<(i64, u64)>, until| {
            let behind = behind.map(|(at, id)| SearchPlace { at, id });
            let look = Look { subject: Subject::Items, marks: vec![1], behind, since: 0, until, limit: 1 };
            (look.first().at, look.first().id)
        };
        assert_eq!(look(None, 9), (9, u64::MAX));
        assert_eq!(look(Some((5, 3)), 9), (5, 2));
        assert_eq!(look(Some((5, 0)), 9), (4, u64::MAX));
        assert_eq!(look(Some((50, 3)), 9), (9, u64::MAX));
    }
}
