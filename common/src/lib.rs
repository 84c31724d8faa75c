//! The rules of a feed, without the stores that keep it and the networks that carry it.
//!
//! ```text
//!   ids, position, change, item, body the words
//!   progress, marks, rules           the rules of one fan-out step, as pure functions
//!   accept/                          what becomes of a write, as pure functions over rows
//!   graph                            who follows whom, and who does not want to be seen by whom
//!   audience                         lists of users, and to whom an item is narrowed by them
//!   seen                             what a reader has seen of a feed, and what is unread
//!   ranking                          what a new ranking changes in the feed of a reader
//!   pins                             what an author shows first on the profile
//!   mentions                         the users whom an item or a comment names
//!   notify                           whom a deed concerns, and what tells of it
//!   notices                          what becomes of a push notification that is still to be told
//!   search/                          the words of texts, and which items and users hold those of a query
//!   erase                            the erasure of a user: stages, pages, and the receipt
//!   packing, varint                  an inbox entry in few bytes
//!   archive, inboxes, sessions,      the five traits a store implements;
//!   jobs, doorbell                   a network may lie between each of them and its caller
//!   intake/                          calls of the HTTP API that come as messages: subjects, and their order
//!   trace                            the spans of a write, from its request to the frames of devices
//!   metrics                          what is counted for operators, and its text for Prometheus
//!   feed/                            the rules over the traits that a gateway needs: write, rebuild, read, page
//! ```
//!
//! Nothing here does IO, spawns a task or reads a clock: callers give the time as a [`Millis`].
//!
//! # A tour of Feedgate
//!
//! An inbox is the change log of one reader's feed, and a device is a position in it. Follow one post:
//!
//! 1. [`change`] and [`position`]: what an inbox holds, and how a device says where it stands in it.
//! 2. [`accept`]: the rules of a write. They turn a post into an item, an outbox record and an event.
//! 3. [`Archive`]: the truth. It stores the three in one transaction. The other four traits are [`Inboxes`],
//!    [`Jobs`], [`Doorbell`] and [`Sessions`].
//! 4. [`feed`]: the rules of an inbox. [`feed::Feeds`] builds one that is missing, [`feed::Changes`] reads its log, and
//!    [`feed::Pages`] puts pages together.
//! 5. [`feedgate_timeline`](../feedgate_timeline/index.html): the steps that carry a record from an outbox into
//!    inboxes, and the worker that takes them for every job.
//! 6. [`feedgate_gateway`](../feedgate_gateway/index.html): the sessions of devices, and the HTTP API.
//! 7. The stores: [`feedgate_embedded`](../feedgate_embedded/index.html) implements the five traits on one disk.
//!    In a cluster [`feedgate_postgres`](../feedgate_postgres/index.html) is the `Archive`,
//!    [`feedgate_redis`](../feedgate_redis/index.html) holds `Inboxes` and `Sessions`, and
//!    [`feedgate_nats`](../feedgate_nats/index.html) carries `Jobs` and the `Doorbell`.
//! 8. [`feedgate_conformance`](../feedgate_conformance/index.html): what each trait promises, as tests for every store.
//! 9. [`feedgate`](../feedgate/index.html): the programs that put these crates together.

pub mod accept;
pub mod announce;
pub mod archive;
pub mod around;
pub mod audience;
pub mod body;
pub mod change;
pub mod doctor;
pub mod doorbell;
pub mod erase;
pub mod error;
pub mod explain;
pub mod failpoint;
pub mod feed;
#[cfg(any(test, fuzzing))]
pub mod fuzzed;
pub mod graph;
pub mod ids;
pub mod import;
pub mod inboxes;
pub mod intake;
pub mod item;
pub mod jobs;
pub mod marks;
pub mod mentions;
pub mod metrics;
pub mod named;
pub mod notices;
pub mod notify;
pub mod packing;
pub mod people;
pub mod pins;
pub mod position;
pub mod progress;
pub mod ranking;
pub mod rules;
pub mod sealed;
pub mod search;
pub mod seen;
pub mod sessions;
pub mod trace;
pub mod varint;

pub use archive::Archive;
pub use body::Body;
pub use change::{DisplayKey, Entry, Op, Record};
pub use doorbell::Doorbell;
pub use error::StoreError;
pub use ids::{Bucket, DeviceId, FeedId, InboxKey, ItemId, UserId, UserNo};
pub use inboxes::Inboxes;
pub use item::{BODIES_KEPT, Item, Replaced};
pub use jobs::Jobs;
pub use position::{Epoch, Position};
pub use progress::{Cut, Progress, Watermarks};
pub use seen::Seen;
pub use sessions::Sessions;

/// Unix time in milliseconds.
pub type Millis = i64;

/// The sequence number of a record in its author's outbox, dense from 1. 0 means "before the first".
pub type OutboxSeq = u64;

/// The number of a record among the records of route pull of all authors, dense from 1 in commit order. A reader that
/// has seen one number has seen all lower ones. 0 means "before the first".
pub type PullSeq = u64;

/// The number of a record among those addressed to one reader, dense from 1. 0 means "before the first".
pub type DirectSeq = u64;

/// The number that an edge takes each time it changes; see [`archive::Edge`].
pub type Generation = u64;
