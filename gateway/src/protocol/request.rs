//! The fields of a command, read from JSON or Protobuf into the same structs, and checked here once.
//!
//! Each struct is a message of `client.proto` with the fields that are used here: serde reads them by their names from
//! JSON, prost by their tags from Protobuf. Unknown fields are ignored in both. A field `data` holds JSON in either
//! format, because that is what apps pass to their SDK.

use std::borrow::Cow;

use feedgate_common::ids::short;
use feedgate_common::named::NamedFeeds;
use feedgate_common::position::BadEpoch;
use feedgate_common::{DeviceId, Epoch, FeedId, ItemId, Position};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::codes::{ErrorCode, Refusal};
use super::command::{
    Command, Connect, Deliver, History, Malformed, Message, PageAsk, StartFrom, Subscribe, TOKEN_MAX, Verb,
};
use super::label;
use super::page_json::parse_cursor;

/// A request that a command may contain: `None` if the command does not, `Err` if the request cannot be read.
pub(super) type Asked<T> = Option<Result<T, Refusal>>;

/// A command as it was received, with every request that it contains.
#[derive(Default)]
pub(super) struct Request {
    pub(super) id: u32,
    pub(super) connect: Asked<ConnectRequest>,
    pub(super) subscribe: Asked<SubscribeRequest>,
    pub(super) unsubscribe: Asked<ChannelRequest>,
    pub(super) rpc: Asked<RpcRequest>,
    pub(super) history: Asked<HistoryRequest>,
    pub(super) presence: Asked<ChannelRequest>,
    pub(super) presence_stats: Asked<ChannelRequest>,
    pub(super) refresh: Asked<RefreshRequest>,
    pub(super) ping: bool,
    pub(super) send: bool,
    pub(super) publish: bool,
    pub(super) sub_refresh: bool,
    /// Whether the message is empty, which makes it a pong.
    pub(super) is_empty: bool,
}

/// `ConnectRequest` of the schema.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(super) struct ConnectRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "or_default")]
    token: String,
    #[prost(bytes = "vec", tag = "2")]
    #[serde(deserialize_with = "as_written")]
    data: Vec<u8>,
    #[prost(string, tag = "4")]
    #[serde(deserialize_with = "or_default")]
    name: String,
}

/// `SubscribeRequest` of the schema.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(super) struct SubscribeRequest {
    #[prost(string, tag = "1")]
    channel: String,
    #[prost(bool, tag = "3")]
    recover: bool,
    #[prost(string, tag = "6")]
    epoch: String,
    #[prost(uint64, tag = "7")]
    offset: u64,
    #[prost(bytes = "vec", tag = "8")]
    #[serde(deserialize_with = "as_written")]
    data: Vec<u8>,
    #[prost(int64, tag = "14")]
    flag: i64,
}

/// `UnsubscribeRequest`, `PresenceRequest` and `PresenceStatsRequest` of the schema.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(super) struct ChannelRequest {
    #[prost(string, tag = "1")]
    channel: String,
}

/// `RPCRequest` of the schema.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(super) struct RpcRequest {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(deserialize_with = "as_written")]
    data: Vec<u8>,
    #[prost(string, tag = "2")]
    method: String,
}

/// `HistoryRequest` of the schema, whose `limit` has 32 bits; the wire is the same.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(super) struct HistoryRequest {
    #[prost(string, tag = "1")]
    channel: String,
    #[prost(int64, tag = "7")]
    limit: i64,
    #[prost(message, optional, tag = "8")]
    since: Option<StreamPosition>,
    #[prost(bool, tag = "9")]
    reverse: bool,
}

/// `StreamPosition` of the schema. Some SDKs leave out an offset of zero, or write `null`.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(super) struct StreamPosition {
    #[prost(uint64, tag = "1")]
    #[serde(deserialize_with = "or_default")]
    offset: u64,
    #[prost(string, tag = "2")]
    epoch: String,
}

/// `RefreshRequest` of the schema.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
pub(super) struct RefreshRequest {
    #[prost(string, tag = "1")]
    token: String,
}

impl Request {
    /// Says what the message asks for. `feeds` are the channels that exist.
    pub(super) fn check(self, feeds: &NamedFeeds) -> Result<Message, Malformed> {
        let id = self.id;
        let verbs = [
            self.connect.map(|asked| Ok(Verb::Connect(asked.and_then(connect).map(Box::new).map_err(Box::new)))),
            self.subscribe.map(|asked| subscribe(asked?, feeds)),
            self.unsubscribe.map(|asked| unsubscribe(asked?, feeds)),
            self.rpc.map(|asked| rpc(asked?, feeds)),
            self.history.map(|asked| history(asked?, feeds)),
            // All feeds of a user have the same devices, so the feed does not matter.
            self.presence.map(|asked| on_channel(asked?, feeds).map(|_| Verb::Presence)),
            self.presence_stats.map(|asked| on_channel(asked?, feeds).map(|_| Verb::PresenceStats)),
            self.refresh.map(|asked| refresh(asked?)),
            self.ping.then_some(Ok(Verb::Ping)),
            self.publish.then(|| {
                Err(ErrorCode::PermissionDenied.because("devices do not publish: backends do, with POST /v1/items"))
            }),
            self.sub_refresh.then(|| {
                Err(ErrorCode::NotAvailable.because("subscriptions carry no token of their own: send refresh"))
            }),
        ];
        let mut verbs = verbs.into_iter().flatten();
        match (id, verbs.next(), verbs.next(), self.send) {
            (_, None, _, true) => Ok(Message::Send),
            (0, None, _, false) if self.is_empty => Ok(Message::Pong),
            (0, _, _, _) | (_, _, Some(_), _) => Err(Malformed),
            (id, None, _, false) => Ok(command(id, Err(ErrorCode::MethodNotFound.because(NO_COMMAND)))),
            (id, Some(verb), None, _) => Ok(command(id, verb)),
        }
    }
}

/// What is wrong with a message that has an id and no field that is known.
const NO_COMMAND: &str = "there is no such command; there are \"connect\", \"subscribe\", \"unsubscribe\", \"rpc\", \
                          \"history\", \"presence\", \"presence_stats\" and \"refresh\"";

fn command(id: u32, verb: Result<Verb, Refusal>) -> Message {
    Message::Command(Command { id, verb: verb.unwrap_or_else(|refusal| Verb::Refused(Box::new(refusal))) })
}

/// The beginning of the channel of an item, before the id. No feed has a colon in its name.
pub(crate) const ITEM_CHANNEL: &str = "item:";

/// The item that `channel` names, if it names one.
fn item_of(channel: &str) -> Option<Result<ItemId, Refusal>> {
    let id = channel.strip_prefix(ITEM_CHANNEL)?;
    Some(id.parse().map_err(|_| {
        ErrorCode::UnknownChannel
            .because(format!("unknown channel {:?}: \"item:\" goes on with the id of an item", short(channel)))
    }))
}

/// The feed that `channel` names, or a refusal that lists the known channels.
fn feed_of(channel: &str, feeds: &NamedFeeds) -> Result<FeedId, Refusal> {
    feeds.by_name(channel).ok_or_else(|| {
        ErrorCode::UnknownChannel.because(format!("unknown channel {:?}; known: {}", short(channel), feeds.names()))
    })
}

fn connect(asked: ConnectRequest) -> Result<Connect, Refusal> {
    #[derive(Deserialize, Default)]
    struct Data {
        device_id: Option<DeviceId>,
    }
    let Data { device_id } = if_object(&asked.data, "connect.data")?;
    fits(&asked.token, "connect")?;
    Ok(Connect { token: asked.token, device: device_id, reads_numbers: label::reads_numbers(&asked.name) })
}

fn subscribe(asked: SubscribeRequest, feeds: &NamedFeeds) -> Result<Verb, Refusal> {
    /// Bit 1 of `flag`: pushes may have a number in place of the channel's name.
    const NUMBERED: i64 = 1;
    /// Bit 2 of `flag`: refuse instead of answering `recovered:false`.
    const REJECT_UNRECOVERED: i64 = 2;
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
        #[serde(default)]
        unread: bool,
    }
    if let Some(item) = item_of(&asked.channel) {
        return item.map(Verb::Watch);
    }
    let feed = feed_of(&asked.channel, feeds)?;
    let data: Data = if_object(&asked.data, "subscribe.data")?;
    let own = || Some(Position { epoch: asked.epoch.parse().ok()?, offset: asked.offset });
    let from = match (asked.recover, data.resume) {
        (true, _) => StartFrom::Own(own()),
        (false, Some(Resume::Stored)) => StartFrom::Stored,
        (false, None) => StartFrom::Head,
    };
    let deliver = match data.deliver {
        Wants::Notify => Deliver::Notify,
        Wants::Items => Deliver::Items,
    };
    let [numbered, reject_unrecovered] = [NUMBERED, REJECT_UNRECOVERED].map(|bit| asked.flag & bit != 0);
    let unread = data.unread;
    Ok(Verb::Subscribe(Box::new(Subscribe { feed, from, deliver, unread, reject_unrecovered, numbered })))
}

fn unsubscribe(asked: ChannelRequest, feeds: &NamedFeeds) -> Result<Verb, Refusal> {
    match item_of(&asked.channel) {
        Some(item) => item.map(Verb::Unwatch),
        None => on_channel(asked, feeds).map(Verb::Unsubscribe),
    }
}

/// The feed of a verb whose only argument is a channel.
fn on_channel(asked: ChannelRequest, feeds: &NamedFeeds) -> Result<FeedId, Refusal> {
    feed_of(&asked.channel, feeds)
}

fn rpc(asked: RpcRequest, feeds: &NamedFeeds) -> Result<Verb, Refusal> {
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
    let RpcRequest { method, data } = asked;
    let data = given(&data);
    let feed_of = |channel: Option<&str>| feed_of(channel.unwrap_or(FeedId::MAIN_NAME), feeds);
    match (method.as_str(), data.is_empty()) {
        ("ack", false) => {
            let Ack { channel, offset, epoch } = contents(data, "rpc ack: data")?;
            let feed = feed_of(channel.as_deref())?;
            let epoch: Epoch =
                epoch.parse().map_err(|error| ErrorCode::BadRequest.because(format!("rpc ack: {error}")))?;
            let offset = offset.ok_or_else(|| ErrorCode::BadRequest.because("rpc ack: data needs an offset"))?;
            Ok(Verb::Ack(feed, Position { epoch, offset }))
        }
        ("seen", no_data) => {
            let asked = if no_data { Seen::default() } else { contents(data, "rpc seen: data")? };
            let feed = feed_of(asked.channel.as_deref())?;
            Ok(Verb::Seen(feed, asked.position()?))
        }
        ("ack", true) => Err(ErrorCode::BadRequest.because("rpc ack: data must be {\"offset\":N,\"epoch\":\"…\"}")),
        ("page", no_data) => {
            let asked = if no_data { Page::default() } else { contents(data, "rpc page: data")? };
            let Page { channel, limit, cursor } = asked;
            let before = cursor.as_deref().map(parse_cursor).transpose();
            let before = before.map_err(|why| ErrorCode::BadRequest.because(format!("rpc page: {why}")))?;
            Ok(Verb::Page(Box::new(PageAsk { feed: feed_of(channel.as_deref())?, limit, before })))
        }
        (other, _) => Err(ErrorCode::MethodNotFound
            .because(format!("there is no rpc {:?}; there are \"ack\", \"page\" and \"seen\"", short(other)))),
    }
}

/// The data of `rpc seen`: a channel, and a position or none.
#[derive(Deserialize, Default)]
struct Seen {
    channel: Option<String>,
    offset: Option<u64>,
    epoch: Option<String>,
}

impl Seen {
    fn position(&self) -> Result<Option<Position>, Refusal> {
        let wrong = |why: String| ErrorCode::BadRequest.because(format!("rpc seen: {why}"));
        match (self.offset, &self.epoch) {
            (Some(offset), Some(epoch)) => {
                let epoch = epoch.parse().map_err(|error: BadEpoch| wrong(error.to_string()))?;
                Ok(Some(Position { epoch, offset }))
            }
            (None, None) => Ok(None),
            _ => Err(wrong("offset and epoch go together: give both, or neither to ask what was seen".to_owned())),
        }
    }
}

fn history(asked: HistoryRequest, feeds: &NamedFeeds) -> Result<Verb, Refusal> {
    let feed = feed_of(&asked.channel, feeds)?;
    let since = match asked.since {
        None => None,
        Some(StreamPosition { offset, epoch }) => {
            // An epoch that cannot be read was not made here, so its log is gone.
            let epoch = epoch.parse().map_err(|_| Refusal::from(ErrorCode::UnrecoverablePosition))?;
            Some(Position { epoch, offset })
        }
    };
    // A negative limit means "as many as you give".
    let limit = usize::try_from(asked.limit).unwrap_or(usize::MAX);
    Ok(Verb::History(Box::new(History { feed, since, limit, reverse: asked.reverse })))
}

fn refresh(asked: RefreshRequest) -> Result<Verb, Refusal> {
    fits(&asked.token, "refresh")?;
    Ok(Verb::Refresh(asked.token.into()))
}

/// Refuses a token that is too long to wait with its command. `what` names the command.
fn fits(token: &str, what: &str) -> Result<(), Refusal> {
    if token.len() > TOKEN_MAX {
        return Err(ErrorCode::BadRequest.because(format!("{what}: a token has at most {TOKEN_MAX} bytes")));
    }
    Ok(())
}

/// Reads JSON, or says what is wrong with it.
pub(super) fn contents<T: DeserializeOwned>(json: &[u8], what: &str) -> Result<T, Refusal> {
    serde_json::from_slice(json).map_err(|error| {
        let why = in_words_of_json(&error.to_string());
        ErrorCode::BadRequest.because(format!("{what}: {}", without_its_middle(&why)))
    })
}

/// The text of an error of serde, which names the types of Rust, in the words that those who write apps know.
fn in_words_of_json(error: &str) -> String {
    let text = error.replace("expected u64", "expected a number from 0");
    let text = text.replace("expected i64", "expected an integer of 64 bits");
    match text.split_once("expected struct ") {
        Some((before, after)) => {
            let after = after.split_once(' ').map_or("", |(_, after)| after);
            format!("{before}expected an object {after}")
        }
        None => text,
    }
}

/// The text, or its beginning and its end if it is long: an error may quote all that a device has sent.
fn without_its_middle(text: &str) -> Cow<'_, str> {
    const KEPT: usize = 100;
    let (begin, end) = (text.char_indices().nth(KEPT), text.char_indices().rev().nth(KEPT));
    match (begin, end) {
        (Some((begin, _)), Some((end, _))) if begin < end => format!("{}…{}", &text[..begin], &text[end..]).into(),
        _ => text.into(),
    }
}

/// Reads `data`, into which an app may put any value. A value that is no object is ignored.
fn if_object<T: DeserializeOwned + Default>(data: &[u8], what: &str) -> Result<T, Refusal> {
    let data = given(data);
    if data.starts_with(b"{") { contents(data, what) } else { Ok(T::default()) }
}

/// The JSON in a field `data`, without the spaces around it; empty if it is `null`, as if the field were left out.
fn given(data: &[u8]) -> &[u8] {
    let json = data.trim_ascii();
    if json == b"null" { &[] } else { json }
}

/// Reads JSON as it is written.
fn as_written<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    Ok(<&RawValue>::deserialize(deserializer)?.get().into())
}

/// Reads a value that may be `null`.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
