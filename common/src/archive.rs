//! The Archive holds the truth: items, outboxes, follow edges, and events that are still to be worked off.
//!
//! ```text
//!   part        what                                               who needs it
//!   Writes      accepts every change                               HTTP API
//!   Names       numbers of users and of named feeds                HTTP API, devices that connect, feeds
//!   Items       items, an author's list of them                    HTTP API, feeds
//!   Graph       lists of follows and shields                       HTTP API
//!   Outboxes    records of an author, and who gets them            push, pull
//!   Content     what a reader's inbox is built and filled from     follow steps, rebuilds, news, deep pages
//!   Events      outstanding work                                   timeline worker, rebuilds
//!   Epochs      numbers that never come again                      rebuilds, stores of inboxes and sessions
//!   Transfer    all that is stored; Names, Items, Graph, Outboxes  export
//!   Status      whether the store answers, counts                  health, statistics
//! ```
//!
//! Each part is a trait of its own, so that a function takes only what it uses. An implementation ("home") has all the
//! parts, and is an [`Archive`] by that.
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

mod content;
mod epochs;
mod events;
mod graph;
mod items;
mod names;
mod outboxes;
mod status;
mod transfer;
mod write;

pub use content::{Content, EDGE_ADDS_MAX, EDGES_MAX, Edge, EdgeState, EdgeStates, FeedAdd, FeedState, News};
pub use epochs::Epochs;
pub use events::{Event, Events, Outstanding};
pub use graph::{Follow, Graph};
pub use items::Items;
pub use names::Names;
pub use outboxes::{Author, Outbox, Outboxes, PullHead, Recipient};
pub use status::{ArchiveCounts, Status};
pub use transfer::{Held, Transfer};
pub use write::{Audience, FOREIGN_ID_MAX_BYTES, Publish, Refused, Write, Writes, Written, may_be_foreign_id};

/// The store of the truth: items, outboxes, follow edges and events. Whatever has all the parts is one.
pub trait Archive: Writes + Names + Items + Outboxes + Graph + Content + Events + Epochs + Transfer + Status {}

impl<T: Writes + Names + Items + Outboxes + Graph + Content + Events + Epochs + Transfer + Status> Archive for T {}
