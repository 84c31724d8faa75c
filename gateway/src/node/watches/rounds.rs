//! Reads the items that are due, tells their watchers what differs, and tells other nodes what has changed on this one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use feedgate_common::around::{Around, Comment};
use feedgate_common::error::Result;
use feedgate_common::feed::{Cards, cards_of};
use feedgate_common::{Archive, Doorbell, Item, ItemId, UserId, UserNo};
use serde::Serialize;
use tokio::time::{sleep, sleep_until};

use super::told::News;
use super::{State, Watcher, Watches, Work};
use crate::around::{CommentJson, Counts};
use crate::node::bounded::bounded;
use crate::node::paced::paced;
use crate::node::slot::Wake;

/// The least time between two reads, whatever items they are of.
const ROUND: Duration = Duration::from_millis(100);

/// The least time between two messages to other nodes.
const TELL: Duration = Duration::from_millis(50);

/// The most users in a block with the author of a comment. A comment of an author with more is told to nobody, only that
/// something was missed; who reads the comments sees those that are to be seen.
const BLOCKED_MAX: usize = 10_000;

/// How many watchers are woken in a second, if there are very many.
const WAKES_PER_SEC: u32 = 400_000;

/// What was read of all items that were due.
struct Found {
    items: Vec<Option<Arc<Item>>>,
    around: Vec<Around>,
    comments: HashMap<(ItemId, ItemId), Comment>,
    /// Who is in a block with the author of a comment; `None` if these are too many.
    hidden: HashMap<UserNo, Option<Vec<UserNo>>>,
    people: Cards,
}

/// Reads what is due for ever. It may be dropped at any time; what was being read then is found by a later look.
pub(crate) async fn keep_reading(watches: &Watches, archive: &dyn Archive) {
    loop {
        match watches.next_due() {
            None => watches.noted.notified().await,
            Some(due) => tokio::select! {
                () = watches.noted.notified() => {}
                () = sleep_until(watches.uptime.at(due)) => {}
            },
        }
        let due = watches.take_due(watches.uptime.elapsed_ms());
        if !due.is_empty() {
            read(watches, archive, due).await;
            sleep(ROUND).await;
        }
    }
}

/// Tells every node for ever what has changed by requests to this one. It may be dropped at any time; other nodes find
/// what was not told by their look.
pub(crate) async fn keep_telling(watches: &Watches, doorbell: &dyn Doorbell) {
    loop {
        watches.tell.notified().await;
        let stir = watches.take_untold();
        let told = async {
            doorbell.stirred(&stir).await;
            Ok(())
        };
        if let Err(error) = bounded(told).await {
            tracing::debug!(%error, "what has changed around items may not have been heard");
        }
        sleep(TELL).await;
    }
}

async fn read(watches: &Watches, archive: &dyn Archive, due: Vec<(ItemId, Work)>) {
    let found = match find(archive, &due).await {
        Ok(found) => found,
        Err(error) => {
            tracing::debug!(%error, "items that are watched could not be read; trying again");
            return watches.failed(due);
        }
    };
    let mut woken = vec![];
    for (nth, (id, work)) in due.into_iter().enumerate() {
        match &found.items[nth] {
            Some(item) => {
                let state = State { version: item.version, around: found.around[nth].clone() };
                woken.extend(settle(watches, id, &work, state, &found));
            }
            None => watches.end(id),
        }
    }
    let time = Duration::from_secs(woken.len() as u64) / WAKES_PER_SEC;
    paced(&woken, time, |watcher: &Arc<Watcher>| _ = watcher.slot.wake(Wake::AROUND)).await;
}

/// Reads all that is due: as many calls for one item as for all.
async fn find(archive: &dyn Archive, due: &[(ItemId, Work)]) -> Result<Found> {
    let ids: Vec<ItemId> = due.iter().map(|(item, _)| *item).collect();
    let items = bounded(archive.items(&ids)).await?;
    let around = bounded(archive.around(&ids, None)).await?;
    let asked = due.iter().flat_map(|(item, work)| work.comments.keys().map(|comment| (*item, *comment)));
    let asked: Vec<(ItemId, ItemId)> = asked.collect();
    let mut comments = HashMap::new();
    if !asked.is_empty() {
        let read = bounded(archive.comments_of(&asked)).await?;
        comments.extend(asked.into_iter().zip(read).filter_map(|(of, comment)| Some((of, comment?))));
    }
    let living = comments.values().filter(|comment: &&Comment| comment.body.is_some());
    let authors: BTreeMap<UserNo, &UserId> = living.map(|comment| (comment.author_no, &comment.author)).collect();
    let mut hidden = HashMap::new();
    if !authors.is_empty() {
        let numbers: Vec<UserNo> = authors.keys().copied().collect();
        let blocked = bounded(archive.blocked_with(&numbers, BLOCKED_MAX + 1)).await?;
        let few = |users: Vec<UserNo>| (users.len() <= BLOCKED_MAX).then_some(users);
        hidden.extend(numbers.into_iter().zip(blocked.into_iter().map(few)));
    }
    let people = bounded(cards_of(archive, authors)).await?;
    Ok(Found { items, around, comments, hidden, people })
}

/// The data of a push.
#[derive(Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum Data<'a> {
    /// So many reactions and comments there are, and the item has this version.
    Counts { counts: Counts<'a>, version: u32 },
    /// A comment is new, was edited, or was deleted and stands as a placeholder.
    Comment {
        comment: CommentJson<'a>,
        #[serde(skip_serializing_if = "Cards::is_empty")]
        people: Cards,
    },
    /// A comment stands no more.
    Uncomment { id: ItemId },
}

impl Data<'_> {
    fn json(&self) -> Vec<u8> {
        let mut json = serde_json::to_vec(self).expect("our own values serialize");
        crate::protocol::one_line::one_line(&mut json);
        json
    }
}

/// Keeps what the watchers of an item are to be told, and gives those that are to be woken for it.
fn settle(watches: &Watches, id: ItemId, work: &Work, state: State, found: &Found) -> Vec<Arc<Watcher>> {
    let mut all = watches.all.lock();
    let Some(entry) = all.items.get_mut(&id) else { return vec![] };
    let data = Data::Counts { counts: Counts(&state.around.counts, state.around.comments), version: state.version };
    let counts = data.json();
    let settled = entry.watched.settle(watches.uptime.elapsed_ms(), work, state);
    let mut told = entry.hub.told.lock();
    let before = told.last();
    if settled.missed {
        told.miss();
    }
    for comment in work.comments.keys() {
        match news(*comment, found.comments.get(&(id, *comment)), found) {
            Some(news) => told.comment(news),
            None => told.miss(),
        }
    }
    if settled.counts {
        told.counts(News::new(counts, vec![]));
    }
    if told.last() == before {
        return vec![];
    }
    drop(told);
    entry.watchers.values().cloned().collect()
}

/// What is told of a comment that has changed; `None` if it cannot be told.
fn news(id: ItemId, comment: Option<&Comment>, found: &Found) -> Option<News> {
    let Some(comment) = comment else { return Some(News::new(Data::Uncomment { id }.json(), vec![])) };
    let lives = comment.body.is_some();
    let hidden = if lives { found.hidden.get(&comment.author_no)?.clone()? } else { vec![] };
    let card = found.people.get_key_value(&comment.author).filter(|_| lives);
    let people = card.map(|(user, card)| (user.clone(), card.clone())).into_iter().collect();
    Some(News::new(Data::Comment { comment: comment.into(), people }.json(), hidden))
}
