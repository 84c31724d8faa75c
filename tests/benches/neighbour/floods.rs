//! Attacks by blank frames, by heads that do not end and by silent connections; and the load of many honest devices.

use std::rc::Rc;
use std::time::Duration;

use feedgate_tests::load::{Backend, Deliver, Fleet, Plan, Wire};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::attack::{Count, add, hands};
use crate::wire;
use crate::world::{STAR, Target};

/// Frames in one write.
const AT_ONCE: usize = 1000;

const HEADS: usize = 4000;
const HEAD_BYTES: usize = 60_000;

/// Upgrades in one tick, and how often one comes: 1,000 a second.
const UPGRADES: usize = 10;
const TICK: Duration = Duration::from_millis(10);

/// Text frames of one line feed.
pub(crate) async fn blank_frames(target: Rc<Target>, count: Count) -> anyhow::Result<()> {
    frames(target, count, Vec::new(), wire::masked(0x81, b"\n").repeat(AT_ONCE)).await
}

/// A text message that goes on, without a byte, for ever.
pub(crate) async fn empty_continuations(target: Rc<Target>, count: Count) -> anyhow::Result<()> {
    frames(target, count, wire::masked(0x01, b"x"), wire::masked(0x00, b"").repeat(AT_ONCE)).await
}

/// `first`, and then `again` without end, as fast as the server takes it.
async fn frames(target: Rc<Target>, count: Count, first: Vec<u8>, again: Vec<u8>) -> anyhow::Result<()> {
    let (first, again) = (Rc::new(first), Rc::new(again));
    hands(1, count, || {
        let (target, first, again) = (target.clone(), first.clone(), again.clone());
        async move {
            let mut stream = wire::open(target.address).await?;
            wire::upgrade(&mut stream).await?;
            stream.write_all(&first).await?;
            loop {
                stream.write_all(&again).await?;
            }
        }
    })
    .await
}

/// A request whose head never ends.
pub(crate) async fn unfinished_heads(target: Rc<Target>, count: Count) -> anyhow::Result<()> {
    let mut head = b"GET /v1/stats HTTP/1.1\r\nHost: x\r\nX-Filler: ".to_vec();
    head.resize(HEAD_BYTES, b'x');
    let head = Rc::new(head);
    hands(HEADS, count, || {
        let (target, head) = (target.clone(), head.clone());
        async move {
            let mut stream = wire::open(target.address).await?;
            stream.write_all(&head).await?;
            // The connection stays open until the server ends it.
            stream.read_u8().await.map(|_| ())
        }
    })
    .await
}

/// The heads at a port of this process that closes each connection at once with a reset, which is the least that any
/// server can do. What the neighbour notices of this is the machine's share: the attacker and the kernel at work beside
/// it.
pub(crate) async fn heads_elsewhere(target: Rc<Target>, count: Count) -> anyhow::Result<()> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // The thread ends with the process.
            let _ = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
        }
    });
    unfinished_heads(Rc::new(Target { address, ..Target::clone(&target) }), count).await
}

/// Upgrades on schedule, each held for so long or until the server ends it.
pub(crate) async fn upgrades(target: Rc<Target>, count: Count, hold: Duration) -> anyhow::Result<()> {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        for _ in 0..UPGRADES {
            let (target, count) = (target.clone(), count.clone());
            add(&count, 1, 0);
            tokio::task::spawn_local(async move {
                let upgraded = async {
                    let mut stream = wire::open(target.address).await?;
                    wire::upgrade(&mut stream).await?;
                    std::io::Result::Ok(stream)
                };
                let ended_by_server = match upgraded.await {
                    Err(_) => true,
                    Ok(mut stream) => tokio::select! {
                        () = sleep(hold) => false,
                        _ = stream.read_u8() => true,
                    },
                };
                add(&count, 0, ended_by_server.into());
            });
        }
    }
}

/// Every reader is online, and whom all follow posts once a second.
pub(crate) async fn star_posts(target: &Target, count: Count, prepared: &Semaphore) -> anyhow::Result<()> {
    let fleet = online(target, &count).await?;
    prepared.add_permits(1);
    let backend = Backend::new(target.address, &target.api_key);
    let everyone = 0..target.reader_tokens.len();
    let mut ticks = interval(Duration::from_secs(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        fleet.expect(everyone.clone(), 1);
        backend.publish(STAR, 80).await?;
        fleet.arrived(everyone.clone()).await?;
    }
}

/// Every reader is online; all hang up and come back, again and again.
pub(crate) async fn reconnects(target: &Target, count: Count, prepared: &Semaphore) -> anyhow::Result<()> {
    let mut fleet = online(target, &count).await?;
    prepared.add_permits(1);
    loop {
        fleet.hang_up().await;
        fleet = online(target, &count).await?;
    }
}

async fn online(target: &Target, count: &Count) -> anyhow::Result<Fleet> {
    add(count, target.reader_tokens.len() as u64, 0);
    let (addresses, tokens) = (&[target.address], &target.reader_tokens);
    Fleet::connect(Plan { addresses, deliver: Deliver::Items, wire: Wire::Json, tokens, stalled: 0..0, tls: None })
        .await
}
