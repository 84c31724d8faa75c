//! Many changes of comments in one request, for a backend that imports its comments or moderates them.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use compact_str::CompactString;
use feedgate_common::archive::COMMIT_READERS_MAX;
use feedgate_common::around::{CommentWrite, Commented, NewComment};
use feedgate_common::{Archive, Body, ItemId, Millis, UserId, UserNo};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{body, name_all, told, write_all};
use crate::api::access::PublishKey;
use crate::api::batch;
use crate::api::fields::Fields;
use crate::api::inside::BatchKey;
use crate::api::payload::Payload;
use crate::api::problem::Problem;
use crate::api::publish::{self, KEY};
use crate::api::query::{ItemRef, NoQuery};
use crate::api::seeing::{missing, resolve_all};
use crate::api::writer::Writer;

/// The result of one operation that was done.
#[derive(Serialize)]
struct Done {
    status: u16,
    id: ItemId,
    item: ItemId,
    /// When a new comment was written; `None` for any other operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<Millis>,
}

/// A change as it is asked for.
pub(in crate::api) struct Wanted {
    item: ItemRef,
    change: Change,
}

enum Change {
    Add {
        author: UserId,
        body: Body,
        id: Option<ItemId>,
        reply_to: Option<ItemId>,
        mentions: Vec<UserId>,
        key: Option<CompactString>,
    },
    Edit {
        id: ItemId,
        body: Body,
        mentions: Option<Vec<UserId>>,
    },
    Remove {
        id: ItemId,
    },
}

/// Answers `POST /v1/comments/batch` with `{"ops":[{"op":"add"|"edit"|"remove", item, …}, …]}`: all operations in one
/// commit, in their order, so that a comment may answer a comment that stands before it. If the future is dropped, the
/// commit may still be made.
pub(in crate::api) async fn change(
    _: PublishKey,
    State(archive): State<Arc<dyn Archive>>,
    State(writer): State<Writer>,
    _: NoQuery,
    headers: HeaderMap,
    batch_key: Option<Extension<BatchKey>>,
    payload: Payload<{ batch::BYTES_MAX }>,
) -> Result<Response, Problem> {
    publish::no_header_key(&headers)?;
    let (mut number, mut named) = (0, 0);
    let read = batch::read(&payload, |op, at| {
        let key = batch_key.as_ref().map(|Extension(key)| key.of(number));
        number += 1;
        let fields = Fields::of(op, at.clone(), FIELDS)?;
        let wanted = operation(op, at, &fields, key)?;
        named += wanted.change.mentions().len();
        match fields.get("mentions") {
            Some(field) if named > COMMIT_READERS_MAX => Err(field.refuse(format_args!(
                "the comments of one batch mention at most {COMMIT_READERS_MAX} users; send this one in another"
            ))),
            _ => Ok(wanted),
        }
    })?;
    let items = resolve_all(&*archive, read.iter().flatten().map(|wanted| &wanted.item)).await?;
    let (authors, mentioned) = users(read.iter().flatten());
    let numbers = if authors.is_empty() { vec![] } else { archive.intern(&authors).await? };
    name_all(&*archive, &mentioned).await?;
    let numbers: HashMap<UserId, UserNo> = authors.into_iter().zip(numbers).collect();
    let (mut writes, mut places) = (vec![], vec![]);
    let mut items = items.into_iter();
    for (nth, wanted) in read.into_iter().enumerate() {
        places.push(wanted.and_then(|Wanted { item: which, change }| {
            let item = items.next().flatten().ok_or_else(|| missing(&which).within(&batch::pointer(nth)))?;
            let adds = matches!(change, Change::Add { .. });
            writes.push(change.of(item, &numbers));
            Ok((which, item, adds))
        }));
    }
    let mut done = write_all(&archive, &writer, writes).await?.into_iter();
    let results = places.into_iter().enumerate().map(|(nth, place)| {
        let (which, item, adds) = place?;
        let done = done.next().expect("the Archive answers each change");
        let done = done.map_err(|refused| told(refused, &which).within(&batch::pointer(nth)));
        let Commented { place, changed, .. } = done?;
        let status = if adds && changed { StatusCode::CREATED } else { StatusCode::OK };
        Ok(Done { status: status.as_u16(), id: place.id, item, created_at: adds.then_some(place.at) })
    });
    Ok(batch::answer(results))
}

/// The fields of all operations.
pub(in crate::api) const FIELDS: &[&str] = &["op", "item", "author", "body", "reply_to", "id", "mentions", KEY];

/// Reads one operation at the pointer `at`; `key` is its idempotency key if it has none of its own.
pub(in crate::api) fn operation(
    op: &RawValue,
    at: String,
    fields: &Fields<'_>,
    key: Option<CompactString>,
) -> Result<Wanted, Problem> {
    let what = fields.required("op")?;
    let change = match &*what.string()? {
        "add" => {
            let own = fields.get(KEY).map(|field| publish::key_in(&field)).transpose()?;
            Change::Add {
                author: fields.required("author")?.name()?,
                body: body(fields)?,
                id: fields.get("id").map(|field| field.name()).transpose()?,
                reply_to: fields.get("reply_to").map(|field| field.name()).transpose()?,
                mentions: publish::mentions(fields)?.unwrap_or_default(),
                key: own.or(key),
            }
        }
        "edit" => {
            let fields = Fields::of(op, at, &["op", "item", "id", "body", "mentions"])?;
            let id = fields.required("id")?.name()?;
            Change::Edit { id, body: body(&fields)?, mentions: publish::mentions(&fields)? }
        }
        "remove" => Change::Remove { id: Fields::of(op, at, &["op", "item", "id"])?.required("id")?.name()? },
        other => {
            return Err(what.refuse(format_args!("must be \"add\", \"edit\" or \"remove\", not {other:?}")));
        }
    };
    Ok(Wanted { item: fields.required("item")?.name()?, change })
}

/// The authors of new comments, and the users whom comments mention; each user once in each list.
fn users<'a>(wanted: impl Iterator<Item = &'a Wanted>) -> (Vec<UserId>, Vec<UserId>) {
    let (mut authors, mut mentioned) = (vec![], vec![]);
    for Wanted { change, .. } in wanted {
        mentioned.extend_from_slice(change.mentions());
        if let Change::Add { author, .. } = change {
            authors.push(author.clone());
        }
    }
    for users in [&mut authors, &mut mentioned] {
        users.sort_unstable();
        users.dedup();
    }
    (authors, mentioned)
}

impl Change {
    fn mentions(&self) -> &[UserId] {
        match self {
            Self::Add { mentions, .. } | Self::Edit { mentions: Some(mentions), .. } => mentions,
            Self::Edit { mentions: None, .. } | Self::Remove { .. } => &[],
        }
    }

    /// The change of a comment on this item, by a backend. `numbers` has the user number of each author.
    fn of(self, item: ItemId, numbers: &HashMap<UserId, UserNo>) -> CommentWrite {
        match self {
            Self::Add { author, body, id, reply_to, mentions, key } => {
                let author = numbers[&author];
                CommentWrite::Make(NewComment { item, author, reply_to, body, id, key, past: None, mentions })
            }
            Self::Edit { id, body, mentions } => {
                CommentWrite::Edit { item, id, by: None, body, mentions, if_version: None }
            }
            Self::Remove { id } => CommentWrite::Delete { item, id, by: None, if_version: None },
        }
    }
}
