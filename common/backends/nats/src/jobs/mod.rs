//! Fan-out work on a JetStream work queue.
//!
//! ```text
//!   put ──▶ its lane's stream: is a message there under the job's subject? ─ yes ─▶ refused = merged
//!                │ no: stored
//!   take ◀── hands ◀── a feeder for each lane: asks for as many jobs as calls of take wait
//!   ack ──▶ +ACK, answered by the server: the message is gone, its subject free for the next one
//!   (between take and ack: a sign of work every third of the AckWait)
//! ```
//!
//! # An answer that comes late
//!
//! A worker that was stopped beyond the AckWait finds its job delivered to another. JetStream does not compare
//! deliveries: an ack removes the message at its *sequence*. That is the message whose work was done, never a job
//! put later, which has a sequence of its own. What was merged with it before that ack is seen by the worker that
//! acked, since it looks again; the ack of the other worker then finds nothing. But a server that lost its store gives
//! sequences again, and an old ack would remove the message of another job. So after a reconnect, and after an answer
//! that was not heard, the message at that sequence is compared by its time first. Then ack removes it directly,
//! because a consumer that was rolled back does not answer acks of what it has not delivered.
//!
//! # A job that is stranded
//!
//! A server whose disk was full may forget that it has removed a message, and yet know that its consumer was
//! acknowledged that far. After its restart the message stands in the stream again, no consumer delivers it, and each
//! later put of an equal job would be merged with it (seen with nats-server 2.15). So each feeder looks for messages
//! that the consumer had passed one look ago, and puts their jobs anew.
//!
//! Invariants: a job leaves the queue only by the ack of someone it was delivered to; this process holds no more
//! untaken jobs than calls wait, and none for longer than [`Settings::grace`].
//!
//! With several replicas the server answers an ack before every replica has dropped the message; ack then waits until
//! it is seen to be gone. [`Settings::replicas`] or an operator may ask for several. Each feeder looks how many there
//! are whenever it looks for stranded jobs.

mod events;
mod feeder;
mod hands;
mod streams;
pub(crate) mod wire;

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::message::AckKind;
use async_trait::async_trait;
use feedgate_common::error::Result;
use feedgate_common::jobs::{Delivery, Job, Jobs, Lane};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::bus::{Bus, CALL, PING, within};
use feeder::Feeder;
use hands::Hands;
use streams::Streams;

/// How long a put that failed counts against the server. The sweep of a worker puts overdue work again sooner than
/// this: it comes round every 5 s by default, and a put fails after [`CALL`].
const LATELY: Duration = Duration::from_secs(8);

/// A put that its caller gives up sooner than this says nothing about the server. A caller may go away at any moment,
/// as a request does whose device has left.
const ABANDONED: Duration = PING;

/// How the queue is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// A job whose holder has shown no sign of work for this long is delivered to another; a sign comes three times as
    /// often.
    pub ack_wait: Duration,
    /// The most jobs in flight over all workers together, in each lane.
    pub in_flight_max: i64,
    /// A job that has come and is not taken for this long goes back to the others.
    pub grace: Duration,
    /// How often a process that takes jobs looks for stranded ones.
    pub stranded_every: Duration,
    /// The least number of copies of each stream in a NATS cluster, 1 to 5. A stream that has more keeps them.
    pub replicas: usize,
    /// How long events for other programs are kept.
    pub events_age: Duration,
    /// How many bytes of events for other programs are kept.
    pub events_bytes: i64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ack_wait: Duration::from_millis(1500),
            in_flight_max: 4096,
            grace: Duration::from_millis(250),
            stranded_every: Duration::from_secs(5),
            replicas: 1,
            events_age: Duration::from_secs(24 * 3600),
            events_bytes: 256 << 20,
        }
    }
}

/// The NATS home of [`Jobs`]. Any number of processes may each have one.
pub struct NatsJobs {
    streams: Streams,
    shared: Arc<Shared>,
    /// The last put of each lane, if it failed.
    unstored: [Mutex<Option<Unstored>>; Lane::ALL.len()],
    /// Dropped with this handle, which tells the feeders to give everything back.
    _open: watch::Sender<()>,
}

/// A put that failed.
struct Unstored {
    at: Instant,
    /// The number of the connection that it was sent over.
    connection: u64,
}

/// A put that is under way. If this is dropped before the jobs were stored, it counts as the last failed put of its
/// lanes. If it is dropped because the caller waits no longer, it counts only after [`ABANDONED`].
struct Putting<'a> {
    queue: &'a NatsJobs,
    lanes: [bool; Lane::ALL.len()],
    began: Instant,
    /// Whether the jobs were stored; `None` before that is known.
    stored: Option<bool>,
}

impl<'a> Putting<'a> {
    fn begin(queue: &'a NatsJobs, jobs: &[Job]) -> Self {
        let lanes = Lane::ALL.map(|lane| jobs.iter().any(|job| job.lane() == lane));
        Self { queue, lanes, began: Instant::now(), stored: None }
    }
}

impl Drop for Putting<'_> {
    fn drop(&mut self) {
        if self.stored.is_none() && self.began.elapsed() < ABANDONED {
            return;
        }
        let connection = self.queue.streams.bus.connection();
        for lane in Lane::ALL.into_iter().filter(|lane| self.lanes[*lane as usize]) {
            let failed = (self.stored != Some(true)).then(|| Unstored { at: Instant::now(), connection });
            *self.queue.unstored[lane as usize].lock() = failed;
        }
    }
}

/// What the handle and its feeder share.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) hands: Mutex<Hands>,
    /// Tells the calls that wait that a job has arrived.
    pub(crate) arrived: Notify,
    /// Notified when a call waits for a job; there is one for each lane.
    wanted: [Notify; Lane::ALL.len()],
}

impl Shared {
    /// Notified when a call waits for a job of this lane.
    pub(crate) fn wanted(&self, lane: Lane) -> &Notify {
        &self.wanted[lane as usize]
    }
}

/// Counts a call of take that waits, until this is dropped.
struct Taker<'a>(&'a Shared, Lane);

impl<'a> Taker<'a> {
    fn wait_in(shared: &'a Shared, lane: Lane) -> Self {
        shared.hands.lock().taker_came(lane);
        shared.wanted(lane).notify_one();
        Self(shared, lane)
    }
}

impl Drop for Taker<'_> {
    fn drop(&mut self) {
        self.0.hands.lock().taker_went(self.1);
    }
}

impl NatsJobs {
    /// The queue on `bus`, set up if it is missing or differs from `settings`. Needs a tokio runtime.
    ///
    /// Errors: `Unavailable`, naming the stream that cannot be set up and why.
    pub async fn open(bus: Bus, settings: Settings) -> Result<Self> {
        let streams = Streams::new(bus, settings);
        streams.set_up().await?;
        let shared = Arc::new(Shared::default());
        let (_open, closed) = watch::channel(());
        for lane in Lane::ALL {
            tokio::spawn(Feeder::new(lane, streams.clone(), shared.clone()).run(closed.clone()));
        }
        Ok(Self { streams, shared, unstored: Default::default(), _open })
    }

    /// Fails if the last put of a lane failed lately, over the connection that stands. A server whose disk was full
    /// answers questions but no puts, also once there is room again, until it is restarted (nats-server 2.12).
    fn stores(&self) -> Result<()> {
        let connection = self.streams.bus.connection();
        for lane in Lane::ALL {
            let last = self.unstored[lane as usize].lock();
            let counts = |put: &Unstored| put.connection == connection && put.at.elapsed() < LATELY;
            if last.as_ref().is_some_and(counts) {
                return Err(streams::takes_nothing(lane));
            }
        }
        Ok(())
    }

    async fn settle(&self, id: u64, answer: AckKind) -> Result<()> {
        let Some(held) = self.shared.hands.lock().settling(id) else { return Ok(()) };
        let sure = held.connection == self.streams.bus.connection();
        let settled = async {
            self.streams.bus.connected().await?;
            if sure {
                self.streams.settle(&held.reply, answer).await?;
            } else if self.streams.holds(&held.place).await? {
                match answer {
                    // A consumer that was rolled back may not know of the delivery, and would not answer.
                    AckKind::Ack => self.streams.remove(&held.place).await?,
                    _ => self.streams.settle(&held.reply, answer).await?,
                }
            }
            if matches!(answer, AckKind::Ack) && self.streams.are_replicated() {
                self.streams.gone(&held.place).await?;
            }
            Ok(())
        };
        let settled = settled.await;
        let mut hands = self.shared.hands.lock();
        match settled {
            Ok(()) => hands.settled(id),
            Err(_) => hands.unsettled(id),
        }
        settled
    }
}

#[async_trait]
impl Jobs for NatsJobs {
    async fn put(&self, jobs: &[Job]) -> Result<()> {
        let put = async {
            self.streams.bus.connected().await?;
            self.streams.put(&Job::merged(jobs)).await
        };
        let mut putting = Putting::begin(self, jobs);
        let put = within(CALL, put).await;
        putting.stored = Some(put.is_ok());
        put
    }

    async fn take(&self, lane: Lane) -> Result<Delivery> {
        let _taker = Taker::wait_in(&self.shared, lane);
        loop {
            // Listening begins before the hands are looked at, so that no arrival falls between.
            let mut arrived = std::pin::pin!(self.shared.arrived.notified());
            arrived.as_mut().enable();
            if let Some(delivery) = self.shared.hands.lock().next(lane) {
                return Ok(delivery);
            }
            arrived.await;
        }
    }

    async fn ack(&self, id: u64) -> Result<()> {
        self.settle(id, AckKind::Ack).await
    }

    async fn nack(&self, id: u64) -> Result<()> {
        self.settle(id, AckKind::Nak(None)).await
    }

    fn returns(&self) -> BoxStream<'static, ()> {
        let connections = self.streams.bus.connections();
        let next = async |mut connections: watch::Receiver<u64>| Some((connections.changed().await.ok()?, connections));
        stream::unfold(connections, next).boxed()
    }

    async fn pending(&self) -> Result<u64> {
        self.streams.bus.connected().await?;
        self.streams.pending().await
    }

    async fn ping(&self) -> Result<()> {
        self.streams.bus.connected().await?;
        within(CALL / 2, self.streams.pending()).await?;
        self.stores()
    }
}
