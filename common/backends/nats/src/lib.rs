//! Jobs and wakes on NATS.
