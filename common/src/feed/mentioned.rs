//! A home tells users of mentions in comments. For that it reads the numbers of the users who are mentioned, and the
//! authors of the comments that are edited.

use std::collections::HashMap;

use crate::archive::{Comments, Names};
use crate::around::CommentWrite;
use crate::error::Result;
use crate::{UserId, UserNo};

/// Numbers and names that are needed to tell of the mentions in some comments.
#[derive(Debug, Default)]
pub struct Mentioned {
    /// The numbers of the users who are mentioned. A user who was never named has no number and is told of nothing.
    pub numbers: HashMap<UserId, UserNo>,
    /// The names of the authors of comments whose mentions an edit changes.
    pub authors: HashMap<UserNo, UserId>,
}

/// Reads the numbers and names for the mentions in these changes: at most two reads of the Archive, and none if nobody
/// is mentioned.
pub async fn mentioned_by(archive: &(impl Names + Comments + ?Sized), writes: &[CommentWrite]) -> Result<Mentioned> {
    let users: Vec<UserId> = writes.iter().flat_map(CommentWrite::mentions).cloned().collect();
    if users.is_empty() {
        return Ok(Mentioned::default());
    }
    let numbers = archive.user_nos(&users).await?;
    let numbers = users.into_iter().zip(numbers).filter_map(|(user, no)| Some((user, no?))).collect();
    let edited = |write: &CommentWrite| match write {
        CommentWrite::Edit { item, id, mentions: Some(_), .. } => Some((*item, *id)),
        _ => None,
    };
    let edited: Vec<_> = writes.iter().filter_map(edited).collect();
    let edited = if edited.is_empty() { vec![] } else { archive.comments_of(&edited).await? };
    let authors = edited.into_iter().flatten().map(|comment| (comment.author_no, comment.author)).collect();
    Ok(Mentioned { numbers, authors })
}
