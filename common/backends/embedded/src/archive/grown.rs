//! What a store of an earlier version lacks, worked out once when it is opened.
//!
//! Safe to begin again after a crash: what is written is what was counted, and the store says that it is done last.

use feedgate_common::UserNo;
use feedgate_common::error::Result;

use super::tables::{Authors, Due, DueEdges, Followers, Grown, Owed};
use crate::database::{Database, Durability};
use crate::view::{Read, View};

/// Every author's row tells how many followers the author has.
const FOLLOWERS_COUNTED: u8 = 1;

/// And outstanding edges are found by their reader.
const EDGES_BY_READER: u8 = 2;

/// Authors per transaction.
const AT_ONCE: usize = 10_000;

pub(super) async fn catch_up(db: &Database) -> Result<()> {
    let grown = db.view()?.get::<Grown>(&())?.unwrap_or(0);
    if grown < FOLLOWERS_COUNTED {
        count_followers(db).await?;
    }
    if grown < EDGES_BY_READER {
        list_due_edges(db).await?;
        let done = |tx: &mut crate::view::Tx<'_>| {
            tx.put::<Grown>(&(), &EDGES_BY_READER);
            Ok(())
        };
        db.write(Durability::Synced, done).await?;
    }
    Ok(())
}

async fn list_due_edges(db: &Database) -> Result<()> {
    let edge = |row: Result<((i64, Owed), ())>| match row {
        Ok(((_, Owed::Edge { reader, author }), ())) => Some(Ok((reader, author))),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    };
    let due = db.view()?.scan::<Due>(..).filter_map(edge).collect::<Result<Vec<_>>>()?;
    for some in due.chunks(AT_ONCE).map(<[_]>::to_vec) {
        let write = move |tx: &mut crate::view::Tx<'_>| {
            some.iter().for_each(|edge| tx.put::<DueEdges>(edge, &()));
            Ok(())
        };
        db.write(Durability::Buffered, write).await?;
    }
    Ok(())
}

async fn count_followers(db: &Database) -> Result<()> {
    for some in followers(&*db.view()?)?.chunks(AT_ONCE).map(<[_]>::to_vec) {
        let write = move |tx: &mut crate::view::Tx<'_>| {
            for (author, followers) in some {
                let row = tx.get::<Authors>(&author)?.unwrap_or_default();
                tx.put::<Authors>(&author, &super::tables::AuthorRow { followers, ..row });
            }
            Ok(())
        };
        db.write(Durability::Buffered, write).await?;
    }
    Ok(())
}

/// Of every author who has any.
fn followers(view: &View) -> Result<Vec<(UserNo, u64)>> {
    let mut counts: Vec<(UserNo, u64)> = vec![];
    for row in view.scan::<Followers>(..) {
        let ((author, ..), _) = row?;
        match counts.last_mut() {
            Some((last, count)) if *last == author => *count += 1,
            _ => counts.push((author, 1)),
        }
    }
    Ok(counts)
}
