//! This node: who is online here, its place in the session pool, and the work it does besides serving.

pub(crate) mod background;
pub(crate) mod bounded;
#[cfg(test)]
pub(crate) mod fixture;
pub(crate) mod ghosts;
pub(crate) mod growth;
pub(crate) mod identity;
pub(crate) mod keeper;
pub(crate) mod lease;
pub(crate) mod pool;
pub(crate) mod positions;
pub(crate) mod pull_news;
pub(crate) mod slot;
pub(crate) mod touches;
pub(crate) mod vitals;
