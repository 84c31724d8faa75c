//! Brings the index of search up to date with the stored items and users, a step at a time.
//!
//! The Archive stores what is still to be indexed. So a worker that dies loses nothing, and the next worker, here or in
//! another process, goes on. Several workers may index at once: one of them indexes, the others find nothing to do.

use std::time::Duration;

use feedgate_common::Archive;
use feedgate_common::search::TextFields;
use tokio_util::sync::CancellationToken;

use crate::rounds::{again, once};

/// How often the worker looks for what is to be indexed. In a cluster, search finds a new item about this much later.
const EVERY: Duration = Duration::from_millis(500);

/// What the work is called in the log.
const WHAT: &str = "the index of search";

/// Indexes until the shutdown; a step that fails is tried again. `fields` are the text of items; `None` if search is
/// off. A worker says only once which fields are to be indexed. So of two workers with different settings, the worker
/// that was started last decides.
pub(crate) async fn run(archive: &dyn Archive, fields: Option<&TextFields>, shutdown: &CancellationToken) {
    once(WHAT, shutdown, || archive.index_of(fields)).await;
    again(WHAT, EVERY, shutdown, || archive.index(fields)).await;
}

#[cfg(test)]
mod tests {
    use feedgate_common::Body;
    use feedgate_common::archive::{Publish, Write};
    use feedgate_common::search::{ItemQuery, phrases};
    use feedgate_embedded::Embedded;

    use super::*;

    #[tokio::test]
    async fn a_worker_builds_the_index_of_what_was_there_before_and_ends_that_of_other_fields() {
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
        let (text, title) = (of("text"), of("title"));
        let index_until =
            async |fields: Option<&TextFields>, (of, phrase): (&TextFields, &str), wants: (usize, bool)| {
                let shutdown = CancellationToken::new();
                let look = async {
                    while found(of, phrase).await != wants {
                        tokio::task::yield_now().await;
                    }
                    shutdown.cancel();
                };
                tokio::join!(run(&*archive, fields, &shutdown), look);
            };
        index_until(Some(&text), (&text, "item"), (200, false)).await;
        assert_eq!(found(&text, "big").await, (0, false));
        index_until(Some(&title), (&title, "big"), (200, false)).await;
        assert_eq!(found(&text, "item").await, (0, true));
        index_until(None, (&title, "big"), (0, true)).await;
    }
}
