//! Rankings: the items that a recommender puts into a named feed of one reader, each with its rank.
//!
//! ```text
//!   stored ranking ─┐             ┌─ in both, with one rank     nothing
//!   given ranking  ─┴─▶ changes ──┼─ in both, with another one  a delete, and an add right behind it
//!                                 ├─ only in the given one      an add
//!                                 └─ only in the stored one     a delete
//! ```
//!
//! Each change is addressed to the reader, as a direct item is. So a follow or an unfollow changes no ranking, and what
//! is shown of an item is what the reader may see of it as the [original of a repost](crate::around::shows_original).

use std::cmp::Reverse;
use std::collections::HashMap;

use serde::Serialize;

use crate::{DisplayKey, ItemId, Op, UserNo};

/// The most items of one ranking.
pub const RANKING_MAX: usize = 1000;

/// What a new ranking has changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Ranked {
    /// Items that were not in the ranking before.
    pub added: usize,
    /// Items that have another rank.
    pub moved: usize,
    /// Items that are not in the ranking any more.
    pub removed: usize,
}

impl Ranked {
    /// Whether anything has changed.
    pub fn is_change(&self) -> bool {
        *self != Self::default()
    }
}

/// A ranking was refused and has changed nothing, because this item does not live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoSuchItem {
    /// The place of the item in the ranking as it was given, from 0.
    pub nth: usize,
    /// The item that is unknown or deleted.
    pub item: ItemId,
}

/// A step that brings edits and deletes to the rankings that hold their items.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Renewed {
    /// The readers to whom the step has addressed something.
    pub readers: Vec<UserNo>,
    /// Whether there may be more to do.
    pub more: bool,
}

/// What turns the ranking `before` into `after`, in the order in which devices get it: from the top of the new ranking
/// down, and at last the items that left the ranking, so that the list is never empty on the way. No item may stand
/// twice in `before` or in `after`.
pub fn changes(before: &[DisplayKey], after: &[DisplayKey]) -> (Ranked, Vec<(Op, DisplayKey)>) {
    let mut left: HashMap<ItemId, i64> = before.iter().map(|key| (key.item, key.rank)).collect();
    let mut wanted = after.to_vec();
    wanted.sort_unstable_by_key(|key| Reverse(*key));
    let (mut ranked, mut changes) = (Ranked::default(), vec![]);
    for key in wanted {
        match left.remove(&key.item) {
            Some(rank) if rank == key.rank => {}
            Some(rank) => {
                ranked.moved += 1;
                changes.extend([(Op::Delete, DisplayKey { rank, ..key }), (Op::Add, key)]);
            }
            None => {
                ranked.added += 1;
                changes.push((Op::Add, key));
            }
        }
    }
    let gone = before.iter().filter(|key| left.contains_key(&key.item));
    changes.extend(gone.map(|key| (Op::Delete, *key)));
    ranked.removed = left.len();
    (ranked, changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(ranks: &[(u64, i64)]) -> Vec<DisplayKey> {
        ranks.iter().map(|&(item, rank)| DisplayKey { rank, item: ItemId(item) }).collect()
    }

    #[test]
    fn s11_a_new_ranking_is_no_more_than_what_differs() {
        let (before, after) = (keys(&[(1, 10), (2, 20), (3, 30)]), keys(&[(4, 5), (3, 1), (2, 20)]));
        let (ranked, changes) = changes(&before, &after);
        assert_eq!(ranked, Ranked { added: 1, moved: 1, removed: 1 });
        let told: Vec<_> = changes.iter().map(|(op, key)| (*op, key.item.0, key.rank)).collect();
        assert_eq!(told, [(Op::Add, 4, 5), (Op::Delete, 3, 30), (Op::Add, 3, 1), (Op::Delete, 1, 10)]);
    }

    #[test]
    fn s11_the_same_ranking_in_another_order_changes_nothing() {
        let (ranked, changes) = changes(&keys(&[(1, 10), (2, 20)]), &keys(&[(2, 20), (1, 10)]));
        assert!(!ranked.is_change() && changes.is_empty());
        assert_eq!(super::changes(&keys(&[(1, 10)]), &[]).0, Ranked { removed: 1, ..Ranked::default() });
    }
}
