//! The writes that the Archive accepts, and their outcomes.

use async_trait::async_trait;
use compact_str::CompactString;

use super::Edge;
use crate::audience::{AUDIENCE_MAX, Narrowed, Narrowing};
use crate::change::Class;
use crate::error;
use crate::graph::Shield;
use crate::ids::ListName;
use crate::import::Import;
use crate::mentions::Remention;
use crate::notify::Notification;
use crate::notify::lines::LineWrite;
use crate::{Body, FeedId, ItemId, Millis, OutboxSeq, UserId, UserNo};

/// An item to be published.
#[derive(Debug, Clone, PartialEq)]
pub struct Publish {
    /// The user who publishes.
    pub author: UserId,
    /// The content of the item.
    pub body: Body,
    /// The backend's own word for the type of the item.
    pub kind: Option<CompactString>,
    /// The id; `None` lets the Archive give one that is ordered by time.
    pub id: Option<ItemId>,
    /// The backend's own key, unique among living items. The delete of an item frees it for a new one.
    pub foreign_id: Option<CompactString>,
    /// The item that this item reposts. That item must live when the repost is accepted; of an imported repost it may
    /// be gone.
    pub repost_of: Option<ItemId>,
    /// The users whom the item [mentions](crate::mentions), each once.
    pub mentions: Vec<UserId>,
    /// The display time, in Unix ms; `None` means the time of acceptance.
    pub published_at: Option<Millis>,
    /// The display rank; `None` means `published_at`.
    pub rank: Option<i64>,
    /// Makes a retry safe for 24 h: a request with this key by this author gets the first answer again.
    pub idempotency_key: Option<CompactString>,
    /// The readers for whom the item is.
    pub audience: Audience,
    /// The feed in which every reader gets the item and its changes.
    pub feed: FeedId,
}

/// The readers of an item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Audience {
    /// All users who follow the author.
    #[default]
    Followers,
    /// Only these users; the item stands in no outbox. A name given twice counts once. A user does not get the item if
    /// a block is up between it and the author when the item is accepted.
    Users(Vec<UserId>),
    /// Those users who follow the author and are in this set. The item stands in the outbox.
    Narrowed(Narrowed),
}

/// The most bytes of a foreign id.
pub const FOREIGN_ID_MAX_BYTES: usize = 128;

/// The most readers to whom one item may be addressed.
pub const READERS_MAX: usize = 1000;

/// The most readers whom one commit may address, with those whom its items mention: each gets a record in it.
pub const COMMIT_READERS_MAX: usize = 10_000;

/// Whether an item may have this foreign id: 1 to [`FOREIGN_ID_MAX_BYTES`] bytes without a control character. No store
/// is asked for another foreign id, since a text of PostgreSQL holds no NUL, and a key of an embedded table has less
/// than 64 KiB.
pub fn may_be_foreign_id(text: &str) -> bool {
    (1..=FOREIGN_ID_MAX_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
}

impl Publish {
    /// An item for the main feed of the author's followers, with an author and a body and nothing else.
    pub fn new(author: UserId, body: Body) -> Self {
        Self {
            author,
            body,
            kind: None,
            id: None,
            foreign_id: None,
            repost_of: None,
            mentions: vec![],
            published_at: None,
            rank: None,
            idempotency_key: None,
            audience: Audience::Followers,
            feed: FeedId::MAIN,
        }
    }

    /// A hash of the payload, which tells a retry from a conflict. It covers all but the idempotency key, and the feed,
    /// which follows from the kind.
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
        // No name of a user is empty, so no other part of the text begins like these parts.
        if let Audience::Narrowed(Narrowed { by: Narrowing { lists, except_lists, mutual }, .. }) = &self.audience {
            text.push_str(&format!("\0\0\0{mutual}"));
            lists.iter().for_each(|list| text.push_str(&format!("\0+{list}")));
            except_lists.iter().for_each(|list| text.push_str(&format!("\0-{list}")));
        }
        if let Some(item) = self.repost_of {
            text.push_str(&format!("\0\0{item}"));
        }
        // The id of an item has only digits, so no other part of the text begins like a mention.
        self.mentions.iter().for_each(|user| text.push_str(&format!("\0\0@{user}")));
        let mut out = [0; 16];
        out.copy_from_slice(&Sha256::digest(text.as_bytes())[..16]);
        out
    }
}

/// One operation of a [`Writes::write`].
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// Publishes a new item.
    Publish(Publish),
    /// Gives an item a new body, a new rank, or both, and the next version. A rank that the item has already changes
    /// nothing.
    Edit {
        /// The item to change.
        item: ItemId,
        /// The new body of the item; `None` keeps it.
        body: Option<Body>,
        /// The new rank of the item; `None` keeps it.
        rank: Option<i64>,
        /// The users whom the item mentions from now on, together with a new body; `None` keeps those whom it mentions.
        mentions: Option<Vec<UserId>>,
        /// If `Some`, the item must have this version, else the edit is refused.
        if_version: Option<u32>,
    },
    /// Deletes an item: it leaves every feed. Deleting it again changes nothing and succeeds.
    Delete {
        /// The item to delete.
        item: ItemId,
        /// If `Some`, the item must have this version, else the delete is refused.
        if_version: Option<u32>,
    },
    /// Lets a reader follow an author. If the author is private, the reader only asks to. Following or asking again
    /// changes nothing and succeeds.
    Follow {
        /// The user who follows.
        reader: UserId,
        /// The user to follow.
        author: UserId,
    },
    /// Ends the follow of a reader, or takes the request to follow back. Unfollowing again changes nothing and
    /// succeeds.
    Unfollow {
        /// The user who no longer follows.
        reader: UserId,
        /// The user who was followed.
        author: UserId,
    },
    /// Answers a request to follow.
    Answer {
        /// The user who has asked.
        reader: UserId,
        /// The user who is asked.
        author: UserId,
        /// What becomes of the request.
        answer: Answer,
    },
    /// Makes an author private, or not private any more. Requests and follows stay as they are. Asking again changes
    /// nothing and succeeds.
    Private {
        /// The author to change.
        author: UserId,
        /// Whether the author is to be private.
        private: bool,
    },
    /// Lets the items of an author stand in the author's own feed, or not any more, by an edge of the author to itself.
    /// Asking again changes nothing and succeeds.
    OwnPosts {
        /// The user who publishes.
        author: UserId,
        /// Whether the items are to stand in the author's own feed (true) or not.
        on: bool,
    },
    /// Puts a shield up or takes it down. Asking again changes nothing and succeeds.
    Shield {
        /// The user who asks for it.
        user: UserId,
        /// The user on the other side.
        other: UserId,
        /// The kind of shield.
        shield: Shield,
        /// Whether the shield is to be up (true) or down.
        up: bool,
    },
    /// Takes in an imported line.
    Import(Import),
    /// Gives an author a class. The class counts for items that are published from then on.
    Classify {
        /// The author to change.
        author: UserId,
        /// The new class of the author.
        class: Class,
    },
    /// Tells a user what another user did, unless a shield is up between the two, or the same was told already. A home
    /// makes this write, by [`Rules`](crate::notify::Rules), in the transaction of the deed.
    Notify(Box<Notification>),
    /// Deletes the notification with this foreign id, or lets the deed leave its line, unless its reader has seen the
    /// notification. A home makes this write too.
    Withdraw {
        /// The foreign id of the notification, as [`Deed::key`](crate::notify::Deed::key) makes it of the deed.
        key: CompactString,
        /// Whether the deed leaves its line also if the line was seen: for erasures.
        even_seen: bool,
    },
    /// Changes a line of notifications. A home makes this write from [`Self::Notify`] and [`Self::Withdraw`], by
    /// [`gather`](crate::accept::gather).
    Line(Box<LineWrite>),
}

/// What becomes of a request to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The reader follows from now on. If the reader follows already, this changes nothing and succeeds.
    Accept,
    /// The request is gone.
    Refuse,
    /// The reader follows from now on, unless the author is private: then there is nothing to let in.
    LetIn,
}

/// The outcome of one operation that was not refused.
#[derive(Debug, Clone, PartialEq)]
pub enum Written {
    /// The item is published.
    Published {
        /// The id of the item.
        id: ItemId,
        /// The number of its author.
        author: UserNo,
        /// The sequence number of its `add`; 0 if it stands in no outbox.
        outbox_seq: OutboxSeq,
        /// The display time, in Unix ms.
        published_at: Millis,
        /// The readers to whom it is addressed, without those in a block; empty if it is for the followers.
        readers: Vec<UserNo>,
        /// Whether this request has made the item; false if an earlier request has, and this is the answer to that
        /// request.
        fresh: bool,
        /// Whether this request has given the author an edge to itself, so that its items stand in its own feed.
        own_edge: bool,
        /// The readers who are told of the item by a notification.
        told: Vec<UserNo>,
    },
    /// The item has a new version.
    Edited {
        /// The number of its author.
        author: UserNo,
        /// The version that the item has now.
        version: u32,
        /// The readers to whom it is addressed; empty if it is for the followers.
        readers: Vec<UserNo>,
        /// The users whom the item mentions since this edit, and the users whom it does not mention any more.
        mentions: Remention,
        /// The readers who are told of a mention, or whose notification is taken back.
        told: Vec<UserNo>,
    },
    /// The item is deleted.
    Deleted {
        /// The number of its author.
        author: UserNo,
        /// The readers to whom it was addressed; empty if it was for the followers.
        readers: Vec<UserNo>,
        /// Whether this request has deleted the item; false if the item was deleted before.
        fresh: bool,
        /// The item that the deleted item reposted, which has a repost less now; `None` if it was no repost, or deleted
        /// before.
        repost_of: Option<ItemId>,
        /// The users whom the item mentioned; empty if the item was deleted before.
        mentions: Vec<UserId>,
        /// The readers whose notification of the item is taken back.
        told: Vec<UserNo>,
    },
    /// The edge is as it was asked for.
    Edge {
        /// The number of the reader.
        reader: UserNo,
        /// The number of the author.
        author: UserNo,
        /// The edge after the operation.
        edge: Edge,
        /// Whether the reader has only asked to follow, now or before, since the author is private.
        pending: bool,
        /// Whether the reader's follow or request has changed; false if it was already as asked for.
        fresh: bool,
        /// The users who are told of the follow by a notification, or whose notification is taken back.
        told: Vec<UserNo>,
    },
    /// The shield is as it was asked for.
    Shielded {
        /// The edges on which the shield lies, as (reader, author). The effect of these edges may be unchanged.
        edges: Vec<(UserNo, UserNo)>,
        /// Whether the shield has changed; false if it was already as asked for.
        fresh: bool,
    },
    /// The author has the class that was asked for, or is private or not as was asked for.
    Classified {
        /// The number of the author.
        author: UserNo,
        /// Whether the author has changed; false if all was already as asked for.
        fresh: bool,
    },
    /// A line of notifications has changed.
    Line {
        /// The reader of the line.
        reader: UserNo,
    },
    /// Nobody is told, or what was told stays.
    Untold,
}

impl Written {
    /// Whether the operation has changed anything; false if all was already as asked for.
    pub fn is_fresh(&self) -> bool {
        match self {
            Self::Published { fresh, .. }
            | Self::Deleted { fresh, .. }
            | Self::Edge { fresh, .. }
            | Self::Shielded { fresh, .. }
            | Self::Classified { fresh, .. } => *fresh,
            Self::Edited { .. } | Self::Line { .. } => true,
            Self::Untold => false,
        }
    }

    /// The readers to whom a notification, or its delete, was addressed together with this outcome.
    pub fn told(&self) -> &[UserNo] {
        match self {
            Self::Published { told, .. }
            | Self::Edited { told, .. }
            | Self::Deleted { told, .. }
            | Self::Edge { told, .. } => told,
            Self::Shielded { .. } | Self::Classified { .. } | Self::Line { .. } | Self::Untold => &[],
        }
    }

    /// Adds readers who are told of this outcome.
    pub fn add_told(&mut self, readers: &[UserNo]) {
        if let Self::Published { told, .. }
        | Self::Edited { told, .. }
        | Self::Deleted { told, .. }
        | Self::Edge { told, .. } = self
        {
            told.extend(readers);
        }
    }

    /// The readers to whom the operation itself addressed something, if the operation was a notification.
    pub fn addressed(&self) -> &[UserNo] {
        match self {
            Self::Published { readers, .. } | Self::Deleted { readers, .. } => readers,
            _ => &[],
        }
    }
}

/// Why an operation was refused. A refused operation changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The item id belongs to an item with another payload.
    #[error("item {0} exists with another payload; use another id, or PATCH to edit it")]
    IdTaken(ItemId),
    /// The foreign id belongs to a living item with another payload.
    #[error("foreign_id {0:?} belongs to item {1} with another payload; use another foreign_id, or PATCH to edit it")]
    ForeignIdTaken(CompactString, ItemId),
    /// The idempotency key was used for another payload.
    #[error("Idempotency-Key {0:?} was used for another payload of this author; use a new key for a new item")]
    KeyReused(CompactString),
    /// There is no such item, or it was deleted.
    #[error("there is no item {0}")]
    NoSuchItem(ItemId),
    /// The item that was to be reposted is unknown or deleted.
    #[error("field \"ref\": there is no item {0} to repost; name one that lives, or leave the field out")]
    NoSuchRef(ItemId),
    /// The item has another version now.
    #[error("item {item} has version {version} now")]
    VersionMismatch {
        /// The item that was to be changed.
        item: ItemId,
        /// The version that the item has now.
        version: u32,
    },
    /// The item is older than the time from which on everyone follows its author, so it is not in the feeds of all
    /// followers. With another rank, the item would not come to these followers.
    #[error(
        "item {0} is older than the follow of everyone, so many who follow its author do not have it; \
         to give it another rank for all, delete it and publish it again"
    )]
    OlderThanEveryone(ItemId),
    /// Everyone follows this author, and its class cannot change any more.
    #[error(
        "everyone follows {0}, and that cannot be taken back: readers who have no edge of their own would keep its items"
    )]
    StaysEveryones(UserId),
    /// Everyone follows this author, or is to, and it is private, or is to be.
    #[error(
        "{0} cannot be private and have the class everyone: all readers follow an account of this class without asking; \
         give {0} another class, or say that {0} is not private"
    )]
    PrivateEveryones(UserId),
    /// There is no request to answer.
    #[error("{reader} has not asked to follow {author}")]
    NoSuchRequest {
        /// The user whose request was to be answered.
        reader: UserId,
        /// The user who was to be asked.
        author: UserId,
    },
    /// A user is to follow itself, or to unfollow itself.
    #[error(
        "{0} cannot follow itself; own_posts = true in the settings of the server lets the items of every author stand in the \
         author's own feed"
    )]
    FollowsItself(UserId),
    /// The author has no such list.
    #[error(
        "field \"audience\": {author} has no list {list}; a list is there while it has members: put one on it, or leave the \
         list out"
    )]
    NoSuchList {
        /// The author of the item.
        author: UserId,
        /// The list that was named.
        list: ListName,
    },
    /// The audience has more readers than an item may have.
    #[error(
        "field \"audience\": more than {AUDIENCE_MAX} followers would be in it; name lists that leave at most \
         {AUDIENCE_MAX}, or publish for all followers"
    )]
    AudienceTooLarge,
    /// Everyone follows the author, so there is no set of followers to narrow.
    #[error("field \"audience\": everyone follows {0}; name the readers with \"users\", or publish for all followers")]
    NarrowedEveryones(UserId),
}

/// Accepts what changes the truth.
#[async_trait]
pub trait Writes: Send + Sync + 'static {
    /// Carries out `writes` in order, in one durable transaction, and answers each in its place. A refused operation
    /// changes nothing and does not stop the others. `now`, in Unix ms, is the time of acceptance.
    async fn write(&self, writes: Vec<Write>, now: Millis) -> error::Result<Vec<Result<Written, Refused>>>;
}
