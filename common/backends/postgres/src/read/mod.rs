//! What is read: each call in one snapshot, by a walk along indexes.

pub(crate) mod counts;
pub(crate) mod door;
pub(crate) mod items;
pub(crate) mod lists;
mod merge;
mod shared;
mod window;

pub(crate) use shared::SharedItems;
pub(crate) use window::Lows;
