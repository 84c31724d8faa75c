//! The job queue on three servers, with a copy of each stream on every one.

mod support;

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::stream::Config;
use feedgate_common::intake::Backend;
use feedgate_engines::{Nats, free_port, on_free_ports};
use feedgate_nats::{Bus, IntakeSettings, NatsIntake, NatsJobs, Settings};
use support::{Hanging, SOON, ack_again, fan_out, put_again, take};
use tokio::time::{sleep, timeout};

/// All streams that Feedgate makes.
const STREAMS: [&str; 5] = ["FEED_WORK", "FEED_EDGES", "FEED", "FEED_IN", "FEED_REFUSED"];

/// Three servers that know each other.
fn cluster() -> Vec<Nats> {
    on_free_ports(|| {
        let urls: Vec<_> = (0..3).map(|_| format!("nats://127.0.0.1:{}", free_port())).collect();
        let routes = urls.join(",");
        let start = |url: &String| {
            Nats::try_start(free_port(), &["--cluster_name", "c", "--cluster", url, "--routes", &routes])
        };
        urls.iter().map(start).collect()
    })
}

fn urls(servers: &[Nats]) -> String {
    servers.iter().map(Nats::url).collect::<Vec<_>>().join(",")
}

/// What `open` gives, as soon as the cluster has a leader.
async fn when_led<T, E>(open: impl AsyncFn() -> Result<T, E>) -> T {
    let open = async {
        loop {
            match open().await {
                Ok(opened) => return opened,
                Err(_) => sleep(Duration::from_millis(50)).await,
            }
        }
    };
    timeout(SOON, open).await.expect("three servers elect a leader")
}

async fn open(servers: &[Nats], settings: &Settings) -> NatsJobs {
    let bus = when_led(async || Bus::connect(&urls(servers)).await).await;
    when_led(async || NatsJobs::open(bus.clone(), settings.clone()).await).await
}

async fn is_never_merged_with_what_is_done(jobs: &NatsJobs) {
    for _ in 0..100 {
        put_again(jobs, fan_out(1)).await;
        let delivery = take(jobs).await;
        ack_again(jobs, delivery).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_cluster_a_job_put_after_an_ack_is_not_merged_with_the_one_that_is_done() {
    let mut servers = cluster();
    let jobs = open(&servers, &Settings { replicas: 3, ..Settings::default() }).await;
    is_never_merged_with_what_is_done(&jobs).await;
    servers[0].kill();
    put_again(&jobs, fan_out(2)).await;
    assert_eq!(take(&jobs).await.job, fan_out(2), "two of three go on");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_replicas_that_an_operator_gives_a_stream_outlast_the_next_start() {
    let servers = cluster();
    drop(open(&servers, &Settings::default()).await);
    let bus = Bus::connect(&urls(&servers)).await.unwrap();
    let backend: Arc<dyn Backend> = Arc::new(Hanging::default());
    let open_intake =
        async || NatsIntake::open(&bus, IntakeSettings::default(), "web-1", backend.clone()).await.map(drop);
    when_led(open_intake).await;
    let jetstream = jetstream::new(async_nats::connect(servers[0].url()).await.unwrap());
    let config = async |name| jetstream.get_stream(name).await.map(|stream| stream.cached_info().config.clone());
    for name in STREAMS {
        let made = when_led(async || config(name).await).await;
        assert_eq!(made.num_replicas, 1, "{name}");
        when_led(async || jetstream.update_stream(Config { num_replicas: 3, ..made.clone() }).await).await;
    }

    let jobs = open(&servers, &Settings::default()).await;
    when_led(open_intake).await;
    for name in STREAMS {
        assert_eq!(when_led(async || config(name).await).await.num_replicas, 3, "{name}");
    }
    is_never_merged_with_what_is_done(&jobs).await;
}
