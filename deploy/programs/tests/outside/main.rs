//! The program as a person or a script meets it: the real binary, its ports, its files, its words.

#![allow(clippy::unwrap_used)]

#[cfg(feature = "cluster")]
mod cluster;
mod commands;
mod serve;
mod server;
mod transfer;
