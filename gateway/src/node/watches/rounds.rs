//! Reads the items that are due, tells their watchers what differs, and tells other nodes what has changed on this one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use feedgate_common::around::{Around, Comment, Onlooker, Visible};
use feedgate_common::error::Result;
use feedgate_common::feed::{Cards, Feeds, cards_of};
use feedgate_common::{Archive, Doorbell, Item, ItemId, UserId, UserNo};
use serde::Serialize;
use tokio::time::{sleep, sleep_until};

use super::told::{News, Readers};
use super::{State, Watcher, Watches, Work};
use crate::around::{CommentJson, Counts};
use crate::node::bounded::bounded;
use crate::node::paced::paced;
use crate::node::slot::Wake;

/// The least time between two calls that read, whatever items they read.
const ROUND: Duration = Duration::from_millis(100);

/// The least time between two messages to other nodes.
const TELL: Duration = Duration::from_millis(50);

/// The most users in a block with the author of a comment, and, if only mutual friends see comments, the most mutual
/// friends of the author. If the author has more, the watchers are told only that something was missed; who reads the
/// comments then sees those that may be seen.
const NAMED_MAX: usize = 10_000;

/// How many watchers are woken in a second, if there are very many.
const WAKES_PER_SEC: u32 = 400_000;

/// What was read of all items that were due.
struct Found {
    items: Vec<Option<Arc<Item>>>,
    around: Vec<Around>,
    comments: HashMap<(ItemId, ItemId), Comment>,
    /// The ties between the author of each comment and other users; `None` if there are too many.
    ties: HashMap<UserNo, Option<Ties>>,
    people: Cards,
    /// Whose comments and reactions users saw when this was read.
    visible: Visible,
}

/// The users who matter for who may see a comment of one author.
#[derive(Clone)]
struct Ties {
    /// The users with whom the author is in a block.
    blocked: Vec<UserNo>,
    /// The users who are mutual with the author, if only these see the comment.
    mutual: Option<Vec<UserNo>>,
}

/// Reads what is due for ever. May be dropped at any time; a later look finds what was being read then.
pub(crate) async fn keep_reading(watches: &Watches, feeds: &Feeds) {
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
            read(watches, feeds, due).await;
            sleep(ROUND).await;
        }
    }
}

/// Tells every node for ever what has changed by requests to this node. May be dropped at any time; other nodes find by
/// their looks what they were not told.
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

async fn read(watches: &Watches, feeds: &Feeds, due: Vec<(ItemId, Work)>) {
    let found = match find(&**feeds.archive(), &due, feeds.visible()).await {
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
                woken.extend(settle(watches, (id, item.author_no), &work, state, &found));
            }
            None => watches.end(id),
        }
    }
    let time = Duration::from_secs(woken.len() as u64) / WAKES_PER_SEC;
    paced(&woken, time, |watcher: &Arc<Watcher>| _ = watcher.slot.wake(Wake::AROUND)).await;
}

/// Reads all that is due. The number of calls does not depend on the number of items.
async fn find(archive: &dyn Archive, due: &[(ItemId, Work)], visible: Visible) -> Result<Found> {
    let ids: Vec<ItemId> = due.iter().map(|(item, _)| *item).collect();
    let items = bounded(archive.items(&ids)).await?;
    let around = bounded(archive.around(&ids, Onlooker::BACKEND)).await?;
    let asked = due.iter().flat_map(|(item, work)| work.comments.keys().map(|comment| (*item, *comment)));
    let asked: Vec<(ItemId, ItemId)> = asked.collect();
    let mut comments = HashMap::new();
    if !asked.is_empty() {
        let read = bounded(archive.comments_of(&asked)).await?;
        comments.extend(asked.into_iter().zip(read).filter_map(|(of, comment)| Some((of, comment?))));
    }
    let living = comments.values().filter(|comment: &&Comment| comment.body.is_some());
    let authors: BTreeMap<UserNo, &UserId> = living.map(|comment| (comment.author_no, &comment.author)).collect();
    let ties = ties(archive, authors.keys().copied().collect(), visible).await?;
    let people = bounded(cards_of(archive, authors)).await?;
    Ok(Found { items, around, comments, ties, people, visible })
}

/// The ties of each of these authors: one read, and one more if only mutual friends see comments.
async fn ties(archive: &dyn Archive, authors: Vec<UserNo>, visible: Visible) -> Result<HashMap<UserNo, Option<Ties>>> {
    if authors.is_empty() {
        return Ok(HashMap::new());
    }
    let blocked = bounded(archive.blocked_with(&authors, NAMED_MAX + 1)).await?;
    let mutual = match visible {
        Visible::All => vec![None; authors.len()],
        Visible::Mutual => {
            let mutual = bounded(archive.mutual_with(&authors, NAMED_MAX + 1)).await?;
            mutual.into_iter().map(Some).collect()
        }
    };
    let few = |(blocked, mutual): (Vec<UserNo>, Option<Vec<UserNo>>)| {
        let most = blocked.len().max(mutual.as_ref().map_or(0, Vec::len));
        (most <= NAMED_MAX).then_some(Ties { blocked, mutual })
    };
    Ok(authors.into_iter().zip(blocked.into_iter().zip(mutual).map(few)).collect())
}

/// The data of a push.
#[derive(Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum Data<'a> {
    /// The numbers of reactions, comments and reposts, and the version of the item.
    Counts { counts: Counts<'a>, version: u32 },
    /// The counts may have changed, and each user has other counts: the device must read the item, which has this
    /// version.
    Changed { version: u32 },
    /// A comment is new, was edited, or was deleted and stands as a placeholder.
    Comment {
        comment: CommentJson<'a>,
        #[serde(skip_serializing_if = "Cards::is_empty")]
        people: Cards,
    },
    /// A comment is gone, also as a placeholder.
    Uncomment { id: ItemId },
}

impl Data<'_> {
    fn json(&self) -> Vec<u8> {
        let mut json = serde_json::to_vec(self).expect("our own values serialize");
        crate::protocol::one_line::one_line(&mut json);
        json
    }
}

/// Keeps the news for the watchers of an item, and gives the watchers to be woken for it.
fn settle(
    watches: &Watches,
    (id, owner): (ItemId, UserNo),
    work: &Work,
    state: State,
    found: &Found,
) -> Vec<Arc<Watcher>> {
    // All JSON is made before the lock is taken: it is the lock of all watches, and comments may be long.
    let (counts, changed) = match found.visible {
        Visible::All => (Data::Counts { counts: Counts(&state.around), version: state.version }, false),
        // Each user has other counts, and may see a change that the counts of all do not show.
        Visible::Mutual => (Data::Changed { version: state.version }, work.other),
    };
    let counts = counts.json();
    let comments: Vec<Option<News>> = work.comments.keys().map(|comment| news((id, *comment), owner, found)).collect();
    let mut all = watches.all.lock();
    let now = watches.uptime.elapsed_ms();
    let Some((settled, entry)) = all.change(id, |watched| watched.settle(now, work, state)) else { return vec![] };
    let mut told = entry.hub.told.lock();
    let before = told.last();
    if settled.missed {
        told.miss();
    }
    for news in comments {
        match news {
            Some(news) => told.comment(news),
            None => told.miss(),
        }
    }
    if settled.counts || changed {
        told.counts(News::new(counts, Readers::ALL));
    }
    if told.last() == before {
        return vec![];
    }
    drop(told);
    entry.watchers.values().cloned().collect()
}

/// The news of a comment that has changed; `None` if it cannot be told. `owner` is the author of the item.
fn news((item, id): (ItemId, ItemId), owner: UserNo, found: &Found) -> Option<News> {
    let Some(comment) = found.comments.get(&(item, id)) else {
        return Some(News::new(Data::Uncomment { id }.json(), Readers::ALL));
    };
    let lives = comment.body.is_some();
    let readers = if lives {
        readers(comment.author_no, owner, found.ties.get(&comment.author_no)?.as_ref()?)
    } else {
        Readers::ALL
    };
    let card = found.people.get_key_value(&comment.author).filter(|_| lives);
    let people = card.map(|(user, card)| (user.clone(), card.clone())).into_iter().collect();
    Some(News::new(Data::Comment { comment: comment.into(), people }.json(), readers))
}

/// The users who see a comment that lives, as [`shows_comment`](feedgate_common::around::shows_comment) says. The
/// comment was read for no user in particular, so this names users instead of asking about each.
fn readers(author: UserNo, owner: UserNo, ties: &Ties) -> Readers {
    let Ties { blocked, mutual } = ties;
    match mutual {
        Some(mutual) if author != owner => {
            let near = mutual.iter().chain([&owner]).filter(|user| !blocked.contains(user));
            Readers::only(near.chain([&author]).copied().collect())
        }
        _ => Readers::all_but(blocked.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_a_comment_is_told_to_who_sees_it() {
        let [ann, bob, cid, dan] = [1, 2, 3, 4].map(UserNo);
        let all = Ties { blocked: vec![dan], mutual: None };
        assert_eq!(readers(bob, ann, &all), Readers::AllBut(vec![dan]));
        let friends = Ties { mutual: Some(vec![cid, dan]), ..all };
        assert_eq!(
            readers(bob, ann, &friends),
            Readers::Only(vec![ann, bob, cid]),
            "its author, that of the item, friends"
        );
        assert_eq!(readers(ann, ann, &friends), Readers::AllBut(vec![dan]), "all see what the author of the item says");
        let behind = Ties { blocked: vec![ann], ..friends };
        assert_eq!(
            readers(bob, ann, &behind),
            Readers::Only(vec![bob, cid, dan]),
            "a block hides it from that author too"
        );
    }
}
