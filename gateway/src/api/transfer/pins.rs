//! Takes in the lines of an import that are pins.

use feedgate_common::error::Result;
use feedgate_common::{Archive, ItemId, UserId};

use super::super::problem::Problem;
use super::patience::patiently;

/// A line: its number, the user, and the items that the user has pinned, the last one first.
pub(super) type Pinned = (u64, UserId, Vec<ItemId>);

/// Pins these items in front of the items that are pinned already, in the order of the line. Answers for each line
/// whether it changed anything, or why it is refused; some items of a refused line may be pinned.
pub(super) async fn put(archive: &dyn Archive, lines: &[Pinned]) -> Result<Vec<std::result::Result<bool, Problem>>> {
    let mut answers = Vec::with_capacity(lines.len());
    for (_, user, items) in lines {
        let no = patiently(|| archive.intern(std::slice::from_ref(user))).await?[0];
        let mut answer = Ok(false);
        for (nth, item) in items.iter().enumerate().rev() {
            match patiently(|| archive.pin(no, *item)).await? {
                Ok(new) => answer = answer.map(|before| before || new),
                Err(why) => {
                    let detail = format!("user {user} cannot pin item {item}: {why}");
                    answer = Err(Problem::at_pointer(format!("/items/{nth}"), detail));
                    break;
                }
            }
        }
        answers.push(answer);
    }
    Ok(answers)
}
