//! Accepts items, one or many at a time.
//!
//! 201 means that the item and its event are durable. A repetition (the same idempotency key, id or foreign_id with the
//! same payload) gets 200 and the first answer; with another payload it gets 409. An item is for the followers of its
//! author, for the followers in its audience, or for named readers; an item for named readers is in no outbox.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use compact_str::CompactString;
use feedgate_common::archive::{
    Audience, COMMIT_READERS_MAX, FOREIGN_ID_MAX_BYTES, Publish, READERS_MAX, Refused, Write, Written,
};
use feedgate_common::audience::{LISTS_MAX, Narrowed, Narrowing};
use feedgate_common::ids::ListName;
use feedgate_common::mentions::{MENTIONS_MAX, each_once};
use feedgate_common::named::KIND_MAX;
use feedgate_common::notify::KEY_PREFIX;
use feedgate_common::{Body, ItemId, Millis, OutboxSeq, UserId};
use serde::Serialize;

use super::access::PublishKey;
use super::batch;
use super::fields::{Field, Fields, Unit};
use super::inside::BatchKey;
use super::payload::{ONE, Payload};
use super::problem::Problem;
use super::query::NoQuery;
use super::time;
use super::writer::Writer;
use crate::clock;

/// How many milliseconds an item's `published_at` may be ahead of this server's clock.
const AHEAD_MAX_MS: i64 = 5 * 60 * 1000;

/// The largest rank, 2^53 - 1: a double holds all integers up to it exactly.
pub(super) const RANK_MAX: i64 = (1 << 53) - 1;

const KEY_MAX: usize = 255;

/// The fields of an item; an operation of a batch has [`KEY`] too.
pub(super) const FIELDS: &[&str] =
    &["author", "body", "kind", "id", "foreign_id", "ref", "mentions", "published_at", "rank", "audience"];

/// The most items of one batch whose audience is narrowed: each stores an audience in the same commit.
const BATCH_NARROWED_MAX: usize = 20;

/// How many readers an audience names, each of whom gets a record in the commit.
pub(super) fn names_of(audience: &Audience) -> usize {
    match audience {
        Audience::Users(users) => users.len(),
        Audience::Followers | Audience::Narrowed(_) => 0,
    }
}

/// The field of an operation with its idempotency key; a single item has the key in a header.
pub(super) const KEY: &str = "idempotency_key";
const KEY_HEADER: &str = "Idempotency-Key";

/// The answer to a published item.
#[derive(Debug, Serialize)]
struct Accepted {
    id: ItemId,
    author: UserId,
    /// `None` for an item that is in no outbox.
    outbox_seq: Option<OutboxSeq>,
    published_at: Millis,
}

/// The result of an item in a batch.
#[derive(Debug, Serialize)]
struct Outcome {
    status: u16,
    #[serde(flatten)]
    accepted: Accepted,
}

/// Answers `POST /v1/items` and publishes one item.
pub(super) async fn one(
    _: PublishKey,
    State(writer): State<Writer>,
    _: NoQuery,
    headers: HeaderMap,
    payload: Payload<ONE>,
) -> Result<Response, Problem> {
    let now = clock::now();
    let key = header_key(&headers)?;
    let publish = Publish { idempotency_key: key, ..read(&payload.fields(FIELDS)?, now)? };
    let author = publish.author.clone();
    let (status, accepted) = accepted(author, writer.write_one(Write::Publish(publish)).await?);
    Ok((status, [(header::LOCATION, format!("/v1/items/{}", accepted.id))], Json(accepted)).into_response())
}

/// Answers `POST /v1/items/batch` and publishes many items, with one result for each.
pub(super) async fn many(
    _: PublishKey,
    State(writer): State<Writer>,
    _: NoQuery,
    headers: HeaderMap,
    batch_key: Option<Extension<BatchKey>>,
    payload: Payload<{ batch::BYTES_MAX }>,
) -> Result<Response, Problem> {
    no_header_key(&headers)?;
    let now = clock::now();
    let known = [FIELDS, &[KEY]].concat();
    let (mut named, mut narrowed, mut number) = (0, 0, 0);
    let operation = |op: &_, at| {
        let other_key = batch_key.as_ref().map(|Extension(key)| key.of(number));
        number += 1;
        let fields = Fields::of(op, at, &known)?;
        let idempotency_key = fields.get(KEY).map(|field| key_in(&field)).transpose()?.or(other_key);
        let publish = Publish { idempotency_key, ..read(&fields, now)? };
        // Each of these readers and users may get a record in the same commit.
        let names = names_of(&publish.audience) + publish.mentions.len();
        if let Some(field) = fields.get("audience").or(fields.get("mentions")) {
            if named + names > COMMIT_READERS_MAX {
                return Err(field.refuse(format_args!(
                    "the items of one batch name at most {COMMIT_READERS_MAX} readers, and users whom they mention; send \
                     this one in another"
                )));
            }
            named += names;
            if matches!(publish.audience, Audience::Narrowed(_)) {
                if narrowed == BATCH_NARROWED_MAX {
                    return Err(field.refuse(format_args!(
                        "at most {BATCH_NARROWED_MAX} items of one batch are narrowed; send this one in another"
                    )));
                }
                narrowed += 1;
            }
        }
        Ok((publish.author.clone(), Write::Publish(publish)))
    };
    let answer = |author, written: Result<Written, Refused>| {
        let (status, accepted) = accepted(author, written?);
        Ok(Outcome { status: status.as_u16(), accepted })
    };
    batch::carry_out(&writer, payload, operation, answer).await
}

/// Reads the item to publish, without its idempotency key.
pub(super) fn read(fields: &Fields<'_>, now: Millis) -> Result<Publish, Problem> {
    let publish = Publish::new(fields.required("author")?.name()?, body(fields)?);
    Ok(Publish {
        kind: printable(fields.get("kind"), KIND_MAX, Unit::Characters)?,
        id: fields.get("id").map(|id| id.name()).transpose()?,
        foreign_id: foreign_id(fields.get("foreign_id"))?,
        repost_of: fields.get("ref").map(|id| id.name()).transpose()?,
        mentions: mentions(fields)?.unwrap_or_default(),
        published_at: fields.get("published_at").map(|at| published_at(&at, now)).transpose()?,
        rank: fields.get("rank").map(|rank| self::rank(&rank)).transpose()?,
        audience: fields.get("audience").map(|who| audience(&who)).transpose()?.unwrap_or_default(),
        ..publish
    })
}

/// The field `body`, with every byte as it was sent.
pub(super) fn body(fields: &Fields<'_>) -> Result<Body, Problem> {
    let field = fields.required("body")?;
    Body::parse(field.raw().get().to_owned()).map_err(|why| field.refuse(why))
}

/// The users in the field `mentions`, each once, in the order given; `None` if there is no such field.
pub(super) fn mentions(fields: &Fields<'_>) -> Result<Option<Vec<UserId>>, Problem> {
    let users = fields.get("mentions").map(|field| field.names_if_any(MENTIONS_MAX)).transpose()?;
    Ok(users.map(each_once))
}

/// Reads a foreign id. Foreign ids with the prefix of notifications are reserved for Feedgate.
fn foreign_id(field: Option<Field<'_>>) -> Result<Option<CompactString>, Problem> {
    let Some(field) = field else { return Ok(None) };
    let text = field.printable(FOREIGN_ID_MAX_BYTES, Unit::Bytes)?;
    if text.starts_with(KEY_PREFIX) {
        return Err(
            field.refuse(format_args!("must not begin with {KEY_PREFIX:?}: so do those that Feedgate gives itself"))
        );
    }
    Ok(Some(text.into()))
}

pub(super) fn printable(field: Option<Field<'_>>, max: usize, unit: Unit) -> Result<Option<CompactString>, Problem> {
    field.map(|field| field.printable(max, unit).map(CompactString::from)).transpose()
}

pub(super) fn published_at(field: &Field<'_>, now: Millis) -> Result<Millis, Problem> {
    let at = field.integer()?;
    if at < 0 {
        return Err(field.refuse(format_args!("must be a Unix time in milliseconds, not before 1970 ({at})")));
    }
    time::not_seconds(at).map_err(|why| field.refuse(why))?;
    if at > now + AHEAD_MAX_MS {
        let ahead = (at - now) / 1000;
        return Err(field.refuse(format_args!(
            "must be at most 300 s ahead of this server's clock, this one is {ahead} s ahead; it is in milliseconds"
        )));
    }
    Ok(at)
}

/// Reads a rank. Clients compare ranks too, and most clients read numbers as doubles, which are not exact beyond 2^53:
/// then clients would sort items in another order.
pub(super) fn rank(field: &Field<'_>) -> Result<i64, Problem> {
    let rank = field.integer()?;
    if (-RANK_MAX..=RANK_MAX).contains(&rank) {
        return Ok(rank);
    }
    Err(field.refuse(format_args!("must be from -{RANK_MAX} to {RANK_MAX}, not {rank}")))
}

/// Reads an audience: `"followers"`, `{"users":[…]}`, or `{"lists":[…],"except_lists":[…],"mutual":true}`, which
/// narrows the followers.
fn audience(field: &Field<'_>) -> Result<Audience, Problem> {
    match field.object(&["users", "lists", "except_lists", "mutual"]) {
        Some(fields) => {
            let fields = fields?;
            let narrowed = narrowing(field, &fields)?;
            match (fields.get("users"), narrowed) {
                (Some(users), None) => Ok(Audience::Users(users.names(READERS_MAX)?)),
                (None, Some(by)) => Ok(Audience::Narrowed(Narrowed::by(by))),
                (Some(users), Some(_)) => Err(users.refuse(
                    "must stand alone: an item is for named readers, or narrowed by \"lists\", \"except_lists\" and \
                     \"mutual\"",
                )),
                (None, None) => {
                    let why = "field \"users\" is missing; to narrow the followers, give at least one of \"lists\", \
                               \"except_lists\" and \"mutual\": true";
                    Err(Problem::at_pointer(format!("{}/users", field.pointer()), why))
                }
            }
        }
        None if field.string().is_ok_and(|who| who == "followers") => Ok(Audience::Followers),
        None => Err(field.refuse(format_args!(
            "must be \"followers\", {{\"users\":[…]}} with the names of 1 to {READERS_MAX} readers, or \
             {{\"lists\":[…],\"except_lists\":[…],\"mutual\":true}}"
        ))),
    }
}

/// How an audience narrows the followers; `None` if it has no such field.
fn narrowing(audience: &Field<'_>, fields: &Fields<'_>) -> Result<Option<Narrowing>, Problem> {
    let lists = |name| fields.get(name).map_or(Ok(vec![]), |field| field.names::<ListName>(LISTS_MAX));
    let mutual = match fields.get("mutual").map(|field| (field.raw().get() == "true", field)) {
        Some((false, field)) => return Err(field.refuse("must be true; leave it out for all followers")),
        Some((true, _)) => true,
        None => false,
    };
    let by = Narrowing { lists: lists("lists")?, except_lists: lists("except_lists")?, mutual };
    if let Some(both) = by.lists.iter().find(|list| by.except_lists.contains(list)) {
        return Err(audience.refuse(format_args!("must not name list {both} in both \"lists\" and \"except_lists\"")));
    }
    Ok((by != Narrowing::default()).then_some(by))
}

pub(super) fn header_key(headers: &HeaderMap) -> Result<Option<CompactString>, Problem> {
    let wrong = |why: String| Problem::header(KEY_HEADER, format!("{KEY_HEADER} {why}"));
    let mut lines = headers.get_all(KEY_HEADER).iter();
    let Some(line) = lines.next() else { return Ok(None) };
    if lines.next().is_some() {
        return Err(wrong("stands twice; send it once".to_owned()));
    }
    // A byte beyond ASCII becomes a character that `key` refuses.
    key(&String::from_utf8_lossy(line.as_bytes())).map(Some).map_err(wrong)
}

/// Refuses a key of a batch in the header, since that does not say which operation the key is for.
pub(super) fn no_header_key(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.contains_key(KEY_HEADER) {
        let detail = "a batch takes no Idempotency-Key header; give each operation its own \"idempotency_key\"";
        return Err(Problem::header(KEY_HEADER, detail));
    }
    Ok(())
}

/// The key of an operation, from its field [`KEY`].
pub(super) fn key_in(field: &Field<'_>) -> Result<CompactString, Problem> {
    key(&field.string()?).map_err(|why| field.refuse(why))
}

/// Reads an idempotency key, 1-255 visible ASCII characters; the error says what is wrong.
fn key(text: &str) -> Result<CompactString, String> {
    if text.is_empty() || text.len() > KEY_MAX {
        return Err(format!("must have 1 to {KEY_MAX} characters, this one has {}", text.chars().count()));
    }
    match text.chars().find(|c| !c.is_ascii_graphic()) {
        Some(c) => Err(format!("must hold only visible ASCII characters, this one holds {c:?}")),
        None => Ok(text.into()),
    }
}

fn accepted(author: UserId, written: Written) -> (StatusCode, Accepted) {
    let Written::Published { id, outbox_seq, published_at, fresh, .. } = written else {
        unreachable!("a publish is answered as one");
    };
    let status = if fresh { StatusCode::CREATED } else { StatusCode::OK };
    let outbox_seq = (outbox_seq > 0).then_some(outbox_seq);
    (status, Accepted { id, author, outbox_seq, published_at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    const NOW: Millis = 1_700_000_000_000;

    fn publish(json: &str) -> Result<Publish, Problem> {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        read(&Fields::of(raw, "", FIELDS)?, NOW)
    }

    #[test]
    fn everything_an_item_may_have_is_read_and_its_body_kept_to_the_byte() {
        let all = publish(
            r#"{"author":"ann","body": {"a" : 1.0, "b":"\u00e4"} ,"kind":"post","id":"7","foreign_id":"x/1","ref":"5",
                "mentions":["bob","cid","bob"],"published_at":1700000300000,"rank":-5,"audience":"followers"}"#,
        )
        .unwrap();
        assert_eq!(all.body.get(), r#"{"a" : 1.0, "b":"\u00e4"}"#);
        assert_eq!((all.id, all.rank, all.published_at), (Some(ItemId(7)), Some(-5), Some(NOW + 300_000)));
        assert_eq!((all.kind.as_deref(), all.foreign_id.as_deref()), (Some("post"), Some("x/1")));
        assert_eq!(all.repost_of, Some(ItemId(5)));
        assert_eq!(all.mentions, ["bob", "cid"].map(|name| name.parse().unwrap()), "each once");
        assert_eq!(publish(r#"{"author":"ann","body":null}"#).unwrap().body.get(), "null");
    }

    #[test]
    fn s9_an_audience_is_read_and_a_wrong_one_says_what_is_wrong() {
        let of = |audience: &str| publish(&format!(r#"{{"author":"ann","body":1,"audience":{audience}}}"#));
        let lists = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<Vec<ListName>>();
        let by = Narrowing { lists: lists(&["a", "b"]), except_lists: lists(&["c"]), mutual: true };
        let wanted = Audience::Narrowed(Narrowed::by(by));
        assert_eq!(of(r#"{"lists":["a","b"],"except_lists":["c"],"mutual":true}"#).unwrap().audience, wanted);
        for (bad, words) in [
            ("{}", "at least one of"),
            (r#"{"lists":[]}"#, "1 to 100"),
            (r#"{"lists":["a b"]}"#, "may hold only"),
            (r#"{"mutual":false}"#, "must be true"),
            (r#"{"lists":["a"],"users":["bob"]}"#, "must stand alone"),
            (r#"{"lists":["a"],"except_lists":["a"]}"#, "list a in both"),
            (r#"{"circles":["a"]}"#, "unknown field"),
            (r#""friends""#, "except_lists"),
        ] {
            let refused = format!("{:?}", of(bad).unwrap_err());
            assert!(refused.contains(words), "{bad}: {refused}");
        }
    }

    #[test]
    fn a_foreign_id_of_a_notification_is_not_taken_by_a_backend() {
        let refused = publish(r#"{"author":"ann","body":1,"foreign_id":"feedgate:1"}"#).unwrap_err();
        assert!(format!("{refused:?}").contains("must not begin with"), "{refused:?}");
        assert!(publish(r#"{"author":"ann","body":1,"foreign_id":"my-feedgate:1"}"#).is_ok());
    }

    #[test]
    fn a_key_is_visible_ascii() {
        assert!(key(&"k".repeat(255)).is_ok());
        for bad in ["", &"k".repeat(256), "a b", "ä", "a\n"] {
            assert!(key(bad).is_err(), "{bad:?}");
        }
    }
}
