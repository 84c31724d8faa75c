//! A device: reads after its position, and starts over from page one when the answer is `Gone`.
//!
//! If a `forget` has a floor, the device keeps what stands above it and reads the rest from a page.
//!
//! A page is two reads: the log with its head first, then the Archive for what lies at or below the floor and for which
//! items live. Bodies come with the read that needs them, so what is shown is of the version that the item has then. It
//! stands where the log or the outbox places it, so that cursors are right: the Archive may know of another rank
//! already.

use feedgate_common::Op;
use feedgate_common::feed::living;
use feedgate_common::inboxes::Numbered;

use crate::state::{Device, HalfPage, Inbox, Item, OUTBOX_MAX, State, View, addressed_item};
use crate::variants::Variant;
use crate::{Action, Bounds, Fanout};

/// What devices can do next.
pub(crate) fn actions(model: &Fanout, state: &State, actions: &mut Vec<Action>) {
    for (slot, device) in state.devices[..model.bounds.devices].iter().enumerate() {
        if device.page.is_some() {
            actions.push(Action::DevicePage { slot });
        } else if let Some(inbox) = state.inbox(slot % model.logs())
            && (is_gone(model, *device, inbox) || device.offset < readable_head(inbox))
        {
            actions.push(Action::DeviceRead { slot });
        }
    }
}

/// The last sequence id that is there; the head, unless places are given out before they are filled.
fn readable_head(inbox: &Inbox) -> u8 {
    inbox.log.iter().rposition(|line| !line.awaited).map_or(0, |at| at as u8 + 1)
}

fn is_gone(model: &Fanout, device: Device, inbox: &Inbox) -> bool {
    let cut_off = device.offset < inbox.cut && model.variant != Some(Variant::CutOffIsNotGone);
    device.epoch != inbox.epoch || cut_off || device.offset > readable_head(inbox)
}

/// The changes after the position; or `Gone`, and then the log's part of page one.
pub(crate) fn read(model: &Fanout, state: &mut State, slot: usize) {
    let mut device = state.devices[slot];
    let Some(inbox) = state.inbox(slot % model.logs()) else { return };
    let head = readable_head(inbox);
    if is_gone(model, device, inbox) {
        device.page = Some(half_page(model, inbox, head));
    } else {
        let mut floor = None;
        let newest = device.view.items().map(|item| rank(model, device.view, item)).max();
        for line in &inbox.log[usize::from(device.offset.max(inbox.cut))..usize::from(head)] {
            let seen_by_time = newest.is_some_and(|newest| model.bounds.rank(line.item, line.moved) < newest);
            match line.op {
                _ if line.awaited => {}
                Op::Add if seen_by_time && model.variant == Some(Variant::CatchUpByTime) => {}
                Op::Add | Op::Update if line.op == Op::Add || device.view.version(line.item) > 0 => {
                    let now = model.variant == Some(Variant::ChangesTellTheRankOfNow);
                    let moved = if now { state.truth.moved(line.item) } else { line.moved };
                    device.view.set(line.item, state.truth.version(line.item), moved);
                }
                Op::Add | Op::Update => {}
                Op::Delete => device.view.remove(line.item),
                Op::Forget => {
                    forget(model, &mut device.view, line.author);
                    floor = floor.max((line.item > 0).then(|| model.bounds.rank(line.item, line.moved)));
                }
            }
        }
        if floor.is_some() {
            let (mut shown, view) = (View::default(), device.view);
            let above = view.items().filter(|item| Some(rank(model, view, *item)) > floor);
            above.for_each(|item| shown.set(item, 1, view.moved(item)));
            state.devices[slot].page = Some(HalfPage { epoch: device.epoch, offset: head, shown, floor });
            return;
        }
        device.offset = head;
    }
    state.devices[slot] = device;
}

/// Takes the author's items out of the view, but for those addressed to the reader.
fn forget(model: &Fanout, view: &mut View, author: u8) {
    let all = model.variant == Some(Variant::ForgetTakesDirect);
    let is_gone = |item: &Item| (item - 1) / OUTBOX_MAX == author || all && *item >= addressed_item(0);
    view.items().filter(is_gone).for_each(|item| view.remove(item));
}

fn half_page(model: &Fanout, inbox: &Inbox, offset: u8) -> HalfPage {
    let kept: Vec<Numbered> = (1..).zip(inbox.kept(model)).map(|(seq, entry)| Numbered { seq, entry }).collect();
    let floor = inbox.floor.filter(|_| model.variant != Some(Variant::NoFloor));
    let above = |rank: i64| floor.is_none_or(|floor| rank > floor.into());
    let mut shown = View::default();
    for key in living(&kept).into_iter().filter(|key| above(key.rank)) {
        shown.set(key.item.0 as Item, 1, Bounds::is_moved(key));
    }
    HalfPage { epoch: inbox.epoch, offset, shown, floor }
}

/// The Archive's part of the page, all of it: where the feed ends is where the page does.
pub(crate) fn page(model: &Fanout, state: &mut State, slot: usize) {
    let Some(HalfPage { epoch, offset, shown, floor }) = state.devices[slot].page else { return };
    let (view, twice) = whole_page(model, state, slot % model.logs(), shown, floor);
    state.twice |= twice;
    state.devices[slot] = Device { epoch, offset, view, page: None };
}

/// What a page shows, of which `shown` comes from the log; and whether it shows an item at two places.
fn whole_page(model: &Fanout, state: &State, log: usize, shown: View, floor: Option<u8>) -> (View, bool) {
    let mut view = View::default();
    for item in shown.items() {
        let now = model.variant == Some(Variant::PagesTellTheRankOfNow);
        let moved = if now { state.truth.moved(item) } else { shown.moved(item) };
        view.set(item, state.truth.version(item), moved);
    }
    let (first, feed, mut twice) = (view, state.truth.wanted(model, log), false);
    for item in feed.items().filter(|item| floor.is_some_and(|floor| rank(model, feed, *item) <= floor)) {
        let came_first = first.version(item) > 0;
        if !came_first || model.variant == Some(Variant::PageShowsBothPlaces) {
            twice |= came_first;
            view.set(item, feed.version(item), feed.moved(item));
        }
    }
    (view, twice)
}

/// Where an item stands that is seen.
fn rank(model: &Fanout, view: View, item: Item) -> u8 {
    model.bounds.rank(item, view.moved(item))
}

/// Page one, all of it, were it read now.
pub(crate) fn page_now(model: &Fanout, state: &State, log: usize) -> Option<View> {
    let HalfPage { shown, floor, .. } = half_page(model, state.inbox(log)?, 0);
    Some(whole_page(model, state, log, shown, floor).0)
}
