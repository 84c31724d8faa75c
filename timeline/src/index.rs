//! Brings the index of search up to date with the stored items and users, a step at a time.
//!
//! The Archive stores what is still to be indexed. So a worker that dies loses nothing, and the next worker, here or in
//! another process, goes on. Several workers may index at once: one of them indexes, the others find nothing to do.

use std::time::Duration;

use feedgate_common::archive::Search;
use feedgate_common::error::Result;
use feedgate_common::search::TextFields;
use tokio_util::sync::CancellationToken;

use crate::rounds::Rounds;

/// How often the worker looks for what is to be indexed. In a cluster, search finds a new item about this much later.
const EVERY: Duration = Duration::from_millis(500);

/// Indexes what one Archive holds.
pub(crate) struct Indexing<A: ?Sized> {
    pub(crate) archive: std::sync::Arc<A>,
    /// The fields that are the text of items; `None` if search is off.
    pub(crate) fields: Option<TextFields>,
}

impl<A: Search + ?Sized> Indexing<A> {
    /// Indexes until the shutdown. A failed round is a warning; the next one goes on where this one stopped.
    pub(crate) async fn run(&self, shutdown: &CancellationToken) {
        let mut rounds = Rounds::of("the index of search", EVERY, shutdown);
        let mut begun = false;
        while rounds.next(self.round(&mut begun)).await {}
    }

    /// Takes steps until nothing is outstanding. A worker says only once which fields are to be indexed. So of two
    /// workers with different settings, the worker that was started last decides.
    async fn round(&self, begun: &mut bool) -> Result<()> {
        let fields = self.fields.as_ref();
        if !*begun {
            self.archive.index_of(fields).await?;
            *begun = true;
        }
        while self.archive.index(fields).await? {}
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use feedgate_common::archive::{Publish, Write};
    use feedgate_common::search::{ItemQuery, phrases};
    use feedgate_common::{Archive, Body};
    use feedgate_embedded::Embedded;

    use super::*;

    #[tokio::test]
    async fn a_round_builds_the_index_of_what_was_there_before_and_ends_that_of_other_fields() {
        let dir = tempfile::tempdir().unwrap();
        let archive: std::sync::Arc<dyn Archive> = Embedded::open(dir.path(), 2).unwrap().archive.clone();
        let body = |n: usize| Body::parse(format!(r#"{{"text": "item {n}", "title": "big"}}"#)).unwrap();
        let posts = (0..200).map(|n| Write::Publish(Publish::new("ann".parse().unwrap(), body(n)))).collect();
        archive.write(posts, 1).await.unwrap();
        let found = async |of: &TextFields, text: &str| {
            let phrases = phrases(text);
            let query = ItemQuery { phrases, author: None, kind: None, published: (i64::MIN, i64::MAX) };
            let hits = archive.find(of, &query.look(None, 1000)).await.unwrap();
            (hits.places.len(), hits.building)
        };
        let of = |name: &str| TextFields::new(vec![name.into()]).unwrap();
        let round = async |fields: Option<TextFields>| {
            Indexing { archive: archive.clone(), fields }.round(&mut false).await.unwrap();
        };
        round(Some(of("text"))).await;
        assert_eq!((found(&of("text"), "item").await, found(&of("text"), "big").await), ((200, false), (0, false)));
        round(Some(of("title"))).await;
        assert_eq!((found(&of("title"), "big").await, found(&of("text"), "item").await), ((200, false), (0, true)));
        round(None).await;
        assert_eq!(found(&of("title"), "big").await, (0, true));
    }
}
