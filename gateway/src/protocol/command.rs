//! The commands that a device sends. A text frame holds one or more JSON objects, each on its own line.
//!
//! ```text
//!   {"id":2,"subscribe":{…}}     a command: an id and exactly one verb
//!   {}                           a pong
//!   {"id":3,"send":{…}}          a message nobody answers, even with an id
//! ```
//!
//! A line that is no command at all breaks the protocol ([`Malformed`]: close 3501). A command whose contents make no
//! sense is answered with a precise [`Refusal`]. Unknown fields are ignored.
//!
//! A channel is the name of a feed, and stands for the inbox that the token's user has in that feed.

use feedgate_common::named::NamedFeeds;
use feedgate_common::{DeviceId, Epoch, FeedId, Position};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::codes::{ErrorCode, Refusal};

#[cfg(test)]
mod tests;

/// The line is no command. The connection is closed with 3501.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// One line of a text frame.
#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    /// The device's answer to our ping.
    Pong,
    /// A message that is not answered.
    Send,
    /// A command, which is done and answered.
    Command(Command),
}

/// A command, which is done and answered.
#[derive(Debug, PartialEq)]
pub(crate) struct Command {
    /// Greater than 0; the reply carries the same number.
    pub(crate) id: u32,
    /// What the device asks for.
    pub(crate) verb: Verb,
}

/// What a device may ask for, with the arguments checked.
#[derive(Debug, PartialEq)]
pub(crate) enum Verb {
    /// Holds the refusal if its arguments are wrong. It is no [`Verb::Refused`], since that is answered only after a
    /// `connect`.
    Connect(Result<Box<Connect>, Box<Refusal>>),
    Subscribe(Box<Subscribe>),
    Unsubscribe(FeedId),
    Ack(FeedId, Position),
    Page(Box<PageAsk>),
    History(Box<History>),
    Presence,
    PresenceStats,
    Refresh(Box<str>),
    Ping,
    /// A command that cannot be done: answer with this.
    Refused(Box<Refusal>),
}

/// The arguments of `connect`.
#[derive(Debug, PartialEq)]
pub(crate) struct Connect {
    pub(crate) token: String,
    /// The field `data.device_id`, if it is there.
    pub(crate) device: Option<DeviceId>,
}

/// The arguments of `subscribe`.
#[derive(Debug, PartialEq)]
pub(crate) struct Subscribe {
    pub(crate) feed: FeedId,
    pub(crate) from: From,
    pub(crate) deliver: Deliver,
    /// Whether to refuse with error 112 rather than start at the head.
    pub(crate) reject_unrecovered: bool,
}

/// What a device is sent of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deliver {
    /// Only that it is behind; it then fetches by itself.
    Notify,
    /// Every change, with its item.
    Items,
}

/// The position that a device wants to start from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum From {
    Head,
    /// Its own, with `recover:true`; `None` if what it sent has no epoch of ours.
    Own(Option<Position>),
    /// The stored one, with `data.resume:"stored"`.
    Stored,
}

/// The arguments of `rpc page`.
#[derive(Debug, PartialEq)]
pub(crate) struct PageAsk {
    pub(crate) feed: FeedId,
    pub(crate) limit: Option<u64>,
    pub(crate) cursor: Option<String>,
}

/// The arguments of `history`.
#[derive(Debug, PartialEq)]
pub(crate) struct History {
    pub(crate) feed: FeedId,
    pub(crate) since: Option<Position>,
    /// The most changes to give; 0 asks only for the log's position.
    pub(crate) limit: usize,
    pub(crate) reverse: bool,
}

/// Reads one line. `feeds` are the channels that exist.
pub(crate) fn decode(line: &str, feeds: &NamedFeeds) -> Result<Message, Malformed> {
    let wire: Wire<'_> = serde_json::from_str(line).map_err(|_| Malformed)?;
    let verbs = [
        wire.connect.map(|raw| Ok(Verb::Connect(connect(raw).map(Box::new).map_err(Box::new)))),
        wire.subscribe.map(|raw| subscribe(raw, feeds)),
        wire.unsubscribe.map(|raw| on_channel(raw, "unsubscribe", feeds).map(Verb::Unsubscribe)),
        wire.rpc.map(|raw| rpc(raw, feeds)),
        wire.history.map(|raw| history(raw, feeds)),
        // All feeds of a user have the same devices, so the feed does not matter.
        wire.presence.map(|raw| on_channel(raw, "presence", feeds).map(|_| Verb::Presence)),
        wire.presence_stats.map(|raw| on_channel(raw, "presence_stats", feeds).map(|_| Verb::PresenceStats)),
        wire.refresh.map(refresh),
        wire.ping.map(|_| Ok(Verb::Ping)),
        wire.publish.map(|_| {
            Err(ErrorCode::PermissionDenied.because("devices do not publish: backends do, with POST /v1/items"))
        }),
        wire.sub_refresh
            .map(|_| Err(ErrorCode::NotAvailable.because("subscriptions carry no token of their own: send refresh"))),
    ];
    let mut verbs = verbs.into_iter().flatten();
    match (wire.id, verbs.next(), verbs.next(), wire.send) {
        (_, None, _, Some(_)) => Ok(Message::Send),
        (0, None, _, None) if line.trim() == "{}" => Ok(Message::Pong),
        (0, _, _, _) | (_, _, Some(_), _) => Err(Malformed),
        (id, None, _, None) => Ok(command(id, Err(ErrorCode::MethodNotFound.into()))),
        (id, Some(verb), None, _) => Ok(command(id, verb)),
    }
}

fn command(id: u32, verb: Result<Verb, Refusal>) -> Message {
    Message::Command(Command { id, verb: verb.unwrap_or_else(|refusal| Verb::Refused(Box::new(refusal))) })
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(default)]
    id: u32,
    #[serde(borrow)]
    connect: Option<&'a RawValue>,
    subscribe: Option<&'a RawValue>,
    unsubscribe: Option<&'a RawValue>,
    publish: Option<&'a RawValue>,
    rpc: Option<&'a RawValue>,
    history: Option<&'a RawValue>,
    presence: Option<&'a RawValue>,
    presence_stats: Option<&'a RawValue>,
    refresh: Option<&'a RawValue>,
    sub_refresh: Option<&'a RawValue>,
    ping: Option<&'a RawValue>,
    send: Option<&'a RawValue>,
}

/// Reads the contents of a verb, or says what is wrong with them.
fn contents<'a, T: Deserialize<'a>>(raw: &'a RawValue, what: &str) -> Result<T, Refusal> {
    serde_json::from_str(raw.get()).map_err(|error| ErrorCode::BadRequest.because(format!("{what}: {error}")))
}

/// The feed that `channel` names, or a refusal that lists the known ones.
fn feed_of(channel: &str, feeds: &NamedFeeds) -> Result<FeedId, Refusal> {
    feeds.by_name(channel).ok_or_else(|| {
        let named: String = channel.chars().take(64).collect();
        ErrorCode::UnknownChannel.because(format!("unknown channel {named:?}; known: {}", feeds.names()))
    })
}

fn connect(raw: &RawValue) -> Result<Connect, Refusal> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(default)]
        token: Option<String>,
        #[serde(borrow)]
        data: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Data {
        device_id: Option<DeviceId>,
    }
    let Params { token, data } = contents(raw, "connect")?;
    // An app may put any value into `data`; only an object can name a device.
    let device = match data.filter(|data| data.get().starts_with('{')) {
        Some(data) => contents::<Data>(data, "connect.data")?.device_id,
        None => None,
    };
    Ok(Connect { token: token.unwrap_or_default(), device })
}

fn subscribe(raw: &RawValue, feeds: &NamedFeeds) -> Result<Verb, Refusal> {
    /// Bit 2 of `flag`: refuse instead of answering `recovered:false`.
    const REJECT_UNRECOVERED: u64 = 2;
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(default)]
        channel: String,
        #[serde(default)]
        recover: bool,
        #[serde(default)]
        offset: u64,
        #[serde(default)]
        epoch: String,
        #[serde(default)]
        flag: u64,
        #[serde(borrow)]
        data: Option<&'a RawValue>,
    }
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "lowercase")]
    enum Wants {
        #[default]
        Notify,
        Items,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Resume {
        Stored,
    }
    #[derive(Deserialize, Default)]
    struct Data {
        #[serde(default)]
        deliver: Wants,
        resume: Option<Resume>,
    }
    let asked: Params<'_> = contents(raw, "subscribe")?;
    let feed = feed_of(&asked.channel, feeds)?;
    let data: Data = match asked.data.filter(|data| data.get().starts_with('{')) {
        Some(data) => contents(data, "subscribe.data")?,
        None => Data::default(),
    };
    let own = || Some(Position { epoch: asked.epoch.parse().ok()?, offset: asked.offset });
    let from = match (asked.recover, data.resume) {
        (true, _) => From::Own(own()),
        (false, Some(Resume::Stored)) => From::Stored,
        (false, None) => From::Head,
    };
    let deliver = match data.deliver {
        Wants::Notify => Deliver::Notify,
        Wants::Items => Deliver::Items,
    };
    let reject_unrecovered = asked.flag & REJECT_UNRECOVERED != 0;
    Ok(Verb::Subscribe(Box::new(Subscribe { feed, from, deliver, reject_unrecovered })))
}

/// The feed of a verb whose only argument is a channel.
fn on_channel(raw: &RawValue, what: &str, feeds: &NamedFeeds) -> Result<FeedId, Refusal> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(default)]
        channel: String,
    }
    feed_of(&contents::<Params>(raw, what)?.channel, feeds)
}

#[derive(Deserialize)]
struct WirePosition {
    offset: Option<u64>,
    #[serde(default)]
    epoch: String,
}

fn rpc(raw: &RawValue, feeds: &NamedFeeds) -> Result<Verb, Refusal> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(default)]
        method: String,
        #[serde(borrow)]
        data: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Ack {
        channel: Option<String>,
        offset: Option<u64>,
        #[serde(default)]
        epoch: String,
    }
    #[derive(Deserialize, Default)]
    struct Page {
        channel: Option<String>,
        limit: Option<u64>,
        cursor: Option<String>,
    }
    let Params { method, data } = contents(raw, "rpc")?;
    let feed_of = |channel: Option<&str>| feed_of(channel.unwrap_or(FeedId::MAIN_NAME), feeds);
    match (method.as_str(), data) {
        ("ack", Some(data)) => {
            let Ack { channel, offset, epoch } = contents(data, "rpc ack: data")?;
            let feed = feed_of(channel.as_deref())?;
            let epoch: Epoch =
                epoch.parse().map_err(|error| ErrorCode::BadRequest.because(format!("rpc ack: {error}")))?;
            let offset = offset.ok_or_else(|| ErrorCode::BadRequest.because("rpc ack: data needs an offset"))?;
            Ok(Verb::Ack(feed, Position { epoch, offset }))
        }
        ("ack", None) => Err(ErrorCode::BadRequest.because("rpc ack: data must be {\"offset\":N,\"epoch\":\"…\"}")),
        ("page", data) => {
            let asked: Option<Page> = data.map_or(Ok(None), |data| contents(data, "rpc page: data"))?;
            let Page { channel, limit, cursor } = asked.unwrap_or_default();
            Ok(Verb::Page(Box::new(PageAsk { feed: feed_of(channel.as_deref())?, limit, cursor })))
        }
        (other, _) => {
            let named: String = other.chars().take(64).collect();
            Err(ErrorCode::MethodNotFound.because(format!("there is no rpc {named:?}; there are \"ack\" and \"page\"")))
        }
    }
}

fn history(raw: &RawValue, feeds: &NamedFeeds) -> Result<Verb, Refusal> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(default)]
        channel: String,
        since: Option<WirePosition>,
        #[serde(default)]
        limit: i64,
        #[serde(default)]
        reverse: bool,
    }
    let asked: Params = contents(raw, "history")?;
    let feed = feed_of(&asked.channel, feeds)?;
    let since = match asked.since {
        None => None,
        Some(at) => {
            // An epoch that cannot be read is not ours, so its log is gone.
            let epoch = at.epoch.parse().map_err(|_| Refusal::from(ErrorCode::UnrecoverablePosition))?;
            // Some SDKs leave out an offset of zero.
            Some(Position { epoch, offset: at.offset.unwrap_or(0) })
        }
    };
    // A negative limit means "as many as you give".
    let limit = usize::try_from(asked.limit).unwrap_or(usize::MAX);
    Ok(Verb::History(Box::new(History { feed, since, limit, reverse: asked.reverse })))
}

fn refresh(raw: &RawValue) -> Result<Verb, Refusal> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(default)]
        token: String,
    }
    Ok(Verb::Refresh(contents::<Params>(raw, "refresh")?.token.into()))
}
