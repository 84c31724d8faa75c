//! Names and numbers of feeds: few, given when a node starts.
//!
//! ```text
//!   a name ─▶ known: its number │ new: the next number, unless another node gives that one, or one to this name, first
//! ```
//!
//! Invariants:
//! - Numbers are dense from 1: only the next one is ever given, and never taken back.
//! - Whatever several nodes do at once, a name has one number.

use std::collections::HashMap;

use compact_str::CompactString;
use feedgate_common::FeedId;
use feedgate_common::error::Result;
use sqlx::PgConnection;

use crate::pool::{Pool, work};
use crate::rows;

const NUMBERS: &str = "SELECT name, id FROM feeds WHERE name = ANY($1)";

/// Waits for whoever is about to give the same number or the same name one, and then does nothing.
const GIVE: &str = "
INSERT INTO feeds (id, name) SELECT coalesce(max(id), 0) + 1, $1 FROM feeds ON CONFLICT DO NOTHING";

const ALL: &str = "SELECT id FROM feeds ORDER BY id";

/// The numbers of all of them, new ones for names never seen, in the order asked.
pub(crate) async fn intern(pool: &Pool, names: &[CompactString]) -> Result<Vec<FeedId>> {
    let asked: Vec<&str> = names.iter().map(CompactString::as_str).collect();
    let asked = &asked[..];
    loop {
        let known = pool.read(work!(|connection| numbers(connection, asked))).await?;
        let found: Vec<FeedId> = asked.iter().filter_map(|name| known.get(*name).copied()).collect();
        if found.len() == asked.len() {
            return Ok(found);
        }
        // Where it was given nothing, another node has come first: that is one less to wait for.
        for name in asked.iter().filter(|name| !known.contains_key(**name)) {
            pool.write(work!(|connection| sqlx::query(GIVE).bind(name).execute(connection))).await?;
        }
    }
}

/// The main one first, then all that have a name, by number.
pub(crate) async fn all(connection: &mut PgConnection) -> sqlx::Result<Vec<FeedId>> {
    let read: Vec<i16> = sqlx::query_scalar(ALL).fetch_all(connection).await?;
    std::iter::once(Ok(FeedId::MAIN)).chain(read.into_iter().map(rows::feed_of)).collect()
}

async fn numbers(connection: &mut PgConnection, names: &[&str]) -> sqlx::Result<HashMap<String, FeedId>> {
    let read: Vec<(String, i16)> = sqlx::query_as(NUMBERS).bind(names).fetch_all(connection).await?;
    read.into_iter().map(|(name, id)| Ok((name, rows::feed_of(id)?))).collect()
}
