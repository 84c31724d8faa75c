//! Carries out reactions: calls that wait at the same time are one transaction.
//!
//! A hot item gets thousands of likes a second. If each like were a transaction of its own, each would wait for the
//! disk, and all of them for the rows that count likes. If the author is told of likes, they would also wait for the
//! one row that guards what is addressed to a user, and keep all connections of this process busy. So a few groups
//! share the work.
//!
//! ```text
//!   nobody is told    one statement that gives, or takes back
//!   else              BEGIN ─▶ the counters are locked, if there are several runs
//!                           ─▶ a statement for each run of reactions that are given, or taken back
//!                           ─▶ what all of them tell ─▶ COMMIT
//! ```
//!
//! Invariants: calls are carried out in the order in which they came; a call is in one transaction as a whole. If a
//! group fails, all its calls fail, and nothing is written.

use std::sync::Arc;

use feedgate_common::archive::Write;
use feedgate_common::around::{Reaction, Unreacted};
use feedgate_common::error::{Result, StoreError};
use feedgate_common::notify::{Notified, Rules};
use feedgate_common::{Millis, UserId, UserNo};
use sqlx::PgConnection;

use crate::fault::retried;
use crate::groups::{self, Groups, UpTo, Weight};
use crate::pool::{self, Pool, work};
use crate::reactions;
use crate::write::{self, Settings};

/// How many groups are under way at once.
const GROUPS: usize = 4;

/// A group takes no further call once it has this many reactions.
const GROUP_MAX: usize = 500;

/// How many calls may wait for a group; further calls are refused.
const CALLS_MAX: usize = 4096;

/// After how many ms a caller whose call was refused is told to try again.
const RETRY_AFTER_MS: u32 = 100;

/// What becomes of one reaction.
type Outcome = std::result::Result<bool, Unreacted>;

/// By which rules the authors of items are told, and the name of the user of each reaction.
pub(crate) struct Telling {
    pub(crate) rules: Arc<Rules>,
    pub(crate) names: Vec<UserId>,
}

/// Reactions of one call; nobody is told of them without `telling`.
struct Asked {
    reactions: Vec<Reaction>,
    on: bool,
    telling: Option<Telling>,
}

type Call = groups::Call<Asked, Notified<Outcome>>;

impl Weight for Asked {
    fn weight(&self) -> usize {
        self.reactions.len()
    }
}

/// The calls that become one transaction.
type Group = UpTo<GROUP_MAX, Asked, Notified<Outcome>>;

/// The calls of this process, and the tasks that carry them out.
pub(crate) struct Reacting(Groups<Asked, Notified<Outcome>>);

impl Reacting {
    /// Starts the tasks on the current runtime.
    pub(crate) fn start(pool: Arc<Pool>, settings: Settings) -> Self {
        Self(Groups::start(GROUPS, CALLS_MAX, move |group: Group| {
            let pool = pool.clone();
            async move { carry_out(&pool, group.calls, settings).await }
        }))
    }

    /// Gives reactions (`on`) or takes them back, and tells the authors of their items.
    pub(crate) async fn react(
        &self,
        reactions: Vec<Reaction>,
        on: bool,
        telling: Option<Telling>,
    ) -> Result<Notified<Outcome>> {
        if self.0.is_full() {
            return Err(StoreError::Overloaded { retry_after_ms: RETRY_AFTER_MS });
        }
        // The call waits to the end, so that its caller, which tells the workers, knows what was committed.
        self.0.ask_to_the_end(Asked { reactions, on, telling }).await.unwrap_or_else(|| Err(pool::no_reply()))
    }
}

async fn carry_out(pool: &Pool, calls: Vec<Call>, settings: Settings) {
    let asked: Vec<&Asked> = calls.iter().map(|call| &call.asked).collect();
    let asked = &asked[..];
    let done = pool.write(work!(|connection| all(connection, asked, settings))).await;
    match done {
        Ok(answers) => calls.into_iter().zip(answers).for_each(|(call, answer)| call.answer(Ok(answer))),
        Err(error) => calls.into_iter().for_each(|call| call.answer(Err(error.clone()))),
    }
}

/// Carries out these calls in one transaction, and gives the answer to each call.
async fn all(
    connection: &mut PgConnection,
    asked: &[&Asked],
    settings: Settings,
) -> sqlx::Result<Vec<Notified<Outcome>>> {
    if let Some(first) = asked.first()
        && asked.iter().all(|call| call.telling.is_none() && call.on == first.on)
    {
        let mut done = reactions::change(connection, &reactions_of(asked), first.on).await?.into_iter();
        let of_call = |call: &&Asked| done.by_ref().take(call.reactions.len()).collect();
        return Ok(asked.iter().map(of_call).map(|answers| Notified { answers, told: vec![] }).collect());
    }
    retried!(connection, attempt(connection, asked, settings))
}

async fn attempt(
    connection: &mut PgConnection,
    asked: &[&Asked],
    settings: Settings,
) -> sqlx::Result<Vec<Notified<Outcome>>> {
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    // Each run has a statement, and each statement locks the counters that it changes.
    if asked.windows(2).any(|pair| pair[0].on != pair[1].on) {
        let calls = asked.iter().map(|call| call.reactions.iter().map(|reaction| (reaction, call.on)));
        let all: Vec<(&Reaction, bool)> = calls.flatten().collect();
        reactions::lock_counters(connection, &all).await?;
    }
    // For each call its outcomes, and the writes that tell users of them.
    let mut outcomes: Vec<(Vec<Outcome>, Vec<Write>)> = Vec::with_capacity(asked.len());
    for run in asked.chunk_by(|one, next| one.on == next.on) {
        outcomes.extend(carry_out_run(connection, run).await?);
    }
    let (answers, mut writes): (Vec<_>, Vec<_>) = outcomes.into_iter().unzip();
    let counts: Vec<usize> = writes.iter().map(Vec::len).collect();
    let writes: Vec<Write> = writes.iter_mut().flat_map(std::mem::take).collect();
    let all = asked.iter().flat_map(|call| &call.reactions);
    let now: Millis = all.map(|reaction| reaction.at).max().unwrap_or_default();
    let mut told = write::follow(connection, writes, now, settings).await?.into_iter();
    sqlx::query("COMMIT").execute(connection).await?;
    let of_call = |(answers, count)| Notified { answers, told: told.by_ref().take(count).flatten().collect() };
    Ok(answers.into_iter().zip(counts).map(of_call).collect())
}

/// Carries out calls that all give, or all take back.
async fn carry_out_run(connection: &mut PgConnection, run: &[&Asked]) -> sqlx::Result<Vec<(Vec<Outcome>, Vec<Write>)>> {
    let Some(on) = run.first().map(|call| call.on) else { return Ok(vec![]) };
    let mut done = reactions::carry_out(connection, &reactions_of(run), on).await?.into_iter();
    let of_call = |call: &&Asked| {
        let (outcomes, authors): (Vec<Outcome>, Vec<Option<UserNo>>) = done.by_ref().take(call.reactions.len()).unzip();
        let mut writes = vec![];
        if let Some(Telling { rules, names }) = &call.telling {
            let changed = |(outcome, author): (&Outcome, Option<UserNo>)| author.filter(|_| *outcome == Ok(true));
            let authors = outcomes.iter().zip(authors).map(changed);
            for ((reaction, name), author) in call.reactions.iter().zip(names).zip(authors) {
                writes.extend(author.and_then(|author| rules.of_reaction(reaction, name, author, on)));
            }
        }
        (outcomes, writes)
    };
    Ok(run.iter().map(of_call).collect())
}

fn reactions_of(calls: &[&Asked]) -> Vec<Reaction> {
    calls.iter().flat_map(|call| &call.reactions).cloned().collect()
}
