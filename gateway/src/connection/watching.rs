//! The items that the device of one connection watches: the device is told the present state of each item, and then
//! what happens around it.
//!
//! ```text
//!   subscribe item:7 ─▶ join ─▶ seen by the user? ─▶ reply: counts, own, version
//!   woken ─▶ all that was pushed is sent? ─▶ what each item has to tell, in turns ─▶ push
//! ```
//!
//! Invariants:
//! - A connection that watches nothing holds a null pointer.
//! - While anything is unsent, nothing is added: counts that were not sent meanwhile are replaced by newer counts
//!   (I18).
//! - There is no position: a device that connects again is told the present state of the item again.

use std::sync::Arc;

use feedgate_common::ItemId;
use feedgate_common::around::{Around, Onlooker, Viewer, seen_by};
use serde::Serialize;

use super::Connection;
use super::outcome::{Outcome, Then};
use super::shared::Shared;
use crate::around::Counts;
use crate::node::identity::Identity;
use crate::node::slot::Slot;
use crate::node::watches::{State, Watch};
use crate::protocol::{ErrorCode, Format, Refusal, Reply, Standing, Unsubscribed};

/// The most items that one connection watches.
const WATCHES_MAX: usize = 32;

/// A frame of news ends once it holds this many bytes.
const SLICE_BYTES: usize = 64 * 1024;

/// The items that one device watches.
#[derive(Debug, Default)]
pub(super) struct Watching {
    watches: Vec<Watch>,
    /// Whether there may be news.
    woken: bool,
    /// The place in `watches` at which the next frame begins.
    turn: usize,
}

impl Watching {
    /// Adds an item that the device watches from now on.
    pub(super) fn add(&mut self, watch: Watch) {
        self.watches.push(watch);
        // News for this watch may have come while the reply was read.
        self.woken = true;
    }

    /// Notes that there may be news.
    pub(super) fn wake(&mut self) {
        self.woken = true;
    }

    /// Gives the next frame of news, which may be empty.
    fn frame(&mut self, format: Format) -> Vec<u8> {
        let mut out = Vec::new();
        let mut at = 0;
        while let Some(watch) = self.watches.get(at) {
            if !watch.is_dropped() {
                at += 1;
                continue;
            }
            if !out.is_empty() {
                out.extend_from_slice(format.between_pushes());
            }
            format.unsubscribed(&mut out, watch.channel(), Unsubscribed::Unseen);
            self.watches.remove(at);
        }
        let all = self.watches.len();
        self.woken = false;
        for nth in 0..all {
            let at = (self.turn + nth) % all;
            if !self.watches[at].take(format, &mut out, SLICE_BYTES) || out.len() >= SLICE_BYTES {
                // The next frame goes on with this watch, which may have more news.
                (self.turn, self.woken) = (at, true);
                break;
            }
        }
        out
    }
}

impl Connection {
    /// Checks that the device may watch this item too. Refuses if it watches the item already, or watches too many
    /// items.
    pub(super) fn may_watch(&self, item: ItemId) -> Result<(), Refusal> {
        let watches = self.watching.as_ref().map_or(&[][..], |watching| &watching.watches);
        if watches.iter().any(|watch| watch.item() == item) {
            return Err(ErrorCode::AlreadySubscribed.into());
        }
        if watches.len() >= WATCHES_MAX {
            let why = format!("a connection watches at most {WATCHES_MAX} items; unsubscribe from one of them");
            return Err(ErrorCode::LimitExceeded.because(why));
        }
        Ok(())
    }

    /// Ends the device's watch of this item.
    pub(super) fn unwatch(&mut self, item: ItemId) {
        let Some(watching) = &mut self.watching else { return };
        watching.watches.retain(|watch| watch.item() != item);
        if watching.watches.is_empty() {
            self.watching = None;
        }
    }

    /// Sends news of the items that the device watches, if there is any. Call when everything is sent. Returns whether
    /// news was sent.
    pub(super) fn tell_news(&mut self) -> bool {
        // Another node may have claimed this device: then nothing is told here (I17).
        let may_push = self.shared.lease.may_push();
        let Some(watching) = self.watching.as_mut().filter(|watching| watching.woken && may_push) else { return false };
        let frame = watching.frame(self.format);
        if watching.watches.is_empty() {
            self.watching = None;
        }
        if frame.is_empty() {
            return false;
        }
        self.transport.frame(|out| out.extend_from_slice(&frame));
        true
    }
}

/// The state of an item for a user, as the reply to `subscribe` gives it.
#[derive(Serialize)]
struct Begins<'a> {
    id: ItemId,
    version: u32,
    counts: Counts<'a>,
    own: Vec<&'a str>,
}

/// Begins to watch an item that the user sees, and replies with the state of the item. May be dropped at any time; then
/// the device does not watch.
pub(super) async fn watch(shared: Arc<Shared>, who: Arc<Identity>, slot: Arc<Slot>, item: ItemId) -> Outcome {
    let me = who.user.no;
    let watch = shared.watches.join(item, me, &slot);
    let _permit = shared.reads.permit().await;
    let archive = &**shared.reads.feeds.archive();
    let found = seen_by(archive, Some(me), archive.items(&[item]).await?).await?;
    let Some(seen) = found.into_iter().flatten().next() else {
        return Err(ErrorCode::UnknownChannel.because(format!("there is no item {item}")).into());
    };
    let onlooker = shared.reads.feeds.onlooker(Viewer::User(Some(me)));
    // The part that all watchers share is read first: every change after this read is told.
    let around = archive.around(&[item], Onlooker::user(me)).await?.pop().unwrap_or_default();
    let state = State { version: seen.version, around: Around { own: vec![], ..around.clone() } };
    watch.begins(&state);
    let around = match onlooker.sees_some() {
        true => archive.around(&[item], onlooker).await?.pop().unwrap_or_default().of_some(),
        false => around,
    };
    let own = around.own.iter().map(|kind| kind.as_str()).collect();
    let begins = Begins { id: item, version: state.version, counts: Counts(&around), own };
    let data = serde_json::to_vec(&begins).expect("our own values serialize");
    Ok(Then::Watching(watch, Reply::Watch(Standing { data })))
}
