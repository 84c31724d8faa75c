//! Reads of items that wait together share one query, and the items it finds.
//!
//! A post that thousands read at the same moment is a few queries, and yet nobody gets an old one: a query begins after
//! each of the calls it answers was made, so it sees every edit that was answered before.
//!
//! Invariant: an item that is damaged fails the calls that ask for it, and no other.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use feedgate_common::error::Result;
use feedgate_common::{Item, ItemId};

use super::items;
use crate::groups::{self, Groups};
use crate::pool::{self, Pool, work};
use crate::rows;

/// Queries under way at once.
const QUERIES: usize = 4;

/// A query takes no further call once it asks for so many items: 64 MiB if all have the biggest body.
const ITEMS_MAX: usize = 1000;

/// Calls that stand in line for a query; more wait for a place.
const CALLS_MAX: usize = 16 * 1024;

/// In the order asked; `None` for those that do not live.
type Found = Vec<Option<Arc<Item>>>;

type Call = groups::Call<Box<[ItemId]>, Found>;

/// What becomes one query.
#[derive(Default)]
struct Query {
    calls: Vec<Call>,
    ids: HashSet<ItemId>,
}

impl groups::Group<Box<[ItemId]>, Found> for Query {
    fn add(&mut self, call: Call) {
        self.ids.extend(&call.asked);
        self.calls.push(call);
    }

    fn is_full(&self) -> bool {
        self.ids.len() >= ITEMS_MAX
    }
}

impl Query {
    async fn carry_out(self, pool: &Pool) {
        let ids: Vec<i64> = self.ids.into_iter().map(rows::item).collect();
        let ids = &ids[..];
        let read = pool.read(work!(|connection| items::items(connection, ids))).await;
        for call in self.calls {
            let answer = match &read {
                Ok(found) => in_order(found, &call.asked),
                Err(error) => Err(error.clone()),
            };
            call.answer(answer);
        }
    }
}

fn in_order(found: &HashMap<ItemId, Result<Arc<Item>>>, asked: &[ItemId]) -> Result<Found> {
    asked.iter().map(|id| found.get(id).cloned().transpose()).collect()
}

/// See the module.
pub(crate) struct SharedItems(Groups<Box<[ItemId]>, Found>);

impl SharedItems {
    /// On the current runtime.
    pub(crate) fn start(pool: Arc<Pool>) -> Self {
        Self(Groups::start(QUERIES, CALLS_MAX, move |query: Query| {
            let pool = pool.clone();
            async move { query.carry_out(&pool).await }
        }))
    }

    /// One call; see [`feedgate_common::Archive::items`].
    pub(crate) async fn get(&self, ids: &[ItemId]) -> Result<Found> {
        if ids.is_empty() {
            return Ok(vec![]);
        }
        self.0.ask(ids.into()).await.unwrap_or_else(|| Err(pool::unanswered()))
    }
}
