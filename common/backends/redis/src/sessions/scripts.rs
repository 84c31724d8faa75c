//! The scripts of the pool, each atomic on one bucket, and the text that scripts and Rust exchange.
//!
//! All numbers travel and are kept as decimal text: exact to 64 bits, and easy to read for an operator who looks into
//! Redis.

use std::str::FromStr;

use feedgate_common::error::{Result, StoreError};
use feedgate_common::sessions::{Claim, SessionInfo, Token};
use feedgate_common::{Bucket, DeviceId, Epoch, FeedId, Millis, Position, UserNo};
use redis::{FromRedisValue, Value};

use crate::link::{Script, Verb};

/// With its flags, the server decides whether a script may run before it begins, not half way.
macro_rules! script {
    ($verb:ident, $name:literal, $flags:literal) => {
        Script::new(
            Verb::$verb,
            concat!(
                "#!lua flags=",
                $flags,
                "\n",
                include_str!("lua/pool.lua"),
                include_str!(concat!("lua/", $name, ".lua"))
            ),
        )
    };
}

/// The file of each script says what the script does and takes. While a server's memory is full, leases are still
/// renewed and sessions still end.
pub(super) struct Scripts {
    pub(super) claim: Script,
    pub(super) confirm: Script,
    pub(super) lease: Script,
    pub(super) life: Script,
    pub(super) list: Script,
    pub(super) release: Script,
    pub(super) revoke: Script,
    pub(super) save: Script,
    pub(super) sweep: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            claim: script!(Claim, "claim", ""),
            confirm: script!(Confirm, "confirm", ""),
            lease: script!(Lease, "lease", "allow-oom"),
            life: script!(Life, "life", "allow-oom"),
            list: script!(List, "list", "no-writes"),
            release: script!(Release, "release", "allow-oom"),
            revoke: script!(Revoke, "revoke", "allow-oom"),
            save: script!(Save, "save", ""),
            sweep: script!(Sweep, "sweep", "allow-oom"),
        }
    }
}

/// The words of a call.
macro_rules! words {
    ($($word:expr),* $(,)?) => { [$($word.to_string().into_bytes()),*] };
}
pub(super) use words;

/// The bucket's hash: its life and its live sessions.
pub(super) fn bucket_key(Bucket(bucket): Bucket) -> Vec<u8> {
    format!("{{s{bucket:03}}}").into_bytes()
}

/// The hash of what is stored of a user's devices, in the bucket's slot.
pub(super) fn devices_key(Bucket(bucket): Bucket, UserNo(user): UserNo) -> Vec<u8> {
    format!("{{s{bucket:03}}}:{user}").into_bytes()
}

/// The field of a device's named feeds in that hash; a device's id has no space.
pub(super) fn feeds_field(device: &DeviceId) -> String {
    format!("{device} feeds")
}

/// `kept` of a new session.
pub(super) fn kept(claim: &Claim) -> &'static str {
    if claim.durable { "=" } else { "-" }
}

/// A reply as a value of the expected type; `Corrupt` if the reply is something else.
pub(super) fn reply<T: FromRedisValue>(value: Value) -> Result<T> {
    redis::from_redis_value(value).map_err(StoreError::corrupt)
}

/// Reads the reply to a claim: epoch and counter of the token, then node and connection of the session that was
/// replaced.
pub(super) fn claimed(reply: &[String]) -> Result<(Token, Option<(String, u64)>)> {
    let [epoch, counter, replaced @ ..] = reply else {
        return Err(StoreError::corrupt(format_args!("a claim was answered with {reply:?}")));
    };
    Ok((Token { epoch: Epoch(number(epoch)?), counter: number(counter)? }, place(replaced)?))
}

/// Reads the place of a session from a reply: node and connection, or nothing.
pub(super) fn place(reply: &[String]) -> Result<Option<(String, u64)>> {
    match reply {
        [] => Ok(None),
        [node, connection] => Ok(Some((node.clone(), number(connection)?))),
        _ => Err(StoreError::corrupt(format_args!("{reply:?} is no place of a session"))),
    }
}

/// The node of the session in each of these lines.
pub(super) fn nodes(lines: &str) -> impl Iterator<Item = &str> {
    lines.lines().filter_map(|line| line.split(' ').nth(3))
}

/// Reads a session from its line. The session has a position only if the line holds one.
pub(super) fn session(line: &str) -> Result<SessionInfo> {
    let words: Vec<&str> = line.split(' ').collect();
    let [device, epoch, counter, node, connection, since, kept] = words[..] else {
        return Err(StoreError::corrupt(format_args!("{line:?} is no session")));
    };
    let position = kept.split_once('/').map(|(epoch, offset)| position(epoch, offset)).transpose()?;
    let device = device.parse().map_err(StoreError::corrupt)?;
    let token = Token { epoch: Epoch(number(epoch)?), counter: number(counter)? };
    let (connection, since) = (number(connection)?, number(since)?);
    Ok(SessionInfo { device, node: node.to_owned(), connection, token, position, since })
}

/// Reads the row of a device: its position in the main feed, if the device has acknowledged one, and when it was last
/// seen.
pub(super) fn stored(row: &str) -> Result<(Option<Position>, Millis)> {
    let words: Vec<&str> = row.split(' ').collect();
    match words[..] {
        [_, _, "-", "-", seen] => Ok((None, number(seen)?)),
        [_, _, epoch, offset, seen] => Ok((Some(position(epoch, offset)?), number(seen)?)),
        _ => Err(StoreError::corrupt(format_args!("{row:?} is not what is stored of a device"))),
    }
}

/// The position of a device in `feed`, from the text that is stored of the device's named feeds.
pub(super) fn named(feeds: &str, feed: FeedId) -> Result<Option<Position>> {
    let corrupt = || StoreError::corrupt(format_args!("{feeds:?} is not what is stored of named feeds"));
    for one in feeds.strip_suffix(" - -").ok_or_else(corrupt)?.split(',') {
        let words: Vec<&str> = one.split('/').collect();
        let [of, epoch, offset] = words[..] else { return Err(corrupt()) };
        if number::<u16>(of)? == feed.0 {
            return position(epoch, offset).map(Some);
        }
    }
    Ok(None)
}

fn position(epoch: &str, offset: &str) -> Result<Position> {
    Ok(Position { epoch: Epoch(number(epoch)?), offset: number(offset)? })
}

pub(super) fn number<T: FromStr>(word: &str) -> Result<T> {
    word.parse().map_err(|_| StoreError::corrupt(format_args!("{word:?} is no number")))
}
