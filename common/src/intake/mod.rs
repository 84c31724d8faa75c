//! Calls of the HTTP API that backends send over a bus, as messages instead of requests.
//!
//! ```text
//!   feed.in.<verb>…     kept ──▶ order: per user and item ──▶ carried out ──▶ accepted, or refused: feed.refused.<verb>…
//!   feed.call.<verb>…   not kept ────────────────────▶ carried out ──▶ the answer, to the reply subject
//! ```
//!
//! A message becomes a [`Call`], and the HTTP API carries it out ([`Backend`]): validation, limits and problems are
//! those of the request that the call stands for. This module knows subjects and headers, and which calls must wait for
//! other calls; it knows nothing of the bus.

mod order;
mod problem;

pub use order::{Concerns, Order};
pub use problem::{fitted, refused_operations};

use Within::{Anybody, Body, Items, Nothing, Operations};
use async_trait::async_trait;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::ids::short;

/// The header that makes a call happen once: the idempotency key of a publish, of a comment, and of each operation of a
/// batch of items. Other calls may be repeated without a key.
pub const KEY_HEADER: &str = "Nats-Msg-Id";

/// The header of an edit or a delete that names the version of the item or comment, as `If-Match` of HTTP does.
pub const VERSION_HEADER: &str = "If-Match";

/// The most characters of a key. The operations of a batch have keys of their own: the key, `/` and their number.
pub const KEY_MAX: usize = 250;

/// The users and items that a call concerns besides those that its subject names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Within {
    /// The call concerns nobody else.
    Nothing,
    /// The users and items that the body names.
    Body,
    /// The users and items that each operation of the body names.
    Operations,
    /// The items of the list that is the body.
    Items,
    /// The call may concern anybody, as an edit does, which names no author.
    Anybody,
}

/// A kind of call: how subjects name it, and the request that it stands for.
#[derive(Debug, PartialEq, Eq)]
pub struct Verb {
    /// The word in subjects.
    pub word: &'static str,
    /// The method of the request.
    pub method: &'static str,
    /// The path of the request. The tokens of the subject stand for what is in braces.
    path: &'static str,
    /// Whether the request has a body.
    pub has_body: bool,
    within: Within,
}

const fn verb(word: &'static str, method: &'static str, path: &'static str, has_body: bool, within: Within) -> Verb {
    Verb { word, method, path, has_body, within }
}

/// All kinds of calls.
pub static VERBS: [Verb; 23] = [
    verb("publish", "POST", "/v1/items", true, Body),
    verb("batch", "POST", "/v1/items/batch", true, Operations),
    verb("edit", "PATCH", "/v1/items/{item}", true, Anybody),
    verb("delete", "DELETE", "/v1/items/{item}", false, Anybody),
    verb("follow", "PUT", "/v1/users/{user}/following/{author}", false, Nothing),
    verb("unfollow", "DELETE", "/v1/users/{user}/following/{author}", false, Nothing),
    verb("follows", "POST", "/v1/follows/batch", true, Operations),
    verb("accept", "PUT", "/v1/users/{user}/followers/{reader}", false, Nothing),
    verb("refuse", "DELETE", "/v1/users/{user}/requests/{reader}", false, Nothing),
    verb("classify", "PUT", "/v1/authors/{author}", true, Nothing),
    verb("person", "PUT", "/v1/users/{user}", true, Nothing),
    verb("people", "POST", "/v1/people/batch", true, Operations),
    verb("lists", "POST", "/v1/lists/batch", true, Operations),
    verb("react", "PUT", "/v1/items/{item}/reactions/{kind}/{user}", false, Nothing),
    verb("unreact", "DELETE", "/v1/items/{item}/reactions/{kind}/{user}", false, Nothing),
    verb("reactions", "POST", "/v1/reactions/batch", true, Operations),
    verb("comment", "POST", "/v1/items/{item}/comments", true, Body),
    verb("comment_edit", "PATCH", "/v1/items/{item}/comments/{comment}", true, Anybody),
    verb("comment_delete", "DELETE", "/v1/items/{item}/comments/{comment}", false, Anybody),
    verb("comments", "POST", "/v1/comments/batch", true, Anybody),
    verb("pin", "PUT", "/v1/users/{user}/pins/{item}", false, Nothing),
    verb("unpin", "DELETE", "/v1/users/{user}/pins/{item}", false, Nothing),
    verb("rank", "PUT", "/v1/users/{user}/feeds/{feed}/ranking", true, Items),
];

impl Verb {
    /// The names of the tokens behind the word, in their order.
    fn tokens(&self) -> Vec<&'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect()
    }

    /// The path of the request, with these segments for the tokens.
    fn path_with(&self, segments: &[String]) -> String {
        let mut segments = segments.iter();
        let parts = self.path.split('/').map(|part| match part.starts_with('{') {
            true => segments.next().map_or(part, String::as_str),
            false => part,
        });
        parts.collect::<Vec<_>>().join("/")
    }

    /// Whether the call changes or deletes something that has a version, so that `If-Match` may name the version.
    fn takes_version(&self) -> bool {
        matches!(self.word, "edit" | "delete" | "comment_edit" | "comment_delete")
    }
}

/// One call of the HTTP API, as a message brought it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// What the call does.
    pub verb: &'static Verb,
    /// The path of the request that the call stands for, percent-encoded.
    pub path: String,
    /// The tokens of the subject behind the word of the call, decoded.
    pub tokens: Vec<String>,
    /// The idempotency key, of 1 to [`KEY_MAX`] visible ASCII characters.
    pub key: Option<String>,
    /// What the version of the item or comment must be, as `If-Match` has it.
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
    /// Whether the call was carried out. Operations of a batch may still have been refused.
    pub fn is_done(&self) -> bool {
        self.status < 400
    }

    /// Whether the call may succeed later as it is: a store is away, or there is too much to do. A call that was
    /// answered otherwise must not be tried again.
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

    /// The answer to a call for which there is no room, and of which nothing was done: 503 with a time to retry.
    fn overloaded(&self) -> Answer;
}

/// Reads a message: its subject without `feed.in.` or `feed.call.`, its headers by name, and its body.
///
/// # Errors
/// What is wrong with the subject or with a header. The body is not looked at.
pub fn read(subject: &str, header: impl Fn(&str) -> Option<String>, body: Vec<u8>) -> Result<Call, Wrong> {
    let (word, rest) = subject.split_once('.').map_or((subject, None), |(word, rest)| (word, Some(rest)));
    let verb = VERBS.iter().find(|verb| verb.word == word).ok_or_else(|| Wrong::Subject(subjects(word)))?;
    let segments: Vec<String> = rest.into_iter().flat_map(|rest| rest.split('.')).map(segment).collect();
    if segments.len() != verb.tokens().len() {
        return Err(Wrong::Subject(tokens(verb, segments.len())));
    }
    let key = header(KEY_HEADER).map(|key| checked(&key).map(|()| key)).transpose()?;
    let if_match = header(VERSION_HEADER);
    if if_match.is_some() && !verb.takes_version() {
        let versioned: Vec<&str> = VERBS.iter().filter(|verb| verb.takes_version()).map(|verb| verb.word).collect();
        let detail = format!("{VERSION_HEADER} is for {}; {word} takes none", versioned.join(", "));
        return Err(Wrong::Header(VERSION_HEADER, detail));
    }
    let path = verb.path_with(&segments);
    let tokens = segments.iter().map(|text| percent_decode_str(text).decode_utf8_lossy().into_owned()).collect();
    Ok(Call { verb, path, tokens, key, if_match, body })
}

fn subjects(word: &str) -> String {
    let known: Vec<&str> = VERBS.iter().map(|verb| verb.word).collect();
    format!("there is no call {:?}; the third token of the subject is one of {}", short(word), known.join(", "))
}

fn tokens(verb: &Verb, has: usize) -> String {
    let (word, tokens) = (verb.word, if has == 1 { "token" } else { "tokens" });
    let right: String = verb.tokens().iter().map(|name| format!(".<{name}>")).collect();
    format!(
        "the subject must end in {word}{right}, this one has {has} {tokens} after {word:?}; a dot within a name is %2E"
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
            ("accept.ann.bob", "PUT /v1/users/ann/followers/bob"),
            ("refuse.ann.bob", "DELETE /v1/users/ann/requests/bob"),
            ("classify.ann", "PUT /v1/authors/ann"),
            ("person.ann", "PUT /v1/users/ann"),
            ("people", "POST /v1/people/batch"),
            ("lists", "POST /v1/lists/batch"),
            ("react.7.like.bob", "PUT /v1/items/7/reactions/like/bob"),
            ("unreact.foreign:a/b.like.bob", "DELETE /v1/items/foreign:a%2Fb/reactions/like/bob"),
            ("reactions", "POST /v1/reactions/batch"),
            ("comment.7", "POST /v1/items/7/comments"),
            ("comment_edit.7.8", "PATCH /v1/items/7/comments/8"),
            ("comment_delete.7.8", "DELETE /v1/items/7/comments/8"),
            ("comments", "POST /v1/comments/batch"),
            ("pin.ann.7", "PUT /v1/users/ann/pins/7"),
            ("unpin.ann.7", "DELETE /v1/users/ann/pins/7"),
            ("rank.ann.picks", "PUT /v1/users/ann/feeds/picks/ranking"),
        ] {
            let call = of(subject).unwrap();
            assert_eq!(format!("{} {}", call.verb.method, call.path), request);
        }
    }

    #[test]
    fn a_subject_that_is_no_call_is_refused_with_what_would_be_right() {
        for (subject, right) in [
            (
                "post",
                "one of publish, batch, edit, delete, follow, unfollow, follows, accept, refuse, classify, person",
            ),
            ("publish.ann", "must end in publish, this one has 1 token after"),
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
    fn only_edits_and_deletes_take_a_version() {
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
