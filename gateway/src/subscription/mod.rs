//! One subscription of one device to its feed: a position that advances to the head of the log. Pure: no await, no
//! clock, no IO.
//!
//! ```text
//!             Wake, Writable, Found, Failed
//!   outside ────────────────────────────────▶ Subscription { position, behind } ──▶ Action
//!
//!   Opening ──Found──▶ Idle ──(behind and writable)──▶ Reading ──Found──▶ Idle …
//! ```
//!
//! Invariants:
//! - A subscription holds a position, never a queue: changes that the device has not taken stay in the log.
//! - A wake is a bit, cleared when a read *starts*: a wake that comes during a read is kept.
//! - Nothing is read while the socket still holds what was pushed before (I18).
//! - In items mode pushed offsets are contiguous; in notify mode they jump to the head, which stands for all between.
//! - If the log no longer serves the position, the subscription ends; it never skips changes (I9).

use feedgate_common::{Epoch, Position};

use crate::protocol::Close;
pub use crate::protocol::{Deliver, Opened};

#[cfg(test)]
mod tests;

/// Where a subscription starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At the head: the device has just loaded its feed, or needs no older changes.
    Head,
    /// At the device's own position.
    At(Position),
    /// The device asked to recover, but sent no position of ours, or has none stored.
    Lost,
}

/// What happened outside the subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// The log may have grown.
    Wake,
    /// All that was pushed has been written to the peer.
    Writable,
    /// The answer to [`Action::Read`].
    Found(Found),
    /// The read of [`Action::Read`] failed.
    Failed,
}

/// The answer of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The changes `first ..= last` were read (none if `last` < `first`); the log ends at `head`.
    Changes {
        /// The offset after the position that was asked about.
        first: u64,
        /// The offset of the last change that was read.
        last: u64,
        /// The offset of the last change in the log.
        head: u64,
    },
    /// The log's last position.
    Head(Position),
    /// The log does not serve the position any more; the log's last position is given.
    Gone(Position),
}

impl Found {
    /// Whether the log has changes after those that were read.
    pub(crate) fn is_cut(self) -> bool {
        matches!(self, Self::Changes { last, head, .. } if last < head)
    }
}

/// What to ask the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// The log's last position.
    Head,
    /// Whether the log still serves this position, and the log's last position.
    Serves(Position),
    /// The changes after this position.
    After(Position),
}

/// What to do outside the subscription, in the order given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Ask the log; answer with [`Input::Found`] or [`Input::Failed`].
    Read(Ask),
    /// Tell the device that its subscription has begun.
    Opened(Opened),
    /// Tell the device that its position cannot be recovered; the subscription is over.
    RefuseUnrecovered,
    /// Tell the device that the log could not be read; the subscription is over.
    RefuseFailed,
    /// Push the changes that were read.
    Push,
    /// Push that the log's last offset is this.
    Behind(u64),
    /// Wake the subscription again after a while: the log could not be read.
    Retry,
    /// Close the connection with this code.
    Close(Close),
}

/// At most two actions, in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Actions([Option<Action>; 2]);

impl Actions {
    fn one(action: Action) -> Self {
        Self([Some(action), None])
    }

    fn then(self, next: Option<Action>) -> Self {
        match self.0 {
            [None, _] => Self([next, None]),
            [first, _] => Self([first, next]),
        }
    }
}

impl IntoIterator for Actions {
    type Item = Action;
    type IntoIter = std::iter::Flatten<std::array::IntoIter<Option<Action>, 2>>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().flatten()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Opening(Origin),
    Idle,
    Reading,
}

/// Where an opening subscription starts; an own position is in [`Subscription`] itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Head,
    Own,
    Lost,
}

/// The state of one subscription.
#[derive(Debug)]
pub struct Subscription {
    state: State,
    deliver: Deliver,
    reject_unrecovered: bool,
    behind: bool,
    writable: bool,
    position: Position,
}

impl Subscription {
    /// Begins a subscription, and gives the first read. `reject_unrecovered`: refuse rather than start at the head if
    /// the position cannot be recovered.
    pub fn open(deliver: Deliver, start: Start, reject_unrecovered: bool) -> (Self, Action) {
        const NONE: Position = Position { epoch: Epoch(0), offset: 0 };
        let (from, position, ask) = match (start, deliver) {
            (Start::Head, _) => (Origin::Head, NONE, Ask::Head),
            (Start::Lost, _) => (Origin::Lost, NONE, Ask::Head),
            (Start::At(own), Deliver::Items) => (Origin::Own, own, Ask::After(own)),
            (Start::At(own), Deliver::Notify) => (Origin::Own, own, Ask::Serves(own)),
        };
        let state = State::Opening(from);
        (Self { state, deliver, reject_unrecovered, behind: false, writable: true, position }, Action::Read(ask))
    }

    /// The position up to which the device was sent changes, or told of them.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Whether the subscription waits for [`Input::Writable`].
    pub fn awaits_writable(&self) -> bool {
        !self.writable
    }

    /// Takes an input, and gives what is to be done for it.
    #[must_use = "what it says is to be done"]
    pub fn on(&mut self, input: Input) -> Actions {
        match input {
            Input::Wake => self.behind = true,
            Input::Writable => self.writable = true,
            Input::Found(found) => {
                return match std::mem::replace(&mut self.state, State::Idle) {
                    State::Opening(from) => self.opened(from, found),
                    State::Reading | State::Idle => self.found(found),
                };
            }
            Input::Failed => {
                return match std::mem::replace(&mut self.state, State::Idle) {
                    State::Opening(_) => Actions::one(Action::RefuseFailed),
                    State::Reading | State::Idle => Actions::one(Action::Retry),
                };
            }
        }
        Actions::default().then(self.advance())
    }

    /// Starts a read if the subscription was woken and the socket has room. Clears the wake bit.
    fn advance(&mut self) -> Option<Action> {
        if self.state != State::Idle || !self.behind || !self.writable {
            return None;
        }
        self.behind = false;
        self.state = State::Reading;
        Some(Action::Read(match self.deliver {
            Deliver::Notify => Ask::Head,
            Deliver::Items => Ask::After(self.position),
        }))
    }

    fn opened(&mut self, from: Origin, found: Found) -> Actions {
        let (position, recovered) = match (from, found) {
            (Origin::Own, Found::Changes { .. } | Found::Head(_)) => (self.position, true),
            (_, Found::Head(head) | Found::Gone(head)) => (head, false),
            (Origin::Head | Origin::Lost, Found::Changes { .. }) => return Actions::one(Action::RefuseFailed),
        };
        let was_recovering = from != Origin::Head;
        if was_recovering && !recovered && self.reject_unrecovered {
            return Actions::one(Action::RefuseUnrecovered);
        }
        self.position = position;
        let reply = Actions::one(Action::Opened(Opened { position, was_recovering, recovered }));
        match found {
            Found::Gone(_) => reply.then(self.advance()),
            Found::Head(_) | Found::Changes { .. } => {
                let mut rest = self.found(found).into_iter();
                let reply = reply.then(rest.next());
                debug_assert!(rest.next().is_none(), "an opening leads to one action at most");
                reply
            }
        }
    }

    fn found(&mut self, found: Found) -> Actions {
        match found {
            Found::Changes { first, last, head } => {
                if first != self.position.offset + 1 || last + 1 < first || head < last {
                    // The answer of the log does not fit the position; nothing of the answer is passed on.
                    return Actions::one(Action::Close(Close::ServerError));
                }
                self.behind |= last < head;
                if last < first {
                    return Actions::default().then(self.advance());
                }
                self.position.offset = last;
                self.writable = false;
                Actions::one(Action::Push)
            }
            Found::Head(head) if head.epoch != self.position.epoch || head.offset < self.position.offset => {
                Actions::one(Action::Close(Close::InsufficientState))
            }
            Found::Head(head) if head.offset == self.position.offset => Actions::default().then(self.advance()),
            Found::Head(head) => {
                self.position = head;
                self.writable = false;
                Actions::one(Action::Behind(head.offset))
            }
            Found::Gone(_) => Actions::one(Action::Close(Close::InsufficientState)),
        }
    }
}
