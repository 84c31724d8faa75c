//! The positions of devices on disk, at most [`DEVICES_MAX`] of a user; 60 bytes or so each.
//!
//! A device unseen for too long counts as absent at once; its row goes when [`Sweep`] comes by, so that users
//! who never return do not stay for ever.
//!
//! Every function that writes runs on the writer thread, so nothing comes between its reads and its writes.

use std::ops::Bound::{Excluded, Unbounded};

use compact_str::CompactString;
use feedgate_common::error::Result;
use feedgate_common::sessions::{DEVICE_TTL_MS, DEVICES_MAX, SavePosition};
use feedgate_common::{DeviceId, Millis, Position, UserNo};
use parking_lot::Mutex;

use super::live::is_forward;
use crate::codec::Code;
use crate::table::{Space, Table};
use crate::view::{Read, Tx};

/// (user, device) → where the device stands.
struct Positions;

impl Table for Positions {
    const SPACE: Space = Space::Positions;
    const TAG: u8 = 1;
    const NAME: &'static str = "positions of devices";
    type Key = (UserNo, CompactString);
    type Row = Stored;
}

/// What is kept of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stored {
    /// Acknowledged up to here.
    pub(super) position: Position,
    /// When it last said so.
    pub(super) seen: Millis,
}

impl Stored {
    pub(super) fn is_fresh(&self, now: Millis) -> bool {
        now.saturating_sub(self.seen) < DEVICE_TTL_MS
    }
}

impl Code for Stored {
    fn put(&self, out: &mut Vec<u8>) {
        (self.position.epoch, self.position.offset, self.seen).put(out);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let (epoch, offset, seen) = Code::take(from)?;
        Some(Self { position: Position { epoch, offset }, seen })
    }
}

fn key(user: UserNo, device: &DeviceId) -> (UserNo, CompactString) {
    (user, device.as_str().into())
}

/// What is kept of a device, stale or not.
pub(super) fn get(from: &impl Read, user: UserNo, device: &DeviceId) -> Result<Option<Stored>> {
    from.get::<Positions>(&key(user, device))
}

/// Moves a device's position forward, making room for a device that is new. Whether it moved.
pub(super) fn put(tx: &mut Tx<'_>, save: &SavePosition, now: Millis) -> Result<bool> {
    let key = key(save.user, &save.device);
    match tx.get::<Positions>(&key)?.filter(|before| before.is_fresh(now)) {
        Some(before) if !is_forward(before.position, save.position) => return Ok(false),
        Some(_) => {}
        None => make_room(tx, save.user, now)?,
    }
    tx.put::<Positions>(&key, &Stored { position: save.position, seen: now });
    Ok(true)
}

/// Goes round all positions, a little at a time on the back of saves, and removes the stale ones.
#[derive(Default)]
pub(super) struct Sweep(Mutex<Round>);

#[derive(Default)]
struct Round {
    /// When it last moved on.
    moved: Millis,
    /// The last row it looked at; `None` before the first.
    after: Option<(UserNo, CompactString)>,
}

impl Sweep {
    /// The least time between two stretches, in ms.
    pub(super) const PAUSE_MS: i64 = 1000;

    /// Rows of a stretch, so that the save that carries it does not feel it.
    pub(super) const ROWS: usize = 256;

    /// Looks at the next stretch, if it is time.
    pub(super) fn run(&self, tx: &mut Tx<'_>, now: Millis) -> Result<()> {
        let mut round = self.0.lock();
        if (0..Self::PAUSE_MS).contains(&now.saturating_sub(round.moved)) {
            return Ok(());
        }
        let from = round.after.take().map_or(Unbounded, Excluded);
        let stretch: Vec<_> = tx.scan::<Positions>((from, Unbounded)).take(Self::ROWS).collect::<Result<_>>()?;
        for (key, _) in stretch.iter().filter(|(_, row)| !row.is_fresh(now)) {
            tx.remove::<Positions>(key);
        }
        let more = stretch.len() == Self::ROWS;
        *round = Round { moved: now, after: stretch.into_iter().last().map(|(key, _)| key).filter(|_| more) };
        Ok(())
    }
}

/// Removes a user's devices that are stale, then those unseen longest, until one more fits.
fn make_room(tx: &mut Tx<'_>, user: UserNo, now: Millis) -> Result<()> {
    let first_of = |user: u32| (UserNo(user), CompactString::default());
    let all = tx.scan::<Positions>(first_of(user.0)..first_of(user.0.saturating_add(1)));
    let mut devices = all.map(|row| row.map(|(key, row)| (row.seen, key))).collect::<Result<Vec<_>>>()?;
    devices.sort_unstable_by(|a, b| b.cmp(a));
    let stays =
        |&(at, (seen, _)): &(usize, &(Millis, _))| at + 1 < DEVICES_MAX && now.saturating_sub(*seen) < DEVICE_TTL_MS;
    for (_, (_, key)) in devices.iter().enumerate().filter(|device| !stays(device)) {
        tx.remove::<Positions>(key);
    }
    Ok(())
}
