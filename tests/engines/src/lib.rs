//! The engines behind a cluster of Feedgate, for tests: the real servers, as child processes.
//!
//! ```no_run
//! use feedgate_engines::{Postgres, Redis};
//!
//! let mut redis = Redis::start();           // a free port, a directory of its own
//! redis.kill();                             // SIGKILL
//! redis.restart();                          // the same port and data
//! let url = Postgres::shared().database("archive_of_this_test");
//! ```
//!
//! Each runs under a launcher of `tests/engines`, as one would start it by hand. Nothing outlives the test
//! process, not even when that is killed: see [`Engine`]. Everything here blocks, and what goes wrong
//! panics with the engine's log: it is for tests alone.

mod cluster;
mod engine;
mod kinds;
mod launcher;
mod losses;
mod port;

pub use cluster::RedisCluster;
pub use engine::{Engine, Kind};
pub use kinds::{Nats, NatsServer, Postgres, PostgresServer, Redis, RedisServer};
pub use port::{PortTaken, free_port, on_free_ports};
