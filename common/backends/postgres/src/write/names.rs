//! Whom the operations speak of: names to numbers, before the transaction.
//!
//! Numbers are never taken back, so nobody gets one by an operation that is refused: where a publish names somebody
//! new, what could refuse it is looked up first.

use std::collections::BTreeSet;

use feedgate_common::archive::{Audience, Publish, Write};
use feedgate_common::error::Result;
use feedgate_common::graph::Shields;
use feedgate_common::import::Import;
use feedgate_common::{Millis, UserId};

use super::{Ask, Numbers, look, published};
use crate::pool::{Pool, work};
use crate::users::Users;

/// The numbers of everybody who is spoken of, but for those whom only a publish names that is refused.
pub(super) async fn numbers(pool: &Pool, users: &Users, asks: &[Ask]) -> Result<Numbers> {
    let (mut names, mut doubtful) = (BTreeSet::new(), vec![]);
    for ask in asks {
        match published(&ask.write) {
            Some(publish) if may_be_refused(publish) => doubtful.push((publish, ask.now)),
            _ => names.extend(spoken_of(&ask.write)),
        }
    }
    let asked: Vec<UserId> = doubtful.iter().flat_map(|(publish, _)| named(publish)).cloned().collect();
    let known = users.numbers(pool, &asked).await?;
    let mut numbers: Numbers = asked.into_iter().zip(known).filter_map(|(name, no)| Some((name, no?))).collect();
    doubtful.retain(|(publish, _)| named(publish).any(|name| !numbers.contains_key(name)));
    if !doubtful.is_empty() {
        names.extend(free(pool, &numbers, &doubtful).await?.into_iter().flat_map(named));
    }
    // In the order of the operations, so that numbers are given in it.
    let mut wanted: Vec<UserId> = vec![];
    for name in asks.iter().flat_map(|ask| spoken_of(&ask.write)) {
        if names.remove(name) {
            wanted.push(name.clone());
        }
    }
    let given = users.intern(pool, &wanted).await?;
    numbers.extend(wanted.into_iter().zip(given));
    Ok(numbers)
}

fn may_be_refused(publish: &Publish) -> bool {
    publish.id.is_some() || publish.foreign_id.is_some() || publish.idempotency_key.is_some()
}

/// Those whose keys are all free.
async fn free<'a>(pool: &Pool, numbers: &Numbers, of: &[(&'a Publish, Millis)]) -> Result<Vec<&'a Publish>> {
    let ids: Vec<_> = of.iter().filter_map(|(publish, _)| publish.id).collect();
    let foreign_ids: Vec<_> = of.iter().filter_map(|(publish, _)| publish.foreign_id.as_deref()).collect();
    let key = |publish: &'a Publish| Some((*numbers.get(&publish.author)?, publish.idempotency_key.as_deref()?));
    let keys = of.iter().filter_map(|(publish, _)| key(publish)).collect();
    let (ids, foreign_ids, keys) = (&ids, &foreign_ids, &keys);
    let taken = pool.read(work!(|connection| look::items(connection, ids, foreign_ids))).await?;
    let used = pool.read(work!(|connection| look::retries(connection, keys))).await?;
    let is_free = |(publish, now): &&(&'a Publish, Millis)| {
        let id = publish.id.is_some_and(|id| taken.iter().any(|(taken, _)| *taken == id));
        let foreign_id = publish.foreign_id.as_ref();
        let foreign_id = foreign_id
            .is_some_and(|key| taken.iter().any(|(_, row)| row.alive && row.foreign_id.as_ref() == Some(key)));
        let same =
            |(author, name)| used.iter().any(|((a, n), retry)| (*a, &**n) == (author, name) && retry.expires > *now);
        !id && !foreign_id && !key(publish).is_some_and(same)
    };
    Ok(of.iter().filter(is_free).map(|(publish, _)| *publish).collect())
}

fn spoken_of(write: &Write) -> Vec<&UserId> {
    match write {
        Write::Publish(publish) | Write::Import(Import::Item { publish, .. }) => named(publish).collect(),
        Write::Follow { reader: one, author: other }
        | Write::Import(
            Import::Follow { reader: one, author: other, .. } | Import::Unfollow { reader: one, author: other },
        )
        | Write::Import(Import::Shield { user: one, other, .. })
        | Write::Unfollow { reader: one, author: other }
        | Write::Shield { user: one, other, .. } => vec![one, other],
        Write::Classify { author, .. } | Write::Import(Import::Class { author, .. }) => vec![author],
        Write::Edit { .. } | Write::Delete { .. } | Write::Import(Import::Delete { .. }) => vec![],
    }
}

fn named(publish: &Publish) -> impl Iterator<Item = &UserId> {
    let users = match &publish.audience {
        Audience::Followers => &[],
        Audience::Users(users) => &users[..],
    };
    std::iter::once(&publish.author).chain(users)
}

/// The edges an operation speaks of, by name, as (reader, author): their rows are to be read, and locked.
pub(super) fn edges_of(write: &Write) -> Vec<(&UserId, &UserId)> {
    match write {
        Write::Publish(publish) | Write::Import(Import::Item { publish, .. }) => {
            named(publish).skip(1).map(|reader| (reader, &publish.author)).collect()
        }
        Write::Follow { reader, author }
        | Write::Unfollow { reader, author }
        | Write::Import(Import::Follow { reader, author, .. } | Import::Unfollow { reader, author }) => {
            vec![(reader, author)]
        }
        Write::Shield { user, other, shield, .. } | Write::Import(Import::Shield { user, other, shield, .. }) => {
            let (as_reader, as_author) = shield.bits();
            let sides = [(as_reader, (user, other)), (as_author, (other, user))];
            sides.into_iter().filter(|(bits, _)| *bits != Shields(0)).map(|(_, edge)| edge).collect()
        }
        Write::Edit { .. }
        | Write::Delete { .. }
        | Write::Classify { .. }
        | Write::Import(Import::Delete { .. } | Import::Class { .. }) => vec![],
    }
}
