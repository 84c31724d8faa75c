//! The real rules over real stores, as a worker and a gateway have them, for the users of one world.

use std::sync::Arc;

use async_trait::async_trait;
use feedgate_common::archive::Event;
use feedgate_common::doorbell::{Heard, Listening};
use feedgate_common::error::Result;
use feedgate_common::feed::Changes as Logs;
use feedgate_common::inboxes::{Numbered, Read};
use feedgate_common::jobs::Job;
use feedgate_common::{Archive, Bucket, DisplayKey, Doorbell, InboxKey, Millis, OutboxSeq, Position, UserNo};
use feedgate_timeline::fanout::{Left, Step};

use super::device::{Changes, Page, Seen, Serves, Shown};
use super::history::{FEEDS, Inbox, World};
use crate::rules::Rules;

/// The rules over the stores, as one node has them, for the users of one world.
pub struct Node {
    /// The rules of the product over the stores.
    pub rules: Arc<Rules>,
    /// The names of the users.
    pub world: World,
    /// The number of each user in the stores.
    pub numbers: Vec<UserNo>,
}

impl Node {
    /// The key of the inbox, with the number of its user.
    pub fn key(&self, (user, feed): Inbox) -> InboxKey {
        InboxKey { reader: self.numbers[user], feed }
    }

    /// Asks how far pull records go, as a gateway does every few seconds.
    ///
    /// # Errors
    /// Those of the store.
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
/// Those of the store.
///
/// # Panics
/// If it had.
pub async fn name_feeds(archive: &dyn Archive) -> Result<()> {
    let named = archive.intern_feeds(&["likes".into()]).await?;
    assert_eq!(named, FEEDS[1..], "the first name of a store");
    Ok(())
}

/// Works off what is outstanding as a worker would, until nothing is.
///
/// # Errors
/// Those of the stores.
pub async fn work_off_all(rules: &Rules) -> Result<()> {
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
/// Those of the stores.
pub async fn work_off(rules: &Rules, event: Event) -> Result<()> {
    let mut redo = 0;
    loop {
        let finished = match Job::from(event) {
            Job::FanOut { author } => Event::Outbox { author, seq: fan_out(rules, author).await?, redo },
            Job::Edge { reader, author } => rules.fan_out.step_edge(reader, author).await?.0,
            Job::Edges { .. } => unreachable!("an event is of one edge"),
            Job::Direct { reader } => rules.fan_out.take_direct(reader).await?.0,
        };
        match rules.feeds.archive().finish(&[finished]).await?.first() {
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
    /// Those of the stores.
    pub async fn try_changes(&self, inbox: Inbox, after: Position, limit: usize) -> Result<Changes> {
        let seen = |numbered: &Numbered| Seen {
            seq: numbered.seq,
            op: numbered.entry.op,
            item: numbered.entry.key.item.0.saturating_sub(self.world.first_item),
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
    /// Those of the stores.
    pub async fn try_page(&self, inbox: Inbox, before: Option<DisplayKey>, limit: usize) -> Result<Page> {
        let page = self.rules.pages.page(self.key(inbox), before, limit).await?;
        let items = page.items.iter().map(|item| {
            let shown = Shown { rank: item.rank, item: self.world.item(item.id), version: item.version };
            (shown, item.key(), item.author_no.0, item.direct)
        });
        Ok((items.collect(), page.next, page.position))
    }
}

#[async_trait]
impl Serves for Node {
    async fn changes(&self, inbox: Inbox, after: Position, limit: usize) -> Changes {
        self.try_changes(inbox, after, limit).await.expect("a read")
    }

    async fn page(&self, inbox: Inbox, before: Option<DisplayKey>, limit: usize) -> Page {
        self.try_page(inbox, before, limit).await.expect("a page")
    }
}
