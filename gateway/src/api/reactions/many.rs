//! Many reactions in one request, for a backend that collects the reactions of its users.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feedgate_common::around::{Reaction, ReactionKind, Unreacted};
use feedgate_common::{Archive, ItemId, UserId, UserNo};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::api::access::PublishKey;
use crate::api::batch;
use crate::api::fields::Fields;
use crate::api::payload::Payload;
use crate::api::problem::Problem;
use crate::api::query::{ItemRef, NoQuery};
use crate::api::seeing::{missing, resolve_all};
use crate::api::writer::Writer;
use crate::clock;

/// The result of one operation that was done.
#[derive(Serialize)]
struct Done {
    status: u16,
}

/// A change as it is asked for.
pub(in crate::api) struct Wanted {
    item: ItemRef,
    kind: ReactionKind,
    user: UserId,
    on: bool,
}

/// The key that identifies a reaction.
type Key = (ItemId, ReactionKind, UserNo);

/// Answers `POST /v1/reactions/batch` with `{"ops":[{"op":"add"|"remove", item, kind, user}, …]}`: all additions in one
/// commit, and then all removals in another. If a reaction is named twice, the last operation counts. If the future is
/// dropped, either commit may still be made.
pub(in crate::api) async fn change(
    _: PublishKey,
    State(archive): State<Arc<dyn Archive>>,
    State(writer): State<Writer>,
    _: NoQuery,
    payload: Payload<{ batch::BYTES_MAX }>,
) -> Result<Response, Problem> {
    let read = batch::read(&payload, operation)?;
    let keys = keys(&*archive, read.iter().flatten()).await?;
    let last: BTreeMap<Key, bool> =
        read.iter().flatten().zip(&keys).filter_map(|(op, key)| Some((key.clone()?, op.on))).collect();
    let outcomes = carry_out(&archive, &writer, last).await?;
    let mut keys = keys.into_iter();
    let results = read.into_iter().enumerate().map(|(nth, op)| {
        let wanted = op?;
        let key = keys.next().expect("each operation has a key, or none");
        let outcome = match key.and_then(|key| outcomes.get(&key)) {
            Some(Ok(_)) => Ok(Done { status: 200 }),
            Some(Err(refused @ Unreacted::TooManyKinds(_))) => Err(Problem::from(*refused)),
            Some(Err(Unreacted::NoSuchItem(_))) | None => Err(missing(&wanted.item)),
        };
        outcome.map_err(|problem| problem.within(&batch::pointer(nth)))
    });
    Ok(batch::answer(results))
}

/// Gives all reactions that are wanted, then takes back the others, and notifies the watchers of the items. Answers for
/// each reaction whether it has changed, or why it was refused.
async fn carry_out(
    archive: &Arc<dyn Archive>,
    writer: &Writer,
    wanted: BTreeMap<Key, bool>,
) -> Result<HashMap<Key, Result<bool, Unreacted>>, Problem> {
    let mut outcomes = HashMap::new();
    let (given, taken): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|(_, on)| *on);
    for (keys, on) in [(given, true), (taken, false)] {
        let at = clock::now();
        let keys: Vec<Key> = keys.into_iter().map(|(key, _)| key).collect();
        let reaction = |(item, kind, user): Key| Reaction { item, kind, user, at };
        let asked: Vec<Reaction> = keys.iter().cloned().map(reaction).collect();
        if !asked.is_empty() {
            outcomes.extend(keys.into_iter().zip(super::react(archive, writer, asked, on).await?));
        }
    }
    Ok(outcomes)
}

pub(in crate::api) fn operation(op: &RawValue, at: String) -> Result<Wanted, Problem> {
    let fields = Fields::of(op, at, &["op", "item", "kind", "user"])?;
    let on = batch::adds(&fields)?;
    let (item, kind) = (fields.required("item")?.name()?, fields.required("kind")?.name()?);
    Ok(Wanted { item, kind, user: fields.required("user")?.name()?, on })
}

/// The reaction that each operation names; `None` if there is no such item.
async fn keys<'a>(
    archive: &dyn Archive,
    wanted: impl Iterator<Item = &'a Wanted> + Clone,
) -> Result<Vec<Option<Key>>, Problem> {
    let names: Vec<UserId> = wanted.clone().map(|wanted| wanted.user.clone()).collect();
    let users = if names.is_empty() { vec![] } else { archive.intern(&names).await? };
    let items = resolve_all(archive, wanted.clone().map(|wanted| &wanted.item)).await?;
    let key = |((wanted, user), item): ((&Wanted, UserNo), Option<ItemId>)| Some((item?, wanted.kind.clone(), user));
    Ok(wanted.zip(users).zip(items).map(key).collect())
}
