//! Carries out the erasures of users that the Archive has accepted, a step of each in turn.
//!
//! An erasure is a row of the Archive that says how far it has come. So a worker that dies loses nothing, and the next
//! one, here or in another process, goes on. Several workers may do so at once: a step that another worker has taken
//! changes nothing.

use std::time::Duration;

use feedgate_common::Jobs;
use feedgate_common::error::Result;
use feedgate_common::feed::Eraser;
use feedgate_common::jobs::Job;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::rounds::again;

/// How often a worker looks for erasures, and how soon it tries one again that has failed.
const EVERY: Duration = Duration::from_secs(1);

/// How many erasures are under way together.
const SOME: usize = 8;

/// Erases until the shutdown. A failed round is a warning; the next one goes on where this one stopped.
pub(crate) async fn run(eraser: &Eraser, jobs: &dyn Jobs, shutdown: &CancellationToken) {
    again("an erasure of a user", EVERY, shutdown, || round(eraser, jobs)).await;
}

/// Takes steps until no erasure is under way. An erasure whose step fails waits for the next round, which begins soon,
/// and holds up no other one: if all of the oldest erasures have failed, those behind them take steps. A round that
/// succeeds gives false: it leaves nothing to do.
async fn round(eraser: &Eraser, jobs: &dyn Jobs) -> Result<bool> {
    let (mut after, mut failed, mut failure) = (0, vec![], None);
    loop {
        let open = eraser.open(after, SOME).await?;
        let due: Vec<_> = open.iter().filter(|erasure| !failed.contains(&erasure.id)).collect();
        if due.is_empty() {
            let Some(last) = open.last() else { break };
            after = last.id;
            continue;
        }
        for erasure in due {
            match eraser.step(erasure, clock::now()).await {
                Ok(left) => tell(jobs, &left).await,
                Err(error) => {
                    failed.push(erasure.id);
                    failure = Some((error, Instant::now()));
                }
            }
        }
        if failure.as_ref().is_some_and(|(_, at)| at.elapsed() >= EVERY) {
            break;
        }
    }
    failure.map_or(Ok(false), |(error, _)| Err(error))
}

/// Puts the jobs that a step leaves on the queue. Jobs that the queue does not take are found by the sweep.
async fn tell(jobs: &dyn Jobs, left: &[Job]) {
    if !left.is_empty()
        && let Err(error) = jobs.put(left).await
    {
        tracing::debug!(%error, "what an erasure leaves to be done could not be relayed; the sweep will");
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use feedgate_common::Body;
    use feedgate_common::UserNo;
    use feedgate_common::archive::{Publish, Write};
    use feedgate_common::erase::{Mark, Stage, State};
    use feedgate_common::jobs::Lane;
    use feedgate_embedded::Embedded;

    use super::*;

    /// Stores in which these users have a post each, and their erasures have begun; and an eraser for them.
    async fn begun(dir: &Path, names: &[String]) -> (Embedded, Vec<UserNo>, Eraser) {
        let stores = Embedded::open(dir, 2).unwrap();
        let body = || Body::parse("1".to_owned()).unwrap();
        let posts = names.iter().map(|name| Write::Publish(Publish::new(name.parse().unwrap(), body())));
        stores.archive.write(posts.collect(), 1).await.unwrap();
        let names: Vec<_> = names.iter().map(|name| name.parse().unwrap()).collect();
        let users = stores.archive.intern(&names).await.unwrap();
        for user in &users {
            stores.archive.begin_erasure(*user, 5).await.unwrap();
        }
        let eraser = Eraser::new(stores.archive.clone(), stores.inboxes.clone());
        (stores, users, eraser)
    }

    #[tokio::test]
    async fn a_round_brings_every_erasure_to_its_end_and_passes_on_what_it_leaves_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let (stores, users, eraser) = begun(dir.path(), &["ann".to_owned(), "bob".to_owned()]).await;
        round(&eraser, &*stores.jobs).await.unwrap();
        for id in [1, 2] {
            let state = stores.archive.erasure(id).await.unwrap().unwrap().state;
            assert!(state.is_finished() && state.removed.items == 1, "{state:?}");
        }
        let taken =
            [stores.jobs.take(Lane::Posts).await.unwrap().job, stores.jobs.take(Lane::Posts).await.unwrap().job];
        assert_eq!(taken, [Job::FanOut { author: users[0] }, Job::FanOut { author: users[1] }]);
        assert_eq!(stores.archive.counts().await.unwrap().items, 0);
    }

    #[tokio::test]
    async fn erasures_that_fail_again_and_again_hold_up_no_later_one() {
        let dir = tempfile::tempdir().unwrap();
        let names: Vec<_> = (0..=2 * SOME).map(|n| format!("user-{n}")).collect();
        let (stores, users, eraser) = begun(dir.path(), &names).await;
        // A place that is none: no step can go on from it.
        let stuck = State { stage: Stage::Lines, after: Some(Mark("nowhere".into())), ..State::default() };
        let open = stores.archive.open_erasures(0, users.len()).await.unwrap();
        let (last, failing) = open.split_last().unwrap();
        for erasure in failing {
            assert!(stores.archive.move_erasure(erasure.id, &erasure.state, &stuck).await.unwrap());
        }
        let is_finished = async || stores.archive.erasure(last.id).await.unwrap().unwrap().state.is_finished();
        // On a slow machine each round may take one step.
        for _ in 0..100 {
            assert!(round(&eraser, &*stores.jobs).await.is_err(), "those that fail are told");
            if is_finished().await {
                break;
            }
        }
        assert!(is_finished().await);
        let open = stores.archive.open_erasures(0, users.len()).await.unwrap();
        assert!(open.len() == 2 * SOME && open.iter().all(|erasure| erasure.state == stuck));
    }
}
