//! Resolves the audience of an item: reads the lists and follows of its author, once, when the write comes.
//!
//! Lists and follows are read at the time of the request. A list that changes before the commit counts as changed after
//! the commit.

use std::collections::HashSet;

use crate::archive::{Audience, Audiences, Graph, ListCursor, Names, Outboxes, Publish, Refused, Write};
use crate::audience::{AUDIENCE_MAX, Narrowed, Narrowing, narrowed};
use crate::error::Result;
use crate::ids::ListName;
use crate::{Archive, UserId, UserNo};

/// How many candidates are looked at in one go.
const PAGE: usize = 1000;

/// Resolves the audience of each new item among these writes that is narrowed.
pub(super) async fn resolve_all(archive: &dyn Archive, writes: &mut [Write]) -> Result<()> {
    for write in writes {
        if let Write::Publish(Publish { author, audience: Audience::Narrowed(narrowed), .. }) = write {
            *narrowed = resolve_audience(archive, author, narrowed.by.clone()).await?;
        }
    }
    Ok(())
}

/// Finds the readers of an item by `author` that is narrowed by `by`. Fails as the Archive does.
pub async fn resolve_audience(archive: &dyn Archive, author: &UserId, by: Narrowing) -> Result<Narrowed> {
    let readers = match readers(archive, author, &by).await? {
        Ok(readers) => Ok(archive.user_ids(&readers).await?),
        Err(refused) => Err(Box::new(refused)),
    };
    Ok(Narrowed { by, readers })
}

async fn readers(
    archive: &dyn Archive,
    name: &UserId,
    by: &Narrowing,
) -> Result<std::result::Result<Vec<UserNo>, Refused>> {
    let author = Names::user_nos(archive, std::slice::from_ref(name)).await?.remove(0);
    let named: Vec<ListName> = by.lists.iter().chain(&by.except_lists).cloned().collect();
    let members = match author {
        Some(author) if !named.is_empty() => Audiences::member_nos(archive, author, &named).await?,
        _ => vec![vec![]; named.len()],
    };
    if let Some(empty) = members.iter().position(Vec::is_empty) {
        return Ok(Err(Refused::NoSuchList { author: name.clone(), list: named[empty].clone() }));
    }
    // A user that was never named has no followers.
    let Some(author) = author else { return Ok(Ok(vec![])) };
    let (within, without) = members.split_at(by.lists.len());
    let without: HashSet<UserNo> = without.iter().flatten().copied().collect();
    let mut pages = Candidates::of(archive, author, by, within);
    let mut found = vec![];
    while let Some(page) = pages.next().await? {
        found.extend(those_of(archive, author, by, &without, page).await?);
        if found.len() > AUDIENCE_MAX {
            return Ok(Err(Refused::AudienceTooLarge));
        }
    }
    Ok(Ok(found))
}

/// Gives the candidates of a page who belong to the audience.
async fn those_of(
    archive: &dyn Archive,
    author: UserNo,
    by: &Narrowing,
    without: &HashSet<UserNo>,
    page: Vec<UserNo>,
) -> Result<Vec<UserNo>> {
    let followers = Outboxes::followers_among(archive, author, &page).await?.into_iter().collect();
    let followees: Option<HashSet<UserNo>> = match by.mutual {
        true => Some(archive.followed_among(author, &page).await?.into_iter().collect()),
        false => None,
    };
    Ok(narrowed(page, &followers, without, followees.as_ref()))
}

/// Who may belong to an audience, page by page: the members of lists, or else the followers.
enum Candidates<'a> {
    Members(Vec<Vec<UserNo>>),
    Followers { archive: &'a dyn Archive, author: UserNo, mutual: bool, cursor: Option<ListCursor>, over: bool },
}

impl<'a> Candidates<'a> {
    fn of(archive: &'a dyn Archive, author: UserNo, by: &Narrowing, within: &[Vec<UserNo>]) -> Self {
        if by.lists.is_empty() {
            return Self::Followers { archive, author, mutual: by.mutual, cursor: None, over: false };
        }
        let members: HashSet<UserNo> = within.iter().flatten().copied().collect();
        Self::Members(Vec::from_iter(members).chunks(PAGE).map(<[_]>::to_vec).collect())
    }

    async fn next(&mut self) -> Result<Option<Vec<UserNo>>> {
        let (archive, author, mutual, cursor, over) = match self {
            Self::Members(pages) => return Ok(pages.pop()),
            Self::Followers { over: true, .. } => return Ok(None),
            Self::Followers { archive, author, mutual, cursor, over } => (*archive, *author, *mutual, cursor, over),
        };
        let lines = match mutual {
            true => Graph::mutual(archive, author, *cursor, PAGE).await?,
            false => Graph::followers(archive, author, *cursor, PAGE).await?,
        };
        *over = lines.len() < PAGE;
        *cursor = lines.last().map(|line| line.cursor);
        let names: Vec<UserId> = lines.into_iter().map(|line| line.user).collect();
        Ok(Some(Names::user_nos(archive, &names).await?.into_iter().flatten().collect()))
    }
}
