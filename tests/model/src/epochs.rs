//! Keeps the epochs of the model small. Epochs are only compared, so after each step they are numbered anew in their
//! order. Otherwise rebuilds that begin again and again would give new states for ever.

use crate::state::{Rebuild, State, Store, Taker};

/// Numbers the epochs of `state` from 1, in order; 0 is none. An epoch is below 128: after each step they are small.
pub(crate) fn renumber(state: &mut State) {
    // The bit of "none" counts as used, so that the number of an epoch is how many bits stand below its own.
    let used = used(state) | 1;
    if (used + 1).is_power_of_two() {
        return;
    }
    each(state, &mut |epoch| *epoch = (used & ((1 << *epoch) - 1)).count_ones() as u8);
}

/// A bit for each epoch that stands somewhere. Most steps leave no gap, and then nothing has to be written.
fn used(state: &State) -> u128 {
    let mut used = 0;
    let mut add = |epoch: u8| used |= 1 << epoch;
    for store in [Some(&state.store), state.snapshot.as_ref()].into_iter().flatten() {
        store.placeholders.iter().for_each(|placeholder| add(placeholder.epoch));
        store.inboxes.iter().flatten().for_each(|inbox| add(inbox.epoch));
    }
    add(state.truth.epoch);
    add(state.least_epoch);
    state.lost.iter().chain(&state.looked).for_each(|(epoch, _)| add(*epoch));
    for taker in &state.takers {
        if let Taker::News(news) = taker {
            add(news.epoch);
        }
    }
    for rebuild in &state.rebuilds {
        match rebuild {
            Rebuild::Idle => {}
            Rebuild::Looked { placeholder, .. } | Rebuild::Begun { placeholder, .. } => add(*placeholder),
            Rebuild::Read(read) => add(read.placeholder),
        }
    }
    for device in &state.devices {
        add(device.epoch);
        device.page.iter().for_each(|page| add(page.epoch));
    }
    used
}

fn each(state: &mut State, visit: &mut impl FnMut(&mut u8)) {
    each_of_store(&mut state.store, visit);
    if let Some(copy) = &mut state.snapshot {
        each_of_store(copy, visit);
    }
    visit(&mut state.truth.epoch);
    visit(&mut state.least_epoch);
    for (epoch, _) in state.lost.iter_mut().chain(&mut state.looked) {
        visit(epoch);
    }
    for taker in &mut state.takers {
        if let Taker::News(news) = taker {
            visit(&mut news.epoch);
        }
    }
    for rebuild in &mut state.rebuilds {
        match rebuild {
            Rebuild::Idle => {}
            Rebuild::Looked { placeholder, .. } | Rebuild::Begun { placeholder, .. } => visit(placeholder),
            Rebuild::Read(read) => visit(&mut read.placeholder),
        }
    }
    for device in &mut state.devices {
        visit(&mut device.epoch);
        device.page.iter_mut().for_each(|page| visit(&mut page.epoch));
    }
}

fn each_of_store(store: &mut Store, visit: &mut impl FnMut(&mut u8)) {
    store.placeholders.iter_mut().for_each(|placeholder| visit(&mut placeholder.epoch));
    store.inboxes.iter_mut().flatten().for_each(|inbox| visit(&mut inbox.epoch));
}
