//! Events that tell other programs of accepted writes: stored with internal numbers, published with names.
//!
//! ```text
//!   accepted write ─▶ Announcement, stored in the transaction of the write ─▶ names looked up ─▶ PublicEvent
//! ```
//!
//! Invariants: a stored announcement never changes, and neither does a name, so an event is the same however often it
//! is told. Their order is the one that [`announced`](crate::archive::Announcements::announced) promises.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use compact_str::CompactString;
use serde::Serialize;

use crate::archive::Names;
use crate::change::from_u8;
use crate::error::Result;
use crate::{ItemId, Millis, UserId, UserNo};

/// What a user, or a backend for the user, has done. The numbers of the variants are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Act {
    /// An author has published an item.
    Publish = 1,
    /// An item of the author has a new version.
    Edit = 2,
    /// An item of the author is deleted.
    Delete = 3,
    /// A reader follows an author.
    Follow = 4,
    /// A reader no longer follows an author.
    Unfollow = 5,
    /// A user has muted another one.
    Mute = 6,
    /// A mute has ended.
    Unmute = 7,
    /// A user hides from another one.
    Hide = 8,
    /// A user no longer hides.
    Unhide = 9,
    /// A user has blocked another one.
    Block = 10,
    /// A block has ended.
    Unblock = 11,
    /// An author has another class.
    Classify = 12,
}

from_u8!(Act { Publish, Edit, Delete, Follow, Unfollow, Mute, Unmute, Hide, Unhide, Block, Unblock, Classify });

impl Act {
    /// The `kind` of its events.
    pub fn name(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Edit => "edit",
            Self::Delete => "delete",
            Self::Follow => "follow",
            Self::Unfollow => "unfollow",
            Self::Mute => "mute",
            Self::Unmute => "unmute",
            Self::Hide => "hide",
            Self::Unhide => "unhide",
            Self::Block => "block",
            Self::Unblock => "unblock",
            Self::Classify => "classify",
        }
    }
}

/// What is stored of an accepted write for other programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// What the user has done, or the backend for the user.
    pub act: Act,
    /// The author of the item, the reader of the edge, or the owner of the shield.
    pub user: UserNo,
    /// The user on the other side of an edge or a shield.
    pub other: Option<UserNo>,
    /// The item, if it is about one.
    pub item: Option<ItemId>,
    /// The version of the item, if it has one now.
    pub version: Option<u32>,
    /// When the write was accepted, in Unix ms.
    pub at: Millis,
    /// The foreign id of a new item, or the new class of an author.
    pub detail: Option<CompactString>,
}

/// An announcement and its number, which is greater than that of every earlier one of the same user.
pub type Numbered = (u64, Announcement);

/// The id of an event: when it was accepted, and its number. The time is a part of it so that an Archive that was
/// restored from a copy gives no id again. As text it is `1800000000000-17`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventId {
    /// When the write was accepted, in Unix ms.
    pub at: Millis,
    /// The number under which the Archive keeps the announcement.
    pub number: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.at, self.number)
    }
}

impl FromStr for EventId {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        let (at, number) = text.split_once('-').ok_or(())?;
        Ok(Self { at: at.parse().map_err(drop)?, number: number.parse().map_err(drop)? })
    }
}

/// An event as other programs get it. Fields may be added within a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PublicEvent {
    /// The number under which the Archive keeps it.
    #[serde(skip)]
    pub number: u64,
    /// The user whose events keep their order: the author, or the reader, or the owner of the shield.
    #[serde(skip)]
    pub owner: UserId,
    v: u8,
    id: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<UserId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reader: Option<UserId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<UserId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    other: Option<UserId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<ItemId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    foreign_id: Option<CompactString>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<CompactString>,
    at: Millis,
}

impl PublicEvent {
    /// The event of an announcement, with the names of its users.
    pub fn new((number, told): Numbered, owner: UserId, other: Option<UserId>) -> Self {
        let mut event = Self {
            number,
            owner: owner.clone(),
            v: 1,
            id: EventId { at: told.at, number }.to_string(),
            kind: told.act.name(),
            author: None,
            reader: None,
            user: None,
            other: None,
            item: told.item,
            version: told.version,
            foreign_id: None,
            class: None,
            at: told.at,
        };
        match told.act {
            Act::Publish | Act::Edit | Act::Delete => (event.author, event.foreign_id) = (Some(owner), told.detail),
            Act::Classify => (event.author, event.class) = (Some(owner), told.detail),
            Act::Follow | Act::Unfollow => (event.reader, event.author) = (Some(owner), other),
            Act::Mute | Act::Unmute | Act::Hide | Act::Unhide | Act::Block | Act::Unblock => {
                (event.user, event.other) = (Some(owner), other);
            }
        }
        event
    }

    /// The stable id: the same however often the event is told.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What has happened, as one word.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The event as JSON, in one line.
    pub fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("our own values serialize")
    }
}

/// The events of these announcements, in their order, after one look-up of all names. Fails as [`Names::user_ids`]
/// does.
pub async fn with_names(names: &(impl Names + ?Sized), list: Vec<Numbered>) -> Result<Vec<PublicEvent>> {
    let mut users: Vec<UserNo> = list.iter().flat_map(|(_, told)| [Some(told.user), told.other]).flatten().collect();
    users.sort_unstable();
    users.dedup();
    let known: BTreeMap<UserNo, UserId> = users.iter().copied().zip(names.user_ids(&users).await?).collect();
    let event = |(number, told): Numbered| {
        let (owner, other) = (known[&told.user].clone(), told.other.map(|other| known[&other].clone()));
        PublicEvent::new((number, told), owner, other)
    };
    Ok(list.into_iter().map(event).collect())
}

/// Divides events into rounds, to be published one after the other. No round holds two events of one user, so a round
/// whose events are stored in any order, or only in part and then again, leaves each user's events in order.
pub fn rounds(events: Vec<PublicEvent>) -> Vec<Vec<PublicEvent>> {
    let (mut rounds, mut next): (Vec<Vec<PublicEvent>>, BTreeMap<UserId, usize>) = Default::default();
    for event in events {
        let round = next.entry(event.owner.clone()).or_default();
        if *round == rounds.len() {
            rounds.push(vec![]);
        }
        rounds[*round].push(event);
        *round += 1;
    }
    rounds
}

/// The place to which a cluster publishes events for other programs.
#[async_trait]
pub trait Outlet: Send + Sync + 'static {
    /// Publishes events of different users. All are kept when it answers; when it fails, or is dropped, some may be. An
    /// event that is published again soon is kept once.
    async fn publish(&self, events: &[PublicEvent]) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u64, act: Act, names: (&str, Option<&str>)) -> PublicEvent {
        let other = names.1.map(|_| UserNo(2));
        let told = Announcement { act, user: UserNo(1), other, item: None, version: None, at: 5, detail: None };
        PublicEvent::new((number, told), names.0.parse().unwrap(), names.1.map(|name| name.parse().unwrap()))
    }

    fn text(event: &PublicEvent) -> String {
        String::from_utf8(event.json()).unwrap()
    }

    #[test]
    fn an_event_names_its_users_by_what_they_are_in_it() {
        let published = Announcement {
            act: Act::Publish,
            user: UserNo(1),
            other: None,
            item: Some(ItemId(7)),
            version: Some(1),
            at: 5,
            detail: Some("post/1".into()),
        };
        let published = PublicEvent::new((9, published), "ann".parse().unwrap(), None);
        let wanted =
            r#"{"v":1,"id":"5-9","kind":"publish","author":"ann","item":"7","version":1,"foreign_id":"post/1","at":5}"#;
        assert_eq!(text(&published), wanted);
        let wanted = r#"{"v":1,"id":"5-9","kind":"follow","author":"ann","reader":"bob","at":5}"#;
        assert_eq!(text(&event(9, Act::Follow, ("bob", Some("ann")))), wanted);
        let wanted = r#"{"v":1,"id":"5-9","kind":"block","user":"bob","other":"ann","at":5}"#;
        assert_eq!(text(&event(9, Act::Block, ("bob", Some("ann")))), wanted);
    }

    #[test]
    fn a_round_holds_one_event_of_a_user_and_later_ones_come_in_later_rounds() {
        let events = [(1, "ann"), (2, "bob"), (3, "ann"), (4, "ann"), (5, "bob"), (6, "cem")];
        let events = events.map(|(number, user)| event(number, Act::Edit, (user, None))).to_vec();
        let rounds: Vec<Vec<u64>> =
            rounds(events).iter().map(|round| round.iter().map(|event| event.number).collect()).collect();
        assert_eq!(rounds, [vec![1, 2, 6], vec![3, 5], vec![4]]);
    }
}
