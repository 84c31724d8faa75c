//! Reactions and comments of which users are told. The change and the notifications of it are one operation of the only
//! writer.
//!
//! Reactions that wait for the writer at the same time are one operation, so that a line of notifications which a
//! hundred of these reactions join changes once:
//!
//! ```text
//!   call ─▶ waiting calls ─▶ an operation that is due carries out all that wait ─▶ durable ─▶ each call is answered
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use compact_str::CompactString;
use feedgate_common::archive::{Names, Notifications, Write};
use feedgate_common::around::{CommentWrite, Commented, Reaction, Uncommented, Unreacted};
use feedgate_common::error::Result;
use feedgate_common::feed::{Mentioned, mentioned_by};
use feedgate_common::notify::lines::{Line, Member};
use feedgate_common::notify::{Known, Notified, Rules};
use feedgate_common::{ItemId, Millis, StoreError, UserId, UserNo};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::accept::{self, Done, Shared};
use super::tables::Items;
use super::{EmbeddedArchive, comments, lines, reactions};
use crate::request::{Durability, Request};
use crate::view::{Read, Tx};

/// The most calls that one operation carries out.
const CALLS_MAX: usize = 500;

/// What becomes of one reaction.
type Outcome = std::result::Result<bool, Unreacted>;

/// Reactions of one call, with the names of the users who react.
struct Call {
    asked: Vec<Reaction>,
    on: bool,
    names: HashMap<UserNo, UserId>,
    answer: oneshot::Sender<Notified<Outcome>>,
}

/// Calls that wait for an operation of the writer. Each call has queued an operation, which may find that an earlier
/// operation has carried out the call.
#[derive(Default)]
pub(super) struct Waiting(Mutex<Vec<Call>>);

impl Waiting {
    /// Takes the calls whose callers still wait.
    fn take(&self) -> Vec<Call> {
        let mut calls = self.0.lock();
        let some = calls.len().min(CALLS_MAX);
        calls.drain(..some).filter(|call| !call.answer.is_closed()).collect()
    }

    /// Drops the calls whose callers do not wait any more.
    fn forget_gone(&self) {
        self.0.lock().retain(|call| !call.answer.is_closed());
    }
}

#[async_trait]
impl Notifications for EmbeddedArchive {
    fn notify_by(&self, rules: Rules) {
        self.rules.store(Arc::new(rules));
    }

    async fn react_and_notify(&self, asked: &[Reaction], on: bool) -> Result<Notified<Outcome>> {
        let names = self.names_of(asked.iter().map(|reaction| reaction.user)).await?;
        let (answer, mut answered) = oneshot::channel();
        self.waiting.0.lock().push(Call { asked: asked.to_vec(), on, names, answer });
        let (known, waiting) = (self.reactions.clone(), self.waiting.clone());
        let op = move |tx: &mut Tx<'_>, shared: Shared<'_>| {
            let calls = waiting.take();
            if calls.iter().any(|call| call.on) {
                known.any.set();
                known.sweep(tx, false)?;
            }
            react(tx, shared, calls)
        };
        let then = |done: &Done<Carried>| done.answers.iter().for_each(Carried::answer);
        let queued = self.telling(op, then).await;
        // Whatever became of the operation, an earlier one may have answered.
        if let Ok(notified) = answered.try_recv() {
            return Ok(notified);
        }
        drop(answered);
        self.waiting.forget_gone();
        Err(queued.err().unwrap_or_else(|| StoreError::unavailable("a write failed; try again")))
    }

    async fn comment_and_notify(
        &self,
        asked: Vec<CommentWrite>,
        now: Millis,
    ) -> Result<Notified<std::result::Result<Commented, Uncommented>>> {
        let tells = self.rules.load().mention.is_some();
        let Mentioned { numbers, authors } =
            if tells { mentioned_by(self, &asked).await? } else { Mentioned::default() };
        let mut names = self.names_of(asked.iter().filter_map(CommentWrite::author)).await?;
        names.extend(authors);
        let known = self.comments.clone();
        let op = move |tx: &mut Tx<'_>, shared: Shared<'_>| {
            known.any.set();
            known.sweep(tx, false)?;
            let (mut answers, mut writes) = (vec![], vec![]);
            for write in &asked {
                let (answer, rows) = comments::apply(tx, write, now)?;
                if let Ok(done) = &answer {
                    let (number, name) = (|user: &UserId| numbers.get(user).copied(), |no| names.get(&no).cloned());
                    let known = Known { author_of: &|_| None, number: &number, name: &name };
                    writes.extend(shared.rules.of_comment(write, done, &rows, known));
                }
                answers.push(answer);
            }
            accept::follow(tx, shared, answers, writes, now)
        };
        let Done { answers, told, .. } = self.telling(op, |_| ()).await?;
        Ok(Notified { answers, told: readers(&told) })
    }

    async fn leave_lines(&self, keys: Vec<CompactString>, now: Millis) -> Result<Vec<UserNo>> {
        let op = move |tx: &mut Tx<'_>, shared: Shared<'_>| {
            let writes = keys.into_iter().map(|key| Write::Withdraw { key, even_seen: true }).collect();
            accept::follow(tx, shared, Vec::<()>::new(), writes, now)
        };
        Ok(readers(&self.telling(op, |_| ()).await?.told))
    }

    async fn line_members(&self, after: Option<(ItemId, u64)>, limit: usize) -> Result<Vec<(ItemId, Line, Member)>> {
        self.db.read(move |view| lines::members(view, after, limit)).await
    }
}

fn readers(told: &[(usize, UserNo)]) -> Vec<UserNo> {
    told.iter().map(|(_, reader)| *reader).collect()
}

/// A call that was carried out. Its caller is answered once that is durable.
struct Carried {
    caller: Mutex<Option<oneshot::Sender<Notified<Outcome>>>>,
    done: Notified<Outcome>,
}

impl Carried {
    fn answer(&self) {
        if let Some(caller) = self.caller.lock().take() {
            // Sending fails if the caller has gone away.
            _ = caller.send(self.done.clone());
        }
    }
}

/// Carries out the reactions of these calls, and what they tell.
fn react(tx: &mut Tx<'_>, shared: Shared<'_>, calls: Vec<Call>) -> Result<Done<Carried>> {
    let now = calls.iter().flat_map(|call| &call.asked).map(|reaction| reaction.at).max().unwrap_or_default();
    let (mut outcomes, mut writes, mut of_write) = (vec![], vec![], vec![]);
    for (nth, call) in calls.iter().enumerate() {
        let mut answers = vec![];
        for reaction in &call.asked {
            let change = if call.on { reactions::give } else { reactions::take_back };
            let changed = change(tx, reaction)?;
            if changed == Ok(true)
                && shared.rules.reaction.is_some()
                && let (Some(row), Some(name)) = (tx.get::<Items>(&reaction.item)?, call.names.get(&reaction.user))
                && let Some(write) = shared.rules.of_reaction(reaction, name, row.author, call.on)
            {
                writes.push(write);
                of_write.push(nth);
            }
            answers.push(changed);
        }
        outcomes.push(Notified { answers, told: vec![] });
    }
    let Done { answers: mut outcomes, told, withdrawn } = accept::follow(tx, shared, outcomes, writes, now)?;
    for (write, reader) in told {
        outcomes[of_write[write]].told.push(reader);
    }
    let carried =
        calls.into_iter().zip(outcomes).map(|(call, done)| Carried { caller: Mutex::new(Some(call.answer)), done });
    Ok(Done { answers: carried.collect(), told: vec![], withdrawn })
}

impl EmbeddedArchive {
    /// The names of these users; no names if the rules tell nobody of anything.
    async fn names_of(&self, users: impl Iterator<Item = UserNo>) -> Result<HashMap<UserNo, UserId>> {
        if self.rules.load().is_empty() {
            return Ok(HashMap::new());
        }
        let users: Vec<UserNo> = users.collect();
        Ok(users.iter().copied().zip(self.user_ids(&users).await?).collect())
    }

    /// A function to run once the delete of these notifications is visible: it drops them from memory.
    pub(super) fn withdrawn(&self) -> impl Fn(&[ItemId]) + Send + 'static {
        let (hot, around) = (self.hot.clone(), [self.reactions.clone(), self.comments.clone()]);
        move |items| {
            if !items.is_empty() {
                hot.forget(items);
                around.iter().for_each(|rows| rows.ended());
            }
        }
    }

    /// Carries out an operation that tells users something, and runs `then` once it is durable.
    async fn telling<T: Send + 'static>(
        &self,
        op: impl FnOnce(&mut Tx<'_>, Shared<'_>) -> Result<Done<T>> + Send + 'static,
        then: impl FnOnce(&Done<T>) + Send + 'static,
    ) -> Result<Done<T>> {
        let (users, log, setup, rules) = (self.users.clone(), self.log.clone(), self.setup, self.rules.load_full());
        let (withdrawn, told, search) = (self.withdrawn(), self.log.clone(), self.any_search.clone());
        let request = Request::new(Durability::Synced, move |tx| {
            op(tx, Shared { users: &users, log: &log, setup, rules: &rules, search: &search })
        });
        let then = move |done: &Done<T>| {
            withdrawn(&done.withdrawn);
            told.tell();
            then(done);
        };
        self.db.submit(request.then(then)).await
    }
}
