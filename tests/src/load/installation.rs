//! What a benchmark measures: one process on embedded storage, or the smallest cluster over its three engines.

use super::server::PROGRAM;
use super::{Engines, Home, Server};

/// The running programs. Fields are dropped in this order: processes before what they use.
pub struct Installation {
    /// The process that backends and devices talk to.
    pub gateway: Server,
    worker: Option<Server>,
    engines: Option<Engines>,
}

impl Installation {
    /// The arguments of `cargo build` that make its programs, for [`run_with`](super::run_with).
    pub fn programs(cluster: bool) -> &'static [&'static str] {
        if cluster { &["--bins", "--features", "cluster"] } else { PROGRAM }
    }

    /// Starts `feedgate` in this home; with `cluster` a gateway and a worker over PostgreSQL, Redis and NATS.
    pub async fn start(home: &Home, cluster: bool) -> anyhow::Result<Self> {
        if !cluster {
            let gateway = home.start("server", &["feedgate", "serve"], "--listen", "").await?;
            return Ok(Self { gateway, worker: None, engines: None });
        }
        let engines = Engines::start()?;
        let settings = engines.settings();
        let gateway = home.start("gateway", &["gateway"], "--listen", &settings).await?;
        let worker = home.start("worker", &["timeline"], "--health-listen", &settings).await?;
        Ok(Self { gateway, worker: Some(worker), engines: Some(engines) })
    }

    /// The processor time of all processes so far, in seconds; those of the engines count.
    pub fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let mut spent = self.gateway.cpu_seconds()?;
        if let Some(worker) = &self.worker {
            spent += worker.cpu_seconds()?;
        }
        if let Some(engines) = &self.engines {
            spent += engines.cpu_seconds()?.into_iter().map(|(_, seconds)| seconds).sum::<f64>();
        }
        Ok(spent)
    }
}
