//! What a peer may do, and how much of this node it may hold. Counting only: nothing here knows what it is that is counted.

pub(crate) mod allowance;
pub(crate) mod budget;
pub(crate) mod pace;
pub(crate) mod quotas;
