//! What the Archive keeps: one file per kind of row, so that this listing is the schema.
//!
//! ```text
//!   counters                              ()                        → all counters of the store
//!   layout, grown, incarnation            ()                        → fixed at creation; version; last seen
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
//! Tags and encodings are the format on disk: a change of either is a migration.

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
pub(crate) use author_feed::{AuthorFeed, NOBODY};
pub(crate) use authors::{AuthorRow, Authors};
pub(crate) use counters::{Counters, CountersRow};
pub(crate) use directs::{DirectHeadRow, DirectHeads, DirectRow, DirectShown, Directs, Recipients};
pub(crate) use due::{Due, DueEdges, Owed};
pub(crate) use edges::{EdgeRow, Edges};
pub(crate) use everyones::Everyones;
pub(crate) use feeds::Feeds;
pub(crate) use follow_lists::{FollowLine, FollowerList, FollowingList};
pub(crate) use followers::{FollowerRow, Followers};
pub(crate) use foreign_ids::ForeignIds;
pub(crate) use items::{ItemRow, Items, Life, NO_SEQ};
pub(crate) use layout::{Grown, Incarnation, Layout};
pub(crate) use pulls::{PullHeads, PullRow, Pulls, ToldHeads};
pub(crate) use records::{RecordRow, Records};
pub(crate) use retries::{Expiries, Retries};
pub(crate) use shields::{ShieldList, ShieldsUp};
pub(crate) use shown::{Lane, Shown, ShownRow};
pub(crate) use users::{Names, Users};

use crate::codec::Code;

/// Implements [`Code`](crate::codec::Code) for a row as its fields in the order named. Those that came `later` are
/// zero in a row that was written before there were any.
macro_rules! fields {
    ($row:ident { $($field:ident),+ } $(later { $($late:ident),+ })?) => {
        impl crate::codec::Code for $row {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)+
                $($(self.$late.put(out);)+)?
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                Some(Self {
                    $($field: crate::codec::Code::take(from)?,)+
                    $($($late: crate::archive::tables::take_later(from)?,)+)?
                })
            }
        }
    };
}

/// A field that a row may end before.
fn take_later<T: Code + Default>(from: &mut &[u8]) -> Option<T> {
    if from.is_empty() { Some(T::default()) } else { T::take(from) }
}

/// Implements [`Table`](crate::table::Table).
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
    use feedgate_common::ItemId;
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
            Grown::TAG,
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

    /// As they stood on disk before there were routes to choose from, shields and classes.
    #[test]
    fn a_row_of_the_version_before_reads_as_it_did() {
        let number = |n: u8| [0, 0, 0, 0, 0, 0, 0, n];
        let key = [&number(9)[..], &number(8)].concat();
        let counters = [&[0, 0, 0, 3][..], &(1..=6).flat_map(number).collect::<Vec<_>>()].concat();
        let wants = CountersRow {
            users: 3,
            generation: 1,
            epoch: 2,
            item: 3,
            living_items: 4,
            edges_on: 5,
            events: 6,
            pull: 0,
            feeds: 0,
        };
        assert_eq!(value_of(&counters), Some(wants));

        let author = [&number(7)[..], &[0, 0, 1]].concat();
        assert_eq!(value_of(&author), Some(AuthorRow { head: 7, has_aside: true, ..AuthorRow::default() }));

        let edge = |on: u8| [&[on][..], &number(5), &number(4), &[0]].concat();
        let wants = EdgeRow { follows: true, generation: 5, from: 4, past: 4, listed: 5, ..EdgeRow::default() };
        assert_eq!(value_of(&edge(1)), Some(wants), "it was listed by its generation");
        assert_eq!(value_of(&edge(0)), Some(EdgeRow { follows: false, listed: 0, ..wants }));

        let add = [&key[..], &[1, 0, 1], &number(6)].concat();
        let row: Option<AddRow> = value_of(&add);
        assert_eq!(row.map(|row| (row.deleted_by, row.pull_seq, row.key.item)), Some((Some(6), 0, ItemId(8))));
    }

    proptest! {
        #[test]
        fn rows_that_have_grown_come_back_as_they_were(
            (follows, quiet, shields) in any::<(bool, bool, u8)>(),
            (head, followers, last_pull, listed) in any::<(u64, u64, u64, u64)>(),
            due: Option<i64>,
        ) {
            let edge = EdgeRow { follows, generation: head, from: followers, due, shields: Shields(shields), listed, quiet, past: head };
            prop_assert_eq!(value_of(&bytes_of(&edge)), Some(edge));
            let class = feedgate_common::change::Class::Pull;
            let author = AuthorRow { head, due, class, followers, last_pull, redo: listed, ..AuthorRow::default() };
            prop_assert_eq!(value_of(&bytes_of(&author)), Some(author));
        }
    }
}
