//! What a store of an earlier version lacks, worked out once when it is opened.
//!
//! Safe to begin again after a crash: what is written is what was counted, and the store says that it is done last.

use feedgate_common::UserNo;
use feedgate_common::error::Result;

use super::tables::{Authors, Followers, Grown};
use crate::database::{Database, Durability};
use crate::view::{Read, View};

/// Every author's row tells how many followers the author has.
const FOLLOWERS_COUNTED: u8 = 1;

/// Authors per transaction.
const AT_ONCE: usize = 10_000;

pub(super) async fn catch_up(db: &Database) -> Result<()> {
    if db.view()?.has::<Grown>(&())? {
        return Ok(());
    }
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
    let done = |tx: &mut crate::view::Tx<'_>| {
        tx.put::<Grown>(&(), &FOLLOWERS_COUNTED);
        Ok(())
    };
    db.write(Durability::Synced, done).await
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
