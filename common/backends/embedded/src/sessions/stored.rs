//! The positions of devices on disk, at most [`DEVICES_MAX`] devices of a user; about 60 bytes for each device, and 18
//! more for each named feed in which the device has acknowledged a position.
//!
//! A device that was unseen for too long counts as absent at once. Its row is removed later by [`Sweep`], so that rows
//! of users who never return do not stay for ever.
//!
//! Every function that writes runs on the writer thread, so nothing comes between its reads and its writes.

use std::ops::Bound::{Excluded, Unbounded};

use compact_str::CompactString;
use feedgate_common::error::Result;
use feedgate_common::named::NAMED_MAX;
use feedgate_common::sessions::{DEVICE_TTL_MS, DEVICES_MAX, SavePosition};
use feedgate_common::{DeviceId, FeedId, Millis, Position, UserNo};
use parking_lot::Mutex;

use crate::codec::Code;
use crate::table::{Space, Table};
use crate::view::{Read, Tx};

/// The row of each device, by user and device.
struct Positions;

impl Table for Positions {
    const SPACE: Space = Space::Positions;
    const TAG: u8 = 1;
    const NAME: &'static str = "positions of devices";
    type Key = (UserNo, CompactString);
    type Row = Stored;
}

/// What is stored of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Stored {
    /// The position that the device has acknowledged in the main feed.
    main: Option<Position>,
    /// The positions that the device has acknowledged in named feeds, each feed once, at most [`NAMED_MAX`]. The
    /// position that was saved last is at the end.
    named: Vec<(FeedId, Position)>,
    /// When the device last acknowledged anything, in any feed, in Unix ms.
    seen: Millis,
}

impl Stored {
    pub(super) fn is_fresh(&self, now: Millis) -> bool {
        now.saturating_sub(self.seen) < DEVICE_TTL_MS
    }

    /// The position that the device has acknowledged in `feed`.
    pub(super) fn position(&self, feed: FeedId) -> Option<Position> {
        if feed == FeedId::MAIN {
            return self.main;
        }
        self.named.iter().find(|(of, _)| *of == feed).map(|(_, position)| *position)
    }

    fn put_position(&mut self, feed: FeedId, position: Position) {
        if feed == FeedId::MAIN {
            self.main = Some(position);
            return;
        }
        self.named.retain(|(of, _)| *of != feed);
        if self.named.len() == NAMED_MAX {
            self.named.remove(0);
        }
        self.named.push((feed, position));
    }
}

/// The bytes of a row: when the device was seen, its position in the main feed if there is one, then `feed epoch
/// offset` of each named feed.
impl Code for Stored {
    fn put(&self, out: &mut Vec<u8>) {
        (self.seen, self.main).put(out);
        self.named.iter().for_each(|named| named.put(out));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let (seen, main) = Code::take(from)?;
        let mut named = vec![];
        while !from.is_empty() {
            named.push(Code::take(from)?);
        }
        Some(Self { main, named, seen })
    }
}

fn key(user: UserNo, device: &DeviceId) -> (UserNo, CompactString) {
    (user, device.as_str().into())
}

/// The row of a device, even if it was unseen for too long.
pub(super) fn get(from: &impl Read, user: UserNo, device: &DeviceId) -> Result<Option<Stored>> {
    from.get::<Positions>(&key(user, device))
}

/// Moves a device's position in a feed forward. For a new device room is made first. Answers whether the position
/// moved.
pub(super) fn put(tx: &mut Tx<'_>, save: &SavePosition, now: Millis) -> Result<bool> {
    let key = key(save.user, &save.device);
    let mut row = match tx.get::<Positions>(&key)?.filter(|row| row.is_fresh(now)) {
        Some(row) => row,
        None => {
            make_room(tx, save.user, now)?;
            Stored::default()
        }
    };
    // An equal position counts too: it shows that the device was there again.
    if row.position(save.feed).is_some_and(|before| before > save.position) {
        return Ok(false);
    }
    row.put_position(save.feed, save.position);
    row.seen = now;
    tx.put::<Positions>(&key, &row);
    Ok(true)
}

/// Goes through all positions in a circle, some rows at a time as part of a save, and removes stale ones.
#[derive(Default)]
pub(super) struct Sweep(Mutex<Round>);

#[derive(Default)]
struct Round {
    /// When the last rows were looked at, in Unix ms.
    moved: Millis,
    /// The key of the last row looked at; `None` at the start of a round.
    after: Option<(UserNo, CompactString)>,
}

impl Sweep {
    /// The least time between two runs, in ms.
    pub(super) const PAUSE_MS: i64 = 1000;

    /// How many rows one run looks at. So few do not slow down the save that carries the run.
    pub(super) const ROWS: usize = 256;

    /// Looks at the next [`Self::ROWS`] rows, if [`Self::PAUSE_MS`] have passed since the last run.
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

/// Removes the user's stale devices, and then the devices that were unseen longest, until there is room for one more
/// device.
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

#[cfg(test)]
mod tests {
    use feedgate_common::Epoch;

    use super::*;
    use crate::codec::{bytes_of, value_of};

    fn at(epoch: u64, offset: u64) -> Position {
        Position { epoch: Epoch(epoch), offset }
    }

    #[test]
    fn what_is_stored_of_named_feeds_comes_back_with_the_main_one_and_without() {
        for main in [Some(at(3, 44)), Some(at(0, 0)), None] {
            let row = Stored { main, named: vec![(FeedId(9), at(1, 7)), (FeedId(2), at(4, 0))], seen: 5 };
            let bytes = bytes_of(&row);
            assert_eq!(bytes.len(), 8 + 1 + 16 * usize::from(main.is_some()) + 2 * 18);
            assert_eq!(value_of::<Stored>(&bytes), Some(row));
            assert_eq!(value_of::<Stored>(&bytes[..bytes.len() - 1]), None, "torn");
        }
    }
}
