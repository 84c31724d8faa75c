//! Names and numbers of feeds. There are few, and nodes ask for them when they start.
//!
//! ```text
//!   a name ─▶ known: its number │ new: the next number, unless another node gives that one, or one to this name, first
//! ```
//!
//! Invariants:
//! - Numbers are dense from 1: only the next number is ever given, and no number is taken back.
//! - A name has one number, whatever several nodes do at once.

use std::collections::HashMap;

use compact_str::CompactString;
use feedgate_common::FeedId;
use feedgate_common::error::Result;
use sqlx::PgConnection;

use crate::pool::{Pool, work};
use crate::rows;

const NUMBERS: &str = "SELECT name, id FROM feeds WHERE name = ANY($1)";

/// Gives the next number to a name. If another transaction is giving this number, or a number to this name, the
/// statement waits for that transaction, and does nothing if it commits.
const GIVE: &str = "
INSERT INTO feeds (id, name) SELECT coalesce(max(id), 0) + 1, $1 FROM feeds ON CONFLICT DO NOTHING";

const ALL: &str = "SELECT id FROM feeds ORDER BY id";

/// The number of each name, in the order asked. A name that was never seen gets a new number.
pub(crate) async fn intern(pool: &Pool, names: &[CompactString]) -> Result<Vec<FeedId>> {
    let asked: Vec<&str> = names.iter().map(CompactString::as_str).collect();
    let asked = &asked[..];
    loop {
        let known = pool.read(work!(|connection| numbers(connection, asked))).await?;
        let found: Vec<FeedId> = asked.iter().filter_map(|name| known.get(*name).copied()).collect();
        if found.len() == asked.len() {
            return Ok(found);
        }
        // If the statement gave no number, another node was first. The loop tries again.
        for name in asked.iter().filter(|name| !known.contains_key(**name)) {
            pool.write(work!(|connection| sqlx::query(GIVE).bind(name).execute(connection))).await?;
        }
    }
}

/// The main feed first, then all named feeds by number.
pub(crate) async fn all(connection: &mut PgConnection) -> sqlx::Result<Vec<FeedId>> {
    let read: Vec<i16> = sqlx::query_scalar(ALL).fetch_all(connection).await?;
    std::iter::once(Ok(FeedId::MAIN)).chain(read.into_iter().map(rows::feed_of)).collect()
}

async fn numbers(connection: &mut PgConnection, names: &[&str]) -> sqlx::Result<HashMap<String, FeedId>> {
    let read: Vec<(String, i16)> = sqlx::query_as(NUMBERS).bind(names).fetch_all(connection).await?;
    read.into_iter().map(|(name, id)| Ok((name, rows::feed_of(id)?))).collect()
}
