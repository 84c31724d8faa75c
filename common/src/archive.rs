//! The Archive holds the truth: items, outboxes, follow edges, and events that are still to be worked off.
//!
//! ```text
//!   part        what                                               who needs it
//!   Writes      accepts every change                               HTTP API
//!   Names       numbers of users and of named feeds                HTTP API, devices that connect, feeds
//!   Items       items, an author's list of them                    HTTP API, feeds
//!   Graph       lists of follows, requests to follow and shields   HTTP API
//!   Outboxes    records of an author, and who gets them            push, pull
//!   Content     what a reader's inbox is built and filled from     follow steps, rebuilds, news, deep pages
//!   Events      outstanding work                                   timeline worker, rebuilds
//!   Epochs      numbers that never come again                      rebuilds, stores of inboxes and sessions
//!   Revocations which tokens of users are refused                  HTTP API, devices that connect
//!   Sights      what readers have seen of their feeds              pages, devices that count what is unread
//!   People      what backends say of users                         pages, HTTP API, export
//!   PushDevices devices that push services reach                   HTTP API, sender of notices
//!   PushNotices what those devices are still to be told            timeline worker, sender of notices
//!   Announcements what other programs are told                     relay, HTTP API
//!   Reactions   who has reacted to which item, and counts          HTTP API, pages, export
//!   Comments    what users say to items, and how much                HTTP API, export
//!   Notifications whom a reaction or a comment concerns, and is told  HTTP API
//!   Audiences   lists of users, and who is in the audience of an item  HTTP API, push, export
//!   Rankings    what recommenders put into feeds of readers      HTTP API, timeline worker, export
//!   Pins        what users have pinned to their profiles     HTTP API, export
//!   OwnPosts    whether authors' items stand in their own feeds    timeline worker
//!   Search      which items and users hold which words        HTTP API, timeline worker
//!   Erasures    the erasure of users, what is known of one      HTTP API, timeline worker
//!   Transfer    all that is stored; Names, Items, Graph, Outboxes  export
//!   Status      whether the store answers, counts                  health, statistics
//! ```
//!
//! Each part is a trait of its own, so that a function takes only what it uses. An implementation ("home") has all the
//! parts, and so is an [`Archive`].
//!
//! Every method fails with a [`StoreError`](crate::StoreError) if the store does not answer. Any future may be dropped.
//! Of a dropped [`Writes::write`] either all has happened or nothing; any other method may then be called again.
//!
//! Invariants that every home keeps, across all parts:
//! - [`Writes::write`] is one transaction per call. Item, outbox record and event, or edge and event, are durable
//!   together before it answers (I6).
//! - Every read sees only what is durable. Each call of a method reads one snapshot.
//! - An author's records are dense from 1 in commit order. Nothing appears later at or below a head that was served.
//! - The changes of an edge take ever greater generations. Its `from` is the outbox head in the transaction of the
//!   change.
//! - Records of route pull are numbered over all authors in commit order. A read that shows one number shows every
//!   record below it.

mod announcements;
mod audiences;
mod comments;
mod content;
mod epochs;
mod erasures;
mod events;
mod graph;
mod items;
mod names;
mod notifications;
mod outboxes;
mod own_posts;
mod people;
mod pins;
mod push;
mod rankings;
mod reactions;
mod revocations;
mod search;
mod sights;
mod status;
mod transfer;
mod write;

pub use announcements::Announcements;
pub use audiences::Audiences;
pub use comments::Comments;
pub use content::{Below, Content, EDGE_ADDS_MAX, EDGES_MAX, Edge, EdgeState, EdgeStates, FeedAdd, FeedState, News};
pub use epochs::Epochs;
pub use erasures::{Erasures, Remains};
pub use events::{Event, Events, Outstanding};
pub use graph::{Follow, Graph, ListCursor};
pub use items::Items;
pub use names::Names;
pub use notifications::Notifications;
pub use outboxes::{Ahead, Author, Outbox, Outboxes, PullHead, Recipient};
pub use own_posts::OwnPosts;
pub use people::{Known, People, which_count};
pub use pins::Pins;
pub use push::{
    DeadNotice, Note, Notice, Outcome, PLATFORM_MAX, PUSH_DEVICES_MAX, PUSH_TOKEN_MAX_BYTES, PushDevice, PushDevices,
    PushNotices, Settled, UNREAD_MAX,
};
pub use rankings::Rankings;
pub use reactions::Reactions;
pub use revocations::{Revocation, Revocations};
pub use search::Search;
pub use sights::Sights;
pub use status::{ArchiveCounts, Status};
pub use transfer::{Held, Transfer};
pub use write::{
    Answer, Audience, COMMIT_READERS_MAX, FOREIGN_ID_MAX_BYTES, Publish, READERS_MAX, Refused, Write, Writes, Written,
    may_be_foreign_id,
};

/// Declares [`Archive`] as all of these parts together.
macro_rules! archive {
    ($($part:ident),+) => {
        /// The store of the truth: items, outboxes, follow edges and events. Every type that has all the parts is an
        /// Archive.
        pub trait Archive: $($part +)+ {}

        impl<T> Archive for T where T: $($part +)+ {}
    };
}

archive!(
    Writes,
    Names,
    Items,
    Outboxes,
    Graph,
    Content,
    Events,
    Epochs,
    Revocations,
    Sights,
    People,
    PushDevices,
    PushNotices,
    Announcements,
    Reactions,
    Comments,
    Notifications,
    Audiences,
    Rankings,
    Pins,
    OwnPosts,
    Erasures,
    Search,
    Transfer,
    Status
);
