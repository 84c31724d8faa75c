//! Keeps the epochs of the model small. Epochs are only compared, so after each step they are numbered anew in their
//! order. Otherwise rebuilds that begin again and again would give new states for ever.

use crate::state::{Rebuild, State, Store, Taker};

/// Numbers the epochs of `state` from 1, in order; 0 is none.
pub(crate) fn renumber(state: &mut State) {
    let mut used: [bool; 256] = [false; 256];
    each(state, &mut |epoch| used[usize::from(*epoch)] = true);
    let mut next = 0;
    let mut numbers: [u8; 256] = [0; 256];
    for (number, _) in numbers.iter_mut().zip(used).skip(1).filter(|(_, used)| *used) {
        next += 1;
        *number = next;
    }
    each(state, &mut |epoch| *epoch = numbers[usize::from(*epoch)]);
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
            Rebuild::Looked { token, .. } | Rebuild::Begun { token, .. } => visit(token),
            Rebuild::Read(read) => visit(&mut read.token),
        }
    }
    for device in &mut state.devices {
        visit(&mut device.epoch);
        device.page.iter_mut().for_each(|page| visit(&mut page.epoch));
    }
}

fn each_of_store(store: &mut Store, visit: &mut impl FnMut(&mut u8)) {
    store.tokens.iter_mut().for_each(|token| visit(&mut token.epoch));
    store.inboxes.iter_mut().flatten().for_each(|inbox| visit(&mut inbox.epoch));
}
