//! Takes in the lines of an import that are members of lists.

use feedgate_common::audience::{ListChange, ListRefused};
use feedgate_common::error::Result;
use feedgate_common::ids::ListName;
use feedgate_common::{Archive, Millis, UserId};

use super::patience::patiently;

/// A line: its number, the owner of the list, the list, the member, and since when the member is on the list.
pub(super) type Member = (u64, UserId, ListName, UserId, Millis);

/// Puts these members on lists. Answers for each member whether it was not on the list before, or why it is refused.
pub(super) async fn put_on(
    archive: &dyn Archive,
    lines: &[Member],
) -> Result<Vec<std::result::Result<bool, ListRefused>>> {
    if lines.is_empty() {
        return Ok(vec![]);
    }
    let names: Vec<UserId> = lines.iter().flat_map(|(_, user, _, member, _)| [user.clone(), member.clone()]).collect();
    let numbers = patiently(|| archive.intern(&names)).await?;
    let change = |((.., list, _, since), pair): (&Member, &[_])| ListChange {
        owner: pair[0],
        list: list.clone(),
        member: pair[1],
        on: true,
        at: *since,
    };
    let changes: Vec<ListChange> = lines.iter().zip(numbers.chunks(2)).map(change).collect();
    patiently(|| archive.change_lists(changes.clone())).await
}
