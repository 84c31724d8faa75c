//! What the Archive keeps: one file per kind of row, so that this listing is the schema.
//!
//! ```text
//!   counters                              ()                        → all counters of the store
//!   layout, incarnation                   ()                        → fixed at creation; last seen
//!   names, users                          name ↔ number
//!   authors                               author                    → outbox head, outstanding push, class, followers
//!   everyones                             author                    → since where everyone follows
//!   privates                              author                    → that the author is private
//!   records                               author, seq               → the outbox
//!   feeds                                 name                      → number of a named feed
//!   adds                                  author, feed, seq         → the outbox's adds, each with what deleted it
//!   shown                                 …, feed, track, rank, item → living adds in display order
//!   pulls                                 author, feed, pull seq    → the outbox's records of route pull
//!   pull_heads, told_heads                pull seq                  → the author whose last that is; but for history
//!   direct_heads, directs                 reader; reader, seq       → what is addressed to a reader
//!   direct_shown                          reader, feed, rank, item  → the living of it in display order
//!   recipients                            item, reader              → to whom an item is addressed
//!   items (a tree of their own)           item                      → body, or what is left of it
//!   versions (in that tree)               item, version             → a body that was replaced, and when
//!   foreign_ids                           the backend's key         → item
//!   retries, expiries                     author, key               → what was answered; until when
//!   edges                                 reader, author            → follow, shields, generation, from
//!   followers                             author, bucket, reader    → the edge as a push step needs it
//!   following_list, follower_list         user, number              → the other side, by follow time
//!   request_list                          author, number            → who has asked to follow, by time
//!   shields_up, shield_list               user, shield, …           → the other side; by time
//!   due                                   time, event               → outstanding events, oldest first
//!   due_edges                             reader, author            → those of them that are edges
//!   revoked                               user                      → tokens issued before then are refused
//!   revocation_list                       number                    → the user whose newest revocation that is
//!   sights                                reader, feed              → what the reader has seen of the feed
//!   people                                user                      → name, avatar and attributes of the user
//!   push_devices                          user, device              → its push service, token and feeds
//!   push_readers                          user                      → who has such devices; noted up to
//!   push_notices, push_dead               reader, feed              → what is still to be told; what nobody took
//!   push_due                              time, reader, feed        → the former by when they are due
//!   push_number                           ()                        → the last number of a notice
//!   announcements, last_announced         number; ()                → what other programs are told; its last number
//!   tallies                               item                      → kinds of reactions, each with its count
//!   reacted                               item, user                → with which of these kinds the user has reacted
//!   reactors                              item, kind, time, user    → who has reacted, by time
//!   reaction_ends                         item                      → deleted: its reactions, or its line, are to go
//!   reposts, repost_counts                original, repost; original → the living reposts of an item; how many
//!   reposts_known                         ()                        → the two before hold all reposts of the store
//!   postings                              build, mark, time, id     → what search finds by a word, an author or a kind
//!   search_state                          ()                        → what the index of search is of; how far it is built
//!   lines                                 the line's first item     → its reader, group and item, and its count
//!   line_groups, lines_of                 reader, group; …, line    → the newest line of the group; those of the reader
//!   members, member_keys                  line, place; deed's key   → a deed of which the line tells; where it is
//!   listed, listing                       owner, list, member       → who is on a list, since when; the same by member
//!   list_heads                            owner, list               → how many members the list has
//!   audiences                             item                      → the readers to whom an item is narrowed
//!   ranked_in                             item, reader, feed        → its rank in a ranking, and the number of its add
//!   ranked_over                           reader, feed, number      → records of a ranking that are of no use any more
//!   ranking_due                           item                      → edited or deleted; how far rankings know of it
//!   pins                                  user                      → the items that the user has pinned
//!   own_posts                             ()                        → whether authors have an edge to themselves
//!   sent                                  user, rank, item          → what the user has addressed to readers
//!   erasures, open_erasures               number; user              → how far the user is erased; which is under way
//! ```
//!
//! Tags and encodings are the format on disk. A change after which this version cannot read older rows needs another
//! number of [`FORMAT`]. A table or a kind of row that is only added needs no new number. An older version takes a row
//! of a kind that it does not know for a damaged one, so a store with such a row cannot go back to that version.

mod adds;
mod announcements;
mod audiences;
mod author_feed;
mod authors;
mod comments;
mod counters;
mod directs;
mod due;
mod edges;
mod erasures;
mod everyones;
mod feeds;
mod follow_lists;
mod followers;
mod foreign_ids;
mod items;
mod layout;
mod lines;
mod own_posts;
mod people;
mod pins;
mod privates;
mod pulls;
mod push;
mod rankings;
mod reactions;
mod records;
mod reposts;
mod retries;
mod revocations;
mod search;
mod shields;
mod shown;
mod sights;
mod users;
mod versions;

pub(crate) use adds::{AddRow, Adds};
pub(crate) use announcements::{AnnouncementRow, Announcements, LastAnnounced};
pub(crate) use audiences::{AudienceRow, Audiences, ListHeads, ListPlace, Listed, Listing};
pub(crate) use author_feed::AuthorFeed;
pub(crate) use authors::{AuthorRow, Authors};
pub(crate) use comments::{CommentEnds, CommentIds, CommentKeys, CommentRow, Comments, TalkRow, Talks};
pub(crate) use counters::{Counters, CountersRow};
pub(crate) use directs::{DirectHeadRow, DirectHeads, DirectRow, DirectShown, Directs, NOBODY, Recipients};
pub(crate) use due::{Due, DueEdges, Owed};
pub(crate) use edges::{EdgeRow, Edges};
pub(crate) use erasures::{ErasureRow, Erasures, OpenErasures};
pub(crate) use everyones::Everyones;
pub(crate) use feeds::Feeds;
pub(crate) use follow_lists::{FollowLine, FollowerList, FollowingList, RequestList};
pub(crate) use followers::{FollowerRow, Followers};
pub(crate) use foreign_ids::ForeignIds;
pub(crate) use items::{ItemRow, Items, Life, NO_SEQ, lives};
pub(crate) use layout::{FORMAT, Incarnation, Layout, LayoutRow};
pub(crate) use lines::{LineGroups, LineRow, Lines, LinesOf, MemberKeys, MemberRow, Members};
pub(crate) use own_posts::{OwnPosts, OwnPostsRow, Sent};
pub(crate) use people::{People, PersonRow};
pub(crate) use pins::{Pins, PinsRow};
pub(crate) use privates::Privates;
pub(crate) use pulls::{PullHeads, PullRow, Pulls, ToldHeads};
pub(crate) use push::{
    FeedList, PushDead, PushDeadRow, PushDeviceRow, PushDevices, PushDue, PushNotices, PushNumber, PushReaders,
};
pub(crate) use rankings::{RankedIn, RankedOver, RankedRow, RankingDue};
pub(crate) use reactions::{Reacted, ReactedRow, ReactionEnds, Reactors, Slot, Tallies, TallyRow};
pub(crate) use records::{RecordRow, Records};
pub(crate) use reposts::{RepostCounts, Reposts, RepostsKnown};
pub(crate) use retries::{Expiries, Retries};
pub(crate) use revocations::{RevocationList, Revoked, RevokedRow};
pub(crate) use search::{Build, Postings, SearchRow, SearchState, Stage};
pub(crate) use shields::{ShieldList, ShieldsUp};
pub(crate) use shown::{Shown, ShownRow, Track};
pub(crate) use sights::Sights;
pub(crate) use users::{Names, Users};
pub(crate) use versions::{VersionRow, Versions};

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

use table;

/// Gives every table to a macro. Tables are declared in the files of their rows, so a test counts that none is missing
/// here.
#[cfg(any(test, fuzzing))]
macro_rules! every_table {
    ($then:ident) => {
        $then! {
            Adds Announcements Audiences Authors CommentEnds CommentIds CommentKeys Comments Counters DirectHeads
            DirectShown Directs Due DueEdges Edges Erasures Everyones Expiries Feeds FollowerList Followers
            FollowingList ForeignIds Incarnation Items LastAnnounced Layout LineGroups Lines LinesOf ListHeads
            Listed Listing MemberKeys Members Names OpenErasures OwnPosts People Pins Postings Privates PullHeads
            Pulls PushDead PushDevices PushDue PushNotices PushNumber PushReaders RankedIn RankedOver RankingDue
            Reacted ReactionEnds Reactors Recipients Records RepostCounts Reposts RepostsKnown RequestList Retries
            RevocationList Revoked SearchState Sent ShieldList ShieldsUp Shown Sights Talks Tallies ToldHeads Users
            Versions
        }
    };
}

#[cfg(any(test, fuzzing))]
pub(crate) use every_table;

use crate::codec::fields;

#[cfg(test)]
mod tests {
    use feedgate_common::graph::Shields;
    use proptest::prelude::*;

    use super::*;
    use crate::codec::{bytes_of, value_of};
    use crate::table::Table;

    macro_rules! tags {
        ($($table:ident)*) => {
            [$($table::TAG),*]
        };
    }

    #[test]
    fn every_table_is_in_the_list_and_has_a_tag_of_its_own() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/archive/tables");
        let files = folder.read_dir().unwrap().map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
        let declared: usize = files.map(|text| text.lines().filter(|line| *line == "table! {").count()).sum();
        let mut tags = every_table!(tags);
        assert_eq!(tags.len(), declared, "a table is not named in every_table");
        tags.sort_unstable();
        assert!(tags.is_sorted_by(|one, next| one < next), "two tables have the same tag: {tags:?}");
    }

    proptest! {
        #[test]
        fn rows_of_many_fields_come_back_as_they_were(
            (follows, quiet, shields) in any::<(bool, bool, u8)>(),
            (head, followers, last_pull, listed) in any::<(u64, u64, u64, u64)>(),
            due: Option<i64>,
        ) {
            let (shields, past) = (Shields(shields), (!quiet).then_some(head));
            let held = feedgate_common::accept::EdgeRow { follows, asked: quiet && !follows, shields, generation: head, from: followers, past };
            let edge = EdgeRow { held, due, listed, quiet };
            prop_assert_eq!(value_of(&bytes_of(&edge)), Some(edge));
            let class = feedgate_common::change::Class::Pull;
            let author = AuthorRow { head, due, class, followers, last_pull, redo: listed, ..AuthorRow::default() };
            prop_assert_eq!(value_of(&bytes_of(&author)), Some(author));
        }
    }
}
