//! Carries out the erasures of users that the Archive has accepted, a step of each in turn.
//!
//! An erasure is a row of the Archive that says how far it has come. So a worker that dies loses nothing, and the next
//! one, here or in another process, goes on. Several workers may do so at once: what one has done changes nothing for
//! another.

use std::sync::Arc;
use std::time::Duration;

use feedgate_common::Jobs;
use feedgate_common::error::Result;
use feedgate_common::feed::Eraser;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::rounds::Rounds;

/// How often a worker looks for erasures.
const EVERY: Duration = Duration::from_secs(1);

/// How many erasures are under way together.
const SOME: usize = 8;

/// Carries out the erasures of one Archive.
pub(crate) struct Erasing {
    pub(crate) eraser: Eraser,
    pub(crate) jobs: Arc<dyn Jobs>,
}

impl Erasing {
    /// Erases until the shutdown. A failed round is a warning; the next one goes on where this one stopped.
    pub(crate) async fn run(&self, shutdown: &CancellationToken) {
        let mut rounds = Rounds::of("an erasure of a user", EVERY, shutdown);
        while rounds.next(self.round()).await {}
    }

    /// Takes steps until no erasure is under way. An erasure whose step fails holds up no other one, and ends the
    /// round.
    async fn round(&self) -> Result<()> {
        loop {
            let open = self.eraser.open(SOME).await?;
            if open.is_empty() {
                return Ok(());
            }
            let mut failed = None;
            for erasure in &open {
                match self.eraser.step(erasure, clock::now()).await {
                    Ok(jobs) => self.tell(&jobs).await,
                    Err(error) => failed = Some(error),
                }
            }
            if let Some(error) = failed {
                return Err(error);
            }
        }
    }

    /// Puts the jobs that a step leaves on the queue. Jobs that the queue does not take are found by the sweep.
    async fn tell(&self, jobs: &[feedgate_common::jobs::Job]) {
        if !jobs.is_empty()
            && let Err(error) = self.jobs.put(jobs).await
        {
            tracing::debug!(%error, "what an erasure leaves to be done could not be relayed; the sweep will");
        }
    }
}

#[cfg(test)]
mod tests {
    use feedgate_common::Body;
    use feedgate_common::archive::{Publish, Write};
    use feedgate_common::jobs::{Job, Lane};
    use feedgate_embedded::Embedded;

    use super::*;

    #[tokio::test]
    async fn a_round_brings_every_erasure_to_its_end_and_passes_on_what_it_leaves_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let stores = Embedded::open(dir.path(), 2).unwrap();
        let names = ["ann", "bob"];
        let body = || Body::parse("1".to_owned()).unwrap();
        let posts = names.map(|name| Write::Publish(Publish::new(name.parse().unwrap(), body())));
        stores.archive.write(posts.to_vec(), 1).await.unwrap();
        let users = stores.archive.intern(&names.map(|name| name.parse().unwrap())).await.unwrap();
        for user in &users {
            stores.archive.begin_erasure(*user, 5).await.unwrap();
        }
        let eraser = Eraser::new(stores.archive.clone(), stores.inboxes.clone());
        let erasing = Erasing { eraser, jobs: stores.jobs.clone() };
        erasing.round().await.unwrap();
        for id in [1, 2] {
            let state = stores.archive.erasure(id).await.unwrap().unwrap().state;
            assert!(state.is_finished() && state.removed.items == 1, "{state:?}");
        }
        let taken =
            [stores.jobs.take(Lane::Posts).await.unwrap().job, stores.jobs.take(Lane::Posts).await.unwrap().job];
        assert_eq!(taken, [Job::FanOut { author: users[0] }, Job::FanOut { author: users[1] }]);
        assert_eq!(stores.archive.counts().await.unwrap().items, 0);
    }
}
