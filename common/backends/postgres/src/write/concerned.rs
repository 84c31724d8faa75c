//! Finds the users whom notifications may concern: whose rows have to be locked, and which rows a decision needs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use compact_str::CompactString;
use feedgate_common::accept::Ask;
use feedgate_common::archive::{Answer, Audience, Publish, Write};
use feedgate_common::notify::{Deed, Rules, Way};
use feedgate_common::{ItemId, UserId, UserNo};
use sqlx::PgConnection;

use super::look::Mentioning;
use super::{Numbers, lines, look};

/// The users whom some writes may concern, besides the users whom the writes name.
#[derive(Debug, Default)]
pub(super) struct Concerned {
    /// The user who is told, and the user of whose deed is told: the edge whose shields count.
    pub(super) pairs: BTreeSet<(UserNo, UserNo)>,
    /// The foreign ids of notifications that may be there.
    pub(super) keys: BTreeSet<CompactString>,
    /// The groups of lines that deeds may join.
    pub(super) groups: BTreeSet<(UserNo, CompactString)>,
    /// The items that the told users must be able to see, each with its author.
    pub(super) sights: BTreeMap<ItemId, UserNo>,
    /// The names of the authors of items that are edited.
    pub(super) names: HashMap<UserNo, UserId>,
    /// The readers of the notifications and lines that exist with one of `keys`.
    told: BTreeSet<UserNo>,
}

impl Concerned {
    /// Finds whom the operations may concern. To be called before the transaction, which must know whom to lock. The
    /// author of an item never changes. What may change until it is locked is the users whom an item mentions; then the
    /// call [starts over](Self::covers).
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
                Write::Publish(Publish { repost_of, audience, author, mentions, .. }) => {
                    if rules.mention.is_some() {
                        concerned.pairs.extend(mentions.iter().filter_map(|user| no(user).zip(no(author))));
                    }
                    if let (Some(item), Audience::Followers, Some(_)) = (repost_of, audience, &rules.repost) {
                        reposts.push((*item, no(author)));
                    }
                }
                Write::Delete { item, .. } if rules.repost.is_some() => {
                    _ = concerned.keys.insert(Deed::Repost { item: *item, repost: *item }.key());
                }
                _ => {}
            }
        }
        if let Some(way) = &rules.mention {
            concerned.find_mentions(connection, asks, no, way).await?;
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

    /// Finds whom edits and deletes of items concern that mention users before or after the change. A call may edit or
    /// delete an item that it makes itself.
    async fn find_mentions(
        &mut self,
        connection: &mut PgConnection,
        asks: &[Ask],
        no: impl Fn(&UserId) -> Option<UserNo>,
        way: &Way,
    ) -> sqlx::Result<()> {
        let changed = |ask: &Ask| match ask.write() {
            Write::Edit { item, mentions: Some(_), .. } | Write::Delete { item, .. } => Some(*item),
            _ => None,
        };
        let ids: BTreeSet<ItemId> = asks.iter().filter_map(changed).collect();
        let mut found = look::mentioning(connection, &Vec::from_iter(ids.clone())).await?;
        let made = asks.iter().filter_map(Ask::published).filter_map(|publish| {
            let (name, mentions) = (publish.author.clone(), publish.mentions.clone());
            let item = publish.id.filter(|id| ids.contains(id))?;
            Some(Mentioning { item, author: no(&publish.author)?, name, mentions })
        });
        found.extend(made);
        for Mentioning { item, author, name, mentions } in found {
            let named = asks.iter().flat_map(|ask| match ask.write() {
                Write::Edit { item: edited, mentions: Some(mentions), .. } if *edited == item => &mentions[..],
                _ => &[],
            });
            for user in named {
                self.sights.insert(item, author);
                self.names.insert(author, name.clone());
                self.pairs.extend(no(user).map(|reader| (reader, author)));
                self.groups.extend(no(user).zip(way.group(Some(item))));
                self.keys.insert(Deed::Mention { item, comment: None, user }.key());
            }
            self.keys.extend(mentions.iter().map(|user| Deed::Mention { item, comment: None, user }.key()));
        }
        Ok(())
    }

    /// Whether all users whom these writes concern were found. If not, an item was changed between the look and the
    /// lock.
    pub(super) fn covers(&self, writes: &[(usize, Write)]) -> bool {
        writes.iter().all(|(_, write)| match write {
            Write::Notify(told) => self.pairs.contains(&(told.reader, told.actor)),
            Write::Withdraw { key, .. } => self.keys.contains(key),
            _ => true,
        })
    }

    /// Finds whom these notifications and withdrawals concern.
    pub(super) async fn by(connection: &mut PgConnection, writes: &[Write]) -> sqlx::Result<Self> {
        let mut concerned = Self::default();
        for write in writes {
            match write {
                Write::Notify(told) => {
                    concerned.pairs.insert((told.reader, told.actor));
                    concerned.pairs.extend(told.mutual.then_some((told.actor, told.reader)));
                    concerned.keys.extend(told.publish.foreign_id.clone());
                    concerned.groups.extend(told.group.clone().map(|group| (told.reader, group)));
                    concerned.sights.extend(told.sees);
                    concerned.pairs.extend(told.sees.map(|(_, author)| (told.reader, author)));
                }
                Write::Withdraw { key, .. } => _ = concerned.keys.insert(key.clone()),
                _ => {}
            }
        }
        concerned.find_told(connection).await?;
        Ok(concerned)
    }

    /// Finds the readers of the notifications and lines that exist with one of `keys`.
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
