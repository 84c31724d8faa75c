//! Requests to the writer thread.

use feedgate_common::error::Result;

use crate::view::Tx;

/// What the writes of an operation must survive before the caller is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// The writes survive a crash of the process: the operating system has them. For writes whose loss costs only
    /// repeated work when the machine loses power.
    Buffered,
    /// The writes survive a crash of the machine: the disk has them. For everything that is accepted.
    Synced,
}

type Op<T> = Box<dyn FnOnce(&mut Tx<'_>) -> Result<T> + Send>;
type Then<T> = Box<dyn FnOnce(&T) + Send>;

/// An operation for the writer thread; [`Database::submit`](crate::Database::submit) queues it.
pub struct Request<T> {
    pub(crate) durability: Durability,
    pub(crate) bytes: usize,
    pub(crate) op: Option<Op<T>>,
    pub(crate) then: Option<Then<T>>,
}

impl<T> Request<T> {
    /// A request to run `op` on the writer thread, where it reads, decides and writes. If `op` answers an error, none
    /// of its writes happens.
    pub fn new(durability: Durability, op: impl FnOnce(&mut Tx<'_>) -> Result<T> + Send + 'static) -> Self {
        Self { durability, bytes: 0, op: Some(Box::new(op)), then: None }
    }

    /// Sets about how many bytes of memory the request holds while it waits.
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Sets what runs on the writer thread after the result is visible to every reader and before the caller is
    /// answered. `then` runs even if the caller has gone away meanwhile. It is the place to drop cached rows.
    pub fn then(mut self, then: impl FnOnce(&T) + Send + 'static) -> Self {
        self.then = Some(Box::new(then));
        self
    }
}
