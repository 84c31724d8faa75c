//! Takes notices that are due, finds what is left to tell, and calls the webhook, paced and a bounded number at a time.
//!
//! Invariants: a notice is settled after its call, so a crash between the two repeats the call under the same id. Any
//! number of senders may share the stores. A notice that cannot be settled is leased, and comes again when the lease
//! has run out. A notice that cannot be prepared, or that the receiver cannot take, holds up no other.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use feedgate_common::archive::{Notice, Outcome, PushDevice, Settled};
use feedgate_common::error::Result;
use feedgate_common::feed::Feeds;
use feedgate_common::{DeviceId, InboxKey, Millis, Sessions, StoreError, UserId, UserNo, failpoint};
use futures_util::{StreamExt, stream};
use tokio::sync::Mutex;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::message::{self, Notification};
use super::standing::standing;
use super::{Answer, Courier, PushSettings};
use crate::clock::{after, now};
use crate::retry::Backoff;
use crate::rounds::again;
use crate::said::Said;

/// How often a sender looks whether a notice is due.
const EVERY: Duration = Duration::from_millis(500);

/// For how many readers at a time a sender finds out what is left to tell.
const READERS_AT_ONCE: usize = 16;

/// No wait that a receiver asks for is longer.
const ASKED_MAX: Duration = Duration::from_secs(24 * 3600);

/// The most characters of a reason that are stored.
const WHY_MAX: usize = 300;

/// Sends notices of one Archive through one courier.
pub struct Sender {
    feeds: Arc<Feeds>,
    sessions: Arc<dyn Sessions>,
    courier: Arc<dyn Courier>,
    settings: PushSettings,
    /// Calls wait for its ticks one after the other: the lock is held for as long as that takes.
    pace: Mutex<Interval>,
    failing: Said,
    unprepared: Said,
}

/// A notice with what is to be told.
struct Ready {
    notice: Notice,
    told: Notification,
}

impl Sender {
    /// A sender that does nothing until [`Sender::run`]. To be called in a tokio runtime.
    pub fn new(
        feeds: Arc<Feeds>,
        sessions: Arc<dyn Sessions>,
        courier: Arc<dyn Courier>,
        settings: PushSettings,
    ) -> Self {
        let mut pace = interval(Duration::from_secs(1) / settings.calls_per_sec.max(1));
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            feeds,
            sessions,
            courier,
            settings,
            pace: Mutex::new(pace),
            failing: Said::default(),
            unprepared: Said::default(),
        }
    }

    /// Sends until the shutdown, which cuts off calls under way: they come again, here or elsewhere.
    pub async fn run(&self, shutdown: CancellationToken) {
        again("a sending of notices", EVERY, &shutdown, || self.round()).await;
    }

    /// Sends some of the notices that are due. Answers whether there may be more.
    async fn round(&self) -> Result<bool> {
        let now = now();
        let limit = self.settings.batch.max(1) * self.settings.calls_at_once.max(1);
        let lease = 2 * self.settings.timeout + Duration::from_secs(5);
        let lease_until = after(now, lease);
        let due = self.feeds.archive().take_due(now, lease_until, limit).await?;
        let full = due.len() == limit;
        if due.is_empty() {
            return Ok(false);
        }
        failpoint::hit("push-taken");
        let (ready, settled) = self.prepare(due, now).await?;
        self.settle(settled).await?;
        let calls = ready.chunks(self.settings.batch.max(1)).map(|chunk| self.tell(chunk, lease_until));
        let calls: Vec<_> = calls.collect();
        let mut calls = stream::iter(calls).buffer_unordered(self.settings.calls_at_once.max(1));
        while let Some(told) = calls.next().await {
            told?;
        }
        Ok(full)
    }

    async fn settle(&self, settled: Vec<Settled>) -> Result<()> {
        if settled.is_empty() {
            return Ok(());
        }
        self.feeds.archive().settle(&settled, now()).await
    }

    /// Finds what is to be told. Also gives what becomes of the other notices: a notice is dropped if nothing is to be
    /// told, and a notice that meets damaged data has had a try in vain. A notice for which a store does not answer is
    /// in neither list: it stays leased, and an outage of a store makes no notice dead.
    async fn prepare(&self, due: Vec<Notice>, now: Millis) -> Result<(Vec<Ready>, Vec<Settled>)> {
        let readers: Vec<UserNo> = due.iter().map(|notice| notice.key.reader).collect();
        let archive = self.feeds.archive();
        let (holders, devices) = (self.sessions.nodes(&readers).await?, archive.push_devices(&readers).await?);
        let users = archive.user_ids(&readers).await?;
        let all = due.into_iter().zip(holders).zip(devices.into_iter().zip(users));
        let prepared = all.map(|((notice, holders), (devices, user))| async move {
            let told = if holders.partial {
                Err(StoreError::unavailable("the session pool does not say whether the reader is online"))
            } else if holders.nodes.is_empty() {
                self.prepare_one(&notice, devices, user, now).await
            } else {
                Ok(None)
            };
            (notice, told)
        });
        let prepared: Vec<_> = prepared.collect();
        let prepared: Vec<_> = stream::iter(prepared).buffered(READERS_AT_ONCE).collect().await;
        let (mut ready, mut settled) = (vec![], vec![]);
        for (notice, told) in prepared {
            match told {
                Ok(Some(told)) => ready.push(Ready { notice, told }),
                Ok(None) => settled.push(Settled { notice, outcome: Outcome::Dropped }),
                Err(error) => {
                    if let Some(times) = self.unprepared.due() {
                        tracing::warn!(%error, times, "what a notice is to tell could not be found out");
                    }
                    if let StoreError::Corrupt(what) = &error {
                        let outcome = in_vain(&self.settings, &notice, what, None, now);
                        settled.push(Settled { notice, outcome });
                    }
                }
            }
        }
        Ok((ready, settled))
    }

    async fn prepare_one(
        &self,
        notice: &Notice,
        mut devices: Vec<PushDevice>,
        user: UserId,
        now: Millis,
    ) -> Result<Option<Notification>> {
        let named = self.feeds.named();
        let Some(feed) = named.name(notice.key.feed) else { return Ok(None) };
        let standing = standing(&self.feeds, &*self.sessions, notice, &devices, now).await?;
        devices.retain(|device| device.feeds.contains(&notice.key.feed));
        Ok(standing
            .filter(|_| !devices.is_empty())
            .map(|standing| Notification::new(notice, user, devices, feed, standing)))
    }

    /// Tells all of these by one call. If the receiver refuses the call, each notice is told by a call of its own, so
    /// that a notice that the receiver cannot take holds up no other. A notice that cannot be told before the lease
    /// ends comes again after it.
    async fn tell(&self, chunk: &[Ready], lease_until: Millis) -> Result<()> {
        match self.call(chunk).await {
            Answer::Gone | Answer::Refused(_) if chunk.len() > 1 => {
                for one in chunk {
                    if after(now(), self.settings.timeout) > lease_until {
                        break;
                    }
                    let answer = self.call(std::slice::from_ref(one)).await;
                    self.take_in(std::slice::from_ref(one), answer).await?;
                }
                Ok(())
            }
            answer => self.take_in(chunk, answer).await,
        }
    }

    async fn call(&self, chunk: &[Ready]) -> Answer {
        self.pace.lock().await.tick().await;
        let answer = self.courier.call(&message::call(chunk.iter().map(|ready| &ready.told))).await;
        failpoint::hit("push-called");
        answer
    }

    async fn take_in(&self, chunk: &[Ready], answer: Answer) -> Result<()> {
        let (why, asked) = match answer {
            Answer::Took { gone } => return self.taken(chunk, &gone).await,
            Answer::Gone => match chunk {
                [Ready { told, .. }] if told.devices.len() == 1 => {
                    return self.taken(chunk, &[(told.user.clone(), told.devices[0].device.clone())]).await;
                }
                _ => ("410, which does not say which of the devices is gone".to_owned(), None),
            },
            Answer::Refused(why) => (why, None),
            Answer::Failed { why, after } => (why, after),
        };
        if let Some(times) = self.failing.due() {
            tracing::warn!(times, why, "the webhook did not take notices");
        }
        let now = now();
        let outcome = |notice: &Notice| in_vain(&self.settings, notice, &why, asked, now);
        self.settle(settled(chunk, outcome)).await
    }

    /// Settles notices that the receiver has taken. A notice of which a device has another token by now is told again.
    async fn taken(&self, chunk: &[Ready], gone: &[(UserId, DeviceId)]) -> Result<()> {
        let again = self.take_away(chunk, gone).await?;
        let now = now();
        let quiet_until = after(now, self.settings.min_interval);
        let outcome = |notice: &Notice| match again.contains(&notice.key) {
            true => Outcome::Later { due: now },
            false => Outcome::Sent { quiet_until },
        };
        self.settle(settled(chunk, outcome)).await
    }

    /// Takes away the devices that the receiver says are gone, while they have the token that it was given. Gives the
    /// feeds of readers of whom such a device has another token by now.
    async fn take_away(&self, chunk: &[Ready], gone: &[(UserId, DeviceId)]) -> Result<HashSet<InboxKey>> {
        let (archive, mut again) = (self.feeds.archive(), HashSet::new());
        for (user, device) in gone {
            for Ready { notice: Notice { key, .. }, told } in chunk.iter().filter(|ready| ready.told.user == *user) {
                let Some(sent) = told.devices.iter().find(|sent| sent.device == *device) else { continue };
                if archive.unregister(key.reader, device, Some(&sent.push_token)).await? {
                    continue;
                }
                let others = archive.push_devices(&[key.reader]).await?.concat();
                if others.iter().any(|other| other.device == *device && other.feeds.contains(&key.feed)) {
                    again.insert(*key);
                }
            }
        }
        Ok(again)
    }
}

fn settled(chunk: &[Ready], outcome: impl Fn(&Notice) -> Outcome) -> Vec<Settled> {
    chunk.iter().map(|Ready { notice, .. }| Settled { notice: *notice, outcome: outcome(notice) }).collect()
}

/// What becomes of a notice after a try without success.
fn in_vain(settings: &PushSettings, notice: &Notice, why: &str, asked: Option<Duration>, now: Millis) -> Outcome {
    let failures = notice.tries + 1;
    if failures >= settings.tries {
        let why = why.chars().filter(|c| !c.is_control()).take(WHY_MAX).collect();
        return Outcome::Dead { why, at: now };
    }
    let wait = Backoff { first: settings.retry_first, max: settings.retry_max }.after(failures);
    let wait = wait + wait.mul_f64(jitter(notice.number, failures));
    Outcome::Later { due: after(now, wait.max(asked.unwrap_or_default().min(ASKED_MAX))) }
}

/// A part of a wait, 0 to a quarter, so that notices that failed together do not all come again at once. Notices whose
/// numbers lie near each other share it, so that they may be told by one call again.
fn jitter(number: u64, failures: u32) -> f64 {
    let mixed = (number / 128).wrapping_add(u64::from(failures) << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 40) as f64 / f64::from(1u32 << 24) / 4.0
}

#[cfg(test)]
mod tests {
    use feedgate_common::ItemId;

    use super::*;

    fn outcome(tries: u32, asked: Option<Duration>) -> Outcome {
        let notice = Notice { key: InboxKey::main(UserNo(1)), item: ItemId(1), count: 1, number: 5, tries };
        in_vain(&PushSettings::default(), &notice, "no\0", asked, 1000)
    }

    fn wait(tries: u32, asked: Option<Duration>) -> f64 {
        match outcome(tries, asked) {
            Outcome::Later { due } => (due - 1000) as f64 / 1000.0,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn waits_double_with_a_jitter_up_to_a_bound() {
        for (tries, least) in [(0, 5.0), (1, 10.0), (2, 20.0), (10, 3600.0)] {
            let wait = wait(tries, None);
            assert!((least..least * 1.25).contains(&wait), "{tries}: {wait}");
        }
        assert_eq!(wait(0, None), wait(0, None));
        assert_ne!(jitter(1, 1), jitter(1, 2));
    }

    #[test]
    fn what_the_receiver_asks_for_is_honoured_within_a_day() {
        assert_eq!(wait(0, Some(Duration::from_secs(600))), 600.0);
        assert_eq!(wait(0, Some(Duration::MAX)), 86_400.0);
        assert!(wait(2, Some(Duration::from_secs(1))) >= 20.0);
    }

    #[test]
    fn after_so_many_tries_a_notice_is_dead_with_the_reason() {
        assert!(matches!(outcome(10, None), Outcome::Later { .. }));
        assert_eq!(outcome(11, None), Outcome::Dead { why: "no".to_owned(), at: 1000 });
    }
}
