//! Turns the names in the operations into numbers, before the transaction.
//!
//! Numbers are never taken back, so an operation that is refused must not give a number. If an operation that may be
//! refused names a new user, the call starts over once it is known that the operation is accepted.

use feedgate_common::UserId;
use feedgate_common::accept::{Ask, Need};
use feedgate_common::archive::{Audience, Publish, Write};
use feedgate_common::error::Result;
use feedgate_common::graph::Shields;
use feedgate_common::import::{Import, Place};

use super::Numbers;
use crate::pool::Pool;
use crate::users::Users;

/// The numbers of all users whom the operations name. New numbers are given for operations that cannot be refused.
pub(super) async fn numbers(pool: &Pool, users: &Users, asks: &[Ask]) -> Result<Numbers> {
    let named: Vec<UserId> = asks.iter().flat_map(spoken_of).cloned().collect();
    let sure: Vec<UserId> = asks.iter().filter(|ask| !may_be_refused(ask)).flat_map(spoken_of).cloned().collect();
    users.intern(pool, &sure).await?;
    let known = users.numbers(pool, &named).await?;
    Ok(named.into_iter().zip(known).collect())
}

/// Gives a number to each name in `needs` that has none.
pub(super) async fn give(pool: &Pool, users: &Users, numbers: &mut Numbers, needs: Vec<Need>) -> Result<()> {
    let nameless = |need| if let Need::Number(name) = need { Some(name) } else { None };
    let names: Vec<UserId> = needs.into_iter().filter_map(nameless).collect();
    let given = users.intern(pool, &names).await?;
    numbers.extend(names.into_iter().zip(given.into_iter().map(Some)));
    Ok(())
}

fn may_be_refused(ask: &Ask) -> bool {
    match ask.write() {
        Write::Import(Import::Follow { from: Place::Add(_) | Place::Delete(_), .. } | Import::Member(_))
        | Write::Answer { .. }
        | Write::Edit { .. } => true,
        Write::Follow { reader, author }
        | Write::Unfollow { reader, author }
        | Write::Import(
            Import::Follow { reader, author, .. }
            | Import::Unfollow { reader, author }
            | Import::Request { reader, author, .. },
        ) => reader == author,
        _ => ask.published().is_some_and(|publish| {
            let keys = publish.id.is_some() || publish.foreign_id.is_some() || publish.idempotency_key.is_some();
            keys || publish.repost_of.is_some() || matches!(publish.audience, Audience::Narrowed(_))
        }),
    }
}

/// The users whom an operation names.
pub(super) fn spoken_of(ask: &Ask) -> Vec<&UserId> {
    match ask.write() {
        Write::Publish(publish) => named(publish).chain(&publish.mentions).collect(),
        // Nobody is told of what is imported.
        Write::Import(Import::Item { publish, .. }) => named(publish).collect(),
        Write::Follow { reader: one, author: other }
        | Write::Import(
            Import::Follow { reader: one, author: other, .. }
            | Import::Unfollow { reader: one, author: other }
            | Import::Request { reader: one, author: other, .. },
        )
        | Write::Import(Import::Shield { user: one, other, .. })
        | Write::Unfollow { reader: one, author: other }
        | Write::Answer { reader: one, author: other, .. }
        | Write::Shield { user: one, other, .. } => vec![one, other],
        Write::Classify { author, .. }
        | Write::OwnPosts { author, .. }
        | Write::Private { author, .. }
        | Write::Import(Import::Class { author, .. } | Import::Private { author }) => {
            vec![author]
        }
        Write::Import(Import::Member(member)) => vec![&member.reader, &member.actor],
        Write::Edit { mentions, .. } => mentions.iter().flatten().collect(),
        Write::Delete { .. } | Write::Import(Import::Delete { .. }) => vec![],
        // These writes follow from other writes, and hold numbers in place of names.
        Write::Notify(_) | Write::Withdraw { .. } | Write::Line(_) => vec![],
    }
}

fn named(publish: &Publish) -> impl Iterator<Item = &UserId> {
    let users = match &publish.audience {
        Audience::Followers => &[],
        Audience::Users(users) => &users[..],
        Audience::Narrowed(narrowed) => narrowed.readers(),
    };
    std::iter::once(&publish.author).chain(users)
}

/// The readers to whom an item is addressed.
fn addressed(publish: &Publish) -> &[UserId] {
    match &publish.audience {
        Audience::Users(users) => users,
        Audience::Followers | Audience::Narrowed(_) => &[],
    }
}

/// The edges that an operation names, as names of (reader, author). Their rows are read and locked.
pub(super) fn edges_of(ask: &Ask) -> Vec<(&UserId, &UserId)> {
    match ask.write() {
        Write::Publish(publish) | Write::Import(Import::Item { publish, .. }) => {
            addressed(publish).iter().map(|reader| (reader, &publish.author)).collect()
        }
        Write::Follow { reader, author }
        | Write::Unfollow { reader, author }
        | Write::Answer { reader, author, .. }
        | Write::Import(
            Import::Follow { reader, author, .. }
            | Import::Unfollow { reader, author }
            | Import::Request { reader, author, .. },
        ) => {
            vec![(reader, author)]
        }
        Write::OwnPosts { author, .. } => vec![(author, author)],
        Write::Shield { user, other, shield, .. } | Write::Import(Import::Shield { user, other, shield, .. }) => {
            let (as_reader, as_author) = shield.bits();
            let sides = [(as_reader, (user, other)), (as_author, (other, user))];
            sides.into_iter().filter(|(bits, _)| *bits != Shields(0)).map(|(_, edge)| edge).collect()
        }
        Write::Edit { .. }
        | Write::Delete { .. }
        | Write::Classify { .. }
        | Write::Private { .. }
        | Write::Notify(_)
        | Write::Withdraw { .. }
        | Write::Line(_)
        | Write::Import(Import::Delete { .. } | Import::Class { .. } | Import::Private { .. } | Import::Member(_)) => {
            vec![]
        }
    }
}
