//! The reads of the Archive. Each call reads one snapshot, along indexes.

mod ahead;
pub(crate) mod content;
pub(crate) mod counts;
pub(crate) mod export;
pub(crate) mod graph;
pub(crate) mod items;
pub(crate) mod lists;
mod long;
mod merge;
mod news;
pub(crate) mod push;
mod shared;
mod span;

pub(crate) use ahead::SharedAhead;
pub(crate) use news::SharedNews;
pub(crate) use shared::SharedItems;
pub(crate) use span::Lows;
