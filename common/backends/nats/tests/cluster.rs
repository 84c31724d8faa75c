//! The job queue on three servers, with a copy of each stream on every one.

mod support;

use feedgate_engines::{Nats, free_port, on_free_ports};
use feedgate_nats::{Bus, NatsJobs, Settings};
use support::{SOON, ack_again, fan_out, put_again, take};
use tokio::time::{sleep, timeout};

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
