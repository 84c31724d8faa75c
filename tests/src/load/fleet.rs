//! All devices, on one thread: they connect, wait for what they are to be told, and hang up.
//!
//! ```text
//!   connect ─▶ expect(k) ─▶ [publish] ─▶ arrived ─▶ expect(k) ─▶ … ─▶ hang_up
//! ```
//!
//! A device costs a socket, a task and some hundred bytes; the bytes read are parsed in one shared buffer.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::rustls::ClientConfig;

use super::frame;
use super::phone::{Heard, Phone};
use super::socket::{self, Socket};
use super::wire::{Deliver, Wire};

/// Devices at a time that are not yet subscribed. Fewer than any listener's backlog holds, and so few that no store
/// behind the server gets more calls at once than it answers in a second.
const CONNECTING: usize = 100;

/// No round takes this long unless something is lost.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a raw socket gets when it is accepted. Without it a peer could not tell that from being queued.
pub const GREETING: &[u8; 1] = b"!";

/// The receive buffer of a device that will not read, in bytes, so that it is full soon.
const STALLED_BUFFER: u32 = 4096;

/// What makes a fleet.
pub struct Plan<'a> {
    /// Where they connect: an equal share at each of these, in order.
    pub addresses: &'a [SocketAddr],
    /// What they ask for.
    pub deliver: Deliver,
    /// The format that they speak.
    pub wire: Wire,
    /// A token for each device; empty ones for the bare loop.
    pub tokens: &'a [String],
    /// These never read again once they are subscribed.
    pub stalled: Range<usize>,
    /// How they trust the servers, if they connect by TLS.
    pub tls: Option<Arc<ClientConfig>>,
}

/// Many devices over real sockets in one process, and what they have seen.
pub struct Fleet {
    shared: Rc<Shared>,
    tasks: JoinSet<()>,
    /// The time from the first connection to the last subscription.
    pub connecting: Duration,
}

struct Shared {
    deliver: Deliver,
    wire: Wire,
    phones: RefCell<Vec<Phone>>,
    scratch: RefCell<Vec<u8>>,
    /// Subscriptions or arrivals that are still to come.
    left: Cell<usize>,
    changed: Notify,
    /// The first thing that went wrong.
    trouble: RefCell<Option<anyhow::Error>>,
    /// The last whole frame that came, as it came.
    last_frame: RefCell<Vec<u8>>,
}

/// When a round's devices had what they were to get.
pub struct Arrivals(Vec<Instant>);

impl Arrivals {
    /// The moment by which this share of them had it.
    pub fn quantile(&self, share: f64) -> Instant {
        self.0[((self.0.len() as f64 * share).ceil() as usize).clamp(1, self.0.len()) - 1]
    }
}

/// What all devices together saw.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// WebSocket frames, or those of the bare loop.
    pub frames: u64,
    /// Changes that they were not told of.
    pub missing: u64,
    /// Changes that they were told of again.
    pub repeated: u64,
    /// How many pings the devices have answered.
    pub pings: u64,
}

impl Fleet {
    /// Connects all of `plan` and waits until each is subscribed.
    pub async fn connect(plan: Plan<'_>) -> anyhow::Result<Self> {
        let count = plan.tokens.len();
        let shared = Rc::new(Shared {
            deliver: plan.deliver,
            wire: plan.wire,
            phones: RefCell::new((0..count).map(|_| Phone::default()).collect()),
            scratch: RefCell::new(vec![0; 256 * 1024]),
            left: Cell::new(if plan.deliver == Deliver::Raw { 0 } else { count }),
            changed: Notify::new(),
            trouble: RefCell::new(None),
            last_frame: RefCell::default(),
        });
        let started = Instant::now();
        let gate = Arc::new(Semaphore::new(CONNECTING));
        let mut tasks = JoinSet::new();
        for (index, token) in plan.tokens.iter().enumerate() {
            let turn = timeout(PATIENCE, gate.clone().acquire_owned()).await.context("no device gets subscribed")??;
            let (shared, stalled) = (shared.clone(), plan.stalled.contains(&index));
            let socket = TcpSocket::new_v4()?;
            if stalled {
                socket.set_recv_buffer_size(STALLED_BUFFER)?;
            }
            let (wire, hello, tls) = (plan.wire, plan.wire.hello(plan.deliver, token), plan.tls.clone());
            let address = plan.addresses[index * plan.addresses.len() / count];
            tasks.spawn_local(async move {
                let ended = match timeout(PATIENCE, connect(socket, address, wire, hello, tls)).await {
                    Ok(Ok((socket, early))) => shared.follow(index, &socket, early, stalled, turn).await,
                    Ok(Err(error)) => Err(error),
                    Err(_) => Err(anyhow!("a connection took too long")),
                };
                if let Err(error) = ended {
                    shared.trouble.borrow_mut().get_or_insert(error.context(format!("device {index}")));
                    shared.changed.notify_one();
                }
            });
        }
        shared.until_none_left().await?;
        // The bare loop has nothing to wait for but the sockets.
        drop(gate.acquire_many(CONNECTING as u32).await?);
        shared.check()?;
        Ok(Self { connecting: started.elapsed(), shared, tasks })
    }

    /// From now on the devices in `range` are to be told of `further` changes each.
    pub fn expect(&self, range: Range<usize>, further: u64) {
        self.shared.left.set(range.len());
        self.shared.phones.borrow_mut()[range].iter_mut().for_each(|phone| phone.expect(further));
    }

    /// Waits until they have been.
    pub async fn arrived(&self, range: Range<usize>) -> anyhow::Result<Arrivals> {
        self.shared.until_none_left().await?;
        let phones = self.shared.phones.borrow();
        let mut arrivals: Vec<Instant> = phones[range].iter().filter_map(|phone| phone.arrived).collect();
        arrivals.sort_unstable();
        Ok(Arrivals(arrivals))
    }

    /// What was seen so far; fails if a device was cut off.
    pub fn tally(&self) -> anyhow::Result<Tally> {
        self.shared.check()?;
        let mut tally = Tally::default();
        for phone in self.shared.phones.borrow().iter() {
            tally.frames += phone.frames;
            tally.missing += phone.missing + phone.target.saturating_sub(phone.position);
            tally.repeated += phone.repeated + phone.position.saturating_sub(phone.target);
            tally.pings += phone.pings;
        }
        Ok(tally)
    }

    /// The last frame that any of them got, header and all.
    pub fn last_frame(&self) -> Vec<u8> {
        self.shared.last_frame.borrow().clone()
    }

    /// Closes the sockets of all devices.
    pub async fn hang_up(mut self) {
        self.tasks.shutdown().await;
    }
}

/// A socket that is connected, by TLS if that is given, and has said hello; and what came with the answer.
async fn connect(
    socket: TcpSocket,
    address: SocketAddr,
    wire: Wire,
    hello: Option<Vec<u8>>,
    tls: Option<Arc<ClientConfig>>,
) -> anyhow::Result<(Socket, Vec<u8>)> {
    let mut stream = socket.connect(address).await?;
    stream.set_nodelay(true)?;
    match (hello, tls) {
        (None, _) => {
            stream.read_exact(&mut GREETING.clone()).await?;
            Ok((stream.into(), vec![]))
        }
        (Some(hello), None) => {
            let early = upgrade(&mut stream, address, wire, hello).await?;
            Ok((stream.into(), early))
        }
        (Some(hello), Some(tls)) => {
            let mut stream = socket::shake_hands(stream, &tls).await?;
            let early = upgrade(&mut stream, address, wire, hello).await?;
            Ok((stream.into(), early))
        }
    }
}

/// Upgrades a connection and says hello. Answers what came with the answer.
pub(super) async fn upgrade(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    address: SocketAddr,
    wire: Wire,
    hello: Vec<u8>,
) -> anyhow::Result<Vec<u8>> {
    let request = format!(
        "GET /connection/websocket HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{}\r\n",
        wire.subprotocol()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::with_capacity(512);
    let end = loop {
        if let Some(at) = answer.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        ensure!(stream.read_buf(&mut answer).await? > 0, "hung up during the upgrade");
    };
    ensure!(answer.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&answer));
    stream.write_all(&hello).await?;
    stream.flush().await?;
    Ok(answer.split_off(end))
}

impl Shared {
    async fn until_none_left(&self) -> anyhow::Result<()> {
        let waiting = async {
            while self.left.get() > 0 {
                self.check()?;
                self.changed.notified().await;
            }
            self.check()
        };
        match timeout(PATIENCE, waiting).await {
            Ok(done) => done,
            Err(_) => bail!("{} devices still wait after {PATIENCE:?}: something is missing", self.left.get()),
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        match &*self.trouble.borrow() {
            Some(error) => bail!("{error:#}"),
            None => Ok(()),
        }
    }

    /// Reads until the socket ends, which it should not; a stalled device until it is subscribed. The device gives its
    /// turn to the next one as soon as it is subscribed, and the bare loop at once.
    async fn follow(
        &self,
        index: usize,
        socket: &Socket,
        mut rest: Vec<u8>,
        stalled: bool,
        turn: OwnedSemaphorePermit,
    ) -> anyhow::Result<()> {
        let mut turn = Some(turn).filter(|_| self.deliver != Deliver::Raw);
        loop {
            socket.readable().await?;
            if self.read(index, socket, &mut rest)? {
                drop(turn.take());
                if stalled {
                    return std::future::pending().await;
                }
            }
        }
    }

    /// One read. `rest` is the frame that has come only in part. True if the subscription has begun.
    fn read(&self, index: usize, socket: &Socket, rest: &mut Vec<u8>) -> anyhow::Result<bool> {
        let mut scratch = self.scratch.borrow_mut();
        let new = match socket.try_read(&mut scratch) {
            Ok(0) => bail!("the server hung up"),
            Ok(read) => &scratch[..read],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error).context("reading"),
        };
        if rest.is_empty() {
            let (used, subscribed) = self.hear(index, socket, new)?;
            rest.extend_from_slice(&new[used..]);
            return Ok(subscribed);
        }
        rest.extend_from_slice(new);
        let (used, subscribed) = self.hear(index, socket, rest)?;
        rest.drain(..used);
        Ok(subscribed)
    }

    /// Takes in the whole frames of `bytes`: how many bytes that were, and whether the subscription has begun.
    fn hear(&self, index: usize, socket: &Socket, bytes: &[u8]) -> anyhow::Result<(usize, bool)> {
        let phone = &mut self.phones.borrow_mut()[index];
        let (mut used, mut subscribed) = (0, false);
        while let Some(frame) = frame::first(&bytes[used..]) {
            match phone.hear(frame.opcode, frame.payload, self.deliver, self.wire)? {
                Heard::Nothing => {}
                Heard::Ping => {
                    socket.try_write_all(&self.wire.pong()).context("a pong")?;
                }
                heard @ (Heard::Subscribed | Heard::Arrived) => {
                    subscribed |= heard == Heard::Subscribed;
                    self.left.set(self.left.get() - 1);
                    if self.left.get() == 0 {
                        *self.last_frame.borrow_mut() = bytes[used..used + frame.len].to_vec();
                        self.changed.notify_one();
                    }
                }
            }
            used += frame.len;
        }
        Ok((used, subscribed))
    }
}
