//! Reads of items that wait at the same time share one query, and the items that the query finds.
//!
//! For a post that thousands read at the same moment there are only a few queries. Nobody gets an old item: a query
//! begins after each of its calls was made, so it sees every edit that was answered before.
//!
//! Invariant: a damaged item fails the calls that ask for it, and no other.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use feedgate_common::error::Result;
use feedgate_common::{Item, ItemId};

use super::items;
use crate::groups::{self, Groups};
use crate::pool::{self, Pool, work};
use crate::rows;

/// How many queries are under way at once.
const QUERIES: usize = 4;

/// A query takes no further call once it asks for this many items: 64 MiB if all have the biggest body.
const ITEMS_MAX: usize = 1000;

/// How many calls may wait for a query; further calls wait for a place.
const CALLS_MAX: usize = 16 * 1024;

/// The items in the order asked; `None` for an item that does not live.
type Found = Vec<Option<Arc<Item>>>;

type Call = groups::Call<Box<[ItemId]>, Found>;

/// The calls that become one query.
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

/// The calls of this process that ask for items, and the tasks that carry the calls out.
pub(crate) struct SharedItems(Groups<Box<[ItemId]>, Found>);

impl SharedItems {
    /// Starts the tasks on the current runtime.
    pub(crate) fn start(pool: Arc<Pool>) -> Self {
        Self(Groups::start(QUERIES, CALLS_MAX, move |query: Query| {
            let pool = pool.clone();
            async move { query.carry_out(&pool).await }
        }))
    }

    /// The items of these ids, as [`Items::items`](feedgate_common::archive::Items::items) says.
    pub(crate) async fn get(&self, ids: &[ItemId]) -> Result<Found> {
        if ids.is_empty() {
            return Ok(vec![]);
        }
        self.0.ask(ids.into()).await.unwrap_or_else(|| Err(pool::unanswered()))
    }
}
