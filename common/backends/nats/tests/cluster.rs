//! The job queue on three servers, with a copy of each stream on every one.

mod support;

use std::net::TcpListener;

use feedgate_engines::Nats;
use feedgate_nats::{Bus, NatsJobs, Settings};
use support::{SOON, ack_again, fan_out, put_again, take};
use tokio::time::{sleep, timeout};

/// Three servers that know each other.
fn cluster() -> Vec<Nats> {
    let free: Vec<TcpListener> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
    let urls: Vec<String> =
        free.iter().map(|free| format!("nats://{}", free.local_addr().expect("its address"))).collect();
    drop(free);
    let routes = urls.join(",");
    urls.iter().map(|url| Nats::start_with(&["--cluster_name", "c", "--cluster", url, "--routes", &routes])).collect()
}

/// The queue, as soon as the cluster has a leader.
async fn open(servers: &[Nats]) -> NatsJobs {
    let urls = servers.iter().map(Nats::url).collect::<Vec<_>>().join(",");
    let settings = Settings { replicas: 3, ..Settings::default() };
    let open = async {
        loop {
            if let Ok(bus) = Bus::connect(&urls).await
                && let Ok(jobs) = NatsJobs::open(bus, settings.clone()).await
            {
                return jobs;
            }
            sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    timeout(SOON, open).await.expect("three servers elect a leader")
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_cluster_a_job_put_after_an_ack_is_not_merged_with_the_one_that_is_done() {
    let mut servers = cluster();
    let jobs = open(&servers).await;
    for _ in 0..100 {
        put_again(&jobs, fan_out(1)).await;
        let delivery = take(&jobs).await;
        ack_again(&jobs, delivery).await;
    }
    servers[0].kill();
    put_again(&jobs, fan_out(2)).await;
    assert_eq!(take(&jobs).await.job, fan_out(2), "two of three go on");
}
