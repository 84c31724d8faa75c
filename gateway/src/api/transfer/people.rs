//! Takes in the lines of an import that say something of users. What is stored already stays: it is newer than the
//! file.

use feedgate_common::archive::Known;
use feedgate_common::people::Person;
use feedgate_common::{Archive, UserId, error};

use super::patience::patiently;

/// Stores these people in one commit, which is tried again while the store is away. Answers how many people were new.
/// If it fails, some users may have got numbers, and nothing else has happened.
pub(super) async fn take_in(archive: &dyn Archive, people: &[(UserId, Person)]) -> error::Result<u64> {
    if people.is_empty() {
        return Ok(0);
    }
    let (names, people): (Vec<UserId>, Vec<Person>) = people.iter().cloned().unzip();
    let numbers = patiently(|| archive.intern(&names)).await?;
    let people: Vec<_> = numbers.into_iter().zip(people).collect();
    let new = patiently(|| archive.put_people(people.clone(), Known::Kept)).await?;
    Ok(new.into_iter().filter(|new| *new).count() as u64)
}
