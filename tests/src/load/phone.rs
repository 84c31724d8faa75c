//! One device: which changes it was told of, and whether these were the right ones.
//!
//! Checks: offsets rise (else something came twice); in items mode they rise by one (else something
//! is missing). At a round's end a device that has not reached its target misses the difference.

use std::time::Instant;

use anyhow::bail;

use super::frame;
use super::wire::{Deliver, Said, Wire};

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
    pub(super) fn hear(&mut self, opcode: u8, payload: &[u8], deliver: Deliver, wire: Wire) -> anyhow::Result<Heard> {
        match opcode {
            frame::CLOSE => bail!("closed: {:?}", String::from_utf8_lossy(payload.get(2..).unwrap_or_default())),
            opcode if opcode == wire.opcode() || deliver == Deliver::Raw => {}
            other => bail!("a frame with opcode {other}"),
        }
        self.frames += 1;
        let before = self.position;
        let mut heard = Heard::Nothing;
        if deliver == Deliver::Raw {
            self.position += 1;
        } else {
            wire.each(payload, |said| self.take(said, deliver, &mut heard))?;
        }
        // A subscription may begin beyond zero, which is no arrival.
        if heard != Heard::Subscribed && before < self.target && self.position >= self.target {
            self.arrived = Some(Instant::now());
            heard = Heard::Arrived;
        }
        Ok(heard)
    }

    fn take(&mut self, said: Said, deliver: Deliver, heard: &mut Heard) -> anyhow::Result<()> {
        match said {
            Said::Ping => {
                self.pings += 1;
                *heard = Heard::Ping;
            }
            Said::Push(offset) => self.told(offset, deliver),
            Said::News => self.position += 1,
            Said::Reply => {}
            Said::Subscribed(offset) => {
                (self.position, self.target) = (offset, offset);
                *heard = Heard::Subscribed;
            }
        }
        Ok(())
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
}
