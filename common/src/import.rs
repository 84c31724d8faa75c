//! Imported lines: history from another store, or from the system that was used before.
//!
//! Imported lines are the past. Their times are kept and no device is woken for them. What exists already stays as it
//! is, so running a file twice changes nothing. (There are exceptions, since nothing remembers some changes between the
//! two runs: a shield that was taken down goes up again, an author who was made public becomes private again, an author
//! whose class was set back to `auto` gets the class again, and a request that was refused or taken back is there again
//! if a mute or a hide is up between the two.) A reader who is online finds imported items with the next change; pages
//! show them within seconds.
//!
//! An outbox is imported in its own order, and an edge names the place in it at which its reader began to follow. So a
//! store that imports what another one exported has the same feeds in the end.

use compact_str::CompactString;

use crate::archive::Publish;
use crate::change::Class;
use crate::graph::Shield;
use crate::{Body, ItemId, Millis, OutboxSeq, UserId};

/// One line of an import.
#[expect(clippy::large_enum_variant, reason = "most lines of an import are items, so a box would save nothing")]
#[derive(Debug, Clone, PartialEq)]
pub enum Import {
    /// An item, with its id or its foreign id, and its time. If it exists already, it stays as it is.
    Item {
        /// What was published. Named readers get it whatever blocks are up; the idempotency key is not used.
        publish: Publish,
        /// The version of the item.
        version: u32,
        /// Whether it is deleted. Then only the item's place in the outbox counts: the item was one of the newest items
        /// when somebody followed.
        deleted: bool,
    },
    /// The delete of an item. The delete stands in the outbox after all records that were imported before it.
    Delete {
        /// The item that was deleted.
        item: ItemId,
    },
    /// A follow. A reader who has followed or unfollowed this author before is left as it is.
    Follow {
        /// The user who follows.
        reader: UserId,
        /// The user who is followed.
        author: UserId,
        /// When the follow began, in Unix ms; for the lists.
        since: Millis,
        /// The place in the author's outbox at which the follow began.
        from: Place,
    },
    /// Says that a reader does not follow. This line has an effect only if everyone follows the author: then this
    /// reader is excluded.
    Unfollow {
        /// The user who does not follow.
        reader: UserId,
        /// The user who is not followed.
        author: UserId,
    },
    /// A shield that is up.
    Shield {
        /// The owner of the shield.
        user: UserId,
        /// The user on the other side.
        other: UserId,
        /// The kind of shield.
        shield: Shield,
        /// Since when the shield is up, in Unix ms; for the lists.
        since: Millis,
    },
    /// Makes an author private, also one who was made public since.
    Private {
        /// The author who is private.
        author: UserId,
    },
    /// A request to follow that has no answer yet. A reader who follows or has followed this author, whose request was
    /// refused or taken back, or who is in a block with the author, is left as it is.
    Request {
        /// The user who asks.
        reader: UserId,
        /// The user who is asked.
        author: UserId,
        /// When the reader asked, in Unix ms; for the list.
        since: Millis,
    },
    /// A deed of which a line of notifications tells. The item of the line must live, and comes before it. A deed that
    /// is a member of a line already stays as it is.
    Member(Box<PastMember>),
    /// The class of an author, if the author has the class `Auto` by then; any other class stays. With the class
    /// `Everyone`, everyone follows from this place in the import on.
    Class {
        /// The author of this class.
        author: UserId,
        /// The class of the author.
        class: Class,
    },
}

/// A member of a line of notifications, with the line.
#[derive(Debug, Clone, PartialEq)]
pub struct PastMember {
    /// The id of the line.
    pub line: ItemId,
    /// The item by which the reader is told of the line.
    pub item: ItemId,
    /// The user who is told.
    pub reader: UserId,
    /// What the deeds of the line have in common.
    pub group: CompactString,
    /// The kind of the items of the line.
    pub kind: CompactString,
    /// The user whose deed it is.
    pub actor: UserId,
    /// The place of the deed in the line, if no member has this place or a later one; else it comes behind the last.
    pub seq: u64,
    /// The key of the deed.
    pub key: CompactString,
    /// What the notification of this deed alone would say.
    pub told: Body,
}

/// The id under which an export names an add that `item` had before the item moved to another rank with the record
/// `by`. The export names the add as a deleted item, which counts among the newest items for a reader who followed
/// while the add stood in the outbox.
pub fn id_before_move(item: ItemId, by: OutboxSeq) -> ItemId {
    use sha2::{Digest, Sha256};
    let hash = Sha256::digest(format!("feedgate:moved:{item}:{by}"));
    ItemId(hash[..8].iter().fold(0, |id, byte| id << 8 | u64::from(*byte)))
}

/// A place in an author's outbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Place {
    /// After all that the outbox holds.
    #[default]
    Head,
    /// The place at which everyone began to follow the author; the end of the outbox if not everyone follows.
    Everyone,
    /// Before the first record.
    Start,
    /// Right after the add of this item.
    Add(ItemId),
    /// Right after the delete of this item.
    Delete(ItemId),
}
