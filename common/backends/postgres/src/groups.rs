//! Calls that wait together are carried out together.
//!
//! ```text
//!   call ─▶ waits ─▶ a group is free ─▶ everything that waits, until the group is full ─▶ carried out ─▶ answers
//! ```
//!
//! Nobody waits for company: a lone call goes at once, and those that come while all groups are under way share the next.
//!
//! Invariants:
//! - A group is carried out after each of its calls was made, so it sees whatever was durable by then.
//! - Calls are put into groups in the order in which they came.
//! - A caller that goes away takes nobody else's answer along, and what it asked is not begun any more.
//! - Groups are tasks of their own. One that ends without answers, by a panic or with its runtime, says so to its callers.

use std::sync::Arc;

use feedgate_common::error::Result;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use crate::pool;

/// A call that waits.
pub(crate) struct Call<Q, A> {
    pub(crate) asked: Q,
    answer: oneshot::Sender<Result<A>>,
}

impl<Q, A> Call<Q, A> {
    /// Whoever has gone away misses it.
    pub(crate) fn answer(self, answer: Result<A>) {
        _ = self.answer.send(answer);
    }
}

/// Calls that are carried out together.
pub(crate) trait Group<Q, A>: Default + Send + 'static {
    fn add(&mut self, call: Call<Q, A>);

    /// Whether it takes no further call.
    fn is_full(&self) -> bool;
}

/// See the module. Its task ends once it is dropped and what waited is answered.
pub(crate) struct Groups<Q, A>(mpsc::Sender<Call<Q, A>>);

impl<Q: Send + 'static, A: Send + 'static> Groups<Q, A> {
    /// On the current runtime: at most `under_way` groups at once, while at most `waiting` calls wait for theirs.
    pub(crate) fn start<G, F>(under_way: usize, waiting: usize, carry_out: impl Fn(G) -> F + Send + 'static) -> Self
    where
        G: Group<Q, A>,
        F: Future<Output = ()> + Send + 'static,
    {
        let (calls, waiting) = mpsc::channel(waiting);
        tokio::spawn(run(under_way, waiting, carry_out));
        Self(calls)
    }

    /// Whether as many calls wait as may.
    pub(crate) fn is_full(&self) -> bool {
        self.0.capacity() == 0
    }

    /// Waits for room too. `None` if there is no answer within [`pool::CALL`], or will never be.
    pub(crate) async fn ask(&self, asked: Q) -> Option<Result<A>> {
        let asking = async {
            let (answer, answered) = oneshot::channel();
            self.0.send(Call { asked, answer }).await.ok()?;
            answered.await.ok()
        };
        timeout(pool::CALL, asking).await.ok().flatten()
    }
}

async fn run<Q, A, G, F>(under_way: usize, mut waiting: mpsc::Receiver<Call<Q, A>>, carry_out: impl Fn(G) -> F)
where
    G: Group<Q, A>,
    F: Future<Output = ()> + Send + 'static,
{
    let free = Arc::new(Semaphore::new(under_way));
    loop {
        // First a free one: meanwhile more may come to share it.
        let Ok(permit) = free.clone().acquire_owned().await else { return };
        let Some(group) = gather(&mut waiting).await else { return };
        let carrying_out = carry_out(group);
        tokio::spawn(async move {
            carrying_out.await;
            drop(permit);
        });
    }
}

/// What waits and is waited for: at least one call. `None` once there will never be another.
async fn gather<Q, A, G: Group<Q, A>>(waiting: &mut mpsc::Receiver<Call<Q, A>>) -> Option<G> {
    let first = loop {
        let call = waiting.recv().await?;
        if !call.answer.is_closed() {
            break call;
        }
    };
    let mut group = G::default();
    group.add(first);
    while !group.is_full()
        && let Ok(call) = waiting.try_recv()
    {
        if !call.answer.is_closed() {
            group.add(call);
        }
    }
    Some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Doubled(Vec<Call<u32, u32>>);

    impl Group<u32, u32> for Doubled {
        fn add(&mut self, call: Call<u32, u32>) {
            self.0.push(call);
        }

        fn is_full(&self) -> bool {
            false
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_group_that_panics_leaves_nobody_waiting_and_its_place_free() {
        let groups = Groups::start(1, 8, async |group: Doubled| {
            for call in group.0 {
                assert!(call.asked != 13, "thirteen");
                let double = 2 * call.asked;
                call.answer(Ok(double));
            }
        });
        let began = tokio::time::Instant::now();
        assert!(matches!(tokio::join!(groups.ask(1), groups.ask(13), groups.ask(2)), (Some(Ok(2)), None, None)));
        assert!(matches!(groups.ask(3).await, Some(Ok(6))));
        assert!(began.elapsed() < pool::CALL, "nobody had to give up");
    }
}
