//! Carries out the erasure of a user, step by step: ordinary writes remove whatever they can, so that devices of
//! readers drop it and counts stay exact. [`crate::erase`] has the rules.
//!
//! Nothing here is kept between two steps. A process that dies between any two lines leaves a state from which any
//! other process goes on.

use std::sync::Arc;

use crate::archive::{COMMIT_READERS_MAX, Follow, ListCursor, READERS_MAX, Remains, Write};
use crate::around::{CommentWrite, Reaction};
use crate::erase::{Erasure, Mark, Stage, TRACES_MAX, Trace, Traces};
use crate::error::Result;
use crate::feed::jobs_of;
use crate::graph::Shield;
use crate::jobs::Job;
use crate::mentions::MENTIONS_MAX;
use crate::{Archive, FeedId, InboxKey, Inboxes, Item, ItemId, Millis, Op, Record, UserId, UserNo, failpoint};

/// How many records of an outbox one page looks at.
const RECORDS: usize = 500;

/// How many rows of a kind one step of the last stage removes.
const ROWS: usize = 500;

/// Carries out erasures over an Archive and its inboxes.
pub struct Eraser {
    archive: Arc<dyn Archive>,
    inboxes: Arc<dyn Inboxes>,
}

impl Eraser {
    /// Makes an eraser over the Archive that keeps the erasures, and the inboxes that were built from that Archive.
    pub fn new(archive: Arc<dyn Archive>, inboxes: Arc<dyn Inboxes>) -> Self {
        Self { archive, inboxes }
    }

    /// The erasures with a greater number than `after` that are under way, oldest first, at most `limit`. Fails as the
    /// Archive does.
    pub async fn open(&self, after: u64, limit: usize) -> Result<Vec<Erasure>> {
        self.archive.open_erasures(after, limit).await
    }

    /// Takes the next step of an erasure at `now` (Unix ms), and answers what its writes leave to be done. If another
    /// worker was faster, this call changes nothing. A failed or dropped step is taken again.
    pub async fn step(&self, erasure: &Erasure, now: Millis) -> Result<Vec<Job>> {
        let Erasure { id, user, state, .. } = erasure;
        if state.is_finished() {
            return Ok(vec![]);
        }
        if state.upto.is_some() {
            let (jobs, done) = self.carry_out(erasure, now).await?;
            failpoint::hit("erasure-carried-out");
            if done {
                self.archive.move_erasure(*id, state, &state.carried_out(now)).await?;
            }
            return Ok(jobs);
        }
        let planned = match state.stage {
            Stage::Rest => {
                let (rest, last) = self.archive.rest(*user, record(state.after.as_ref()).unwrap_or(0), ROWS).await?;
                state.planned_rest(&rest, last)
            }
            stage => {
                let page = traces(&*self.archive, *user, stage, state.after.as_ref()).await?;
                let planned = state.planned(&page);
                // A page without traces is carried out already.
                if page.found.is_empty() { planned.carried_out(now) } else { planned }
            }
        };
        self.archive.move_erasure(*id, state, &planned).await?;
        failpoint::hit("erasure-planned");
        Ok(vec![])
    }

    /// Removes the planned traces. Answers the jobs that the removal leaves to be done, and whether all planned traces
    /// are removed.
    async fn carry_out(&self, erasure: &Erasure, now: Millis) -> Result<(Vec<Job>, bool)> {
        let Erasure { user, state, .. } = erasure;
        if state.stage == Stage::Rest {
            if let Some(last) = record(state.upto.as_ref()) {
                self.archive.forget_addressed(*user, last).await?;
                return Ok((vec![], true));
            }
            if self.archive.forget_rest(*user, ROWS).await? {
                return Ok((vec![], false));
            }
            for feed in self.archive.feeds().await? {
                self.discard(*user, feed).await?;
            }
            return Ok((vec![], true));
        }
        let page = traces(&*self.archive, *user, state.stage, state.after.as_ref()).await?;
        let planned = page.found.into_iter().filter(|(mark, _)| state.is_planned(mark)).map(|(_, trace)| trace);
        Ok((self.remove(*user, state.stage, planned.collect(), now).await?, true))
    }

    async fn discard(&self, reader: UserNo, feed: FeedId) -> Result<()> {
        self.inboxes.discard(InboxKey { reader, feed }).await
    }

    async fn remove(&self, user: UserNo, stage: Stage, traces: Vec<Trace>, now: Millis) -> Result<Vec<Job>> {
        let name = &self.name(user).await?;
        let (mut writes, mut comments, mut reactions, mut remains) = (vec![], vec![], vec![], Remains::default());
        let mut members = vec![];
        for trace in traces {
            match trace {
                Trace::Item { id, lives, .. } => {
                    if lives {
                        writes.push(Write::Delete { item: id, if_version: None });
                    }
                    remains.items.push(id);
                }
                Trace::Member(key) => members.push(key),
                // A notification is for the user alone, so the item itself is deleted.
                Trace::Notification(item) => writes.push(Write::Delete { item, if_version: None }),
                Trace::ForeignId(key) => remains.foreign_ids.push(key),
                Trace::Comment { item, id, lives } => {
                    if lives {
                        comments.push(CommentWrite::Delete { item, id, by: None, if_version: None });
                    }
                    remains.comments.push(id);
                }
                Trace::Reactions { item, kinds } => {
                    reactions.extend(kinds.into_iter().map(|(kind, at)| Reaction { item, kind, user, at }));
                }
                Trace::OwnEdge => writes.push(Write::OwnPosts { author: name.clone(), on: false }),
                Trace::Private => writes.push(Write::Private { author: name.clone(), private: false }),
                Trace::Follow(author) | Trace::Asked(author) => {
                    writes.push(Write::Unfollow { reader: name.clone(), author: self.name(author).await? });
                }
                Trace::Follower(reader) | Trace::Asker(reader) => {
                    writes.push(Write::Unfollow { reader: self.name(reader).await?, author: name.clone() });
                }
                Trace::Shield(shield, other) => {
                    let other = self.name(other).await?;
                    writes.push(Write::Shield { user: name.clone(), other, shield, up: false });
                }
                Trace::Audience(item) => remains.audiences.push(item),
                Trace::OwnAudience(item) => remains.own_audiences.push(item),
                Trace::Shielded(shield, owner) => {
                    let owner = self.name(owner).await?;
                    writes.push(Write::Shield { user: owner, other: name.clone(), shield, up: false });
                }
            }
        }
        // A write is refused only if its trace is gone already.
        let mut written = vec![];
        for commit in writes.chunks(in_a_commit(stage)) {
            written.extend(self.archive.write(commit.to_vec(), now).await?);
        }
        if !comments.is_empty() {
            self.archive.comment(comments, now).await?;
        }
        if !reactions.is_empty() {
            self.archive.unreact(&reactions).await?;
        }
        if remains != Remains::default() {
            self.archive.scrub(user, &remains).await?;
        }
        let told = if members.is_empty() { vec![] } else { self.archive.leave_lines(members, now).await? };
        let told = told.into_iter().map(|reader| Job::Direct { reader });
        Ok(jobs_of(&written).into_iter().chain(told).collect())
    }

    async fn name(&self, user: UserNo) -> Result<UserId> {
        Ok(self.archive.user_ids(&[user]).await?.remove(0))
    }
}

/// How many writes of a stage go into one commit, which addresses a bounded number of readers: a delete of an item is
/// told to those whom the item was addressed to, and takes back what those were told whom it mentions.
fn in_a_commit(stage: Stage) -> usize {
    let addressed = if stage == Stage::Direct { READERS_MAX } else { 0 };
    COMMIT_READERS_MAX / (addressed + MENTIONS_MAX)
}

/// The record that is addressed to the user at which a page of [`Stage::Rest`] ends; `None` if it is the last page.
fn record(mark: Option<&Mark>) -> Option<u64> {
    mark.and_then(Mark::numbers).map(|[seq, ..]| seq)
}

/// A part of what is known of a user, strictly behind `after`. Nothing of [`Stage::Rest`]. Fails as the Archive does.
pub async fn traces(archive: &dyn Archive, user: UserNo, stage: Stage, after: Option<&Mark>) -> Result<Traces> {
    let numbers = after.and_then(Mark::numbers);
    let first = numbers.map(|[number, ..]| number);
    let cursor = numbers.map(|[listed, tie, _]| ListCursor {
        listed: u64::MAX - listed,
        tie: u32::try_from(u64::MAX - tie).unwrap_or(u32::MAX),
    });
    let shields = async |shield| {
        let up = archive.shielded(user, shield, cursor, TRACES_MAX).await?;
        listed(archive, &up, |other| Trace::Shield(shield, other)).await
    };
    match stage {
        Stage::Items => items(archive, user, first.unwrap_or(0)).await,
        Stage::Following => following(archive, user, first).await,
        Stage::Followers => {
            let followers = archive.followers(user, cursor, TRACES_MAX).await?;
            listed(archive, &followers, Trace::Follower).await
        }
        Stage::Requests => requests(archive, user, cursor).await,
        Stage::Muted => shields(Shield::Mute).await,
        Stage::Hidden => shields(Shield::Hide).await,
        Stage::Blocked => shields(Shield::Block).await,
        Stage::Rest => Ok(Traces::default()),
        Stage::Lines
        | Stage::Direct
        | Stage::Notifications
        | Stage::ForeignIds
        | Stage::Comments
        | Stage::Reactions
        | Stage::Shielded
        | Stage::Audiences => archive.traces(user, stage, after).await,
    }
}

async fn items(archive: &dyn Archive, user: UserNo, after: u64) -> Result<Traces> {
    let outbox = archive.outbox(user, after, RECORDS).await?;
    let adds: Vec<_> = outbox.records.iter().filter(|record| record.op == Op::Add).collect();
    let ids: Vec<ItemId> = adds.iter().map(|record| record.key.item).collect();
    let living = archive.items(&ids).await?;
    let mark = |seq| Mark::of([seq, 0, 0]);
    // An item that was moved has an add for each rank that it had, and lives at the newest.
    let trace = |(add, item): (&&Record, Option<Arc<Item>>)| {
        let lives = item.is_some_and(|item| item.outbox_seq == add.seq);
        (mark(add.seq), Trace::Item { id: add.key.item, lives, direct: false })
    };
    let found = adds.iter().zip(living).map(trace).collect();
    let last = outbox.records.last().filter(|_| outbox.records.len() == RECORDS);
    Ok(Traces { found, next: last.map(|record| mark(record.seq)) })
}

async fn following(archive: &dyn Archive, user: UserNo, first: Option<u64>) -> Result<Traces> {
    let after = first.map(|number| UserNo(u32::try_from(number).unwrap_or(u32::MAX)));
    let held = archive.held(user, after, TRACES_MAX).await?;
    let mark = |author: UserNo| Mark::of([author.0.into(), 0, 0]);
    let next = held.last().filter(|_| held.len() == TRACES_MAX).map(|edge| mark(edge.author));
    let found = held.iter().filter_map(|edge| {
        let trace = match edge.author {
            author if edge.asked => Trace::Asked(author),
            author if edge.follows && author != user => Trace::Follow(author),
            _ if edge.follows => Trace::OwnEdge,
            _ => return None,
        };
        Some((mark(edge.author), trace))
    });
    Ok(Traces { found: found.collect(), next })
}

/// The requests to follow the user, and behind them that the user is private.
async fn requests(archive: &dyn Archive, user: UserNo, cursor: Option<ListCursor>) -> Result<Traces> {
    let asking = archive.requests(user, cursor, TRACES_MAX).await?;
    let mut traces = listed(archive, &asking, Trace::Asker).await?;
    if traces.next.is_none() && archive.author(user).await?.private {
        traces.found.push((Mark::of([u64::MAX, 0, 0]), Trace::Private));
    }
    Ok(traces)
}

async fn listed(archive: &dyn Archive, listed: &[Follow], trace: impl Fn(UserNo) -> Trace) -> Result<Traces> {
    // Lists go from the newest to the oldest, so their marks count down.
    let mark =
        |Follow { cursor, .. }: &Follow| Mark::of([u64::MAX - cursor.listed, u64::MAX - u64::from(cursor.tie), 0]);
    let names: Vec<UserId> = listed.iter().map(|line| line.user.clone()).collect();
    let numbers = archive.user_nos(&names).await?;
    let lines = listed.iter().zip(numbers);
    let found = lines.filter_map(|(line, number)| Some((mark(line), trace(number?)))).collect();
    Ok(Traces { found, next: listed.last().filter(|_| listed.len() == TRACES_MAX).map(mark) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_of_deletes_addresses_as_many_readers_as_a_commit_may() {
        for (stage, readers) in [(Stage::Direct, READERS_MAX + MENTIONS_MAX), (Stage::Items, MENTIONS_MAX)] {
            let deletes = in_a_commit(stage);
            assert!(deletes * readers <= COMMIT_READERS_MAX && (deletes + 1) * readers > COMMIT_READERS_MAX);
        }
    }
}
