//! What is asked of the Archive, and what became of it.

use compact_str::CompactString;

use super::Edge;
use crate::change::Class;
use crate::graph::Shield;
use crate::import::Import;
use crate::{Body, FeedId, ItemId, Millis, OutboxSeq, UserId, UserNo};

/// What a backend asks to be accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Publish {
    /// Who publishes.
    pub author: UserId,
    /// What it says.
    pub body: Body,
    /// The business's word for what it is.
    pub kind: Option<CompactString>,
    /// The backend's own id; else the Archive gives a time-ordered one.
    pub id: Option<ItemId>,
    /// The backend's own key, unique among the items that live: a delete frees it for a new item.
    pub foreign_id: Option<CompactString>,
    /// Display time; else now.
    pub published_at: Option<Millis>,
    /// Display rank; else `published_at`.
    pub rank: Option<i64>,
    /// Makes a retry safe for 24 h: the same key of the same author gives the same answer.
    pub idempotency_key: Option<CompactString>,
    /// Whom it is for.
    pub audience: Audience,
    /// Which of its readers' feeds it goes to; its changes go there too.
    pub feed: FeedId,
}

/// Whom an item is for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Audience {
    /// Whoever follows the author.
    #[default]
    Followers,
    /// These and nobody else; it stands in no outbox. A name given twice counts once. Whoever is in a
    /// block with the author when it is accepted does not get it.
    Users(Vec<UserId>),
}

/// The most bytes of a foreign id.
pub const FOREIGN_ID_MAX_BYTES: usize = 128;

/// Whether an item may have this foreign id: 1 to [`FOREIGN_ID_MAX_BYTES`] bytes without a control character. No store is
/// asked for any other: PostgreSQL has no text with a NUL, and an embedded table no key of 64 KiB.
pub fn may_be_foreign_id(text: &str) -> bool {
    (1..=FOREIGN_ID_MAX_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
}

impl Publish {
    /// An item for the followers' main feed, with nothing but an author and a body.
    pub fn new(author: UserId, body: Body) -> Self {
        Self {
            author,
            body,
            kind: None,
            id: None,
            foreign_id: None,
            published_at: None,
            rank: None,
            idempotency_key: None,
            audience: Audience::Followers,
            feed: FeedId::MAIN,
        }
    }

    /// Identifies the payload (everything but the idempotency key, and the feed, which follows from the kind), to tell a
    /// retry from a conflict.
    pub fn fingerprint(&self) -> [u8; 16] {
        use sha2::{Digest, Sha256};
        let mut text = format!(
            "{}\0{}\0{:?}\0{:?}\0{:?}\0{:?}\0{:?}",
            self.author,
            self.body.get(),
            self.kind,
            self.id,
            self.foreign_id,
            self.published_at,
            self.rank
        );
        if let Audience::Users(users) = &self.audience {
            for user in users {
                text.push('\0');
                text.push_str(user.as_str());
            }
        }
        let mut out = [0; 16];
        out.copy_from_slice(&Sha256::digest(text.as_bytes())[..16]);
        out
    }
}

/// One operation of a [`Archive::write`](super::Archive::write).
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// Accept an item.
    Publish(Publish),
    /// Give an item a new body and version.
    Edit {
        /// Which item.
        item: ItemId,
        /// Its new body.
        body: Body,
        /// Only if this is its version now.
        if_version: Option<u32>,
    },
    /// Take an item out of every feed, at once. Deleting it again changes nothing and succeeds.
    Delete {
        /// Which item.
        item: ItemId,
        /// Only if this is its version now.
        if_version: Option<u32>,
    },
    /// Set the edge on. Following again changes nothing.
    Follow {
        /// Who follows.
        reader: UserId,
        /// Whom.
        author: UserId,
    },
    /// Set the edge off. Unfollowing again changes nothing.
    Unfollow {
        /// Who no longer follows.
        reader: UserId,
        /// Whom.
        author: UserId,
    },
    /// Put a shield up or take it down. Asking again changes nothing.
    Shield {
        /// Who asks.
        user: UserId,
        /// Against whom.
        other: UserId,
        /// Which.
        shield: Shield,
        /// Up, or down.
        up: bool,
    },
    /// Take in a line of history.
    Import(Import),
    /// Give an author a class; it counts from the next item on.
    Classify {
        /// Whom.
        author: UserId,
        /// Which.
        class: Class,
    },
}

/// What became of one operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Written {
    /// The item is accepted.
    Published {
        /// Its id.
        id: ItemId,
        /// Its author's number.
        author: UserNo,
        /// Where its `add` stands; 0 if it stands in no outbox.
        outbox_seq: OutboxSeq,
        /// Its display time.
        published_at: Millis,
        /// To whom it is addressed, without those in a block; empty if it is for the followers.
        readers: Vec<UserNo>,
        /// False if an earlier request had already been accepted and this is its answer.
        fresh: bool,
    },
    /// The item has a new version.
    Edited {
        /// Its author's number.
        author: UserNo,
        /// The new version.
        version: u32,
        /// To whom it is addressed; empty if it is for the followers.
        readers: Vec<UserNo>,
    },
    /// The item is gone.
    Deleted {
        /// Its author's number.
        author: UserNo,
        /// To whom it was addressed; empty if it was for the followers.
        readers: Vec<UserNo>,
        /// False if it had been gone before.
        fresh: bool,
    },
    /// The edge is as asked.
    Edge {
        /// The reader's number.
        reader: UserNo,
        /// The author's number.
        author: UserNo,
        /// The edge now.
        edge: Edge,
        /// False if the reader's follow already was so.
        fresh: bool,
    },
    /// The shield is as asked.
    Shielded {
        /// The edges, as (reader, author), on which it lies. Their effect may be the same as before.
        edges: Vec<(UserNo, UserNo)>,
        /// False if it already was so.
        fresh: bool,
    },
    /// The author has the class.
    Classified {
        /// The author's number.
        author: UserNo,
        /// False if it already was so.
        fresh: bool,
    },
}

impl Written {
    /// Whether anything has changed: false for what had been so before.
    pub fn is_fresh(&self) -> bool {
        match self {
            Self::Published { fresh, .. }
            | Self::Deleted { fresh, .. }
            | Self::Edge { fresh, .. }
            | Self::Shielded { fresh, .. }
            | Self::Classified { fresh, .. } => *fresh,
            Self::Edited { .. } => true,
        }
    }
}

/// Why one operation was not done. It changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The item id belongs to an item with another payload.
    #[error("item {0} exists with another payload; use another id, or PATCH to edit it")]
    IdTaken(ItemId),
    /// The foreign id belongs to an item that lives, with another payload.
    #[error("foreign_id {0:?} belongs to item {1} with another payload; use another foreign_id, or PATCH to edit it")]
    ForeignIdTaken(CompactString, ItemId),
    /// The idempotency key was used for another payload.
    #[error("Idempotency-Key {0:?} was used for another payload of this author; use a new key for a new item")]
    KeyReused(CompactString),
    /// No such item, or it was deleted.
    #[error("there is no item {0}")]
    NoSuchItem(ItemId),
    /// The item has another version now.
    #[error("item {item} has version {version} now")]
    VersionMismatch {
        /// Which item.
        item: ItemId,
        /// Its version.
        version: u32,
    },
    /// The author is followed by everyone, and stays so.
    #[error(
        "everyone follows {0}, and that cannot be taken back: readers who have no edge of their own would keep its items"
    )]
    StaysEveryones(UserId),
}
