//! Starts the commands of a connection, one after another, and does what follows from each outcome.

use std::future::Future;
use std::sync::Arc;

use feedgate_common::FeedId;
use tokio::time::timeout;

use super::backoff::scattered;
use super::deadlines::NEVER;
use super::outcome::{Outcome, Stop, Then};
use super::turns::Subscribing;
use super::{
    Connection, End, TIMEOUT, connect, history, presence, refresh, rpc_ack, rpc_page, rpc_seen, subscribe, watching,
};
use crate::clock;
use crate::limits::log_limit::LogLimit;
use crate::net::address::Client;
use crate::node::identity::{Identity, client_name};
use crate::protocol::{Close, Command, Connected, ErrorCode, Format, Refreshed, Refusal, Reply, Subscribe, Verb};

/// The server's version, as `connect` tells it.
const VERSION: &str = concat!("feedgate ", env!("CARGO_PKG_VERSION"));

/// The log lines about commands that could not be carried out.
static FAILED: LogLimit = LogLimit::new();

impl Connection {
    /// Starts the next command, unless a command is in flight or there is no room for the reply. Returns whether a
    /// command was started.
    pub(super) fn next_command(&mut self) -> Result<bool, End> {
        if self.answering.is_some() || self.subscribing.is_some() {
            return Ok(false);
        }
        if self.waiting.front().is_some_and(|next| !self.has_room_for(&next.verb)) {
            return Ok(false);
        }
        let Some(Command { id, verb }) = self.waiting.pop_front() else {
            self.waiting.shrink_to_fit();
            return Ok(false);
        };
        self.execute(id, verb)?;
        Ok(true)
    }

    fn execute(&mut self, id: u32, verb: Verb) -> Result<(), End> {
        self.moves = matches!(verb, Verb::Ack(..) | Verb::History(_));
        let shared = self.shared.clone();
        let Some(who) = self.who.clone() else {
            return match verb {
                Verb::Connect(Ok(asked)) => {
                    self.numbers = self.format == Format::Json || asked.reads_numbers;
                    self.run(id, connect::connect(shared, self.slot.clone(), asked, self.client()))
                }
                Verb::Connect(Err(refusal)) => self.conclude(id, Err(Stop::Refused(*refusal))),
                _ => Err(End::Close(Close::BadRequest)),
            };
        };
        match verb {
            Verb::Connect(_) => Err(End::Close(Close::BadRequest)),
            Verb::Subscribe(asked) => self.subscribe(id, *asked, who),
            Verb::Unsubscribe(feed) => {
                self.unsubscribe(feed);
                self.conclude(id, Ok(Then::Reply(Reply::Unsubscribe)))
            }
            Verb::Watch(item) => match self.may_watch(item) {
                Ok(()) => {
                    let slot = self.slot.clone();
                    self.answer(id, watching::watch(shared, who, slot, item))
                }
                Err(refusal) => self.conclude(id, Err(Stop::Refused(refusal))),
            },
            Verb::Unwatch(item) => {
                self.unwatch(item);
                self.conclude(id, Ok(Then::Reply(Reply::Unsubscribe)))
            }
            Verb::Ack(feed, at) => match self.channels.subscription(feed) {
                // A position that was sent is within the log, so the log need not be read.
                Some(subscription) if rpc_ack::within(at, subscription.position()).is_ok() => {
                    self.conclude(id, Ok(Then::Acked(feed, at)))
                }
                _ => self.answer(id, rpc_ack::ack(shared, who, feed, at)),
            },
            Verb::Seen(feed, at) => self.answer(id, rpc_seen::seen(shared, who, self.slot.connection, feed, at)),
            Verb::Page(asked) => self.answer(id, rpc_page::page(shared, who, asked)),
            Verb::History(asked) => self.answer(id, history::history(shared, who, asked, self.format)),
            Verb::Presence => self.answer(id, presence::presence(shared, who)),
            Verb::PresenceStats => self.answer(id, presence::presence_stats(shared, who)),
            Verb::Refresh(token) => self.answer(id, refresh::refresh(shared, who, token, self.client())),
            Verb::Ping => self.conclude(id, Ok(Then::Reply(Reply::Pong))),
            Verb::Refused(refusal) => self.conclude(id, Err(Stop::Refused(*refusal))),
        }
    }

    /// The client that the connection counts for.
    pub(super) fn client(&self) -> Client {
        self.stay.as_ref().map_or(Client::default(), |stay| stay.client())
    }

    /// Runs a command that may be dropped at any time; it is refused if it takes longer than [`TIMEOUT`].
    fn answer(&mut self, id: u32, outcome: impl Future<Output = Outcome> + Send + 'static) -> Result<(), End> {
        self.run(id, async {
            let refused = |_| Err(ErrorCode::Internal.because("a store does not answer; try again").into());
            timeout(TIMEOUT, outcome).await.unwrap_or_else(refused)
        })
    }

    fn run(&mut self, id: u32, outcome: impl Future<Output = Outcome> + Send + 'static) -> Result<(), End> {
        self.answering = Some(Box::pin(async move { (id, outcome.await) }));
        Ok(())
    }

    fn subscribe(&mut self, id: u32, mut asked: Subscribe, who: Arc<Identity>) -> Result<(), End> {
        let feed = asked.feed;
        asked.numbered &= self.numbers;
        if self.channels.subscription(feed).is_some() {
            return self.conclude(id, Err(ErrorCode::AlreadySubscribed.into()));
        }
        self.shared.reads.touches.note(who.inbox(feed));
        let start = subscribe::start_of(asked.from);
        self.subscribing = Some(Box::new(Subscribing { id, asked, start }));
        match start {
            Some(_) => Ok(()),
            None => {
                let acked = self.channels.of(feed).acked;
                self.answer(id, subscribe::stored(self.shared.clone(), who, feed, acked))
            }
        }
    }

    /// Does what follows from the outcome of a command, and sends the reply.
    pub(super) fn conclude(&mut self, id: u32, outcome: Outcome) -> Result<(), End> {
        let reply = match outcome {
            Ok(Then::Start(start)) => {
                self.subscribing.as_mut().expect("a start follows a subscribe").start = Some(start);
                return Ok(());
            }
            Ok(Then::Reply(reply)) => reply,
            Ok(Then::Watching(watch, reply)) => {
                self.watching.get_or_insert_default().add(watch);
                reply
            }
            Ok(Then::Connected(who, expires_at)) => self.connected(who, expires_at),
            Ok(Then::Refreshed(expires_at)) => self.refreshed(expires_at),
            Ok(Then::Acked(feed, position)) => {
                self.acknowledge(feed, position);
                Reply::Acked
            }
            Ok(Then::ReplyAndAcked(reply, feed, position)) => {
                self.acknowledge(feed, position);
                reply
            }
            Err(Stop::Close(close)) => return Err(End::Close(close)),
            Err(Stop::BadToken(why)) => return Err(End::BadToken(why)),
            Err(Stop::Refused(refusal)) => return self.send_refusal(id, &refusal),
            Err(Stop::Failed(error)) => {
                if !self.shared.found_damage(&error)
                    && let Some(suppressed) = FAILED.admit()
                {
                    tracing::warn!(%error, suppressed, "a command could not be carried out");
                }
                return self.send_refusal(id, &ErrorCode::Internal.into());
            }
        };
        self.send(id, reply);
        Ok(())
    }

    /// Answers with a refusal. A subscribe that was refused before it had begun ends here. A client that only listens
    /// cannot ask again in this session, so a refusal that passes ends the session: then the client connects again.
    pub(super) fn send_refusal(&mut self, id: u32, refusal: &Refusal) -> Result<(), End> {
        self.subscribing = None;
        self.transport.frame(|out| self.format.error(out, id, refusal));
        match self.format {
            Format::OneWay if refusal.code.temporary() => Err(End::Close(Close::ServerError)),
            _ if self.who.is_some() => Ok(()),
            Format::OneWay => Err(End::Close(Close::BadRequest)),
            Format::Json | Format::Protobuf => {
                self.refuse_behind(refusal);
                Ok(())
            }
        }
    }

    /// Refuses the commands that wait behind a `connect` that was refused, as it was. An SDK sends its subscriptions
    /// along with `connect`, so they are no mistake of the device. A `connect` among them is another try.
    fn refuse_behind(&mut self, refusal: &Refusal) {
        while self.waiting.front().is_some_and(|next| !matches!(next.verb, Verb::Connect(_)))
            && let Some(Command { id, .. }) = self.waiting.pop_front()
        {
            self.transport.frame(|out| self.format.error(out, id, refusal));
        }
    }

    /// Sends a reply; the bytes of a large one stay counted until they are written.
    fn send(&mut self, id: u32, mut reply: Reply) {
        let held = reply.take_held();
        self.transport.frame(|out| self.format.result(out, id, &reply));
        if let Some(held) = held {
            self.transport.link_mut().hold(held);
        }
    }

    fn connected(&mut self, who: Arc<Identity>, expires_at: u64) -> Reply {
        self.shared.reads.touches.note(who.inbox(FeedId::MAIN));
        self.log_connected(&who);
        self.who = Some(who);
        if let Some(stay) = &mut self.stay {
            stay.known();
        }
        self.transport.allow(self.shared.settings.now().message_max_bytes);
        let ttl = self.expire_at(expires_at);
        let settings = &self.shared.settings.now();
        let now = self.shared.uptime.elapsed_ms();
        // Devices that connect at the same moment get different times, so that they are not always pinged at the same
        // moment.
        let spread = scattered(self.slot.connection) % 512;
        let part = |secs: u32| u64::from(secs) * 1000 * (512 + spread) / 1024;
        self.deadlines.connect = NEVER;
        self.deadlines.ping = now + part(settings.ping_interval_secs);
        self.deadlines.reread = now + part(settings.reread_interval_secs);
        let client = client_name(&self.shared.local.node, self.slot.connection);
        let id = |number| self.shared.verifier.keys().session_id(&self.shared.local.node, number);
        Reply::Connect(Connected {
            session: self.transport.number().map_or_else(|| client.to_string(), id),
            client: client.into(),
            version: VERSION.to_owned(),
            ping: settings.ping_interval_secs,
            pong: self.format != Format::OneWay,
            expires: true,
            ttl,
            node: self.shared.local.node.clone(),
        })
    }

    fn refreshed(&mut self, expires_at: u64) -> Reply {
        let client = client_name(&self.shared.local.node, self.slot.connection);
        Reply::Refresh(Refreshed {
            client: client.into(),
            version: VERSION.to_owned(),
            expires: true,
            ttl: self.expire_at(expires_at),
        })
    }

    /// Sets the deadline of expiry. Gives the seconds that the token has left, at least 1.
    fn expire_at(&mut self, expires_at: u64) -> u32 {
        let left_ms = expires_at.saturating_mul(1000).saturating_sub(clock::now().unsigned_abs());
        let grace_ms = u64::from(self.shared.settings.now().refresh_grace_secs) * 1000;
        self.deadlines.expiry = self.shared.uptime.elapsed_ms().saturating_add(left_ms).saturating_add(grace_ms);
        u32::try_from(left_ms / 1000).unwrap_or(u32::MAX).max(1)
    }
}
