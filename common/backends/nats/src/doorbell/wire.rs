//! What nodes tell each other, as bytes. Big-endian, no padding.
//!
//! ```text
//!   version 1 │ kind 1 │ author u32 │ n u16 │ n records                        │ m u16 │ m inboxes
//!                        record: seq u64, op u8, route u8, rank i64, item u64
//!                        inbox:  reader u32, feed u16, epoch u64, offset u64, appended u32, generation u64
//!   version 1 │ kind 2 │ user u32 │ connection u64 │ why u8
//!   version 1 │ kind 3 │ author u32 │ pull_seq u64
//!   version 1 │ kind 4 │ n u16 │ n users u32
//!   version 1 │ kind 5 │ session u128 │ n u32 │ n bytes of a device's message
//!   version 1 │ kind 6 │ reader u32 │ feed u16 │ connection u64 │ n u16 │ n bytes of a node's name
//!   version 1 │ kind 7 │ n u16 │ n touches │ m u16 │ m readers u32
//!                        touch:  item u64, what became of a comment u8 (0: none), comment u64
//! ```
//!
//! Invariants: no message is longer than [`MESSAGE_MAX`], but one that holds a device's message is as long as a gateway
//! lets that be; whatever is not exactly a message of this version is refused, never half read.

use feedgate_common::archive::PullHead;
use feedgate_common::change::Route;
use feedgate_common::doorbell::{Closing, Growth, Onlooker, Stir, Talked, Touch};
use feedgate_common::inboxes::Grown;
use feedgate_common::{DisplayKey, Epoch, FeedId, InboxKey, ItemId, Op, Position, Record, UserNo};

/// The version of the messages that this build writes.
const VERSION: u8 = 1;

const GROWTH: u8 = 1;
const CLOSE: u8 = 2;
const HOT: u8 = 3;
const CONFIRM: u8 = 4;
const MESSAGE: u8 = 5;
const SEEN: u8 = 6;
const STIR: u8 = 7;

/// The longest message. The server takes 1 MiB; as many as wait for a slow listener must fit in its memory.
const MESSAGE_MAX: usize = 64 << 10;

const HEADER: usize = 10;
const RECORD: usize = 26;
const INBOX: usize = 34;

/// The most records in a message. If there are more, the message has none of them, and the listener reads them.
const RECORDS_MAX: usize = MESSAGE_MAX / 2 / RECORD;

const TOUCH: usize = 17;

/// The most touches in a message.
const TOUCHES_MAX: usize = (MESSAGE_MAX - 6) / TOUCH;

/// The most users in a message.
const USERS_MAX: usize = (MESSAGE_MAX - 6) / 4;

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Told {
    /// These inboxes have grown.
    Growth(Growth),
    /// A connection is to be closed.
    Close { user: UserNo, connection: u64, why: Closing },
    /// An author who is pulled has news.
    Hot(PullHead),
    /// The sessions of these users are to be confirmed.
    Confirm(Vec<UserNo>),
    /// A device's message for the session with this number.
    Message { session: u128, message: Vec<u8> },
    /// A reader has seen more of a feed, as this connection of the node has said.
    Seen { key: InboxKey, node: String, connection: u64 },
    /// Something has changed around items, or who sees them.
    Stirred(Stir),
}

/// A message that another version has written, or that is not from Feedgate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unreadable;

/// The growth of `inboxes`, in as many messages as it takes.
pub(super) fn growth(author: UserNo, records: &[Record], inboxes: &[Grown]) -> Vec<Vec<u8>> {
    let records = if records.len() > RECORDS_MAX { &[] } else { records };
    let room = (MESSAGE_MAX - HEADER - records.len() * RECORD) / INBOX;
    inboxes.chunks(room).map(|inboxes| growth_message(author, records, inboxes)).collect()
}

fn growth_message(author: UserNo, records: &[Record], inboxes: &[Grown]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + records.len() * RECORD + inboxes.len() * INBOX);
    out.extend([VERSION, GROWTH]);
    out.extend(author.0.to_be_bytes());
    out.extend((records.len() as u16).to_be_bytes());
    for record in records {
        out.extend(record.seq.to_be_bytes());
        out.extend([record.op as u8, record.route as u8]);
        out.extend(record.key.rank.to_be_bytes());
        out.extend(record.key.item.0.to_be_bytes());
    }
    out.extend((inboxes.len() as u16).to_be_bytes());
    for grown in inboxes {
        out.extend(grown.key.reader.0.to_be_bytes());
        out.extend(grown.key.feed.0.to_be_bytes());
        out.extend(grown.head.epoch.0.to_be_bytes());
        out.extend(grown.head.offset.to_be_bytes());
        out.extend(grown.appended.to_be_bytes());
        out.extend(grown.generation.to_be_bytes());
    }
    out
}

/// The message that a connection is to be closed.
pub(super) fn close(user: UserNo, connection: u64, why: Closing) -> Vec<u8> {
    let mut out = vec![VERSION, CLOSE];
    out.extend(user.0.to_be_bytes());
    out.extend(connection.to_be_bytes());
    out.push(match why {
        Closing::Replaced => 1,
        Closing::Kicked => 2,
        Closing::Displaced => 3,
    });
    out
}

/// Writes the message that an author who is pulled has news.
pub(super) fn hot(head: PullHead) -> Vec<u8> {
    let mut out = vec![VERSION, HOT];
    out.extend(head.author.0.to_be_bytes());
    out.extend(head.pull_seq.to_be_bytes());
    out
}

/// The messages, as many as it takes, that the sessions of `users` are to be confirmed.
pub(super) fn confirm(users: &[UserNo]) -> Vec<Vec<u8>> {
    users.chunks(USERS_MAX).map(confirm_message).collect()
}

fn confirm_message(users: &[UserNo]) -> Vec<u8> {
    let mut out = vec![VERSION, CONFIRM];
    out.extend((users.len() as u16).to_be_bytes());
    users.iter().for_each(|user| out.extend(user.0.to_be_bytes()));
    out
}

/// A device's message for the session with this number.
pub(super) fn message(session: u128, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(22 + message.len());
    out.extend([VERSION, MESSAGE]);
    out.extend(session.to_be_bytes());
    out.extend((message.len() as u32).to_be_bytes());
    out.extend(message);
    out
}

/// The message that a reader has seen more of a feed.
pub(super) fn seen(by: Onlooker<'_>) -> Vec<u8> {
    let Onlooker { key, node, connection } = by;
    let mut out = vec![VERSION, SEEN];
    out.extend(key.reader.0.to_be_bytes());
    out.extend(key.feed.0.to_be_bytes());
    out.extend(connection.to_be_bytes());
    // No node has a longer name. A longer one would be left out, and then the connection would hear what it knows
    // already.
    let name = node.as_bytes();
    let len = u16::try_from(name.len()).unwrap_or(0);
    out.extend(len.to_be_bytes());
    out.extend(&name[..len.into()]);
    out
}

/// The messages, as many as it takes, that say what has changed around items.
pub(super) fn stirred(stir: &Stir) -> Vec<Vec<u8>> {
    let touches = stir.touches.chunks(TOUCHES_MAX).map(|touches| stir_message(touches, &[]));
    touches.chain(stir.readers.chunks(USERS_MAX).map(|readers| stir_message(&[], readers))).collect()
}

fn stir_message(touches: &[Touch], readers: &[UserNo]) -> Vec<u8> {
    let mut out = vec![VERSION, STIR];
    out.extend((touches.len() as u16).to_be_bytes());
    for Touch { item, comment } in touches {
        out.extend(item.0.to_be_bytes());
        let (comment, what) = comment.map_or((0, 0), |(comment, talked)| (comment.0, talked as u8));
        out.push(what);
        out.extend(comment.to_be_bytes());
    }
    out.extend((readers.len() as u16).to_be_bytes());
    readers.iter().for_each(|reader| out.extend(reader.0.to_be_bytes()));
    out
}

/// Decodes a message of another node; fails if it is of another version or cut off.
pub(super) fn decode(message: &[u8]) -> Result<Told, Unreadable> {
    let mut read = Reader(message);
    let told = match (read.u8()?, read.u8()?) {
        (VERSION, GROWTH) => {
            let author = UserNo(read.u32()?);
            let (mut records, inboxes) = (read.list(Reader::record)?, read.list(Reader::grown)?);
            // Inboxes that have grown by the same records are of the records' feed.
            if let Some(grown) = inboxes.first() {
                records.iter_mut().for_each(|record| record.feed = grown.key.feed);
            }
            Told::Growth(Growth { author, records, inboxes, traced: vec![] })
        }
        (VERSION, CLOSE) => Told::Close { user: UserNo(read.u32()?), connection: read.u64()?, why: read.why()? },
        (VERSION, HOT) => {
            let author = UserNo(read.u32()?);
            Told::Hot(PullHead { pull_seq: read.u64()?, author })
        }
        (VERSION, MESSAGE) => {
            let session = read.bytes().map(u128::from_be_bytes)?;
            let len = read.u32()? as usize;
            let (message, rest) = read.0.split_at_checked(len).ok_or(Unreadable)?;
            read.0 = rest;
            Told::Message { session, message: message.to_vec() }
        }
        (VERSION, SEEN) => {
            let key = InboxKey { reader: UserNo(read.u32()?), feed: FeedId(read.u16()?) };
            let connection = read.u64()?;
            let name = read.list(Reader::u8)?;
            Told::Seen { key, node: String::from_utf8(name).map_err(|_| Unreadable)?, connection }
        }
        (VERSION, STIR) => {
            let touches = read.list(Reader::touch)?;
            Told::Stirred(Stir { touches, readers: read.list(|read| read.u32().map(UserNo))? })
        }
        (VERSION, CONFIRM) => Told::Confirm(read.list(|read| read.u32().map(UserNo))?),
        _ => return Err(Unreadable),
    };
    if read.0.is_empty() { Ok(told) } else { Err(Unreadable) }
}

/// What is left of a message.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(Unreadable)?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn u8(&mut self) -> Result<u8, Unreadable> {
        self.bytes().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Result<u16, Unreadable> {
        self.bytes().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, Unreadable> {
        self.bytes().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, Unreadable> {
        self.bytes().map(u64::from_be_bytes)
    }

    /// Reads a count, and as many values. The count alone reserves no memory.
    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T, Unreadable>) -> Result<Vec<T>, Unreadable> {
        let count = self.u16()?;
        (0..count).map(|_| item(self)).collect()
    }

    fn record(&mut self) -> Result<Record, Unreadable> {
        Ok(Record {
            seq: self.u64()?,
            op: Op::from_u8(self.u8()?).ok_or(Unreadable)?,
            route: Route::from_u8(self.u8()?).ok_or(Unreadable)?,
            feed: FeedId::MAIN,
            key: DisplayKey { rank: self.bytes().map(i64::from_be_bytes)?, item: ItemId(self.u64()?) },
        })
    }

    fn grown(&mut self) -> Result<Grown, Unreadable> {
        Ok(Grown {
            key: InboxKey { reader: UserNo(self.u32()?), feed: FeedId(self.u16()?) },
            head: Position { epoch: Epoch(self.u64()?), offset: self.u64()? },
            appended: self.u32()?,
            generation: self.u64()?,
        })
    }

    fn touch(&mut self) -> Result<Touch, Unreadable> {
        let item = ItemId(self.u64()?);
        let (what, comment) = (self.u8()?, ItemId(self.u64()?));
        let comment = match what {
            0 if comment.0 == 0 => None,
            what => Some((comment, Talked::from_u8(what).ok_or(Unreadable)?)),
        };
        Ok(Touch { item, comment })
    }

    fn why(&mut self) -> Result<Closing, Unreadable> {
        match self.u8()? {
            1 => Ok(Closing::Replaced),
            2 => Ok(Closing::Kicked),
            3 => Ok(Closing::Displaced),
            _ => Err(Unreadable),
        }
    }
}

/// The fuzz target: a message that can be read is written back to the same bytes.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzzed(bytes: &[u8]) {
    let again = match decode(bytes) {
        Ok(Told::Growth(Growth { author, records, inboxes, .. })) => growth_message(author, &records, &inboxes),
        Ok(Told::Close { user, connection, why }) => close(user, connection, why),
        Ok(Told::Hot(head)) => hot(head),
        Ok(Told::Confirm(users)) => confirm_message(&users),
        Ok(Told::Message { session, message }) => self::message(session, &message),
        Ok(Told::Seen { key, node, connection }) => seen(Onlooker { key, node: &node, connection }),
        Ok(Told::Stirred(stir)) => stir_message(&stir.touches, &stir.readers),
        Err(Unreadable) => return,
    };
    assert_eq!(again, bytes);
}

#[cfg(test)]
#[path = "wire/tests.rs"]
mod tests;
