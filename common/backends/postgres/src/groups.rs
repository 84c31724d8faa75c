//! Groups: calls that wait at the same time are carried out together.
//!
//! ```text
//!   call ─▶ waits ─▶ a group is free ─▶ everything that waits, until the group is full ─▶ carried out ─▶ answers
//! ```
//!
//! No call waits for others to come: a lone call is begun as soon as the tasks that can run at that moment have run, so
//! that the calls which several tasks make at once are one group. Calls that come while all groups are busy share the
//! next group.
//!
//! Invariants:
//! - A group is begun after each of its calls was made, so it sees all data that was durable before the calls.
//! - Calls are put into groups in the order in which they came.
//! - A caller that goes away does not affect other callers. If its call was not begun, the call never is.
//! - A caller gives up after [`pool::CALL`]. A caller that asks [to the end](Groups::ask_to_the_end) gives up only a
//!   call that was not begun; once the call is begun, this caller waits for the answer.
//! - Each group is a task of its own. If the task ends without answers, by a panic or with its runtime, the callers of
//!   the group learn that there is no answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use feedgate_common::error::Result;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use crate::pool;

/// A call that waits for its group.
pub(crate) struct Call<Q, A> {
    pub(crate) asked: Q,
    answer: oneshot::Sender<Result<A>>,
    /// Set once, by whichever is first: the group that begins the call, or the caller that gives up.
    decided: Arc<AtomicBool>,
}

impl<Q, A> Call<Q, A> {
    /// Answers the caller. If the caller has gone away, the answer is dropped.
    pub(crate) fn answer(self, answer: Result<A>) {
        _ = self.answer.send(answer);
    }

    /// Whether the caller still waits for the answer. From now on a caller that asks to the end cannot give up.
    fn begin(&self) -> bool {
        !self.answer.is_closed() && !self.decided.swap(true, Ordering::AcqRel)
    }
}

/// Some calls that are carried out together.
pub(crate) trait Group<Q, A>: Default + Send + 'static {
    fn add(&mut self, call: Call<Q, A>);

    /// Whether the group takes no further call.
    fn is_full(&self) -> bool;
}

/// The weight of what a call asks for. A group takes calls up to a weight.
pub(crate) trait Weight: Send + 'static {
    /// How much of the room of a group the call takes.
    fn weight(&self) -> usize {
        1
    }
}

impl<T: Send + 'static> Weight for Vec<T> {
    fn weight(&self) -> usize {
        self.len()
    }
}

/// A group of calls that weigh about `MAX` together: the last call may weigh more than the room that was left.
pub(crate) struct UpTo<const MAX: usize, Q, A> {
    pub(crate) calls: Vec<Call<Q, A>>,
    weight: usize,
}

impl<const MAX: usize, Q, A> Default for UpTo<MAX, Q, A> {
    fn default() -> Self {
        Self { calls: vec![], weight: 0 }
    }
}

impl<const MAX: usize, Q: Weight, A: Send + 'static> Group<Q, A> for UpTo<MAX, Q, A> {
    fn add(&mut self, call: Call<Q, A>) {
        self.weight += call.asked.weight();
        self.calls.push(call);
    }

    fn is_full(&self) -> bool {
        self.weight >= MAX
    }
}

impl<const MAX: usize, Q: Copy, A> UpTo<MAX, Q, A> {
    /// What each call asks for, in the order of the calls.
    pub(crate) fn asked(&self) -> Vec<Q> {
        self.calls.iter().map(|call| call.asked).collect()
    }

    /// Answers each call from the value that was `found` for it, in the order of the calls; or all calls with the
    /// error.
    pub(crate) fn answer<F>(self, found: Result<Vec<F>>, answer: impl Fn(Q, F) -> Result<A>) {
        match found {
            Ok(found) => self.calls.into_iter().zip(found).for_each(|(call, found)| {
                let answer = answer(call.asked, found);
                call.answer(answer);
            }),
            Err(error) => self.calls.into_iter().for_each(|call| call.answer(Err(error.clone()))),
        }
    }
}

/// A handle of the task that puts calls into groups. The task ends when the handle is dropped and all waiting calls are
/// answered.
pub(crate) struct Groups<Q, A>(mpsc::Sender<Call<Q, A>>);

impl<Q: Send + 'static, A: Send + 'static> Groups<Q, A> {
    /// Starts the task on the current runtime. At most `under_way` groups are carried out at once, and at most
    /// `waiting` calls wait for a group.
    pub(crate) fn start<G, F>(under_way: usize, waiting: usize, carry_out: impl Fn(G) -> F + Send + 'static) -> Self
    where
        G: Group<Q, A>,
        F: Future<Output = ()> + Send + 'static,
    {
        let (calls, waiting) = mpsc::channel(waiting);
        tokio::spawn(run(under_way, waiting, carry_out));
        Self(calls)
    }

    /// Whether no further call may wait for a group now.
    pub(crate) fn is_full(&self) -> bool {
        self.0.capacity() == 0
    }

    /// Makes a call; if too many wait, it waits for room first. Answers `None` if there is no answer within
    /// [`pool::CALL`], or if there will never be one.
    pub(crate) async fn ask(&self, asked: Q) -> Option<Result<A>> {
        timeout(pool::CALL, self.ask_to_the_end(asked)).await.ok().flatten()
    }

    /// Makes a call; if too many wait, it waits for room first. Answers `None` if the call was not begun within
    /// [`pool::CALL`], and then the call is never begun, or if there will never be an answer. The caller waits for a
    /// call that was begun as long as its group takes, so that the caller learns what the call did.
    pub(crate) async fn ask_to_the_end(&self, asked: Q) -> Option<Result<A>> {
        let (answer, mut answered) = oneshot::channel();
        let decided = Arc::new(AtomicBool::new(false));
        let call = Call { asked, answer, decided: decided.clone() };
        let asking = async {
            self.0.send(call).await.ok()?;
            (&mut answered).await.ok()
        };
        match timeout(pool::CALL, asking).await {
            Ok(answer) => answer,
            Err(_) if decided.swap(true, Ordering::AcqRel) => answered.await.ok(),
            Err(_) => None,
        }
    }
}

async fn run<Q, A, G, F>(under_way: usize, mut waiting: mpsc::Receiver<Call<Q, A>>, carry_out: impl Fn(G) -> F)
where
    G: Group<Q, A>,
    F: Future<Output = ()> + Send + 'static,
{
    let free = Arc::new(Semaphore::new(under_way));
    loop {
        // First wait until a group may be begun: meanwhile more calls may come to share it.
        let Ok(permit) = free.clone().acquire_owned().await else { return };
        let Some(group) = gather(&mut waiting).await else { return };
        let carrying_out = carry_out(group);
        tokio::spawn(async move {
            carrying_out.await;
            drop(permit);
        });
    }
}

/// Takes the waiting calls whose callers still wait, one at least. Answers `None` once there will never be another
/// call.
async fn gather<Q, A, G: Group<Q, A>>(waiting: &mut mpsc::Receiver<Call<Q, A>>) -> Option<G> {
    let first = loop {
        let call = waiting.recv().await?;
        if call.begin() {
            break call;
        }
    };
    let mut group = G::default();
    group.add(first);
    // Tasks that were woken together, as by one read of a socket, make their calls now.
    tokio::task::yield_now().await;
    while !group.is_full()
        && let Ok(call) = waiting.try_recv()
    {
        if call.begin() {
            group.add(call);
        }
    }
    Some(group)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use tokio::time::sleep;

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

    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_begun_is_waited_for_and_one_that_was_not_is_never_begun() {
        let (begun, slow) = (Arc::new(AtomicUsize::new(0)), 2 * pool::CALL - Duration::from_secs(1));
        let counted = begun.clone();
        let groups = Groups::start(1, 8, move |group: Doubled| {
            let counted = counted.clone();
            async move {
                counted.fetch_add(group.0.len(), Ordering::SeqCst);
                sleep(slow).await;
                group.0.into_iter().for_each(|call| call.answer(Ok(1)));
            }
        });
        let (first, second, third) = tokio::join!(groups.ask_to_the_end(1), groups.ask(2), groups.ask_to_the_end(3));
        // All that was asked before the first group began shares it.
        assert!(matches!((first, second, third), (Some(Ok(1)), None, Some(Ok(1)))));
        let (fourth, late) = tokio::join!(groups.ask_to_the_end(4), async {
            sleep(Duration::from_secs(1)).await;
            groups.ask_to_the_end(5).await
        });
        assert!(matches!((fourth, late), (Some(Ok(1)), None)), "the other was waiting while its caller gave up");
        sleep(2 * slow).await;
        assert_eq!(begun.load(Ordering::SeqCst), 4);
    }
}
