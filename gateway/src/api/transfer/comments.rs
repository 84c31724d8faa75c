//! Takes in the lines of an import that are comments on items. A comment that exists already stays as it is.

use feedgate_common::around::{CommentWrite, Commented, NewComment, Uncommented};
use feedgate_common::{Archive, UserId, error};

use super::patience::patiently;
use crate::clock;

/// A comment of a line, with the number of the line. The number of its author is not known yet.
pub(super) type CommentLine = (u64, UserId, NewComment);

/// Takes in the comments of a group of lines in one commit, and answers each in its place. The commit is tried again
/// while a store is away, which is harmless since each comment has an id. If it fails, some users may have got numbers,
/// and nothing else has happened.
pub(super) async fn take_in(
    archive: &dyn Archive,
    lines: &[CommentLine],
) -> error::Result<Vec<Result<Commented, Uncommented>>> {
    if lines.is_empty() {
        return Ok(vec![]);
    }
    let names: Vec<UserId> = lines.iter().map(|(_, author, _)| author.clone()).collect();
    let authors = patiently(|| archive.intern(&names)).await?;
    let made = |((_, _, new), author): (&CommentLine, _)| CommentWrite::Make(NewComment { author, ..new.clone() });
    let writes: Vec<CommentWrite> = lines.iter().zip(authors).map(made).collect();
    patiently(|| archive.comment(writes.clone(), clock::now())).await
}
