//! History from elsewhere: what another store, or whatever was there before, has to say.
//!
//! Imported lines are the past. Their times are kept, no device is woken for them, and what is there
//! already stays as it is, so that running a file twice changes nothing (but a shield that was taken down between the two
//! runs: nothing remembers that it was up). A reader who is online finds them
//! with the next change; pages show them within seconds.
//!
//! An outbox is imported in its own order, and an edge names the place in it from which its reader
//! followed. So a store that takes in what another gave ends with the same feeds.

use crate::archive::Publish;
use crate::change::Class;
use crate::graph::Shield;
use crate::{ItemId, Millis, UserId};

/// One line of history.
#[derive(Debug, Clone, PartialEq)]
pub enum Import {
    /// An item, with its id or its foreign id, and its time. It stays as it is if it is there.
    Item {
        /// What was published. Named readers get it whatever block there is; the idempotency key is not used.
        publish: Publish,
        /// Which version that is.
        version: u32,
        /// It is gone. Only its place in the outbox counts: it was one of the newest items when somebody followed.
        deleted: bool,
    },
    /// The delete of an item, behind whatever was imported before it.
    Delete {
        /// Which.
        item: ItemId,
    },
    /// A follow. Who has followed or unfollowed before stays as they are.
    Follow {
        /// Who follows.
        reader: UserId,
        /// Whom.
        author: UserId,
        /// When that began, for the lists.
        since: Millis,
        /// Where in the author's outbox.
        from: Place,
    },
    /// Nobody's follow: only where everyone follows the author does it say anything, that this reader does not.
    Unfollow {
        /// Who does not follow.
        reader: UserId,
        /// Whom.
        author: UserId,
    },
    /// A shield that is up.
    Shield {
        /// Whose.
        user: UserId,
        /// Against whom.
        other: UserId,
        /// Which.
        shield: Shield,
        /// Since when, for the lists.
        since: Millis,
    },
    /// An author's class; one that somebody has given stays. Everyone follows from this place in the import on.
    Class {
        /// Whom.
        author: UserId,
        /// Which.
        class: Class,
    },
}

/// A place in an author's outbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Place {
    /// Behind everything that is there.
    #[default]
    Head,
    /// As everyone follows the author; behind everything if not everyone does.
    Everyone,
    /// Before everything.
    Start,
    /// Right behind the add of this item.
    Add(ItemId),
    /// Right behind the delete of this item.
    Delete(ItemId),
}
