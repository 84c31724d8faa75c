//! The HTTP API over the real embedded stores and a running timeline worker, request by request.
//!
//! Every answer that any of these tests gets is also held against `docs/openapi.json`: its status
//! must be one that the document names for the route. A query that was taken must be one that the document allows.

#![allow(clippy::unwrap_used, reason = "also what the tests share is test code")]

mod access;
mod authors;
mod backup;
mod bad_inputs;
mod changes;
mod comments;
mod compressed;
mod console;
mod devices;
mod direct;
mod document;
mod equal_feeds;
mod erasures;
mod follows;
mod hybrid_feed;
mod items;
mod mentions;
mod messages;
mod named;
mod own_posts;
mod pages;
mod people;
mod private;
mod profiles;
mod rankings;
mod reactions;
mod reposts;
mod revoking;
mod search;
mod seen;
mod server;
mod session;
mod sessions;
mod shields;
mod transfer;
