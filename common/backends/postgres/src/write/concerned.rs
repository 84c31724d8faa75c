//! Whom notifications may concern: whose rows have to be locked, and which rows a decision needs.

use std::collections::BTreeSet;

use compact_str::CompactString;
use feedgate_common::accept::Ask;
use feedgate_common::archive::{Answer, Audience, Publish, Write};
use feedgate_common::notify::{Deed, Rules};
use feedgate_common::{UserId, UserNo};
use sqlx::PgConnection;

use super::{Numbers, lines, look};

/// Whom some writes may concern, besides those whom they name.
#[derive(Debug, Default)]
pub(super) struct Concerned {
    /// The user who is told, and the user who did it: the edge whose shields count.
    pub(super) pairs: BTreeSet<(UserNo, UserNo)>,
    /// The foreign ids of notifications that may be there.
    pub(super) keys: BTreeSet<CompactString>,
    /// The groups of lines that deeds may join.
    pub(super) groups: BTreeSet<(UserNo, CompactString)>,
    /// The readers of those that are there.
    told: BTreeSet<UserNo>,
}

impl Concerned {
    /// Finds whom the operations may concern. To be called before the transaction, since it must know whom to lock. What it
    /// finds never changes: the author of an item, and the reader of a notification.
    pub(super) async fn of(
        connection: &mut PgConnection,
        asks: &[Ask],
        numbers: &Numbers,
        rules: &Rules,
    ) -> sqlx::Result<Self> {
        let mut concerned = Self::default();
        if rules.is_empty() {
            return Ok(concerned);
        }
        let no = |name: &UserId| numbers.get(name).copied().flatten();
        let mut reposts = vec![];
        for ask in asks {
            match ask.write() {
                Write::Follow { reader, author }
                | Write::Unfollow { reader, author }
                | Write::Answer { reader, author, answer: Answer::Refuse }
                    if rules.follow.is_some() || rules.request.is_some() =>
                {
                    concerned.pairs.extend(no(author).zip(no(reader)));
                    concerned.keys.insert(Deed::Follow { author, actor: reader, asks: false }.key());
                    let ways = [&rules.follow, &rules.request].into_iter().flatten();
                    let groups = ways.filter_map(|way| way.group(None));
                    concerned.groups.extend(groups.filter_map(|group| Some((no(author)?, group))));
                }
                Write::Answer { reader, author, .. } if rules.accept.is_some() => {
                    concerned.pairs.extend(no(reader).zip(no(author)));
                    concerned.keys.insert(Deed::Accept { reader, actor: author }.key());
                    let group = rules.accept.as_ref().and_then(|way| way.group(None));
                    concerned.groups.extend(no(reader).zip(group));
                }
                Write::Publish(Publish { repost_of: Some(item), audience: Audience::Followers, author, .. })
                    if rules.repost.is_some() =>
                {
                    reposts.push((*item, no(author)));
                }
                Write::Delete { item, .. } if rules.repost.is_some() => {
                    _ = concerned.keys.insert(Deed::Repost { item: *item, repost: *item }.key());
                }
                _ => {}
            }
        }
        let mut authors = look::authors(connection, reposts.iter().map(|(item, _)| *item)).await?;
        // An item of this call may be reposted by it.
        let made = asks.iter().filter_map(Ask::published).filter_map(|publish| publish.id.zip(no(&publish.author)));
        made.for_each(|(item, author)| _ = authors.entry(item).or_insert(author));
        let pair = |(item, actor): &(_, Option<UserNo>)| authors.get(item).copied().zip(*actor);
        concerned.pairs.extend(reposts.iter().filter_map(pair));
        let group = |item| rules.repost.as_ref().and_then(|way| way.group(Some(item)));
        let groups = reposts.iter().filter_map(|(item, _)| authors.get(item).copied().zip(group(*item)));
        concerned.groups.extend(groups);
        concerned.find_told(connection).await?;
        Ok(concerned)
    }

    /// Finds whom notifications concern that are to be decided.
    pub(super) async fn by(connection: &mut PgConnection, writes: &[Write]) -> sqlx::Result<Self> {
        let mut concerned = Self::default();
        for write in writes {
            match write {
                Write::Notify(told) => {
                    concerned.pairs.insert((told.reader, told.actor));
                    concerned.pairs.extend(told.mutual.then_some((told.actor, told.reader)));
                    concerned.keys.extend(told.publish.foreign_id.clone());
                    concerned.groups.extend(told.group.clone().map(|group| (told.reader, group)));
                }
                Write::Withdraw { key, .. } => _ = concerned.keys.insert(key.clone()),
                _ => {}
            }
        }
        concerned.find_told(connection).await?;
        Ok(concerned)
    }

    /// Finds the readers of notifications that are there, and of lines.
    async fn find_told(&mut self, connection: &mut PgConnection) -> sqlx::Result<()> {
        self.told.extend(look::addressees(connection, self.keys.iter()).await?);
        self.told.extend(lines::readers(connection, self.keys.iter()).await?);
        Ok(())
    }

    /// The readers whose rows are to be locked.
    pub(super) fn readers(&self) -> impl Iterator<Item = UserNo> {
        self.pairs.iter().map(|(reader, _)| *reader).chain(self.told.iter().copied())
    }
}
