//! Gives every author who has published an edge to itself, or takes it away, as the settings say.
//!
//! The Archive stores how far this work has come. So a worker that dies loses nothing, and several workers may work at
//! once: an edge that is as wanted is left as it is.

use std::time::Duration;

use feedgate_common::Archive;
use feedgate_common::archive::Write;
use feedgate_common::error::Result;
use feedgate_common::feed::Publisher;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::rounds::{again, once};

/// How often the worker looks whether another worker has left something to do.
const EVERY: Duration = Duration::from_secs(5);

/// How many authors one step takes.
const STEP: usize = 200;

/// What the work is called in the log.
const WHAT: &str = "own posts in one's own feed";

/// Works until the shutdown; a step that fails is tried again. `on` says whether the settings let authors' items stand
/// in their own feeds. A worker tells the Archive its setting only once. So of two workers with different settings, the
/// worker that was started last decides.
pub(crate) async fn run(archive: &dyn Archive, publisher: &Publisher, on: bool, shutdown: &CancellationToken) {
    once(WHAT, shutdown, || archive.set_own_posts(on)).await;
    again(WHAT, EVERY, shutdown, || step(archive, publisher, on)).await;
}

/// Serves the next authors. Gives whether there may be more.
async fn step(archive: &dyn Archive, publisher: &Publisher, on: bool) -> Result<bool> {
    let Some(due) = archive.own_posts_due(on, STEP).await? else { return Ok(false) };
    let upto = due.last().filter(|_| due.len() == STEP).map(|(author, _)| *author);
    let writes: Vec<Write> = due.into_iter().map(|(_, author)| Write::OwnPosts { author, on }).collect();
    if !writes.is_empty() {
        publisher.write(writes, clock::now()).await?;
    }
    archive.own_posts_done(on, upto).await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use feedgate_common::archive::Publish;
    use feedgate_common::jobs::{Job, Lane};
    use feedgate_common::{Body, UserId, UserNo};
    use feedgate_embedded::Embedded;

    use super::*;

    const AUTHORS: usize = 2 * STEP + 7;

    fn post(author: &UserId) -> Write {
        Write::Publish(Publish::new(author.clone(), Body::parse("1".to_owned()).unwrap()))
    }

    #[tokio::test]
    async fn s10_a_walk_gives_every_author_its_edge_and_takes_it_away_again() {
        let dir = tempfile::tempdir().unwrap();
        let stores = Embedded::open(dir.path(), 2).unwrap();
        let archive: Arc<dyn Archive> = stores.archive.clone();
        let names: Vec<UserId> = (0..AUTHORS).map(|n| format!("user-{n}").parse().unwrap()).collect();
        let users = archive.intern(&names).await.unwrap();
        archive.write(names.iter().map(post).collect(), 1).await.unwrap();
        let on = async |of: &[UserNo]| {
            let mut on = 0;
            for user in of {
                on += archive.followees(*user).await.unwrap().len();
            }
            on
        };
        let publisher = Publisher::new(archive.clone(), stores.jobs.clone());
        let walk = async |on: bool| {
            archive.set_own_posts(on).await.unwrap();
            while step(&*archive, &publisher, on).await.unwrap() {}
        };
        walk(false).await;
        assert_eq!(on(&users).await, 0);
        walk(true).await;
        assert_eq!(on(&users).await, AUTHORS);
        assert_eq!(archive.own_posts_due(true, 1).await.unwrap(), None);
        let taken = stores.jobs.take(Lane::Edges).await.unwrap().job;
        assert_eq!(taken, Job::Edges { reader: users[0] }, "the workers are told at once");
        let late: UserId = "late".parse().unwrap();
        archive.write(vec![post(&late)], 2).await.unwrap();
        let late = archive.intern(&[late]).await.unwrap();
        assert_eq!(on(&late).await, 1, "the write of a new author makes the edge");
        walk(false).await;
        assert_eq!((on(&users).await, on(&late).await), (0, 0));
    }
}
