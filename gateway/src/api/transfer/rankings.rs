//! Takes in the lines of an import that are rankings.

use std::sync::Arc;

use feedgate_common::error::Result;
use feedgate_common::named::NamedFeeds;
use feedgate_common::{Archive, DisplayKey, InboxKey, UserId};

use super::super::problem::Problem;
use super::super::rankings::{rank, ranked, refused};
use super::super::writer::Writer;
use super::patience::patiently;

/// A line: its number, the reader, the name of the feed, and the ranking.
pub(super) type Ranking = (u64, UserId, String, Vec<DisplayKey>);

/// Puts these rankings into feeds, in place of the rankings that are there. Answers for each line whether it changed
/// anything, or why it is refused.
pub(super) async fn put(
    archive: &Arc<dyn Archive>,
    named: &NamedFeeds,
    writer: &Writer,
    lines: &[Ranking],
) -> Result<Vec<std::result::Result<bool, Problem>>> {
    let mut answers = Vec::with_capacity(lines.len());
    for (_, user, feed, ranking) in lines {
        let feed = match ranked(named, feed) {
            Ok(feed) => feed,
            Err(why) => {
                answers.push(Err(Problem::at_pointer("/feed".into(), format!("field \"feed\": {why}"))));
                continue;
            }
        };
        let reader = patiently(|| archive.intern(std::slice::from_ref(user))).await?[0];
        let key = InboxKey { reader, feed };
        let done = patiently(|| rank(archive.clone(), writer, key, ranking.clone())).await?;
        answers.push(done.map(|ranked| ranked.is_change()).map_err(|missing| refused(missing, "/ranking")));
    }
    Ok(answers)
}
