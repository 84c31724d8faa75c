//! One device: which changes it was told of, and whether these were the right ones.
//!
//! Checks: offsets rise (else something came twice); in items mode they rise by one (else something
//! is missing). At a round's end a device that has not reached its target misses the difference.

use std::time::Instant;

use anyhow::{Context, anyhow, bail};
use serde_json::Value;

use super::frame;

/// What a device asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deliver {
    /// `"deliver":"notify"`: offsets may jump.
    Notify,
    /// `"deliver":"items"`: offsets rise by one.
    Items,
    /// No protocol at all: frames of the bare loop, counted.
    Raw,
}

/// What one device of a fleet has been told of.
#[derive(Debug, Default)]
pub(super) struct Phone {
    /// The last offset it was told of.
    pub(super) position: u64,
    /// The offset that this round is to bring it to.
    pub(super) target: u64,
    /// When the device reached the target.
    pub(super) arrived: Option<Instant>,
    pub(super) frames: u64,
    pub(super) repeated: u64,
    pub(super) missing: u64,
    pub(super) pings: u64,
    /// Replies to `connect` and `subscribe` so far.
    pub(super) replies: u8,
}

/// What a frame asks of the one who reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// The reader of the frame has nothing to do.
    Nothing,
    /// The device has to answer a ping.
    Ping,
    /// The subscription has begun.
    Subscribed,
    /// The target is reached, with this frame.
    Arrived,
}

impl Phone {
    /// Sends it on to `further` offsets beyond its last target.
    pub(super) fn expect(&mut self, further: u64) {
        self.target += further;
        self.arrived = None;
    }

    /// Takes in one frame.
    pub(super) fn hear(&mut self, opcode: u8, payload: &[u8], deliver: Deliver) -> anyhow::Result<Heard> {
        match opcode {
            frame::TEXT => {}
            frame::CLOSE => bail!("closed: {:?}", String::from_utf8_lossy(payload.get(2..).unwrap_or_default())),
            other => bail!("a frame with opcode {other}"),
        }
        self.frames += 1;
        let before = self.position;
        let mut heard = Heard::Nothing;
        for line in payload.split(|byte| *byte == b'\n') {
            if deliver == Deliver::Raw {
                self.position += 1;
            } else if line == b"{}" {
                self.pings += 1;
                heard = Heard::Ping;
            } else if let Some(offset) = offset_of_push(line)? {
                self.told(offset, deliver);
            } else if self.reply(line)? {
                heard = Heard::Subscribed;
            }
        }
        if before < self.target && self.position >= self.target {
            self.arrived = Some(Instant::now());
            heard = Heard::Arrived;
        }
        Ok(heard)
    }

    fn told(&mut self, offset: u64, deliver: Deliver) {
        if offset <= self.position {
            self.repeated += 1;
            return;
        }
        if deliver == Deliver::Items {
            self.missing += offset - self.position - 1;
        }
        self.position = offset;
    }

    /// True if this is the reply to `subscribe`.
    fn reply(&mut self, line: &[u8]) -> anyhow::Result<bool> {
        let value: Value = serde_json::from_slice(line)?;
        let said = || anyhow!("the server said {value}");
        self.replies += 1;
        if self.replies == 1 {
            return value.get("connect").map(|_| false).with_context(said);
        }
        let offset = value["subscribe"]["offset"].as_u64().with_context(said)?;
        (self.position, self.target) = (offset, offset);
        Ok(true)
    }
}

/// The offset of a push; `None` if the line is something else. Reads no further than it must: the
/// load side shares the machine with what it measures.
fn offset_of_push(line: &[u8]) -> anyhow::Result<Option<u64>> {
    let Some(push) = line.strip_prefix(br#"{"push":{"channel":"feed","pub":{"offset":"#) else { return Ok(None) };
    let digits = push.iter().take_while(|byte| byte.is_ascii_digit());
    let offset = digits.fold(0u64, |n, digit| n.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')));
    if offset == 0 { bail!("a push without an offset") } else { Ok(Some(offset)) }
}
