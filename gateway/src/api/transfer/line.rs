//! Reads and writes the lines of exports and imports. An import skips cursors.
//!
//! ```text
//!   {"type":"item","id":"7","author":"ann","published_at":…,"body":…}  or kind, foreign_id, ref, rank, version, to, audience, deleted
//!   {"type":"delete","id":"7"}
//!   {"type":"follow","reader":"bob","author":"ann","since":…,"from":"7"}
//!   {"type":"unfollow","reader":"bob","author":"ann"}                  where everyone else follows ann
//!   {"type":"request","reader":"bob","author":"ann","since":…}         ann is private, or was, and has not answered
//!   {"type":"shield","shield":"mute","user":"bob","other":"ann","since":…}
//!   {"type":"class","author":"ann","class":"pull"}
//!   {"type":"private","user":"ann"}
//!   {"type":"person","user":"ann","name":"Ann","avatar":"/a.png","attrs":{}}
//!   {"type":"listed","user":"ann","list":"close","member":"bob","since":…}
//!   {"type":"reaction","id":"7","kind":"like","user":"bob","since":…}
//!   {"type":"comment","id":"8","item":"7","author":"bob","body":…,"created_at":…}   or reply_to, version, deleted
//!   {"type":"member","line":"9","seq":1,"item":"9","reader":"ann","group":…,"kind":"like","actor":"bob","key":…,"body":…}
//!   {"type":"ranking","user":"bob","feed":"picks","ranking":[{"id":"7","rank":9}]}
//!   {"type":"pins","user":"ann","items":["7","5"]}
//!   {"type":"cursor","cursor":"…"}                                      where an export can be resumed
//! ```

use feedgate_common::archive::{Audience, FOREIGN_ID_MAX_BYTES, Publish, READERS_MAX};
use feedgate_common::around::{NewComment, PastComment, ReactionKind};
use feedgate_common::audience::{AUDIENCE_MAX, Narrowed};
use feedgate_common::change::Class;
use feedgate_common::graph::Shield;
use feedgate_common::ids::ListName;
use feedgate_common::import::{Import, PastMember, Place};
use feedgate_common::named::KIND_MAX;
use feedgate_common::notify::KEY_PREFIX;
use feedgate_common::notify::lines::actor;
use feedgate_common::people::Person;
use feedgate_common::pins::PINS_MAX;
use feedgate_common::ranking::RANKING_MAX;
use feedgate_common::{Body, DeviceId, DisplayKey, Item, ItemId, Millis, Position, UserId, UserNo};
use serde::Serialize;
use serde_json::value::RawValue;

use super::super::audience_lists;
use super::super::comments;
use super::super::fields::{Field, Fields, Unit};
use super::super::people;
use super::super::problem::{Problem, short};
use super::super::publish::{self, RANK_MAX};
use super::super::rankings;
use super::super::shields;
use super::super::time;
use crate::clock;

/// The contents of one line.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::api) enum Line {
    Import(Import),
    /// The name, the avatar and the attributes of a user.
    Person(UserId, Person),
    /// A reaction of a user to an item. A reaction is no record of an outbox.
    Reaction {
        item: ItemId,
        kind: ReactionKind,
        user: UserId,
        since: Millis,
    },
    /// A user is on a list of another user.
    Listed {
        user: UserId,
        list: ListName,
        member: UserId,
        since: Millis,
    },
    /// The author of a comment, and the comment. Its field `author` is 0, since the number of the author is not known
    /// yet.
    Comment(UserId, NewComment),
    /// The ranking of a user in a feed.
    Ranking {
        user: UserId,
        feed: String,
        ranking: Vec<DisplayKey>,
    },
    /// The items that a user has pinned, the last pinned first.
    Pins {
        user: UserId,
        items: Vec<ItemId>,
    },
    /// A cursor, which an import skips.
    Cursor,
}

const KINDS: &[&str] = &[
    "item", "delete", "follow", "unfollow", "request", "shield", "class", "private", "reaction", "person", "listed",
    "comment", "member", "ranking", "pins", "cursor",
];

/// The fields of an item. `direct` says no more than `to`, but an exported item has both.
const ITEM: &[&str] = &[
    "type",
    "id",
    "author",
    "kind",
    "foreign_id",
    "ref",
    "mentions",
    "body",
    "published_at",
    "rank",
    "version",
    "to",
    "direct",
    "deleted",
    "audience",
    "narrowed",
];

/// The fields of a comment.
const COMMENT: &[&str] =
    &["type", "id", "item", "author", "body", "mentions", "created_at", "reply_to", "version", "deleted"];

/// The greatest place in a line that an import accepts. There is room above it for deeds that join the line later.
const PLACE_MAX: u64 = 1 << 48;

/// The fields of a member of a line of notifications.
const MEMBER: &[&str] = &["type", "line", "seq", "item", "reader", "group", "kind", "actor", "key", "body"];

/// Reads a line. The problem says what is wrong with it and what would be right.
pub(in crate::api) fn read(text: &str) -> Result<Line, Problem> {
    let raw: &RawValue = serde_json::from_str(text)
        .map_err(|why| Problem::at_pointer(String::new(), format!("a line must be one JSON object: {why}")))?;
    let kind = Fields::any(raw)?.required("type")?.string()?;
    let import = match &*kind {
        "item" => item(&Fields::of(raw, "", ITEM)?)?,
        "delete" => Import::Delete { item: Fields::of(raw, "", &["type", "id"])?.required("id")?.name()? },
        "follow" => {
            let fields = Fields::of(raw, "", &["type", "reader", "author", "since", "from"])?;
            Import::Follow {
                reader: fields.required("reader")?.name()?,
                author: fields.required("author")?.name()?,
                since: time(&fields.required("since")?)?,
                from: fields.get("from").map(|field| place(&field)).transpose()?.unwrap_or_default(),
            }
        }
        "unfollow" => {
            let fields = Fields::of(raw, "", &["type", "reader", "author"])?;
            Import::Unfollow { reader: fields.required("reader")?.name()?, author: fields.required("author")?.name()? }
        }
        "shield" => {
            let fields = Fields::of(raw, "", &["type", "shield", "user", "other", "since"])?;
            let (user, whom) = (fields.required("user")?.name()?, fields.required("other")?);
            let other = whom.name()?;
            shields::check(&user, &other).map_err(|why| whom.refuse(why))?;
            Import::Shield {
                user,
                other,
                shield: one_of(&fields.required("shield")?, &["mute", "hide", "block"])?,
                since: time(&fields.required("since")?)?,
            }
        }
        "class" => {
            let fields = Fields::of(raw, "", &["type", "author", "class"])?;
            Import::Class {
                author: fields.required("author")?.name()?,
                class: one_of(&fields.required("class")?, &["auto", "push", "pull", "everyone"])?,
            }
        }
        "private" => Import::Private { author: Fields::of(raw, "", &["type", "user"])?.required("user")?.name()? },
        "request" => {
            let fields = Fields::of(raw, "", &["type", "reader", "author", "since"])?;
            Import::Request {
                reader: fields.required("reader")?.name()?,
                author: fields.required("author")?.name()?,
                since: time(&fields.required("since")?)?,
            }
        }
        "reaction" => {
            let fields = Fields::of(raw, "", &["type", "id", "kind", "user", "since"])?;
            return Ok(Line::Reaction {
                item: fields.required("id")?.name()?,
                kind: fields.required("kind")?.name()?,
                user: fields.required("user")?.name()?,
                since: time(&fields.required("since")?)?,
            });
        }
        "listed" => {
            let fields = Fields::of(raw, "", &["type", "user", "list", "member", "since"])?;
            let (user, whom) = (fields.required("user")?.name()?, fields.required("member")?);
            let (list, member) = (fields.required("list")?.name()?, whom.name()?);
            if user == member {
                return Err(whom.refuse(audience_lists::NOT_ONESELF));
            }
            return Ok(Line::Listed { user, list, member, since: time(&fields.required("since")?)? });
        }
        "person" => {
            let fields = Fields::of(raw, "", &["type", "user", "name", "avatar", "attrs"])?;
            return Ok(Line::Person(fields.required("user")?.name()?, people::person(&fields)?));
        }
        "member" => Import::Member(Box::new(member(&Fields::of(raw, "", MEMBER)?)?)),
        "comment" => return comment(&Fields::of(raw, "", COMMENT)?),
        "ranking" => {
            let fields = Fields::of(raw, "", &["type", "user", "feed", "ranking"])?;
            let ranking = rankings::places(&fields.required("ranking")?.list(RANKING_MAX)?, "/ranking")?;
            let (user, feed) = (fields.required("user")?.name()?, fields.required("feed")?.string()?);
            return Ok(Line::Ranking { user, feed, ranking });
        }
        "pins" => {
            let fields = Fields::of(raw, "", &["type", "user", "items"])?;
            let items = fields.required("items")?.names(PINS_MAX)?;
            return Ok(Line::Pins { user: fields.required("user")?.name()?, items });
        }
        "cursor" => return Ok(Line::Cursor),
        other => {
            let why = format!("field \"type\": must be one of {KINDS:?}, not {other:?}");
            return Err(Problem::at_pointer("/type".into(), why));
        }
    };
    Ok(Line::Import(import))
}

fn item(fields: &Fields<'_>) -> Result<Import, Problem> {
    let deleted = fields.get("deleted").map(|field| one_of(&field, &["true", "false"])).transpose()?.unwrap_or(false);
    let published_at = time(&fields.required("published_at")?)?;
    let body = if deleted { nothing() } else { publish::body(fields)? };
    // Both lists may be empty: a user in a block with the author is no reader, and an audience may have no follower.
    let to = fields.get("to").map(|field| field.names_if_any(READERS_MAX)).transpose()?;
    if let Some(field) = fields.get("direct")
        && one_of::<bool>(&field, &["true", "false"])? != to.is_some()
    {
        return Err(field.refuse("must be true where field \"to\" names the readers, and nowhere else"));
    }
    let narrowed: Option<Vec<UserId>> =
        fields.get("audience").map(|field| field.names_if_any(AUDIENCE_MAX)).transpose()?;
    if let Some(field) = fields.get("narrowed")
        && one_of::<bool>(&field, &["true", "false"])? != narrowed.is_some()
    {
        return Err(field.refuse("must be true where field \"audience\" names the readers, and nowhere else"));
    }
    let audience = match (to, narrowed, fields.get("audience")) {
        (Some(_), Some(_), Some(field)) => {
            return Err(field.refuse("must not stand beside field \"to\": an item is narrowed, or for named readers"));
        }
        (Some(to), ..) => Audience::Users(to),
        (None, Some(readers), _) => Audience::Narrowed(Narrowed::to(readers)),
        (None, None, _) => Audience::Followers,
    };
    let publish = Publish::new(fields.required("author")?.name()?, body);
    let publish = Publish {
        kind: publish::printable(fields.get("kind"), KIND_MAX, Unit::Characters)?,
        id: fields.get("id").map(|id| id.name()).transpose()?,
        foreign_id: publish::printable(fields.get("foreign_id"), FOREIGN_ID_MAX_BYTES, Unit::Bytes)?,
        repost_of: fields.get("ref").map(|id| id.name()).transpose()?,
        mentions: publish::mentions(fields)?.unwrap_or_default(),
        published_at: Some(published_at),
        rank: fields.get("rank").map(|rank| publish::rank(&rank)).transpose()?,
        audience,
        ..publish
    };
    if publish.id.is_none() && publish.foreign_id.is_none() {
        let why = "field \"id\" or field \"foreign_id\" is missing: without one the same line would be another item next time";
        return Err(Problem::at_pointer("/id".into(), why));
    }
    Ok(Import::Item { publish, version: version(fields)?, deleted })
}

fn comment(fields: &Fields<'_>) -> Result<Line, Problem> {
    let deleted = fields.get("deleted").map(|field| one_of(&field, &["true", "false"])).transpose()?.unwrap_or(false);
    let body = if deleted { nothing() } else { comments::body(fields)? };
    // New comments come behind all others, so a comment from the future would make new comments later too.
    let at = publish::published_at(&fields.required("created_at")?, clock::now())?;
    let past = PastComment { at, version: version(fields)?, deleted };
    let new = NewComment {
        item: fields.required("item")?.name()?,
        author: UserNo(0),
        reply_to: fields.get("reply_to").map(|field| field.name()).transpose()?,
        body,
        id: Some(fields.required("id")?.name()?),
        key: None,
        past: Some(past),
        mentions: publish::mentions(fields)?.unwrap_or_default(),
    };
    Ok(Line::Comment(fields.required("author")?.name()?, new))
}

fn member(fields: &Fields<'_>) -> Result<PastMember, Problem> {
    let text =
        |name, max, unit| publish::printable(Some(fields.required(name)?), max, unit).map(Option::unwrap_or_default);
    let (key, seq) = (fields.required("key")?, fields.required("seq")?);
    let place = u64::try_from(seq.integer()?).ok().filter(|place| (1..=PLACE_MAX).contains(place));
    let member = PastMember {
        line: fields.required("line")?.name()?,
        seq: place.ok_or_else(|| seq.refuse(format!("must be a place in the line, 1 to {PLACE_MAX}")))?,
        item: fields.required("item")?.name()?,
        reader: fields.required("reader")?.name()?,
        group: text("group", FOREIGN_ID_MAX_BYTES, Unit::Bytes)?,
        kind: text("kind", KIND_MAX, Unit::Characters)?,
        actor: fields.required("actor")?.name()?,
        key: text("key", FOREIGN_ID_MAX_BYTES, Unit::Bytes)?,
        told: publish::body(fields)?,
    };
    if !member.key.starts_with(KEY_PREFIX) {
        return Err(key.refuse(format_args!("must be the key of a deed, which begins with {KEY_PREFIX:?}")));
    }
    if actor(&member.told).as_ref() != Some(&member.actor) {
        return Err(fields.required("body")?.refuse("must be an object whose field \"actor\" names the same user"));
    }
    Ok(member)
}

/// The version of an item or a comment; 1 if the line gives none.
fn version(fields: &Fields<'_>) -> Result<u32, Problem> {
    let Some(field) = fields.get("version") else { return Ok(1) };
    match u32::try_from(field.integer()?) {
        Ok(version) if version > 0 => Ok(version),
        _ => Err(field.refuse("must be a version, 1 or greater")),
    }
}

/// The body of a deleted item.
fn nothing() -> Body {
    Body::parse("null".to_owned()).expect("null is JSON")
}

/// Reads a time. Unlike the time of a new item, it may be in the future. It must fit into a rank, since it may become a
/// rank.
fn time(field: &Field<'_>) -> Result<Millis, Problem> {
    let at = field.integer()?;
    if !(0..=RANK_MAX).contains(&at) {
        return Err(field.refuse(format_args!(
            "must be a Unix time in milliseconds, not before 1970 and at most {RANK_MAX}, not {at}"
        )));
    }
    time::not_seconds(at).map_err(|why| field.refuse(why))?;
    Ok(at)
}

/// Reads one of a few words, which the type `T` reads in the same spelling.
fn one_of<T: serde::de::DeserializeOwned>(field: &Field<'_>, words: &[&str]) -> Result<T, Problem> {
    serde_json::from_str(field.raw().get())
        .map_err(|_| field.refuse(format_args!("must be one of {}, not {}", words.join(", "), field.raw().get())))
}

fn place(field: &Field<'_>) -> Result<Place, Problem> {
    let text = field.string()?;
    let place = match &*text {
        "start" => Some(Place::Start),
        "head" => Some(Place::Head),
        "everyone" => Some(Place::Everyone),
        text => match text.strip_prefix("delete:") {
            Some(id) => id.parse().ok().map(Place::Delete),
            None => text.parse().ok().map(Place::Add),
        },
    };
    place.ok_or_else(|| {
        field.refuse(format_args!(
            "must be \"start\", \"head\", \"everyone\", an item's id, or \"delete:\" and an item's id, not {:?}",
            short(&text)
        ))
    })
}

/// A line as an export writes it.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum Out<'a> {
    Item {
        #[serde(flatten)]
        item: &'a Item,
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<&'a [UserId]>,
        #[serde(skip_serializing_if = "Option::is_none")]
        audience: Option<&'a [UserId]>,
    },
    #[serde(rename = "item")]
    Gone {
        id: ItemId,
        author: &'a UserId,
        #[serde(skip_serializing_if = "Option::is_none")]
        kind: Option<&'a str>,
        published_at: Millis,
        rank: i64,
        deleted: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        audience: Option<&'a [UserId]>,
    },
    Delete {
        id: ItemId,
    },
    Follow {
        reader: &'a UserId,
        author: &'a UserId,
        since: Millis,
        from: String,
    },
    Unfollow {
        reader: &'a UserId,
        author: &'a UserId,
    },
    Shield {
        shield: Shield,
        user: &'a UserId,
        other: &'a UserId,
        since: Millis,
    },
    Request {
        reader: &'a UserId,
        author: &'a UserId,
        since: Millis,
    },
    Class {
        author: &'a UserId,
        class: Class,
    },
    Private {
        user: &'a UserId,
    },
    Reaction {
        id: ItemId,
        kind: &'a ReactionKind,
        user: &'a UserId,
        since: Millis,
    },
    Listed {
        user: &'a UserId,
        list: &'a ListName,
        member: &'a UserId,
        since: Millis,
    },
    Person {
        user: &'a UserId,
        #[serde(flatten)]
        person: &'a Person,
    },
    Comment {
        id: ItemId,
        item: ItemId,
        author: &'a UserId,
        created_at: Millis,
        #[serde(skip_serializing_if = "Option::is_none")]
        reply_to: Option<ItemId>,
        version: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        body: Option<&'a Body>,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        mentions: &'a [UserId],
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        deleted: bool,
    },
    Member {
        line: ItemId,
        seq: u64,
        item: ItemId,
        reader: &'a UserId,
        group: &'a str,
        kind: &'a str,
        actor: &'a UserId,
        key: &'a str,
        body: &'a Body,
    },
    Ranking {
        user: &'a UserId,
        feed: &'a str,
        ranking: Vec<rankings::Place>,
    },
    Pins {
        user: &'a UserId,
        items: Vec<ItemId>,
    },
    Cursor {
        cursor: String,
    },
    /// A device that push services reach. An import knows neither this type of line nor the types below.
    Device {
        user: &'a UserId,
        device: &'a DeviceId,
        platform: &'a str,
        push_token: &'a str,
        feeds: Vec<&'a str>,
        since: Millis,
    },
    Session {
        user: &'a UserId,
        device: &'a DeviceId,
        position: Option<Position>,
        since: Millis,
    },
    Seen {
        user: &'a UserId,
        feed: &'a str,
        position: Position,
        until: Millis,
    },
    /// A body that an item had before it was edited.
    Version {
        id: ItemId,
        version: u32,
        body: &'a Body,
        replaced_at: Millis,
    },
    Addressed {
        user: &'a UserId,
        id: ItemId,
        author: &'a UserId,
    },
    Revoked {
        user: &'a UserId,
        before: Millis,
    },
}

/// The text of the place where an edge begins, which [`read`] can read again.
pub(super) fn place_text(place: Place) -> String {
    match place {
        Place::Head => "head".to_owned(),
        Place::Everyone => "everyone".to_owned(),
        Place::Start => "start".to_owned(),
        Place::Add(id) => id.to_string(),
        Place::Delete(id) => format!("delete:{id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_export_writes_an_import_reads() {
        let (ann, bob): (UserId, UserId) = ("ann".parse().unwrap(), "bob".parse().unwrap());
        for place in [Place::Head, Place::Everyone, Place::Start, Place::Add(ItemId(7)), Place::Delete(ItemId(7))] {
            let out = Out::Follow { reader: &bob, author: &ann, since: 5, from: place_text(place) };
            let follow = Import::Follow { reader: bob.clone(), author: ann.clone(), since: 5, from: place };
            assert_eq!(read(&serde_json::to_string(&out).unwrap()).unwrap(), Line::Import(follow));
        }
        let out = serde_json::to_string(&Out::Unfollow { reader: &bob, author: &ann }).unwrap();
        let unfollow = Import::Unfollow { reader: bob.clone(), author: ann.clone() };
        assert_eq!(read(&out).unwrap(), Line::Import(unfollow));
        for shield in [Shield::Mute, Shield::Hide, Shield::Block] {
            let out = serde_json::to_string(&Out::Shield { shield, user: &ann, other: &bob, since: 0 }).unwrap();
            let up = Import::Shield { user: ann.clone(), other: bob.clone(), shield, since: 0 };
            assert_eq!(read(&out).unwrap(), Line::Import(up), "{out}");
        }
        for class in [Class::Auto, Class::Push, Class::Pull, Class::Everyone] {
            let out = serde_json::to_string(&Out::Class { author: &ann, class }).unwrap();
            assert_eq!(read(&out).unwrap(), Line::Import(Import::Class { author: ann.clone(), class }), "{out}");
        }
        let out = serde_json::to_string(&Out::Private { user: &ann }).unwrap();
        assert_eq!(read(&out).unwrap(), Line::Import(Import::Private { author: ann.clone() }));
        let out = serde_json::to_string(&Out::Request { reader: &bob, author: &ann, since: 5 }).unwrap();
        let request = Import::Request { reader: bob.clone(), author: ann.clone(), since: 5 };
        assert_eq!(read(&out).unwrap(), Line::Import(request));
        let kind: ReactionKind = "like".parse().unwrap();
        let out = Out::Reaction { id: ItemId(7), kind: &kind, user: &bob, since: 5 };
        let reaction = Line::Reaction { item: ItemId(7), kind: kind.clone(), user: bob.clone(), since: 5 };
        assert_eq!(read(&serde_json::to_string(&out).unwrap()).unwrap(), reaction);
        let gone = Out::Gone {
            id: ItemId(7),
            author: &ann,
            kind: Some("like"),
            published_at: 5,
            rank: 6,
            deleted: true,
            audience: Some(&[]),
        };
        let Line::Import(Import::Item { publish, deleted: true, .. }) =
            read(&serde_json::to_string(&gone).unwrap()).unwrap()
        else {
            panic!("a deleted item")
        };
        assert_eq!((publish.id, publish.rank, publish.body.get()), (Some(ItemId(7)), Some(6), "null"));
        assert_eq!(publish.kind.as_deref(), Some("like"));
        assert_eq!(publish.audience, Audience::Narrowed(Narrowed::to(vec![])), "its delete reaches nobody else either");
        let list: ListName = "close".parse().unwrap();
        let out = Out::Listed { user: &ann, list: &list, member: &bob, since: 5 };
        let listed = Line::Listed { user: ann.clone(), list: list.clone(), member: bob.clone(), since: 5 };
        assert_eq!(read(&serde_json::to_string(&out).unwrap()).unwrap(), listed);
        let said = Body::parse("{\"a\" : 1}".to_owned()).unwrap();
        for (body, reply_to, mentions) in [(Some(&said), Some(ItemId(9)), &[ann.clone()][..]), (None, None, &[])] {
            let deleted = body.is_none();
            let out = Out::Comment {
                id: ItemId(8),
                item: ItemId(7),
                author: &bob,
                created_at: 5,
                reply_to,
                version: 3,
                body,
                mentions,
                deleted,
            };
            let Line::Comment(author, new) = read(&serde_json::to_string(&out).unwrap()).unwrap() else { panic!() };
            assert_eq!((author, new.item, new.id, new.reply_to), (bob.clone(), ItemId(7), Some(ItemId(8)), reply_to));
            assert_eq!(new.past, Some(PastComment { at: 5, version: 3, deleted }));
            assert_eq!((new.body.get(), &new.mentions[..]), (body.map_or("null", Body::get), mentions));
        }
        assert_eq!(read(r#"{"type":"cursor","cursor":"1:2"}"#).unwrap(), Line::Cursor);
    }

    #[test]
    fn the_document_has_a_line_of_each_type() {
        let document = include_str!("../../../../docs/openapi.json");
        for kind in KINDS {
            assert!(document.contains(&format!(r#"{{\"type\":\"{kind}\","#)), "{kind}");
        }
    }

    #[test]
    fn a_bad_line_says_what_is_wrong_with_it() {
        let cases = [
            ("nonsense", "one JSON object"),
            ("[1]", "must be a JSON object"),
            (r#"{"id":"7"}"#, "\"type\" is missing"),
            (r#"{"type":"post"}"#, "must be one of"),
            (r#"{"type":"item","author":"ann","published_at":1,"body":1}"#, "\"id\" or field \"foreign_id\""),
            (r#"{"type":"item","id":"7","author":"ann","body":1}"#, "\"published_at\" is missing"),
            (r#"{"type":"item","id":"7","author":"ann","published_at":1,"body":1,"version":0}"#, "1 or greater"),
            (r#"{"type":"item","id":"7","author":"ann","published_at":1,"body":1,"to":["a b"]}"#, "may hold only"),
            (
                r#"{"type":"item","id":"7","author":"ann","published_at":1,"body":1,"direct":true}"#,
                "\"to\" names the readers",
            ),
            (
                r#"{"type":"item","id":"7","author":"ann","published_at":1,"body":1,"direct":false,"to":["bob"]}"#,
                "\"to\" names",
            ),
            (
                r#"{"type":"item","id":"7","author":"ann","published_at":1,"body":1,"direct":1,"to":["bob"]}"#,
                "true, false",
            ),
            (
                r#"{"type":"item","id":"7","author":"ann","published_at":9007199254740992,"body":1}"#,
                "at most 9007199254740991",
            ),
            (r#"{"type":"follow","reader":"bob","author":"ann","since":-1}"#, "not before 1970"),
            (r#"{"type":"follow","reader":"bob","author":"ann","since":1763600000}"#, "give 1763600000000"),
            (r#"{"type":"item","id":"7","author":"ann","published_at":1763600000,"body":1}"#, "give 1763600000000"),
            (r#"{"type":"follow","reader":"bob","author":"ann","since":1,"from":"x:7"}"#, "\"start\""),
            (r#"{"type":"follow","reader":"bob","author":"ann","since":1,"from":"sooner"}"#, "\"start\""),
            (r#"{"type":"follow","reader":"bob","author":"ann","since":1,"from":"delete:x"}"#, "\"start\""),
            (r#"{"type":"shield","shield":"ban","user":"bob","other":"ann","since":1}"#, "mute, hide, block"),
            (r#"{"type":"shield","shield":"mute","user":"bob","other":"bob","since":1}"#, "must be another user"),
            (r#"{"type":"class","author":"ann","class":"big"}"#, "auto, push, pull, everyone"),
            (r#"{"type":"reaction","id":"7","kind":"","user":"bob","since":1}"#, "1 to 64 bytes"),
            (r#"{"type":"delete","id":"7","why":1}"#, "unknown field"),
            (
                r#"{"type":"item","id":"7","author":"ann","published_at":1,"body":1,"narrowed":true}"#,
                "\"audience\" names the readers",
            ),
            (
                r#"{"type":"item","id":"7","author":"ann","published_at":1,"body":1,"to":["bob"],"audience":["bob"]}"#,
                "must not stand beside",
            ),
            (r#"{"type":"listed","user":"ann","list":"a","member":"ann","since":1}"#, "must be another user"),
        ];
        for (text, detail) in cases {
            let problem = serde_json::to_value(read(text).unwrap_err()).unwrap();
            assert!(problem["detail"].as_str().unwrap().contains(detail), "{text}: {problem}");
        }
    }
}
