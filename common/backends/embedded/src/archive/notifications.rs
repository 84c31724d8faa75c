//! Changes around items that tell users of them. The change and what tells of it are one operation of the only writer.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use feedgate_common::archive::{Names, Notifications};
use feedgate_common::around::{CommentWrite, Commented, Reaction, Uncommented, Unreacted};
use feedgate_common::error::Result;
use feedgate_common::notify::{Notified, Rules};
use feedgate_common::{ItemId, Millis, UserId, UserNo};

use super::accept::{self, Done, Shared};
use super::tables::Items;
use super::{EmbeddedArchive, comments, reactions};
use crate::request::{Durability, Request};
use crate::view::{Read, Tx};

#[async_trait]
impl Notifications for EmbeddedArchive {
    fn notify_by(&self, rules: Rules) {
        self.rules.store(Arc::new(rules));
    }

    async fn react_and_notify(
        &self,
        asked: &[Reaction],
        on: bool,
    ) -> Result<Notified<std::result::Result<bool, Unreacted>>> {
        let names = self.names_of(asked.iter().map(|reaction| reaction.user)).await?;
        let (known, asked) = (self.reactions.clone(), asked.to_vec());
        let now = asked.iter().map(|reaction| reaction.at).max().unwrap_or_default();
        self.telling(move |tx, shared| {
            if on {
                known.any.set();
                known.sweep(tx, false)?;
            }
            let (mut answers, mut writes) = (vec![], vec![]);
            for reaction in &asked {
                let change = if on { reactions::give } else { reactions::take_back };
                let changed = change(tx, reaction)?;
                if changed == Ok(true)
                    && shared.rules.reaction.is_some()
                    && let (Some(row), Some(name)) = (tx.get::<Items>(&reaction.item)?, names.get(&reaction.user))
                {
                    writes.extend(shared.rules.of_reaction(reaction, name, row.author, on));
                }
                answers.push(changed);
            }
            accept::follow(tx, shared, answers, writes, now)
        })
        .await
    }

    async fn comment_and_notify(
        &self,
        asked: Vec<CommentWrite>,
        now: Millis,
    ) -> Result<Notified<std::result::Result<Commented, Uncommented>>> {
        let authors = asked.iter().filter_map(CommentWrite::author);
        let names = self.names_of(authors).await?;
        let known = self.comments.clone();
        self.telling(move |tx, shared| {
            known.any.set();
            known.sweep(tx, false)?;
            let (mut answers, mut writes) = (vec![], vec![]);
            for write in &asked {
                let (answer, rows) = comments::apply(tx, write, now)?;
                if let Ok(done) = &answer {
                    writes.extend(shared.rules.of_comment(write, done, &rows, |no| names.get(&no).cloned()));
                }
                answers.push(answer);
            }
            accept::follow(tx, shared, answers, writes, now)
        })
        .await
    }
}

impl EmbeddedArchive {
    /// The names of these users; none if nobody is told of anything.
    async fn names_of(&self, users: impl Iterator<Item = UserNo>) -> Result<HashMap<UserNo, UserId>> {
        if self.rules.load().is_empty() {
            return Ok(HashMap::new());
        }
        let users: Vec<UserNo> = users.collect();
        Ok(users.iter().copied().zip(self.user_ids(&users).await?).collect())
    }

    /// What is to run once the delete of notifications is visible.
    pub(super) fn withdrawn(&self) -> impl Fn(&[ItemId]) + Send + 'static {
        let (hot, around) = (self.hot.clone(), [self.reactions.clone(), self.comments.clone()]);
        move |items| {
            if !items.is_empty() {
                hot.forget(items);
                around.iter().for_each(|rows| rows.ended());
            }
        }
    }

    /// Carries out an operation that tells users something.
    async fn telling<T: Send + 'static>(
        &self,
        op: impl FnOnce(&mut Tx<'_>, Shared<'_>) -> Result<Done<T>> + Send + 'static,
    ) -> Result<Notified<T>> {
        let (users, log, setup, rules) = (self.users.clone(), self.log.clone(), self.setup, self.rules.load_full());
        let (withdrawn, told, search) = (self.withdrawn(), self.log.clone(), self.any_search.clone());
        let request = Request::new(Durability::Synced, move |tx| {
            op(tx, Shared { users: &users, log: &log, setup, rules: &rules, search: &search })
        });
        let then = move |done: &Done<T>| {
            withdrawn(&done.withdrawn);
            told.tell();
        };
        let Done { answers, told, .. } = self.db.submit(request.then(then)).await?;
        Ok(Notified { answers, told })
    }
}
