//! The names, avatars and attributes that backends have given to users: a row for each user who has any.

use async_trait::async_trait;
use feedgate_common::archive::{self, Known, which_count};
use feedgate_common::error::{Result, StoreError};
use feedgate_common::people::{Card, Person};
use feedgate_common::{Body, UserNo};

use super::EmbeddedArchive;
use super::any::Any;
use super::search::Indexing;
use super::tables::{People, PersonRow};
use crate::codec::Short;
use crate::request::{Durability, Request};
use crate::view::{Read, Tx, View};

#[async_trait]
impl archive::People for EmbeddedArchive {
    async fn put_people(&self, people: Vec<(UserNo, Person)>, known: Known) -> Result<Vec<bool>> {
        self.any_people.set();
        let bytes = bytes(&people);
        let search = self.any_search.clone();
        let put = Request::new(Durability::Synced, move |tx| put(tx, &search, &people, known));
        self.db.submit(put.bytes(bytes)).await
    }

    async fn remove_person(&self, user: UserNo) -> Result<bool> {
        let search = self.any_search.clone();
        self.db.write(Durability::Synced, move |tx| remove(tx, &search, user)).await
    }

    async fn person(&self, user: UserNo) -> Result<Option<Person>> {
        person(&*self.db.view()?, user)
    }

    async fn cards(&self, users: &[UserNo]) -> Result<Vec<Option<Card>>> {
        if !self.any_people.is_set() {
            return Ok(vec![None; users.len()]);
        }
        cards(&*self.db.view()?, users)
    }

    async fn people(&self, after: Option<UserNo>, limit: usize) -> Result<Vec<(UserNo, Person)>> {
        people(&*self.db.view()?, after, limit)
    }
}

/// About how many bytes these people hold in memory.
fn bytes(people: &[(UserNo, Person)]) -> usize {
    let text = |text: &Option<_>| text.as_ref().map_or(0, compact_str::CompactString::len);
    let attrs = |person: &Person| person.attrs.as_ref().map_or(0, |attrs| attrs.get().len());
    people.iter().map(|(_, person)| 128 + text(&person.card.name) + text(&person.card.avatar) + attrs(person)).sum()
}

/// Stores these people. If a user is named more than once, one of them counts. Answers for each whether that changed
/// anything.
fn put(tx: &mut Tx<'_>, search: &Any, people: &[(UserNo, Person)], known: Known) -> Result<Vec<bool>> {
    let mut answers = vec![false; people.len()];
    let indexing = Indexing::if_any(tx, search)?;
    for (user, nth) in which_count(people, known) {
        let (row, held) = (row_of(&people[nth].1), tx.get::<People>(&user)?);
        let changes = match (&held, known) {
            (Some(_), Known::Kept) => false,
            (Some(held), Known::Replaced) => *held != row,
            (None, _) => true,
        };
        if changes {
            if let Some(indexing) = &indexing {
                indexing.person(tx, user, (held.as_ref(), Some(&row)))?;
            }
            tx.put::<People>(&user, &row);
            answers[nth] = true;
        }
    }
    Ok(answers)
}

/// Removes the person of `user`, also from the index of search if there may be one. Answers whether there was one.
pub(super) fn remove(tx: &mut Tx<'_>, search: &Any, user: UserNo) -> Result<bool> {
    let Some(held) = tx.get::<People>(&user)? else { return Ok(false) };
    if let Some(indexing) = Indexing::if_any(tx, search)? {
        indexing.person(tx, user, (Some(&held), None))?;
    }
    tx.remove::<People>(&user);
    Ok(true)
}

/// All that is stored of `user`.
fn person(view: &View, user: UserNo) -> Result<Option<Person>> {
    view.get::<People>(&user)?.map(|row| person_of(user, row)).transpose()
}

/// The name and the avatar of each of these users; `None` if the user has no row.
fn cards(view: &View, users: &[UserNo]) -> Result<Vec<Option<Card>>> {
    users.iter().map(|user| Ok(view.get::<People>(user)?.map(|row| card_of(row.name, row.avatar)))).collect()
}

/// The people after `after` by number, at most `limit`.
fn people(view: &View, after: Option<UserNo>, limit: usize) -> Result<Vec<(UserNo, Person)>> {
    use std::ops::Bound::{Excluded, Unbounded};
    let rows = view.scan::<People>((after.map_or(Unbounded, Excluded), Unbounded)).take(limit);
    rows.map(|row| row.and_then(|(user, row)| Ok((user, person_of(user, row)?)))).collect()
}

fn row_of(person: &Person) -> PersonRow {
    let Person { card: Card { name, avatar }, attrs } = person.clone();
    PersonRow { name: name.map(Short), avatar: avatar.map(Short), attrs: attrs.map(|attrs| attrs.get().into()) }
}

fn person_of(user: UserNo, row: PersonRow) -> Result<Person> {
    let damaged = |why| StoreError::corrupt(format_args!("the attributes of user {}: {why}", user.0));
    let attrs = row.attrs.map(|json| Body::stored(json.into()).map_err(damaged)).transpose()?;
    Ok(Person { card: card_of(row.name, row.avatar), attrs })
}

fn card_of(name: Option<Short>, avatar: Option<Short>) -> Card {
    Card { name: name.map(|name| name.0), avatar: avatar.map(|avatar| avatar.0) }
}
