//! Outboxes and recipients: each read is a range of one table.

use std::ops::Bound::{Excluded, Included};

use feedgate_common::archive::{Outbox, Recipient};
use feedgate_common::error::Result;
use feedgate_common::{Bucket, Generation, OutboxSeq, Record, UserNo};

use super::push::Listeners;
use super::tables::{AuthorRow, Authors, Counters, Followers, RecordRow, Records};
use crate::table::Table;
use crate::view::{Read, View};

pub(super) fn outbox(view: &View, author: UserNo, after: OutboxSeq, limit: usize) -> Result<Outbox> {
    let range = (Excluded((author, after)), Included((author, OutboxSeq::MAX)));
    let (mut records, mut imported) = (vec![], vec![]);
    for row in view.scan::<Records>(range).take(limit) {
        let ((_, seq), RecordRow { op, route, key, feed, history, .. }) = row?;
        records.push(Record { seq, op, route, feed, key });
        imported.extend(history.then_some(seq));
    }
    let AuthorRow { head, last_pull, .. } = view.get::<Authors>(&author)?.unwrap_or_default();
    Ok(Outbox { records, head, last_pull, imported })
}

/// A part of an author's followers: those whose number leaves the remainder `bucket` when divided by `buckets`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) author: UserNo,
    pub(super) bucket: Bucket,
    pub(super) buckets: u16,
    /// The number of buckets into which the table is laid out.
    pub(super) layout: u16,
}

pub(super) fn recipients(
    view: &View,
    listeners: &Listeners,
    share: Share,
    after: Option<UserNo>,
    limit: usize,
) -> Result<Vec<Recipient>> {
    let counter = view.get::<Counters>(&())?.unwrap_or_default().generation;
    if share.buckets == share.layout {
        return recipients_of(view, listeners, share, share.bucket, after, counter).take(limit).collect();
    }
    let mut found = vec![];
    for laid_out in 0..share.layout {
        let some = recipients_of(view, listeners, share, Bucket(laid_out), after, counter).take(limit);
        found.extend(some.collect::<Result<Vec<_>>>()?);
    }
    found.sort_unstable_by_key(|recipient| recipient.reader);
    found.truncate(limit);
    Ok(found)
}

pub(super) fn all_recipients(
    view: &View,
    listeners: &Listeners,
    author: UserNo,
    limit: usize,
) -> Result<Vec<Recipient>> {
    let counter = view.get::<Counters>(&())?.unwrap_or_default().generation;
    let everyone = (author, Bucket(0), UserNo(0))..=(author, Bucket(u16::MAX), UserNo(u32::MAX));
    let all = view.scan::<Followers>(everyone).map(|row| row.map(|row| recipient(row, counter, listeners)));
    all.take(limit).collect()
}

/// Gives the recipients among `readers`, ascending by number: they follow the author by an edge of their own that is
/// on. The table of followers has `buckets` buckets.
pub(super) fn recipients_among(
    view: &View,
    listeners: &Listeners,
    (author, buckets): (UserNo, u16),
    readers: &[UserNo],
) -> Result<Vec<Recipient>> {
    let counter = view.get::<Counters>(&())?.unwrap_or_default().generation;
    let mut found = vec![];
    for &reader in readers {
        let key = (author, reader.bucket(buckets), reader);
        found.extend(view.get::<Followers>(&key)?.map(|edge| recipient((key, edge), counter, listeners)));
    }
    found.sort_unstable_by_key(|recipient| recipient.reader);
    Ok(found)
}

fn recipient(
    ((_, _, reader), edge): (<Followers as Table>::Key, <Followers as Table>::Row),
    counter: Generation,
    listeners: &Listeners,
) -> Recipient {
    let listens = listeners.has(reader);
    Recipient { reader, generation: edge.generation, from: edge.from, counter, listens }
}

/// The followers of the share that stand in one bucket of the table, ascending by number.
fn recipients_of<'a>(
    view: &View,
    listeners: &'a Listeners,
    share: Share,
    laid_out: Bucket,
    after: Option<UserNo>,
    counter: Generation,
) -> impl Iterator<Item = Result<Recipient>> + use<'a> {
    let start = match after {
        Some(after) => Excluded((share.author, laid_out, after)),
        None => Included((share.author, laid_out, UserNo(0))),
    };
    view.scan::<Followers>((start, Included((share.author, laid_out, UserNo(u32::MAX)))))
        .map(move |row| row.map(|row| recipient(row, counter, listeners)))
        .filter(move |row| row.as_ref().map_or(true, |r| r.reader.bucket(share.buckets) == share.bucket))
}
