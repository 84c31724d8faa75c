//! The load side of a benchmark, on one thread: a backend, devices, the processes that they are at, and the report.
//!
//! ```text
//!   Backend ──HTTP──▶ Server (a child process) ──WebSocket──▶ Fleet ──▶ Times ──▶ Report
//!                         made of: Home (a directory, settings, secrets)
//! ```

mod backend;
mod engines;
mod fleet;
pub mod frame;
mod front;
mod installation;
mod neighbour;
mod phone;
mod report;
mod server;
mod socket;
mod times;
mod wire;

pub use backend::Backend;
pub use engines::{Calls, Engines};
pub use fleet::{Arrivals, Fleet, GREETING, Plan, Tally};
pub use front::Front;
pub use installation::Installation;
pub use neighbour::{Neighbour, Seen};
pub use report::Report;
pub use server::{Home, Server, build, run, run_with};
pub use times::{Times, milliseconds, quantile};
pub use wire::{Deliver, Wire};
