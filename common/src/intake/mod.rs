//! Calls of the HTTP API that backends send over a bus, as messages instead of requests.
//!
//! ```text
//!   feed.in.<verb>…     kept ──▶ order: per author ──▶ carried out ──▶ accepted, or refused: feed.refused.<verb>…
//!   feed.call.<verb>…   not kept ────────────────────▶ carried out ──▶ the answer, to the reply subject
//! ```
//!
//! A message becomes a [`Call`], and the HTTP API carries it out ([`Backend`]): validation, limits and problems are those
//! of the request that the call stands for. This module knows subjects and headers, and which calls must wait for which;
//! it knows nothing of the bus.

mod order;
mod problem;

pub use order::{Concerns, Order};
pub use problem::{fitted, refused_operations};

use async_trait::async_trait;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The header that makes a call happen once: the idempotency key of a publish, and of each operation of a batch.
pub const KEY_HEADER: &str = "Nats-Msg-Id";

/// The header of an edit or a delete that names the version of the item, as `If-Match` of HTTP does.
pub const VERSION_HEADER: &str = "If-Match";

/// The most characters of a key. The operations of a batch have keys of their own: the key, `/` and their number.
pub const KEY_MAX: usize = 250;

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Publishes an item: `POST /v1/items`.
    Publish,
    /// Publishes many items: `POST /v1/items/batch`.
    Batch,
    /// Gives an item another body: `PATCH /v1/items/{id}`.
    Edit,
    /// Deletes an item: `DELETE /v1/items/{id}`.
    Delete,
    /// Sets a follow: `PUT /v1/users/{user}/following/{author}`.
    Follow,
    /// Removes a follow: `DELETE /v1/users/{user}/following/{author}`.
    Unfollow,
    /// Changes many follows and shields: `POST /v1/follows/batch`.
    Follows,
}

impl Verb {
    /// All verbs, with their words in subjects and the names of the tokens that follow.
    pub const ALL: [(Self, &'static str, &'static [&'static str]); 7] = [
        (Self::Publish, "publish", &[]),
        (Self::Batch, "batch", &[]),
        (Self::Edit, "edit", &["item"]),
        (Self::Delete, "delete", &["item"]),
        (Self::Follow, "follow", &["user", "author"]),
        (Self::Unfollow, "unfollow", &["user", "author"]),
        (Self::Follows, "follows", &[]),
    ];

    /// The method of the request that the call stands for.
    pub fn method(self) -> &'static str {
        match self {
            Self::Publish | Self::Batch | Self::Follows => "POST",
            Self::Edit => "PATCH",
            Self::Follow => "PUT",
            Self::Delete | Self::Unfollow => "DELETE",
        }
    }

    /// Whether the request has a body.
    pub fn has_body(self) -> bool {
        matches!(self, Self::Publish | Self::Batch | Self::Follows | Self::Edit)
    }

    /// The path of the request, with these segments.
    fn path(self, segments: &[String]) -> String {
        match (self, segments) {
            (Self::Publish, _) => "/v1/items".to_owned(),
            (Self::Batch, _) => "/v1/items/batch".to_owned(),
            (Self::Follows, _) => "/v1/follows/batch".to_owned(),
            (Self::Edit | Self::Delete, [item, ..]) => format!("/v1/items/{item}"),
            (_, [user, author, ..]) => format!("/v1/users/{user}/following/{author}"),
            _ => unreachable!("the subject was read, so it has its tokens"),
        }
    }
}

/// One call of the HTTP API, as a message brought it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// What the call does.
    pub verb: Verb,
    /// The path of the request that it stands for, percent-encoded.
    pub path: String,
    /// The idempotency key, of 1 to [`KEY_MAX`] visible ASCII characters.
    pub key: Option<String>,
    /// What the item's version must be, as `If-Match` has it.
    pub if_match: Option<String>,
    /// The body of the message, which is that of the request.
    pub body: Vec<u8>,
}

/// Why a message is no call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// The subject names no call; with what would be right.
    Subject(String),
    /// This header is not what it must be; with what would be right.
    Header(&'static str, String),
}

/// The answer to a call: that of the request that it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status of the answer.
    pub status: u16,
    /// The headers of the answer, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// JSON: what was done, or a problem document; empty if there is nothing to say.
    pub body: Vec<u8>,
}

impl Answer {
    /// Whether the call was carried out. Operations of a batch may have been refused all the same.
    pub fn is_done(&self) -> bool {
        self.status < 400
    }

    /// Whether the call may succeed later as it is: a store is away, or there is too much to do. A call that was answered
    /// otherwise must not be tried again.
    pub fn is_for_later(&self) -> bool {
        matches!(self.status, 408 | 429 | 503)
    }
}

/// What carries calls out.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// Carries out the call; what the answer says is durable. If the future is dropped, the call may or may not be
    /// carried out.
    async fn carry_out(&self, call: Call) -> Answer;

    /// The answer to a message that is no call: a problem document.
    fn refuse(&self, wrong: Wrong) -> Answer;
}

/// Reads a message: its subject without `feed.in.` or `feed.call.`, its headers by name, and its body.
///
/// # Errors
/// What is wrong with the subject or with a header. The body is not looked at.
pub fn read(subject: &str, header: impl Fn(&str) -> Option<String>, body: Vec<u8>) -> Result<Call, Wrong> {
    let (word, rest) = subject.split_once('.').map_or((subject, None), |(word, rest)| (word, Some(rest)));
    let verb = Verb::ALL.into_iter().find(|(_, known, _)| *known == word);
    let (verb, _, names) = verb.ok_or_else(|| Wrong::Subject(subjects(word)))?;
    let segments: Vec<String> = rest.into_iter().flat_map(|rest| rest.split('.')).map(segment).collect();
    if segments.len() != names.len() {
        return Err(Wrong::Subject(tokens(word, names, segments.len())));
    }
    let key = header(KEY_HEADER).map(|key| checked(&key).map(|()| key)).transpose()?;
    let if_match = header(VERSION_HEADER);
    if if_match.is_some() && !matches!(verb, Verb::Edit | Verb::Delete) {
        let detail = format!("{VERSION_HEADER} is for edit and delete; {word} takes none");
        return Err(Wrong::Header(VERSION_HEADER, detail));
    }
    Ok(Call { verb, path: verb.path(&segments), key, if_match, body })
}

fn subjects(word: &str) -> String {
    let known: Vec<&str> = Verb::ALL.iter().map(|(_, word, _)| *word).collect();
    let word: String = word.chars().take(64).collect();
    format!("there is no call {word:?}; the third token of the subject is one of {}", known.join(", "))
}

fn tokens(word: &str, names: &[&str], has: usize) -> String {
    let right: String = names.iter().map(|name| format!(".<{name}>")).collect();
    format!(
        "the subject must end in {word}{right}, this one has {has} tokens after {word:?}; a dot within a name is %2E"
    )
}

/// What is escaped in a segment of a path. In a token of a subject, `%` and two hex digits stand for a byte already.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'%')
    .remove(b':')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b'\'');

/// A token of a subject as a segment of a path.
fn segment(token: &str) -> String {
    utf8_percent_encode(token, ESCAPED).to_string()
}

fn checked(key: &str) -> Result<(), Wrong> {
    let wrong = |why: String| Err(Wrong::Header(KEY_HEADER, format!("{KEY_HEADER} {why}")));
    if key.is_empty() || key.len() > KEY_MAX {
        return wrong(format!("must have 1 to {KEY_MAX} characters, this one has {}", key.chars().count()));
    }
    match key.chars().find(|c| !c.is_ascii_graphic()) {
        Some(c) => wrong(format!("must hold only visible ASCII characters, this one holds {c:?}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(subject: &str) -> Result<Call, Wrong> {
        read(subject, |_| None, vec![])
    }

    #[test]
    fn a_subject_is_the_method_and_the_path_of_a_request() {
        for (subject, request) in [
            ("publish", "POST /v1/items"),
            ("batch", "POST /v1/items/batch"),
            ("follows", "POST /v1/follows/batch"),
            ("edit.7", "PATCH /v1/items/7"),
            ("delete.foreign:post%2E1", "DELETE /v1/items/foreign:post%2E1"),
            ("delete.foreign:a/b?c#ä", "DELETE /v1/items/foreign:a%2Fb%3Fc%23%C3%A4"),
            ("follow.bob.ann%2Esmith", "PUT /v1/users/bob/following/ann%2Esmith"),
            ("unfollow.bob.ann", "DELETE /v1/users/bob/following/ann"),
        ] {
            let call = of(subject).unwrap();
            assert_eq!(format!("{} {}", call.verb.method(), call.path), request);
        }
    }

    #[test]
    fn a_subject_that_is_no_call_is_refused_with_what_would_be_right() {
        for (subject, right) in [
            ("post", "one of publish, batch, edit, delete, follow, unfollow, follows"),
            ("publish.ann", "must end in publish, this one has 1 tokens"),
            ("edit", "must end in edit.<item>"),
            ("follow.bob.ann.smith", "follow.<user>.<author>, this one has 3 tokens"),
        ] {
            let Err(Wrong::Subject(said)) = of(subject) else { panic!("{subject}") };
            assert!(said.contains(right), "{said}");
        }
    }

    #[test]
    fn a_key_leaves_room_for_the_number_of_an_operation() {
        let with = |key: &str| read("batch", |name| (name == KEY_HEADER).then(|| key.to_owned()), vec![]);
        assert_eq!(with(&"k".repeat(KEY_MAX)).unwrap().key.map(|key| key.len()), Some(250));
        for bad in ["", &*"k".repeat(KEY_MAX + 1), "a b", "ä"] {
            assert!(matches!(with(bad), Err(Wrong::Header(KEY_HEADER, _))), "{bad:?}");
        }
    }

    #[test]
    fn only_an_edit_and_a_delete_take_a_version() {
        let with = |subject| read(subject, |name| (name == VERSION_HEADER).then(|| "\"1\"".to_owned()), vec![]);
        assert_eq!(with("edit.7").unwrap().if_match.as_deref(), Some("\"1\""));
        assert!(with("delete.7").is_ok());
        assert!(matches!(with("publish"), Err(Wrong::Header(VERSION_HEADER, _))));
    }

    #[test]
    fn only_what_may_succeed_as_it_is_comes_again() {
        let answer = |status| Answer { status, headers: vec![], body: vec![] };
        assert_eq!([408, 429, 503].map(|status| answer(status).is_for_later()), [true; 3]);
        assert_eq!([200, 201, 204, 400, 404, 409, 412, 413, 422, 500].map(|s| answer(s).is_for_later()), [false; 10]);
    }
}
