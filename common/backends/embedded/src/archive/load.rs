//! Loads the rows that a decision needs, in its transaction.

use feedgate_common::accept::{AuthorRow, Door, ItemRow, Need, ReaderRow};
use feedgate_common::change::Class;
use feedgate_common::error::Result;
use feedgate_common::{ItemId, StoreError, UserNo};

use super::hot::mentions_of;
use super::ledger::Ledger;
use super::lines;
use super::own_posts;
use super::tables::{
    self, AddRow, Adds, Audiences, Everyones, ForeignIds, Items, Life, NO_SEQ, NOBODY, Privates, Recipients, Retries,
    Sights,
};
use crate::view::Read;

/// Loads the row that `need` names into the ledger's rows. A name without a number gets a new number if `need` is
/// [`Need::Number`].
pub(super) fn one(ledger: &mut Ledger<'_, '_>, need: Need) -> Result<()> {
    match need {
        Need::User(name) => {
            let no = ledger.known(&name)?;
            ledger.rows.users.insert(name, no);
        }
        Need::Number(name) => {
            let no = ledger.intern(&name)?;
            ledger.rows.users.insert(name, Some(no));
        }
        Need::Author(author) => {
            let row = self::author(ledger, author)?;
            ledger.rows.authors.insert(author, row);
        }
        Need::Reader(reader) => {
            let direct = ledger.direct_head(reader)?.head;
            ledger.rows.readers.insert(reader, ReaderRow { counter: ledger.counters.generation, direct });
        }
        Need::Edge(reader, author) => {
            let row = ledger.edge((reader, author))?.map(|row| row.held);
            ledger.rows.edges.insert((reader, author), row);
        }
        Need::Private(author) => {
            let private = ledger.tx.has::<Privates>(&author)?;
            ledger.rows.privates.insert(author, private);
        }
        Need::Item(id) | Need::Ended(id) => item(ledger, id)?,
        Need::ForeignId(key) => {
            let id = ledger.tx.get::<ForeignIds>(&key)?;
            ledger.rows.foreign_ids.insert(key, id);
        }
        Need::Retry(author, key) => {
            let key = (author, key);
            let retry = ledger.tx.get::<Retries>(&key)?;
            ledger.rows.retries.insert(key, retry);
        }
        Need::NewId(author) => {
            let id = ledger.new_item_id()?;
            ledger.rows.new_id = Some((author, id));
        }
        Need::Member(key) => {
            let line = lines::of_member(ledger.tx, &key)?;
            ledger.rows.members.insert(key, line);
        }
        Need::Group(reader, group) => {
            let key = (reader, group);
            let line = lines::of_group(ledger.tx, &key)?;
            ledger.rows.groups.insert(key, line);
        }
        Need::Line(id, newest) => {
            let row = lines::line(ledger.tx, id, newest)?;
            ledger.rows.lines.insert(id, row);
        }
        Need::Audience(item) => {
            let readers = ledger.tx.get::<Audiences>(&item)?.map(|row| row.0);
            ledger.rows.audiences.insert(item, readers.unwrap_or_default());
        }
        Need::Sight(key) => {
            let seen = ledger.tx.get::<Sights>(&key)?;
            ledger.rows.sights.insert(key, seen.map(|seen| seen.until));
        }
    }
    Ok(())
}

fn author(ledger: &mut Ledger<'_, '_>, author: UserNo) -> Result<AuthorRow> {
    let tables::AuthorRow { head, last_in_step, has_aside, class, followers, .. } = ledger.author(author)?;
    let everyone_since = match class {
        Class::Everyone => ledger.tx.get::<Everyones>(&author)?,
        _ => None,
    };
    let lacks_own_edge = own_posts::lacks_edge(ledger.tx, author)?;
    Ok(AuthorRow { head, last_in_step, has_aside, class, everyone_since, followers, lacks_own_edge })
}

/// Loads an item, and the record that deleted it if there is one.
fn item(ledger: &mut Ledger<'_, '_>, id: ItemId) -> Result<()> {
    let (mut item, mut ended) = (None, None);
    if let Some(row) = ledger.tx.get::<Items>(&id)? {
        let add = if row.seq == NO_SEQ { None } else { Some(add_of(ledger, id, &row)?) };
        let door = match &add {
            Some(add) => Door::Outbox(add.route),
            None => Door::Direct(recipients(ledger, id)?),
        };
        let (version, rank, living, repost_of, mentions) = match row.life {
            Life::Living { version, rank, repost_of, mentions, .. } => {
                (version, rank, true, repost_of, mentions_of(mentions.as_deref(), id)?)
            }
            Life::Gone => (0, add.map_or(0, |add| add.key.rank), false, None, vec![]),
        };
        let tables::ItemRow { author, seq, published_at, fingerprint, feed, .. } = row;
        item = Some(ItemRow {
            author,
            seq,
            published_at,
            rank,
            version,
            feed,
            door,
            fingerprint,
            living,
            repost_of,
            mentions,
        });
        ended = add.and_then(|add| add.deleted_by);
    }
    ledger.rows.items.insert(id, item);
    ledger.rows.ended.insert(id, ended);
    Ok(())
}

/// The readers to whom the item is addressed, by number.
fn recipients(ledger: &Ledger<'_, '_>, id: ItemId) -> Result<Vec<UserNo>> {
    let all = ledger.tx.scan::<Recipients>((id, UserNo(0))..(id, NOBODY));
    all.map(|row| row.map(|((_, reader), _)| reader)).collect()
}

/// The row of the item's add in its author's outbox; `Corrupt` if it is missing.
pub(super) fn add_of(ledger: &Ledger<'_, '_>, id: ItemId, row: &tables::ItemRow) -> Result<AddRow> {
    let found = ledger.tx.get::<Adds>(&row.add())?;
    let UserNo(author) = row.author;
    found.ok_or_else(|| StoreError::corrupt(format_args!("item {id}: record {} of author {author} is no add", row.seq)))
}
