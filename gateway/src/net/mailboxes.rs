//! The mailboxes of the sessions on this node whose devices cannot write to their own connection. Such a device sends
//! each message by a request of its own, which may arrive at any node.
//!
//! ```text
//!   POST /emulation ──▶ put ──▶ mailbox ──▶ the session's task
//! ```
//!
//! Invariant: a mailbox holds at most [`ROOM`] messages and [`BYTES`] bytes, or one larger message (I18). A mailbox is
//! removed when its owner is dropped.

use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Bytes;
use dashmap::DashMap;
use rustc_hash::FxBuildHasher;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most messages that wait in one mailbox.
const ROOM: usize = 16;

/// The most bytes that wait in one mailbox: as many as one message may have by default.
const BYTES: u32 = 64 * 1024;

/// Why a message was not put into a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotPut {
    /// No session on this node has this number.
    NoSession,
    /// The session has not yet taken in the messages before.
    Full,
}

/// The mailboxes of one node, by the random number of their session.
#[derive(Default)]
pub(crate) struct Mailboxes(DashMap<u128, Inlet, FxBuildHasher>);

/// The entrance of one mailbox: its free bytes, and the sender of its messages.
struct Inlet {
    room: Arc<Semaphore>,
    sender: Sender<(Bytes, OwnedSemaphorePermit)>,
}

impl Mailboxes {
    /// Opens the mailbox of the session with this number, which no other session may have.
    pub(crate) fn open(self: &Arc<Self>, number: u128) -> Mailbox {
        let (sender, messages) = channel(ROOM);
        self.0.insert(number, Inlet { room: Arc::new(Semaphore::new(BYTES as usize)), sender });
        Mailbox { all: self.clone(), number, messages }
    }

    /// Puts a message into the mailbox of this session. Never waits.
    pub(crate) fn put(&self, number: u128, message: Bytes) -> Result<(), NotPut> {
        let mailbox = self.0.get(&number).ok_or(NotPut::NoSession)?;
        let bytes = u32::try_from(message.len()).map_or(BYTES, |bytes| bytes.min(BYTES));
        let held = mailbox.room.clone().try_acquire_many_owned(bytes).map_err(|_| NotPut::Full)?;
        mailbox.sender.try_send((message, held)).map_err(|_| NotPut::Full)
    }
}

/// The mailbox of one session. Dropping the mailbox closes it.
pub(crate) struct Mailbox {
    all: Arc<Mailboxes>,
    number: u128,
    messages: Receiver<(Bytes, OwnedSemaphorePermit)>,
}

impl Mailbox {
    /// The number of the session.
    pub(crate) fn number(&self) -> u128 {
        self.number
    }

    /// Takes the next message out, or waits for one.
    pub(crate) fn poll_take(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        self.messages.poll_recv(cx).map(|next| next.expect("the sender is kept until the mailbox is dropped").0)
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.all.0.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i18_a_mailbox_takes_no_more_than_it_has_room_for_and_is_gone_with_its_owner() {
        let mailboxes = Arc::new(Mailboxes::default());
        let mut mailbox = mailboxes.open(7);
        let put = || mailboxes.put(7, Bytes::from_static(b"{}"));
        assert_eq!((0..ROOM + 1).filter(|_| put() == Ok(())).count(), ROOM);
        assert_eq!(put(), Err(NotPut::Full));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut other = mailboxes.open(9);
        let put_large = |bytes: u32| mailboxes.put(9, vec![b' '; bytes as usize].into());
        assert_eq!((put_large(2 * BYTES), put_large(1)), (Ok(()), Err(NotPut::Full)), "one that is larger than all");
        assert!(other.poll_take(&mut cx).is_ready());
        assert_eq!((put_large(BYTES - 1), put_large(2), put_large(1)), (Ok(()), Err(NotPut::Full), Ok(())));
        drop(other);
        assert_eq!(mailbox.poll_take(&mut cx), Poll::Ready(Bytes::from_static(b"{}")));
        assert_eq!((put(), mailboxes.put(8, Bytes::new())), (Ok(()), Err(NotPut::NoSession)));
        drop(mailbox);
        assert_eq!(mailboxes.put(7, Bytes::new()), Err(NotPut::NoSession));
        assert!(mailboxes.0.is_empty());
    }
}
