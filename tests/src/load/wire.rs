//! How a device of a fleet writes and reads messages: as JSON or as Protobuf. Reads no further than it must: the load
//! side shares the machine with what it measures.

use anyhow::{Context, anyhow, bail};
use serde_json::Value;

use super::frame;

/// A format of the client protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wire {
    /// Text frames, an object on each line.
    #[default]
    Json,
    /// Binary frames, each message after its length.
    Protobuf,
}

/// What a device asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deliver {
    /// `"deliver":"notify"`: offsets may jump.
    Notify,
    /// `"deliver":"items"`: offsets rise by one.
    Items,
    /// No feed, but what is around the item with this id: news, which are counted.
    Item(u64),
    /// No protocol at all: frames of the bare loop, counted.
    Raw,
}

/// What a server has said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    Ping,
    /// A push of the change at this offset, which is at least 1.
    Push(u64),
    /// A push of something around an item.
    News,
    /// A reply without a position.
    Reply,
    /// The reply to `subscribe`, with the position from which it goes on.
    Subscribed(u64),
}

impl Wire {
    /// The opcode of frames that hold messages.
    pub(super) fn opcode(self) -> u8 {
        match self {
            Self::Json => frame::TEXT,
            Self::Protobuf => frame::BINARY,
        }
    }

    /// The line that asks for this format in an upgrade.
    pub(super) fn subprotocol(self) -> &'static str {
        match self {
            Self::Json => "",
            Self::Protobuf => "Sec-WebSocket-Protocol: centrifuge-protobuf\r\n",
        }
    }

    /// What to send first: `connect` and `subscribe`, in one frame, as the SDKs do; `None` for the bare loop.
    pub(super) fn hello(self, deliver: Deliver, token: &str) -> Option<Vec<u8>> {
        let (channel, deliver) = match deliver {
            Deliver::Raw => return None,
            Deliver::Notify => ("feed".to_owned(), r#"{"deliver":"notify"}"#),
            Deliver::Items => ("feed".to_owned(), r#"{"deliver":"items"}"#),
            Deliver::Item(id) => (format!("item:{id}"), "{}"),
        };
        let device = r#"{"device_id":"phone"}"#;
        let messages = match self {
            Self::Json => format!(
                "{{\"id\":1,\"connect\":{{\"token\":\"{token}\",\"data\":{device}}}}}\n\
                 {{\"id\":2,\"subscribe\":{{\"channel\":\"{channel}\",\"data\":{deliver}}}}}"
            )
            .into_bytes(),
            Self::Protobuf => {
                let connect = [field(1, token.as_bytes()), field(2, device.as_bytes())].concat();
                let subscribe = [field(1, channel.as_bytes()), field(8, deliver.as_bytes())].concat();
                let commands = [[vec![8, 1], field(4, &connect)].concat(), [vec![8, 2], field(5, &subscribe)].concat()];
                commands.iter().flat_map(|command| [varint(command.len()), command.clone()].concat()).collect()
            }
        };
        Some(frame::masked(self.opcode(), &messages))
    }

    /// The frame that answers a ping.
    pub(super) fn pong(self) -> Vec<u8> {
        match self {
            Self::Json => frame::masked(frame::TEXT, b"{}"),
            Self::Protobuf => frame::masked(frame::BINARY, &[0]),
        }
    }

    /// Hands each message of a frame to `take`. Fails at the first that is an error or no message.
    pub(super) fn each(self, payload: &[u8], mut take: impl FnMut(Said) -> anyhow::Result<()>) -> anyhow::Result<()> {
        match self {
            Self::Json => payload.split(|byte| *byte == b'\n').try_for_each(|line| take(line_of(line)?)),
            Self::Protobuf => {
                let mut rest = payload;
                while !rest.is_empty() {
                    let length = number(&mut rest)?;
                    take(message_of(part(&mut rest, length)?)?)?;
                }
                Ok(())
            }
        }
    }
}

fn line_of(line: &[u8]) -> anyhow::Result<Said> {
    if line == b"{}" {
        return Ok(Said::Ping);
    }
    if let Some(push) = line.strip_prefix(br#"{"push":{"channel":"feed","pub":{"offset":"#) {
        let digits = push.iter().take_while(|byte| byte.is_ascii_digit());
        return pushed(digits.fold(0u64, |n, digit| n.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'))));
    }
    if line.starts_with(br#"{"push":{"channel":"item:"#) {
        return Ok(Said::News);
    }
    let value: Value = serde_json::from_slice(line)?;
    let said = || anyhow!("the server said {value}");
    if let Some(subscribe) = value.get("subscribe") {
        return Ok(Said::Subscribed(subscribe["offset"].as_u64().with_context(said)?));
    }
    value.get("connect").map(|_| Said::Reply).with_context(said)
}

fn message_of(message: &[u8]) -> anyhow::Result<Said> {
    if message.is_empty() {
        return Ok(Said::Ping);
    }
    if let Some(push) = inner(message, 4)? {
        if inner(push, 2)?.is_some_and(|channel| channel.starts_with(b"item:")) {
            return Ok(Said::News);
        }
        let publication = inner(push, 4)?.context("a push without a publication")?;
        return pushed(find(publication, 6)?.context("a push without an offset")?.0);
    }
    if let Some(subscribe) = inner(message, 6)? {
        return Ok(Said::Subscribed(find(subscribe, 9)?.map_or(0, |(number, _)| number)));
    }
    inner(message, 5)?.map(|_| Said::Reply).with_context(|| format!("the server said {message:?}"))
}

fn pushed(offset: u64) -> anyhow::Result<Said> {
    if offset == 0 { bail!("a push without an offset") } else { Ok(Said::Push(offset)) }
}

/// The bytes of the field with this tag.
fn inner(message: &[u8], tag: u64) -> anyhow::Result<Option<&[u8]>> {
    Ok(find(message, tag)?.map(|(_, bytes)| bytes))
}

/// The field with this tag: its number, or its bytes.
fn find(mut message: &[u8], tag: u64) -> anyhow::Result<Option<(u64, &[u8])>> {
    while !message.is_empty() {
        let key = number(&mut message)?;
        let value = number(&mut message)?;
        let bytes = match key & 7 {
            0 => &[][..],
            2 => part(&mut message, value)?,
            other => bail!("a field of type {other}"),
        };
        if key >> 3 == tag {
            return Ok(Some((value, bytes)));
        }
    }
    Ok(None)
}

fn part<'a>(bytes: &mut &'a [u8], length: u64) -> anyhow::Result<&'a [u8]> {
    let (part, rest) = bytes.split_at_checked(usize::try_from(length)?).context("a message that is cut")?;
    *bytes = rest;
    Ok(part)
}

fn number(bytes: &mut &[u8]) -> anyhow::Result<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().context("a number that is cut")?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    bail!("a number of more than 64 bits")
}

/// A field of bytes. Its tag is at most 15.
fn field(tag: u8, bytes: &[u8]) -> Vec<u8> {
    [&[tag << 3 | 2][..], &varint(bytes.len()), bytes].concat()
}

fn varint(mut number: usize) -> Vec<u8> {
    let mut out = vec![];
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a frame says, message by message.
    fn heard(wire: Wire, payload: &[u8]) -> anyhow::Result<Vec<Said>> {
        let mut all = vec![];
        wire.each(payload, |said| {
            all.push(said);
            Ok(())
        })?;
        Ok(all)
    }

    #[test]
    fn both_formats_are_heard_alike_and_what_is_cut_is_an_error() {
        let json = b"{}\n{\"push\":{\"channel\":\"feed\",\"pub\":{\"offset\":300,\"data\":{}}}}\n{\"id\":2,\"subscribe\":{\"offset\":7}}";
        let publication = [field(4, b"{}"), vec![6 << 3, 0xAC, 0x02]].concat();
        let push = field(4, &[field(2, b"feed"), field(4, &publication)].concat());
        let subscribed = [vec![8, 2], field(6, &[9 << 3, 7])].concat();
        let messages = [push, subscribed].map(|message| [varint(message.len()), message].concat()).concat();
        let protobuf = [&[0][..], &messages].concat();
        let expected = [Said::Ping, Said::Push(300), Said::Subscribed(7)];
        assert_eq!(heard(Wire::Json, json).unwrap(), expected);
        assert_eq!(heard(Wire::Protobuf, &protobuf).unwrap(), expected);
        let news = [field(2, b"item:7"), field(4, &field(4, b"{}"))].concat();
        let news = field(4, &news);
        assert_eq!(heard(Wire::Protobuf, &[varint(news.len()), news].concat()).unwrap(), [Said::News]);
        let news = br#"{"push":{"channel":"item:7","pub":{"offset":0,"data":{}}}}"#;
        assert_eq!(heard(Wire::Json, news).unwrap(), [Said::News]);
        assert!(heard(Wire::Protobuf, &protobuf[..protobuf.len() - 1]).is_err());
        assert!(heard(Wire::Json, &json[..json.len() - 1]).is_err());
    }
}
