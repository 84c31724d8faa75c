//! Merges the orders of many outboxes: how the adds stand in the log of a rebuilt inbox.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use crate::archive::FeedAdd;
use crate::{DisplayKey, UserNo};

/// Sorts adds for a new log. The adds of one author stay in outbox order; among authors, the one whose next add is
/// older in display order comes first. So adds that are trimmed from the front later are old in both orders. Adds that
/// are addressed to the reader are in no outbox: those of one author count as an outbox of their own, in display order.
fn oldest_first(adds: Vec<FeedAdd>) -> Vec<FeedAdd> {
    let count = adds.len();
    let mut by_author: HashMap<(UserNo, bool), Vec<FeedAdd>> = HashMap::new();
    for add in adds {
        by_author.entry((add.author, add.outbox_seq == 0)).or_default().push(add);
    }
    let mut outboxes: Vec<VecDeque<FeedAdd>> = by_author
        .into_values()
        .map(|mut adds| {
            adds.sort_unstable_by_key(|add| (add.outbox_seq, add.key));
            adds.into()
        })
        .collect();
    let mut order: BinaryHeap<Reverse<(DisplayKey, usize)>> =
        outboxes.iter().enumerate().map(|(at, adds)| Reverse((adds[0].key, at))).collect();
    let mut merged = Vec::with_capacity(count);
    while let Some(Reverse((_, at))) = order.pop() {
        merged.extend(outboxes[at].pop_front());
        order.extend(outboxes[at].front().map(|next| Reverse((next.key, at))));
    }
    merged
}

/// The log of a rebuilt inbox that keeps `limit` adds: these, the oldest first, and the floor of the log. `newest` are
/// the feed's newest adds, newest first, one more than `limit` if there are so many.
pub fn first_log(mut newest: Vec<FeedAdd>, limit: usize) -> (Vec<FeedAdd>, Option<DisplayKey>) {
    let floor = newest.get(limit).map(|add| add.key);
    newest.truncate(limit);
    (oldest_first(newest), floor)
}
