//! The connections, and the bounds in time of everything that is asked on them.
//!
//! ```text
//!   call ─▶ permit ─▶ idle connection, or a new one ─▶ work ─▶ back among the idle, if nothing is in doubt
//!           └───────────────────── at most CALL in all ─────────────────────┘
//! ```
//!
//! Invariants:
//! - A connection that failed, or whose caller went away in the middle, is closed and never used again.
//! - A call ends within [`CALL`], whatever the network does.
//! - Once the server has refused a write because its disk is full, [`Pool::has_room`] fails until it takes writes again.
//!
//! Not sqlx's own pool: that asks the server once more for every connection given back, and a server that refuses
//! connections shows as a pool that timed out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use feedgate_common::StoreError;
use feedgate_common::error::Result;
use parking_lot::Mutex;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::fault;

/// The most a call may take.
pub(crate) const CALL: Duration = Duration::from_secs(5);

/// The most it may wait for a connection.
const ACQUIRE: Duration = Duration::from_secs(2);

/// A connection that was idle for longer is asked whether it still is one.
const TRUSTED: Duration = Duration::from_secs(1);

/// How often a read is asked again after its connection was lost.
const AGAIN: usize = 2;

/// Makes the server's files larger by 1 MiB, and gives that back. A row of 2,000 bytes is stored as it is.
const TAKE_ROOM: &str = "BEGIN;
    CREATE TEMPORARY TABLE room (filler text) ON COMMIT DROP;
    INSERT INTO room SELECT repeat('x', 2000) FROM generate_series(1, 512);
    ROLLBACK";

const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// What work on a connection gives back.
pub(crate) type Done<'p, T> = (Lease<'p>, sqlx::Result<T>);

/// Work on a connection, for [`Pool::read`] and its like: a call that takes `$connection`.
macro_rules! work {
    (|$connection:ident| $call:expr) => {
        move |mut lease| async move {
            let $connection = lease.connection();
            let answer = $call.await;
            (lease, answer)
        }
    };
}
pub(crate) use work;

/// See the module.
pub(crate) struct Pool {
    options: PgConnectOptions,
    size: u32,
    permits: Semaphore,
    /// Newest last.
    idle: Mutex<Vec<Idle>>,
    /// Whether the server has refused a write because its disk is full, and has taken none since.
    full: AtomicBool,
}

struct Idle {
    connection: PgConnection,
    since: Instant,
}

impl Pool {
    pub(crate) fn new(options: PgConnectOptions, size: u32) -> Self {
        Self {
            options,
            size,
            permits: Semaphore::new(size as usize),
            idle: Mutex::default(),
            full: AtomicBool::new(false),
        }
    }

    /// Reads with one statement. Asked again if a connection was lost in the middle, so `work` must not write.
    pub(crate) async fn read<'p, T, F>(&'p self, mut work: impl FnMut(Lease<'p>) -> F) -> Result<T>
    where
        F: Future<Output = Done<'p, T>>,
    {
        let reading = async {
            let mut lost = 0;
            loop {
                let (mut lease, answer) = work(self.lease().await?).await;
                match lease.judge(answer) {
                    Err(error) if fault::is_lost(&error) && lost < AGAIN => lost += 1,
                    answer => return answer.map_err(fault::store_error),
                }
            }
        };
        timeout(CALL, reading).await.unwrap_or_else(|_| Err(unanswered()))
    }

    /// The same with several statements over one snapshot.
    pub(crate) async fn snapshot<'p, T, F>(&'p self, work: impl Fn(Lease<'p>) -> F + Copy) -> Result<T>
    where
        F: Future<Output = Done<'p, T>>,
    {
        self.read(move |mut lease| async move {
            if let Err(error) = sqlx::query(SNAPSHOT).execute(lease.connection()).await {
                return (lease, Err(error));
            }
            // If it fails, the connection is closed with its transaction.
            let (mut lease, answer) = work(lease).await;
            let Ok(answer) = answer else { return (lease, answer) };
            let ended = sqlx::query("COMMIT").execute(lease.connection()).await.map(|_| answer);
            (lease, ended)
        })
        .await
    }

    /// Writes, each statement of `work` at most once. The error of one that may have happened says so.
    pub(crate) async fn write<'p, T, F>(&'p self, work: impl FnOnce(Lease<'p>) -> F) -> Result<T>
    where
        F: Future<Output = Done<'p, T>>,
    {
        let writing = async {
            let (mut lease, answer) = work(self.lease().await?).await;
            lease.judge(answer).map_err(in_doubt)
        };
        timeout(CALL, writing).await.unwrap_or_else(|_| Err(no_reply()))
    }

    /// Fails while the server's disk is full. It asks the server only if a write was refused for that reason before; it
    /// then tries to take some room, because a server without room may stay without writes that would notice the end.
    pub(crate) async fn has_room(&self) -> Result<()> {
        if !self.full.load(Ordering::Relaxed) {
            return Ok(());
        }
        let taken = self.write(work!(|connection| sqlx::raw_sql(TAKE_ROOM).execute(connection))).await;
        if let Err(error @ StoreError::Down(_)) = taken {
            return Err(error);
        }
        // There is room, or this user may not take any in this way. The next write that is refused says so again.
        self.full.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// A connection that works, as far as one can know.
    pub(crate) async fn lease(&self) -> Result<Lease<'_>> {
        let permit = timeout(ACQUIRE, self.permits.acquire()).await;
        let Ok(Ok(permit)) = permit else {
            return Err(StoreError::unavailable(format_args!(
                "all {} connections to PostgreSQL are busy for {ACQUIRE:?}",
                self.size
            )));
        };
        let connection = match self.trusted().await {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        Ok(Lease { pool: self, connection: Some(connection), keep: false, _permit: permit })
    }

    /// An idle connection, if the newest of them still is one. If not, none of them is.
    async fn trusted(&self) -> Option<PgConnection> {
        let idle = self.idle.lock().pop()?;
        let mut connection = idle.connection;
        if idle.since.elapsed() > TRUSTED && !matches!(timeout(ACQUIRE, connection.ping()).await, Ok(Ok(()))) {
            self.idle.lock().clear();
            return None;
        }
        Some(connection)
    }

    async fn connect(&self) -> Result<PgConnection> {
        match timeout(ACQUIRE, self.options.connect()).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(unreachable(&self.options, error)),
            Err(_) => Err(StoreError::unavailable(format_args!(
                "PostgreSQL at {} did not take a connection within {ACQUIRE:?}",
                address(&self.options)
            ))),
        }
    }
}

fn address(options: &PgConnectOptions) -> String {
    match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    }
}

/// Why there is no connection.
pub(crate) fn unreachable(options: &PgConnectOptions, error: sqlx::Error) -> StoreError {
    match error {
        sqlx::Error::Io(cause) => {
            StoreError::unavailable(format_args!("no PostgreSQL at {}: {cause}", address(options)))
        }
        sqlx::Error::Tls(cause) => {
            StoreError::unavailable(format_args!("no TLS with PostgreSQL at {}: {cause}", address(options)))
        }
        error => fault::store_error(error),
    }
}

/// A write whose connection was lost may have happened.
pub(crate) fn in_doubt(error: sqlx::Error) -> StoreError {
    if fault::is_lost(&error) { no_reply() } else { fault::store_error(error) }
}

/// A read that took too long.
pub(crate) fn unanswered() -> StoreError {
    StoreError::unavailable(format_args!("PostgreSQL did not answer within {CALL:?}"))
}

pub(crate) fn no_reply() -> StoreError {
    StoreError::unavailable("PostgreSQL's reply was lost: the write may or may not have happened; ask again")
}

/// A connection in use. Dropped, it is closed, unless [`Lease::judge`] found nothing wrong.
pub(crate) struct Lease<'p> {
    pool: &'p Pool,
    connection: Option<PgConnection>,
    keep: bool,
    _permit: SemaphorePermit<'p>,
}

impl Lease<'_> {
    /// In doubt from now on, until [`Lease::judge`].
    pub(crate) fn connection(&mut self) -> &mut PgConnection {
        self.keep = false;
        self.connection.as_mut().expect("taken only by drop")
    }

    /// Whether the connection can be used again after `answer`, which it gave.
    pub(crate) fn judge<T>(&mut self, answer: sqlx::Result<T>) -> sqlx::Result<T> {
        match &answer {
            Ok(_) => self.keep = true,
            // A restart breaks all of them at once.
            Err(error) if fault::is_lost(error) => self.pool.idle.lock().clear(),
            Err(error) if fault::is_disk_full(error) => self.pool.full.store(true, Ordering::Relaxed),
            Err(_) => {}
        }
        answer
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if let (true, Some(connection)) = (self.keep, self.connection.take()) {
            self.pool.idle.lock().push(Idle { connection, since: Instant::now() });
        }
    }
}
