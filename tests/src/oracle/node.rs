//! The real rules over real stores, as a worker and a gateway have them, for the users of one world.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use feedgate_common::archive::Event;
use feedgate_common::around::Reaction;
use feedgate_common::doorbell::{Heard, Listening};
use feedgate_common::error::Result;
use feedgate_common::feed::{Change, Changes as Logs, Feeds, Pages, Publisher, Saw};
use feedgate_common::inboxes::{Numbered, Read};
use feedgate_common::jobs::Job;
use feedgate_common::named::{CAP_MAX, NamedFeed, NamedFeeds};
use feedgate_common::notify::{Rules as Tells, Way};
use feedgate_common::{
    Archive, Bucket, DisplayKey, Doorbell, InboxKey, ItemId, Millis, OutboxSeq, Position, UserId, UserNo,
};
use feedgate_timeline::fanout::{Left, Step};
use serde::Deserialize;

use super::device::{Changes, Line, Look, Page, Seen, Serves, Shown};
use super::history::{FEEDS, Inbox, Item, NOTES, NOW, Op, RANKED, User, World};
use crate::rules::Rules;

/// The rules over the stores, as one node has them, for the users of one world.
pub struct Node {
    /// The rules of the product over the stores.
    pub rules: Arc<Rules>,
    /// The names of the users.
    pub world: World,
    /// The number of each user in the stores.
    pub numbers: Vec<UserNo>,
    /// The pages of a process whose settings do not say that a feed holds rankings.
    logged: Pages,
}

impl Node {
    /// The node of these rules, whose settings have the feed of [`rankings`]. `unranked` are feeds over the same stores
    /// with no such settings.
    pub fn new(rules: Arc<Rules>, unranked: Feeds, world: World, numbers: Vec<UserNo>) -> Self {
        Self { rules, world, numbers, logged: Pages::new(Arc::new(Logs::new(Arc::new(unranked)))) }
    }

    /// Asks the Archive for an operation, and tells whether it was accepted. The publisher relays it, if there is one.
    ///
    /// # Errors
    /// The errors of the stores.
    pub async fn accept(&self, op: &Op, publisher: Option<&Publisher>, now: Millis) -> Result<bool> {
        let archive = self.rules.feeds.archive();
        match (self.world.write(op), op) {
            (Some(write), _) => {
                let written = match publisher {
                    Some(publisher) => publisher.write(vec![write], now).await?,
                    None => archive.write(vec![write], now).await?,
                };
                Ok(written.iter().all(std::result::Result::is_ok))
            }
            (None, Op::Rank(reader, ranking)) => {
                Ok(archive.rank(self.key((*reader, RANKED)), &self.world.places(ranking), now).await?.is_ok())
            }
            (None, Op::React { user, item, on, .. }) => {
                let kind = "like".parse().expect("a kind of reaction");
                let reaction = Reaction { item: self.world.id(*item), kind, user: self.numbers[*user], at: now };
                Ok(archive.react_and_notify(&[reaction], *on).await?.answers.iter().all(std::result::Result::is_ok))
            }
            (None, Op::See(user)) => self.see(*user).await,
            (None, other) => unreachable!("{other:?} is a write"),
        }
    }

    /// Lets a user see all notifications that there are: they are delivered first.
    async fn see(&self, user: User) -> Result<bool> {
        let key = self.key((user, NOTES));
        loop {
            self.rules.fan_out.take_direct(key.reader).await?;
            let head = self.rules.changes.head(key).await?;
            if let Saw::More(_) | Saw::Nothing(_) = self.rules.pages.see(key, head).await? {
                return Ok(true);
            }
        }
    }

    /// The key of the inbox, with the number of its user.
    pub fn key(&self, (user, feed): Inbox) -> InboxKey {
        InboxKey { reader: self.numbers[user], feed }
    }

    /// Asks how far pull records go, as a gateway does every few seconds.
    ///
    /// # Errors
    /// The errors of the store.
    pub async fn hear(&self) -> Result<()> {
        self.rules.changes.heard_pull(self.rules.feeds.archive().pull_head().await?);
        Ok(())
    }
}

/// Lets a node hear how far pull records go, as a gateway does, as long as the answer is kept.
pub fn listens(logs: &Arc<Logs>, doorbell: &dyn Doorbell) -> Listening {
    let logs = logs.clone();
    doorbell.listen(Arc::new(move |heard| {
        if let Heard::Hot(head) = heard {
            logs.heard_pull(head.pull_seq);
        }
    }))
}

/// Makes [`FEEDS`] of a store that never had other names.
///
/// # Errors
/// The errors of the store.
///
/// # Panics
/// If it had.
pub async fn name_feeds(archive: &dyn Archive) -> Result<()> {
    let named = archive.intern_feeds(&["likes".into()]).await?;
    assert_eq!(named, FEEDS[1..], "the first name of a store");
    Ok(())
}

/// Names [`RANKED`] in a store that has [named](name_feeds) the other feeds.
///
/// # Errors
/// The errors of the store.
///
/// # Panics
/// If it has other names.
pub async fn name_rankings(archive: &dyn Archive) -> Result<()> {
    assert_eq!(archive.intern_feeds(&["picks".into()]).await?, [RANKED], "the second name of a store");
    Ok(())
}

/// Names [`NOTES`] in a store that has [named](name_rankings) the other feeds, and lets the Archive tell users of
/// reactions there, by lines. Each time that a store is opened.
///
/// # Errors
/// The errors of the store.
///
/// # Panics
/// If it has other names.
pub async fn name_notes(archive: &dyn Archive) -> Result<()> {
    assert_eq!(archive.intern_feeds(&["notes".into()]).await?, [NOTES], "the third name of a store");
    let way = Way { kind: "liked".into(), feed: NOTES, grouped: true };
    archive.notify_by(Tells { reaction: Some(way), ..Tells::default() });
    Ok(())
}

/// The settings by which [`RANKED`] holds rankings.
///
/// # Panics
/// If they are not valid, which is a bug.
pub fn rankings() -> NamedFeeds {
    let feed = NamedFeed { id: RANKED, name: "picks".into(), kinds: vec![], ranked: true, cap: CAP_MAX, ttl: None };
    NamedFeeds::new(vec![feed]).expect("a ranked feed")
}

/// Brings all edits and deletes to the rankings that hold the items, as a worker does.
///
/// # Errors
/// The errors of the store.
pub async fn renew_all(archive: &dyn Archive, now: Millis) -> Result<()> {
    while archive.renew_rankings(now, 100).await?.more {}
    Ok(())
}

/// Works off what is outstanding as a worker would, until nothing is.
///
/// # Errors
/// The errors of the stores.
pub async fn work_off_all(rules: &Rules) -> Result<()> {
    renew_all(&**rules.feeds.archive(), NOW).await?;
    loop {
        let outstanding = rules.feeds.archive().outstanding(None, Millis::MAX, 1000).await?;
        if outstanding.is_empty() {
            return Ok(());
        }
        for line in outstanding {
            work_off(rules, line.event).await?;
        }
    }
}

/// Works one event off and finishes it; once more if it was reopened.
///
/// # Errors
/// The errors of the stores.
pub async fn work_off(rules: &Rules, event: Event) -> Result<()> {
    let mut redo = 0;
    loop {
        let finished = match Job::from(event) {
            Job::FanOut { author } => vec![Event::Outbox { author, seq: fan_out(rules, author).await?, redo }],
            Job::Edge { reader, .. } | Job::Edges { reader } => rules.fan_out.step_edges(reader).await?.0,
            Job::Direct { reader } => vec![rules.fan_out.take_direct(reader).await?.0],
        };
        match rules.feeds.archive().finish(&finished).await?.first() {
            Some(Event::Outbox { redo: again, .. }) => redo = *again,
            _ => return Ok(()),
        }
    }
}

/// The record that every bucket has passed.
async fn fan_out(rules: &Rules, author: UserNo) -> Result<OutboxSeq> {
    loop {
        match rules.fan_out.advance_all(author).await?.left {
            Left::Nothing(head) => return Ok(head),
            Left::AnotherRound(_) => {}
            Left::BucketByBucket => break,
        }
    }
    let mut least = OutboxSeq::MAX;
    for bucket in 0..rules.feeds.inboxes().buckets() {
        least = loop {
            if let Step::AtHead(head) = rules.fan_out.advance(author, Bucket(bucket)).await? {
                break least.min(head);
            }
        };
    }
    Ok(least)
}

impl Node {
    /// [`Serves::changes`].
    ///
    /// # Errors
    /// The errors of the stores.
    pub async fn try_changes(&self, inbox: Inbox, after: Position, limit: usize) -> Result<Changes> {
        let seen = |numbered: &Numbered| Seen {
            seq: numbered.seq,
            op: numbered.entry.op,
            item: self.world.item(numbered.entry.key.item),
            place: numbered.entry.key,
            author: numbered.entry.author.0,
            direct: numbered.entry.is_direct(),
            floor: numbered.entry.floor(),
        };
        Ok(match self.rules.changes.read(self.key(inbox), after, limit).await? {
            Read::Entries { entries, head, .. } => Changes::After(entries.iter().map(seen).collect(), head),
            Read::Gone { .. } => Changes::Gone,
            Read::Missing => unreachable!("a missing inbox is rebuilt before it is read"),
        })
    }

    /// [`Serves::page`].
    ///
    /// # Errors
    /// The errors of the stores.
    pub async fn try_page(&self, inbox: Inbox, before: Option<DisplayKey>, limit: usize, look: Look) -> Result<Page> {
        let logged = look == Look::Logged && inbox.1 == RANKED;
        let pages = if logged { &self.logged } else { &self.rules.pages };
        let page = pages.page(self.key(inbox), before, limit).await?;
        let items = page.items.iter().map(|item| {
            let shown = Shown { rank: item.rank, item: self.world.item(item.id), version: item.version };
            // The log addresses to its reader all that is ranked.
            (shown, item.key(), item.author_no.0, item.direct || logged)
        });
        Ok((items.collect(), page.next, page.position))
    }

    /// [`Serves::lines`].
    ///
    /// # Errors
    /// The errors of the stores.
    pub async fn try_lines(&self, user: User) -> Result<Vec<Line>> {
        #[derive(Deserialize)]
        struct Told {
            actor: UserId,
            item: String,
            actors: Vec<UserId>,
            count: u64,
        }
        let page = self.rules.pages.page(self.key((user, NOTES)), None, 1000).await?;
        let line = |item: &Arc<feedgate_common::Item>| {
            let told: Told = serde_json::from_str(item.body.get()).expect("the body of a line");
            assert!(
                item.direct && item.author == told.actor && told.actors.first() == Some(&told.actor),
                "S6: {item:?}"
            );
            Line {
                item: self.world.item(ItemId(told.item.parse().expect("an id"))),
                actors: told.actors.iter().map(|actor| self.world.user(actor)).collect(),
                count: told.count,
                at: item.published_at,
            }
        };
        Ok(page.items.iter().map(line).collect())
    }

    /// What a device shows that takes in all that the log holds, told as the product tells it now: the items in no
    /// order.
    ///
    /// # Errors
    /// The errors of the stores.
    pub async fn told_now(&self, inbox: Inbox) -> Result<BTreeSet<Item>> {
        let (changes, key) = (&self.rules.changes, self.key(inbox));
        let log = changes.log(key).await?;
        let mut shown = BTreeMap::new();
        for change in changes.hydrate(key, log.entries.iter().map(|numbered| &numbered.entry)).await? {
            match change {
                Change::Add { item } => _ = shown.insert(item.id, item),
                Change::Update { .. } => {}
                Change::Delete { item_id } => _ = shown.remove(&item_id),
                Change::Forget { author, .. } => shown.retain(|_, item| item.direct || item.author != author),
            }
        }
        Ok(shown.into_keys().map(|id| self.world.item(id)).collect())
    }
}

#[async_trait]
impl Serves for Node {
    async fn changes(&self, inbox: Inbox, after: Position, limit: usize) -> Changes {
        self.try_changes(inbox, after, limit).await.expect("a read")
    }

    async fn page(&self, inbox: Inbox, before: Option<DisplayKey>, limit: usize, look: Look) -> Page {
        self.try_page(inbox, before, limit, look).await.expect("a page")
    }

    async fn lines(&self, user: User) -> Vec<Line> {
        self.try_lines(user).await.expect("a page")
    }
}
