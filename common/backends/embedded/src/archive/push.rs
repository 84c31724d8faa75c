//! Devices that push services reach, and the notices for them.
//!
//! Invariants: `PushReaders` has a row for each user with a device, and for no other. `PushDue` has a row for each row
//! of `PushNotices`.

use std::ops::Bound::{Excluded, Included, Unbounded};

use compact_str::CompactString;
use feedgate_common::archive::{DeadNotice, Note, Notice, Outcome, PUSH_DEVICES_MAX, PushDevice, Settled};
use feedgate_common::error::Result;
use feedgate_common::notices::NoticeRow;
use feedgate_common::{DeviceId, DirectSeq, FeedId, InboxKey, Millis, StoreError, UserNo};
use parking_lot::{Mutex, RwLock};

use super::tables::{
    DirectHeads, FeedList, PushDead, PushDeadRow, PushDeviceRow, PushDevices, PushDue, PushNotices, PushNumber,
    PushReaders,
};
use crate::codec::Short;
use crate::database::Database;
use crate::view::{Read, Tx, View};

/// The users who have a device, in memory: a bit for each number of a user.
#[derive(Debug, Default)]
pub(super) struct Listeners(RwLock<Vec<u64>>);

impl Listeners {
    /// Reads from the store which users have a device.
    pub(super) fn load(view: &View) -> Result<Self> {
        let listeners = Self::default();
        for row in view.scan::<PushReaders>(..) {
            listeners.set(row?.0, true);
        }
        Ok(listeners)
    }

    pub(super) fn set(&self, user: UserNo, listens: bool) {
        let (word, bit) = (user.0 as usize / 64, 1 << (user.0 % 64));
        let mut words = self.0.write();
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        if listens {
            words[word] |= bit;
        } else {
            words[word] &= !bit;
        }
    }

    pub(super) fn has(&self, user: UserNo) -> bool {
        self.0.read().get(user.0 as usize / 64).is_some_and(|word| word >> (user.0 % 64) & 1 == 1)
    }
}

/// A bound in `PushDue` below which there is no row: scans begin at the bound, so that they meet no removed rows. The
/// bound is lowered in the transactions of the writer, and raised when a transaction is committed. If a transaction
/// fails, the store is opened again, and then the bound is [reset](Self::reset).
#[derive(Debug)]
pub(super) struct DueFrom(Mutex<Bound>);

#[derive(Debug)]
struct Bound {
    place: Place,
    /// The bound once all transactions until now are committed; `None` if no transaction has passed rows.
    passed: Option<Place>,
}

/// A place in `PushDue`: when a notice is due, and its key.
type Place = (Millis, InboxKey);

/// The least place of all.
const FIRST: Place = (Millis::MIN, InboxKey { reader: UserNo(0), feed: FeedId(0) });

impl Default for DueFrom {
    fn default() -> Self {
        Self(Mutex::new(Bound { place: FIRST, passed: None }))
    }
}

impl DueFrom {
    pub(super) fn reset(&self) {
        self.lower(FIRST);
    }

    fn place(&self) -> Place {
        self.0.lock().place
    }

    /// Notes that the transaction leaves no row below this place.
    fn pass(&self, place: Place) {
        let mut from = self.0.lock();
        from.passed = Some(from.passed.map_or(place, |before| before.min(place)));
    }

    /// Raises the bound. To be called when a transaction that has passed rows is committed: then nobody sees these rows
    /// any more. Rows that later transactions have passed are left to the next call.
    pub(super) fn raise(&self) {
        let mut from = self.0.lock();
        if let Some(passed) = from.passed.take() {
            from.place = from.place.max(passed);
        }
    }

    /// Notes that there is a row at this place.
    fn lower(&self, place: Place) {
        let mut from = self.0.lock();
        from.place = from.place.min(place);
        from.passed = from.passed.map(|passed| passed.min(place));
    }
}

/// Registers a device, unless the user has too many others. Answers whether the device is registered.
pub(super) fn register(tx: &mut Tx<'_>, user: UserNo, device: &PushDevice) -> Result<bool> {
    let key = (user, CompactString::from(device.device.as_str()));
    let known = tx.get::<PushDevices>(&key)?;
    if known.is_none() {
        if rows_of(tx, user).count() >= PUSH_DEVICES_MAX {
            return Ok(false);
        }
        if !tx.has::<PushReaders>(&user)? {
            let head = tx.get::<DirectHeads>(&user)?.map_or(0, |row| row.head);
            tx.put::<PushReaders>(&user, &head);
        }
    }
    let mut row = PushDeviceRow {
        since: device.since,
        platform: Short(device.platform.clone()),
        feeds: FeedList(device.feeds.clone()),
        token: device.token.clone(),
    };
    if let Some(known) = known
        && known == (PushDeviceRow { since: known.since, ..row.clone() })
    {
        row.since = known.since;
    }
    tx.put::<PushDevices>(&key, &row);
    Ok(true)
}

/// Removes a device; if `token` is given, only if the device has this token. Answers whether the device was removed,
/// and whether the user still has a device.
pub(super) fn unregister(
    tx: &mut Tx<'_>,
    user: UserNo,
    device: &DeviceId,
    token: Option<&str>,
) -> Result<(bool, bool)> {
    let key = (user, CompactString::from(device.as_str()));
    let found = tx.get::<PushDevices>(&key)?;
    let taken = found.is_some_and(|row| token.is_none_or(|token| row.token == token));
    if taken {
        tx.remove::<PushDevices>(&key);
    }
    let listens = rows_of(tx, user).next().transpose()?.is_some();
    if !listens {
        tx.remove::<PushReaders>(&user);
    }
    Ok((taken, listens))
}

fn rows_of(from: &impl Read, user: UserNo) -> impl Iterator<Item = Result<(CompactString, PushDeviceRow)>> {
    let rows = from.scan::<PushDevices>((
        Included((user, CompactString::default())),
        Excluded((UserNo(user.0.saturating_add(1)), CompactString::default())),
    ));
    rows.map(|row| row.map(|((_, device), row)| (device, row)))
}

/// The devices of the user, in the order of device ids.
pub(super) fn devices(view: &View, user: UserNo) -> Result<Vec<PushDevice>> {
    let device = |row: Result<(CompactString, PushDeviceRow)>| {
        let (device, PushDeviceRow { since, platform, feeds, token }) = row?;
        let device = device.parse().map_err(|error| {
            StoreError::corrupt(format_args!("the device {device:?} of user {}: {error}", user.0)).with_source(error)
        })?;
        Ok(PushDevice { device, platform: platform.0, token, feeds: feeds.0, since })
    };
    rows_of(view, user).map(device).collect()
}

/// Notes these posts, and up to which number records addressed to a reader were noted.
pub(super) fn note(
    tx: &mut Tx<'_>,
    from: &DueFrom,
    notes: &[Note],
    due: Millis,
    noted: Option<(UserNo, DirectSeq)>,
) -> Result<()> {
    let before = tx.get::<PushNumber>(&())?.unwrap_or_default();
    let mut number = before;
    for note in notes {
        if !wants(tx, note.key)? {
            continue;
        }
        let known = tx.get::<PushNotices>(&note.key)?;
        if let Some(row) = NoticeRow::noted(known, note, due, number + 1) {
            number += 1;
            put(tx, from, note.key, known, Some(row));
        }
    }
    if number > before {
        tx.put::<PushNumber>(&(), &number);
    }
    if let Some((reader, upto)) = noted
        && let Some(seq) = tx.get::<PushReaders>(&reader)?
        && upto > seq
    {
        tx.put::<PushReaders>(&reader, &upto);
    }
    Ok(())
}

/// Whether a device of the reader is registered for this feed.
fn wants(tx: &Tx<'_>, InboxKey { reader, feed }: InboxKey) -> Result<bool> {
    for row in rows_of(tx, reader) {
        if row?.1.feeds.0.contains(&feed) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Stores a row in place of another, with its place among those that are due.
fn put(tx: &mut Tx<'_>, from: &DueFrom, key: InboxKey, before: Option<NoticeRow>, row: Option<NoticeRow>) {
    if let Some(before) = before {
        tx.remove::<PushDue>(&(before.due, key));
    }
    match row {
        Some(row) => {
            from.lower((row.due, key));
            tx.put::<PushDue>(&(row.due, key), &());
            tx.put::<PushNotices>(&key, &row);
        }
        None => tx.remove::<PushNotices>(&key),
    }
}

/// Whether anything may be due at `now`: false only if nothing is. The view is made after the bound was read, so it
/// shows every row below the bound that was there when the bound was raised. If the bound has moved meanwhile, only the
/// writer knows.
pub(super) fn may_be_due(db: &Database, from: &DueFrom, now: Millis) -> Result<bool> {
    let place = from.place();
    let is_due = db.view()?.scan::<PushDue>(place..=(now, LAST)).next().transpose()?.is_some();
    Ok(is_due || from.place() != place)
}

/// The greatest key, for the end of a range.
const LAST: InboxKey = InboxKey { reader: UserNo(u32::MAX), feed: FeedId(u16::MAX) };

/// Takes at most `limit` of the notices that are due, and looks at `most` rows. Answers whether no other is due. The
/// bound is to be [raised](DueFrom::raise) once the transaction is committed.
pub(super) fn take_due(
    tx: &mut Tx<'_>,
    from: &DueFrom,
    now: Millis,
    lease_until: Millis,
    (limit, most): (usize, usize),
) -> Result<(Vec<Notice>, bool)> {
    // Notices whose readers were told already are forgotten on the way.
    let (mut taken, mut over, mut next, mut is_all) = (vec![], vec![], (now, LAST), true);
    for (nth, place) in tx.scan::<PushDue>(from.place()..=(now, LAST)).take(most).enumerate() {
        let (place, ()) = place?;
        let row = row(tx, place.1)?;
        if row.sent {
            over.push((place.1, row));
        } else if taken.len() < limit {
            taken.push((place.1, row));
        } else {
            (next, is_all) = (place, false);
            break;
        }
        if nth + 1 == most {
            (next, is_all) = (place, false);
        }
    }
    for (key, row) in over {
        put(tx, from, key, Some(row), None);
    }
    for (key, row) in &taken {
        put(tx, from, *key, Some(*row), Some(NoticeRow { due: lease_until, ..*row }));
        next = next.min((lease_until, *key));
    }
    from.pass(next);
    Ok((taken.iter().map(|(key, row)| row.notice(*key)).collect(), is_all))
}

fn row(tx: &Tx<'_>, key: InboxKey) -> Result<NoticeRow> {
    let row = tx.get::<PushNotices>(&key)?;
    row.ok_or_else(|| StoreError::corrupt(format_args!("a notice of {key:?} is due and has no row")))
}

/// Removes all devices and notices of the user.
pub(super) fn forget_all(tx: &mut Tx<'_>, from: &DueFrom, user: UserNo) -> Result<()> {
    let devices: Vec<_> = rows_of(tx, user).collect::<Result<_>>()?;
    devices.into_iter().for_each(|(device, _)| tx.remove::<PushDevices>(&(user, device)));
    tx.remove::<PushReaders>(&user);
    let (first, last) = (InboxKey { reader: user, feed: FeedId(0) }, InboxKey { reader: user, ..LAST });
    let notices: Vec<_> = tx.scan::<PushNotices>(first..=last).collect::<Result<_>>()?;
    notices.into_iter().for_each(|(key, row)| put(tx, from, key, Some(row), None));
    take_dead(tx, Some(user), usize::MAX).map(drop)
}

pub(super) fn settle(tx: &mut Tx<'_>, from: &DueFrom, settled: &[Settled], now: Millis) -> Result<()> {
    for Settled { notice, outcome } in settled {
        let Some(row) = tx.get::<PushNotices>(&notice.key)? else { continue };
        let after = row.settled(notice, outcome, now);
        if let (None, Outcome::Dead { why, at }) = (after, outcome) {
            let dead = PushDeadRow { notice: row, at: *at, why: why.as_str().into() };
            tx.put::<PushDead>(&notice.key, &dead);
        }
        put(tx, from, notice.key, Some(row), after);
    }
    Ok(())
}

pub(super) fn dead(view: &View, after: Option<InboxKey>, limit: usize) -> Result<Vec<DeadNotice>> {
    let from = after.map_or(Unbounded, Excluded);
    let rows = view.scan::<PushDead>((from, Included(LAST))).take(limit);
    let dead = |row: Result<(InboxKey, PushDeadRow)>| {
        let (key, PushDeadRow { notice: row, at, why }) = row?;
        Ok(DeadNotice { notice: row.notice(key), why: why.into(), at })
    };
    rows.map(dead).collect()
}

/// Takes dead notices from their list, of one reader or of all.
fn take_dead(tx: &mut Tx<'_>, reader: Option<UserNo>, limit: usize) -> Result<Vec<(InboxKey, PushDeadRow)>> {
    let first = InboxKey { reader: reader.unwrap_or(UserNo(0)), feed: FeedId(0) };
    let last = InboxKey { reader: reader.unwrap_or(LAST.reader), ..LAST };
    let found = tx.scan::<PushDead>(first..=last).take(limit).collect::<Result<Vec<_>>>()?;
    for (key, _) in &found {
        tx.remove::<PushDead>(key);
    }
    Ok(found)
}

pub(super) fn retry_dead(
    tx: &mut Tx<'_>,
    from: &DueFrom,
    reader: Option<UserNo>,
    now: Millis,
    limit: usize,
) -> Result<usize> {
    let found = take_dead(tx, reader, limit)?;
    for (key, dead) in &found {
        let known = tx.get::<PushNotices>(key)?;
        if let Some(row) = NoticeRow::revived(known, &dead.notice.notice(*key), now) {
            put(tx, from, *key, known, Some(row));
        }
    }
    Ok(found.len())
}

pub(super) fn forget_dead(tx: &mut Tx<'_>, reader: Option<UserNo>, limit: usize) -> Result<usize> {
    Ok(take_dead(tx, reader, limit)?.len())
}
