//! What the Archive keeps: one file per kind of row, so that this listing is the schema.
//!
//! ```text
//!   counters                              ()                        → all counters of the store
//!   layout, incarnation                   ()                        → fixed at creation; last seen
//!   names, users                          name ↔ number
//!   authors                               author                    → outbox head, outstanding push, class, followers
//!   everyones                             author                    → since where everyone follows
//!   records                               author, seq               → the outbox
//!   feeds                                 name                      → number of a named feed
//!   adds                                  author, feed, seq         → the outbox's adds, each with what deleted it
//!   shown                                 …, feed, lane, rank, item → living adds in display order
//!   pulls                                 author, feed, pull seq    → the outbox's records of route pull
//!   pull_heads, told_heads                pull seq                  → the author whose last that is; but for history
//!   direct_heads, directs                 reader; reader, seq       → what is addressed to a reader
//!   direct_shown                          reader, feed, rank, item  → the living of it in display order
//!   recipients                            item, reader              → to whom an item is addressed
//!   items (a tree of their own)           item                      → body, or what is left of it
//!   foreign_ids                           the backend's key         → item
//!   retries, expiries                     author, key               → what was answered; until when
//!   edges                                 reader, author            → follow, shields, generation, from
//!   followers                             author, bucket, reader    → the edge as a push step needs it
//!   following_list, follower_list         user, number              → the other side, by follow time
//!   shields_up, shield_list               user, shield, …           → the other side; by time
//!   due                                   time, event               → outstanding events, oldest first
//!   due_edges                             reader, author            → those of them that are edges
//! ```
//!
//! Tags and encodings are the format on disk: each change of them needs another number of [`FORMAT`].

mod adds;
mod author_feed;
mod authors;
mod counters;
mod directs;
mod due;
mod edges;
mod everyones;
mod feeds;
mod follow_lists;
mod followers;
mod foreign_ids;
mod items;
mod layout;
mod pulls;
mod records;
mod retries;
mod shields;
mod shown;
mod users;

pub(crate) use adds::{AddRow, Adds};
pub(crate) use author_feed::AuthorFeed;
pub(crate) use authors::{AuthorRow, Authors};
pub(crate) use counters::{Counters, CountersRow};
pub(crate) use directs::{DirectHeadRow, DirectHeads, DirectRow, DirectShown, Directs, NOBODY, Recipients};
pub(crate) use due::{Due, DueEdges, Owed};
pub(crate) use edges::{EdgeRow, Edges};
pub(crate) use everyones::Everyones;
pub(crate) use feeds::Feeds;
pub(crate) use follow_lists::{FollowLine, FollowerList, FollowingList};
pub(crate) use followers::{FollowerRow, Followers};
pub(crate) use foreign_ids::ForeignIds;
pub(crate) use items::{ItemRow, Items, Life, NO_SEQ};
pub(crate) use layout::{FORMAT, Incarnation, Layout, LayoutRow};
pub(crate) use pulls::{PullHeads, PullRow, Pulls, ToldHeads};
pub(crate) use records::{RecordRow, Records};
pub(crate) use retries::{Expiries, Retries};
pub(crate) use shields::{ShieldList, ShieldsUp};
pub(crate) use shown::{Lane, Shown};
pub(crate) use users::{Names, Users};

/// Implements [`Code`](crate::codec::Code) for a row as its fields in the order named.
macro_rules! fields {
    ($row:ident { $($field:ident),+ }) => {
        impl crate::codec::Code for $row {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)+
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                Some(Self {
                    $($field: crate::codec::Code::take(from)?,)+
                })
            }
        }
    };
}

/// Declares a table: an empty type that implements [`Table`](crate::table::Table).
macro_rules! table {
    ($(#[$doc:meta])* $name:ident: $tag:literal, $space:ident, $key:ty => $row:ty) => {
        $(#[$doc])*
        pub(crate) struct $name;

        impl crate::table::Table for $name {
            const SPACE: crate::table::Space = crate::table::Space::$space;
            const TAG: u8 = $tag;
            const NAME: &'static str = stringify!($name);
            type Key = $key;
            type Row = $row;
        }
    };
}

use {fields, table};

#[cfg(test)]
mod tests {
    use feedgate_common::graph::Shields;
    use proptest::prelude::*;

    use super::*;
    use crate::codec::{bytes_of, value_of};
    use crate::table::Table;

    #[test]
    fn every_table_of_a_tree_has_a_tag_of_its_own() {
        let mut tags = vec![
            Counters::TAG,
            Layout::TAG,
            Incarnation::TAG,
            Names::TAG,
            Users::TAG,
            Authors::TAG,
            Records::TAG,
            Adds::TAG,
            Shown::TAG,
            ForeignIds::TAG,
            Retries::TAG,
            Expiries::TAG,
            Edges::TAG,
            Followers::TAG,
            FollowingList::TAG,
            FollowerList::TAG,
            Due::TAG,
            DirectHeads::TAG,
            Directs::TAG,
            DirectShown::TAG,
            Recipients::TAG,
            Everyones::TAG,
            Pulls::TAG,
            PullHeads::TAG,
            ToldHeads::TAG,
            ShieldsUp::TAG,
            ShieldList::TAG,
            Feeds::TAG,
            DueEdges::TAG,
        ];
        let all = tags.len();
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), all);
    }

    proptest! {
        #[test]
        fn rows_of_many_fields_come_back_as_they_were(
            (follows, quiet, shields) in any::<(bool, bool, u8)>(),
            (head, followers, last_pull, listed) in any::<(u64, u64, u64, u64)>(),
            due: Option<i64>,
        ) {
            let (shields, past) = (Shields(shields), (!quiet).then_some(head));
            let held = feedgate_common::accept::EdgeRow { follows, shields, generation: head, from: followers, past };
            let edge = EdgeRow { held, due, listed, quiet };
            prop_assert_eq!(value_of(&bytes_of(&edge)), Some(edge));
            let class = feedgate_common::change::Class::Pull;
            let author = AuthorRow { head, due, class, followers, last_pull, redo: listed, ..AuthorRow::default() };
            prop_assert_eq!(value_of(&bytes_of(&author)), Some(author));
        }
    }
}
