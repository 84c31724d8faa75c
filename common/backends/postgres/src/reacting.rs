//! Carries out reactions: calls that wait at the same time are one transaction.
//!
//! A hot item gets thousands of likes a second. If each like were a transaction of its own, each would wait for the
//! disk, and all of them for the rows that count likes. If the author is told of likes, they would also wait for the
//! one row that guards what is addressed to a user, and keep all connections of this process busy. So a few groups
//! share the work.
//!
//! ```text
//!   give ──────▶ groups that give ──────┐   nobody is told    one statement
//!   take back ─▶ groups that take back ─┴▶  else              BEGIN ─▶ one statement ─▶ what all of them tell ─▶ COMMIT
//! ```
//!
//! A group either gives or takes back. Each of the two statements locks reactions first and counters then, each in the
//! order of their keys. So no two groups wait for each other, as they could if one transaction had several of these
//! statements.
//!
//! Invariants: calls that give begin in the order in which they came, and so do calls that take back; a call is in one
//! transaction as a whole. If a group fails, all its calls fail, and nothing is written.

use std::sync::Arc;

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

/// How many groups that give are under way at once, and how many that take back.
const GROUPS: usize = 2;

/// A group takes no further call once it has this many reactions.
const GROUP_MAX: usize = 500;

/// How many calls may wait for a group that gives, and how many for one that takes back; further calls are refused.
const CALLS_MAX: usize = 2048;

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
pub(crate) struct Reacting {
    giving: Groups<Asked, Notified<Outcome>>,
    taking_back: Groups<Asked, Notified<Outcome>>,
}

impl Reacting {
    /// Starts the tasks on the current runtime.
    pub(crate) fn start(pool: &Arc<Pool>, settings: Settings) -> Self {
        let groups = |on: bool| {
            let pool = pool.clone();
            Groups::start(GROUPS, CALLS_MAX, move |group: Group| {
                let pool = pool.clone();
                async move { carry_out(&pool, group.calls, on, settings).await }
            })
        };
        Self { giving: groups(true), taking_back: groups(false) }
    }

    /// Gives reactions (`on`) or takes them back, and tells the authors of their items.
    pub(crate) async fn react(
        &self,
        reactions: Vec<Reaction>,
        on: bool,
        telling: Option<Telling>,
    ) -> Result<Notified<Outcome>> {
        let groups = if on { &self.giving } else { &self.taking_back };
        if groups.is_full() {
            return Err(StoreError::Overloaded { retry_after_ms: RETRY_AFTER_MS });
        }
        // The call waits to the end, so that its caller, which tells the workers, knows what was committed.
        groups.ask_to_the_end(Asked { reactions, telling }).await.unwrap_or_else(|| Err(pool::no_reply()))
    }
}

async fn carry_out(pool: &Pool, calls: Vec<Call>, on: bool, settings: Settings) {
    let asked: Vec<&Asked> = calls.iter().map(|call| &call.asked).collect();
    let asked = &asked[..];
    let done = pool.write(work!(|connection| all(connection, asked, on, settings))).await;
    match done {
        Ok(answers) => calls.into_iter().zip(answers).for_each(|(call, answer)| call.answer(Ok(answer))),
        Err(error) => calls.into_iter().for_each(|call| call.answer(Err(error.clone()))),
    }
}

/// Carries out these calls in one transaction, and gives the answer to each call.
async fn all(
    connection: &mut PgConnection,
    asked: &[&Asked],
    on: bool,
    settings: Settings,
) -> sqlx::Result<Vec<Notified<Outcome>>> {
    if asked.iter().any(|call| call.telling.is_some()) {
        return retried!(connection, attempt(connection, asked, on, settings));
    }
    let mut done = reactions::change(connection, &reactions_of(asked), on).await?.into_iter();
    let of_call = |call: &&Asked| done.by_ref().take(call.reactions.len()).collect();
    Ok(asked.iter().map(of_call).map(|answers| Notified { answers, told: vec![] }).collect())
}

async fn attempt(
    connection: &mut PgConnection,
    asked: &[&Asked],
    on: bool,
    settings: Settings,
) -> sqlx::Result<Vec<Notified<Outcome>>> {
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    let mut done = reactions::carry_out(connection, &reactions_of(asked), on).await?.into_iter();
    // For each call its outcomes, and how many writes tell users of them.
    let (mut outcomes, mut writes) = (Vec::with_capacity(asked.len()), vec![]);
    for call in asked {
        let (answers, authors): (Vec<Outcome>, Vec<Option<UserNo>>) = done.by_ref().take(call.reactions.len()).unzip();
        let before = writes.len();
        if let Some(Telling { rules, names }) = &call.telling {
            let changed = |(outcome, author): (&Outcome, Option<UserNo>)| author.filter(|_| *outcome == Ok(true));
            let authors = answers.iter().zip(authors).map(changed);
            for ((reaction, name), author) in call.reactions.iter().zip(names).zip(authors) {
                writes.extend(author.and_then(|author| rules.of_reaction(reaction, name, author, on)));
            }
        }
        outcomes.push((answers, writes.len() - before));
    }
    let all = asked.iter().flat_map(|call| &call.reactions);
    let now: Millis = all.map(|reaction| reaction.at).max().unwrap_or_default();
    let mut told = write::follow(connection, writes, now, settings).await?.into_iter();
    sqlx::query("COMMIT").execute(connection).await?;
    let of_call = |(answers, count)| Notified { answers, told: told.by_ref().take(count).flatten().collect() };
    Ok(outcomes.into_iter().map(of_call).collect())
}

fn reactions_of(calls: &[&Asked]) -> Vec<Reaction> {
    calls.iter().flat_map(|call| &call.reactions).cloned().collect()
}
