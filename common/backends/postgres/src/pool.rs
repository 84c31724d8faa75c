//! The pool of connections, which also bounds the time of everything that is asked on them.
//!
//! ```text
//!   call ─▶ permit ─▶ idle connection, or a new one ─▶ work ─▶ back among the idle, if nothing is in doubt
//!           └───────────────────── at most CALL in all ─────────────────────┘
//! ```
//!
//! Invariants:
//! - A connection that failed, or whose caller went away in the middle of its work, is closed and never used again.
//! - A call ends within [`CALL`], whatever the network does.
//! - After the server has refused a write because its disk is full, [`Pool::has_room`] fails until the server takes
//!   writes again.
//!
//! This is not sqlx's own pool. That one asks the server once more for each connection that is given back, and reports
//! a server that refuses connections as a timeout of the pool.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use feedgate_common::StoreError;
use feedgate_common::error::Result;
use feedgate_common::labels;
use feedgate_common::metrics::{Call, Calls, Registry};
use parking_lot::Mutex;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;
use tokio::time::timeout;

use crate::fault;

/// How long a call may take at most.
pub(crate) const CALL: Duration = Duration::from_secs(5);

/// How long each step to a connection may take: to wait for a place, to check an idle connection, to make a new one.
const ACQUIRE: Duration = Duration::from_secs(2);

/// A connection that was idle for longer than this is checked before it is used.
const TRUSTED: Duration = Duration::from_secs(1);

/// How often a read is repeated after its connection was lost.
const AGAIN: usize = 2;

/// Makes the server's files larger by 1 MiB, and gives that back. Rows of 2,000 bytes are stored uncompressed.
const TAKE_ROOM: &str = "BEGIN;
    CREATE TEMPORARY TABLE room (filler text) ON COMMIT DROP;
    INSERT INTO room SELECT repeat('x', 2000) FROM generate_series(1, 512);
    ROLLBACK";

/// For the rest of a transaction that locks whole tables. All writes to such a table queue behind who waits for it, so
/// the wait is short, and who has waited in vain lets them pass for far longer.
pub(crate) const WAIT_BRIEFLY: &str = "SET LOCAL lock_timeout = '200ms'";

/// Whether the server only reads. A primary may become a standby while this process runs, and would answer reads with
/// what was true before.
const IS_STANDBY: &str = "SELECT pg_is_in_recovery()";

const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// The result of work on a connection, and the connection.
pub(crate) type Done<'p, T> = (Lease<'p>, sqlx::Result<T>);

/// Makes a closure for [`Pool::read`], [`Pool::snapshot`] and [`Pool::write`] from a call that takes `$connection`.
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

/// The kinds of calls to the server, by which they are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Waits for a connection, and makes one if none is idle.
    Connection,
    /// Reads with one statement or several.
    Read,
    /// Writes with one statement or several.
    Write,
    /// Tries to carry out a batch of operations of backends in one transaction, on a connection that was taken before.
    Batch,
}

labels!(Verb, "call": Connection "connection", Read "read", Write "write", Batch "batch");

/// The connections of this process to the server.
pub(crate) struct Pool {
    options: PgConnectOptions,
    size: u32,
    permits: Semaphore,
    /// The idle connections, the one used last at the end.
    idle: Mutex<Vec<Idle>>,
    /// Whether the server has refused a write because its disk is full, and has taken none since.
    full: AtomicBool,
    calls: Calls<Verb>,
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
            calls: Calls::default(),
        }
    }

    /// Registers what is counted of calls, as `postgresql_calls` and `postgresql_call_seconds`.
    pub(crate) fn register(&self, registry: &mut Registry) {
        self.calls.register("postgresql", registry);
    }

    /// Begins to count a call.
    pub(crate) fn call(&self, verb: Verb) -> Call<'_, Verb> {
        self.calls.begin(verb, || Instant::now().into_std())
    }

    /// Reads with one statement. If the connection is lost in the middle, `work` runs again on another one, so it must
    /// not write. Fails with `Unavailable` if there is no answer within [`CALL`].
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
        let call = self.call(Verb::Read);
        call.ended(timeout(CALL, reading).await.unwrap_or_else(|_| Err(unanswered())))
    }

    /// Reads with several statements over one snapshot. Else it behaves as [`Pool::read`] does.
    pub(crate) async fn snapshot<'p, T, F>(&'p self, work: impl Fn(Lease<'p>) -> F + Copy) -> Result<T>
    where
        F: Future<Output = Done<'p, T>>,
    {
        self.read(move |mut lease| async move {
            if let Err(error) = sqlx::query(SNAPSHOT).execute(lease.connection()).await {
                return (lease, Err(error));
            }
            // If the work fails, its connection is closed, which ends the transaction.
            let (mut lease, answer) = work(lease).await;
            let Ok(answer) = answer else { return (lease, answer) };
            let ended = sqlx::query("COMMIT").execute(lease.connection()).await.map(|_| answer);
            (lease, ended)
        })
        .await
    }

    /// Writes with each statement of `work` at most once. If the write may have happened in spite of an error, the
    /// error says so. A dropped future leaves that unknown too.
    pub(crate) async fn write<'p, T, F>(&'p self, work: impl FnOnce(Lease<'p>) -> F) -> Result<T>
    where
        F: Future<Output = Done<'p, T>>,
    {
        let writing = async {
            let (mut lease, answer) = work(self.lease().await?).await;
            lease.judge(answer).map_err(in_doubt)
        };
        let call = self.call(Verb::Write);
        call.ended(timeout(CALL, writing).await.unwrap_or_else(|_| Err(no_reply())))
    }

    /// Fails while the server's disk is full. It asks the server only if a write was refused for that reason before.
    /// Then it tries to take some room, since without it no write might come that would show that there is room again.
    pub(crate) async fn has_room(&self) -> Result<()> {
        if !self.full.load(Ordering::Relaxed) {
            return Ok(());
        }
        let taken = self.write(work!(|connection| sqlx::raw_sql(TAKE_ROOM).execute(connection))).await;
        if let Err(error @ StoreError::Down(_)) = taken {
            return Err(error);
        }
        // There is room, or it cannot be found out in this way: this user may make no temporary tables, or the
        // connection was lost. If the next write is refused because the disk is full, `full` is set again.
        self.full.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// A connection that works, as far as that can be known. Waits at most three times [`ACQUIRE`].
    pub(crate) async fn lease(&self) -> Result<Lease<'_>> {
        let call = self.call(Verb::Connection);
        call.ended(self.leased().await)
    }

    /// As [`Pool::lease`], but this call is not counted.
    async fn leased(&self) -> Result<Lease<'_>> {
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

    /// The idle connection used last, if it still works. If it does not, all idle connections are closed.
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
        let connecting = async {
            loop {
                let mut connection = self.options.connect().await?;
                match sqlx::query_scalar(IS_STANDBY).fetch_one(&mut connection).await {
                    // The server has ended this connection. Whether it is still there, the next one shows.
                    Err(error) if fault::is_lost(&error) => {}
                    answer => return Ok((connection, answer?)),
                }
            }
        };
        match timeout(ACQUIRE, connecting).await {
            Ok(Ok((_, true))) => Err(StoreError::misconfigured(fault::STANDBY)),
            Ok(Ok((connection, false))) => Ok(connection),
            Ok(Err(error)) => Err(unreachable(&self.options, error)),
            Err(_) => Err(StoreError::unavailable(format_args!(
                "PostgreSQL at {} did not take a connection within {ACQUIRE:?}",
                address(&self.options)
            ))),
        }
    }
}

/// Where the server is, as errors name it.
pub(crate) fn address(options: &PgConnectOptions) -> String {
    match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    }
}

/// The error for a connection that could not be made.
pub(crate) fn unreachable(options: &PgConnectOptions, error: sqlx::Error) -> StoreError {
    if let Some(why) = feedgate_tls::refusal(&error) {
        return StoreError::misconfigured(format_args!("no TLS with PostgreSQL at {}: {why}", address(options)));
    }
    match error {
        sqlx::Error::Io(cause) => {
            let nobody = format_args!("no PostgreSQL at {}: {cause}", address(options));
            StoreError::unavailable(nobody).with_source(cause)
        }
        sqlx::Error::Tls(cause) => {
            StoreError::misconfigured(format_args!("no TLS with PostgreSQL at {}: {cause}", address(options)))
        }
        sqlx::Error::Protocol(why) => StoreError::unavailable(format_args!(
            "what listens at {} does not speak as PostgreSQL does: {why}",
            address(options)
        )),
        error => fault::store_error(error),
    }
}

/// The error for a write. If its connection was lost, the write may have happened, and the error says so.
pub(crate) fn in_doubt(error: sqlx::Error) -> StoreError {
    if fault::is_lost(&error) { no_reply() } else { fault::store_error(error) }
}

/// The error for a read that took too long.
pub(crate) fn unanswered() -> StoreError {
    StoreError::unavailable(format_args!("PostgreSQL did not answer within {CALL:?}"))
}

pub(crate) fn no_reply() -> StoreError {
    StoreError::unavailable("PostgreSQL's reply was lost: the write may or may not have happened; ask again")
}

/// A connection in use. When it is dropped the connection is closed, unless [`Lease::judge`] found nothing wrong.
pub(crate) struct Lease<'p> {
    pool: &'p Pool,
    connection: Option<PgConnection>,
    keep: bool,
    _permit: SemaphorePermit<'p>,
}

impl Lease<'_> {
    /// The connection. From now on the connection counts as broken, until [`Lease::judge`] was called.
    pub(crate) fn connection(&mut self) -> &mut PgConnection {
        self.keep = false;
        self.connection.as_mut().expect("taken only by drop")
    }

    /// Decides from `answer`, which the connection gave, whether the connection can be used again.
    pub(crate) fn judge<T>(&mut self, answer: sqlx::Result<T>) -> sqlx::Result<T> {
        match &answer {
            Ok(_) => self.keep = true,
            // A restart of the server breaks all idle connections at once.
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
