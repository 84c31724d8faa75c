//! Counts what each address uses of this node, and limits it: connections; unauthenticated connections among them; how
//! many unauthenticated connections begin per second; and upgrades to WebSocket per second.
//!
//! ```text
//!   accept ──▶ enter ──▶ Stay: unauthenticated ──▶ known ──▶ dropped as the connection ends
//!                │                                   └── gives back what it took of the second
//!                └── refused ──▶ may_hear_why: an answer, and after some of them none
//!   upgrade ─▶ may_upgrade, even if it is refused for something else
//! ```
//!
//! Invariants: the counts are exact, because a [`Stay`] gives back what it took. An address that holds nothing and
//! whose upgrades are forgotten takes no memory for long.
//!
//! An unauthenticated connection holds a head of at most 16 KiB, or a message of at most 16 KiB and the frame that
//! goes on with it, so their number bounds their memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::{AddressKey, Client};
use crate::limits::allowance::{Allowance, Rate};

/// The least time between two log lines about refusals, so that a flood does not fill the log.
const LOG_EVERY_MS: u64 = 10_000;

/// How many refused connections of one address are answered.
const REFUSALS: Rate = Rate { per_sec: 100, burst: 200 };

/// A shard forgets addresses that hold nothing when it has this many addresses, and again at twice the number that is
/// left.
const SWEEP_FROM: usize = 64;

/// The limits of one address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Connections of any kind at a time.
    pub(crate) connections: u32,
    /// Unauthenticated connections at a time.
    pub(crate) unauthenticated: u32,
    /// How often connections may begin that never authenticate.
    pub(crate) strangers: Rate,
    /// How often WebSockets may be asked for.
    pub(crate) upgrades: Rate,
}

/// The limit that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooMany {
    /// The address holds [`Limits::connections`] connections.
    Connections,
    /// The address holds [`Limits::unauthenticated`] unauthenticated connections.
    Unauthenticated,
    /// Connections come faster than [`Limits::strangers`] allows.
    Strangers,
    /// Upgrades come faster than [`Limits::upgrades`] allows.
    Upgrades,
}

impl TooMany {
    /// What is said to the client and in the log; it names the setting.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Connections => "this address holds as many connections as gateway.connections_per_address allows",
            Self::Unauthenticated => {
                "this address holds as many connections that have not said who they are as \
                 gateway.unauthenticated_per_address allows"
            }
            Self::Strangers => {
                "connections of this address that never say who they are come faster than \
                 gateway.unauthenticated_per_address allows in a second"
            }
            Self::Upgrades => {
                "this address asks for more WebSockets a second than gateway.upgrades_per_sec_per_address allows"
            }
        }
    }
}

/// What all addresses hold, in shards with a lock each.
pub(crate) struct Shares {
    shards: [Mutex<Shard>; 16],
    limits: ArcSwap<Limits>,
    logged_ms: AtomicU64,
}

struct Shard {
    held: FxHashMap<AddressKey, Usage>,
    sweep_at: usize,
}

#[derive(Default)]
struct Usage {
    connections: u32,
    unauthenticated: u32,
    strangers: Allowance,
    upgrades: Allowance,
    refusals: Allowance,
}

impl Usage {
    /// Whether nothing differs from an address that was never seen.
    fn is_nothing(&self, now_ms: u64) -> bool {
        let allowances = [&self.strangers, &self.upgrades, &self.refusals];
        self.connections == 0 && allowances.iter().all(|allowance| allowance.is_full(now_ms))
    }
}

impl Shares {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        let shard = |_| Mutex::new(Shard { held: FxHashMap::default(), sweep_at: SWEEP_FROM });
        Arc::new(Self {
            shards: std::array::from_fn(shard),
            limits: ArcSwap::from_pointee(limits),
            logged_ms: AtomicU64::new(0),
        })
    }

    /// Sets the limits from now on. An address that holds more than they allow keeps its connections, and gets no more.
    pub(crate) fn allow(&self, limits: Limits) {
        self.limits.store(Arc::new(limits));
    }

    /// Counts one unauthenticated connection more. If a limit is reached, gives this limit; then the connection is not
    /// counted.
    pub(crate) fn enter(self: &Arc<Self>, key: AddressKey, now_ms: u64) -> Result<Stay, TooMany> {
        let limits = self.limits.load();
        let entered = self.held(key, now_ms, |held| {
            if held.connections >= limits.connections {
                return Err(TooMany::Connections);
            }
            if held.unauthenticated >= limits.unauthenticated {
                return Err(TooMany::Unauthenticated);
            }
            if !held.strangers.take(1, now_ms, limits.strangers) {
                return Err(TooMany::Strangers);
            }
            held.connections += 1;
            held.unauthenticated += 1;
            Ok(())
        });
        self.log(key, now_ms, entered)?;
        Ok(Stay { shares: self.clone(), key, is_known: false })
    }

    /// Counts one upgrade more. If the limit is reached, says so; then the upgrade is not counted.
    pub(crate) fn upgrade(&self, key: AddressKey, now_ms: u64) -> Result<(), TooMany> {
        let upgrades = self.limits.load().upgrades;
        let fair = self.held(key, now_ms, |held| held.upgrades.take(1, now_ms, upgrades));
        self.log(key, now_ms, if fair { Ok(()) } else { Err(TooMany::Upgrades) })
    }

    /// Whether a refused connection of this address is answered: during a flood most are closed without an answer.
    pub(crate) fn may_hear_why(&self, key: AddressKey, now_ms: u64) -> bool {
        self.held(key, now_ms, |held| held.refusals.take(1, now_ms, REFUSALS))
    }

    fn held<T>(&self, key: AddressKey, now_ms: u64, change: impl FnOnce(&mut Usage) -> T) -> T {
        let mut shard = self.shard(key).lock();
        let changed = change(shard.held.entry(key).or_default());
        if shard.held.len() >= shard.sweep_at {
            shard.held.retain(|_, held| !held.is_nothing(now_ms));
            shard.sweep_at = SWEEP_FROM.max(2 * shard.held.len());
        }
        changed
    }

    fn shard(&self, key: AddressKey) -> &Mutex<Shard> {
        // The low bits differ between neighbours, both of IPv4 addresses and of prefixes.
        &self.shards[key.0 as usize % self.shards.len()]
    }

    /// Warns in the log of a refusal, at most once per [`LOG_EVERY_MS`]; passes `answer` on.
    fn log<T>(&self, address: AddressKey, now_ms: u64, answer: Result<T, TooMany>) -> Result<T, TooMany> {
        if let Err(too_many) = &answer {
            let due = |logged: u64| (logged == 0 || now_ms >= logged + LOG_EVERY_MS).then_some(now_ms.max(1));
            if self.logged_ms.fetch_update(Ordering::AcqRel, Ordering::Acquire, due).is_ok() {
                let what = too_many.text();
                tracing::warn!(%address, "{what}; if it is a proxy of yours, name it in gateway.trusted_proxies");
            }
        }
        answer
    }
}

/// A counted connection. When this is dropped, the connection counts no longer.
pub(crate) struct Stay {
    shares: Arc<Shares>,
    key: AddressKey,
    is_known: bool,
}

impl Stay {
    /// Counts the connection as authenticated from now on.
    pub(crate) fn known(&mut self) {
        if !std::mem::replace(&mut self.is_known, true) {
            let rate = self.shares.limits.load().strangers;
            self.change(|held| {
                held.unauthenticated -= 1;
                held.strangers.give_back(1, rate);
            });
        }
    }

    /// The client that the connection counts for.
    pub(crate) fn client(&self) -> Client {
        Client(Some(self.key))
    }

    fn change(&self, change: impl FnOnce(&mut Usage)) {
        let mut shard = self.shares.shard(self.key).lock();
        change(shard.held.get_mut(&self.key).expect("an address with connections is kept"));
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let was_known = self.is_known;
        self.change(|held| {
            held.connections -= 1;
            held.unauthenticated -= u32::from(!was_known);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(address: u32) -> AddressKey {
        AddressKey::of(std::net::Ipv4Addr::from_bits(address).into())
    }

    fn addresses() -> Arc<Shares> {
        let (strangers, upgrades) = (Rate::twice(50), Rate::twice(10));
        Shares::new(Limits { connections: 3, unauthenticated: 2, strangers, upgrades })
    }

    fn entries(addresses: &Shares) -> usize {
        addresses.shards.iter().map(|shard| shard.lock().held.len()).sum()
    }

    #[test]
    fn an_address_holds_no_more_than_it_may_and_gets_back_what_it_gives_up() {
        let addresses = addresses();
        let enter = || addresses.enter(key(1), 0);
        let mut first = enter().ok().unwrap();
        let second = enter().ok().unwrap();
        assert_eq!(enter().err(), Some(TooMany::Unauthenticated));
        assert!(addresses.enter(key(2), 0).is_ok(), "another address is not concerned");
        first.known();
        first.known();
        let third = enter().ok().unwrap();
        assert_eq!(enter().err(), Some(TooMany::Connections));
        drop((first, second, third));
        let again = [enter(), enter()];
        assert!(again.iter().all(Result::is_ok));
    }

    #[test]
    fn upgrades_are_fair_by_the_second_and_coming_and_going_does_not_reset_them() {
        let addresses = addresses();
        let upgrades = |at: u64| (0..100).filter(|_| addresses.upgrade(key(1), at).is_ok()).count();
        assert_eq!(upgrades(5000), 20);
        drop(addresses.enter(key(1), 5000));
        assert_eq!((upgrades(5000), upgrades(6000)), (0, 10));
        assert_eq!(addresses.upgrade(key(2), 6000), Ok(()));
    }

    #[test]
    fn another_limit_holds_at_once_and_takes_nothing_from_who_has_more() {
        let (addresses, of) = (addresses(), |connections, unauthenticated| {
            let (strangers, upgrades) = (Rate::twice(50), Rate::twice(10));
            Limits { connections, unauthenticated, strangers, upgrades }
        });
        let stays = [addresses.enter(key(1), 0), addresses.enter(key(1), 0)];
        assert!(stays.iter().all(Result::is_ok));
        addresses.allow(of(1, 1));
        assert_eq!(addresses.enter(key(1), 0).err(), Some(TooMany::Connections));
        addresses.allow(of(3, 3));
        assert!(addresses.enter(key(1), 0).is_ok());
        drop(stays);
    }

    #[test]
    fn strangers_are_fair_by_the_second_and_who_says_who_they_are_is_none() {
        let addresses = addresses();
        let strangers = |at: u64| (0..500).filter(|_| addresses.enter(key(1), at).is_ok()).count();
        assert_eq!((strangers(5000), strangers(5000), strangers(6000)), (100, 0, 50));
        assert_eq!(addresses.enter(key(1), 6000).err(), Some(TooMany::Strangers));
        assert!(addresses.enter(key(2), 6000).is_ok(), "another address is not concerned");
        let known = |at: u64| addresses.enter(key(1), at).map(|mut stay| stay.known()).is_ok();
        assert_eq!((0..500).filter(|_| known(7000)).count(), 500);
    }

    #[test]
    fn a_flood_of_refusals_gets_a_few_answers() {
        let addresses = addresses();
        let answers = |at: u64| (0..100_000).filter(|_| addresses.may_hear_why(key(1), at)).count();
        assert_eq!((answers(5000), answers(6000)), (200, 100));
        assert!(addresses.may_hear_why(key(2), 6000));
    }

    #[test]
    fn i18_addresses_that_hold_nothing_are_forgotten() {
        let addresses = addresses();
        let stays: Vec<_> = (0..100).map(|n| addresses.enter(key(n), 0)).collect();
        for n in 0..1_000_000 {
            let _ = addresses.upgrade(key(1000 + n), u64::from(n));
        }
        assert!(entries(&addresses) < 20_000, "{}", entries(&addresses));
        drop(stays);
        (0..100).for_each(|n| drop(addresses.enter(key(n), 2_000_000)));
    }
}
