//! What a peer may do, and how much of this node it may hold. This module only counts; the callers know what is
//! counted.

pub(crate) mod allowance;
pub(crate) mod budget;
pub(crate) mod log_limit;
pub(crate) mod pace;
pub(crate) mod quotas;
