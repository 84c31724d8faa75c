//! Takes in the lines of an import that give a reaction to an item.

use feedgate_common::around::{Reaction, ReactionKind, Unreacted};
use feedgate_common::{Archive, ItemId, Millis, UserId, error};

use super::patience::patiently;

/// A reaction of a line, with the number of the line.
pub(super) type ReactionLine = (u64, ItemId, ReactionKind, UserId, Millis);

/// Takes in the reactions of a group of lines in one commit, and answers each in its place. The commit is tried again
/// while a store is away, since giving a reaction twice is harmless. If it fails, some users may have got numbers, and
/// nothing else has happened.
pub(super) async fn give(archive: &dyn Archive, lines: &[ReactionLine]) -> error::Result<Vec<Result<bool, Unreacted>>> {
    if lines.is_empty() {
        return Ok(vec![]);
    }
    let names: Vec<UserId> = lines.iter().map(|(_, _, _, user, _)| user.clone()).collect();
    let users = patiently(|| archive.intern(&names)).await?;
    let given: Vec<Reaction> = lines
        .iter()
        .zip(users)
        .map(|((_, item, kind, _, since), user)| Reaction { item: *item, kind: kind.clone(), user, at: *since })
        .collect();
    patiently(|| archive.react(&given)).await
}
