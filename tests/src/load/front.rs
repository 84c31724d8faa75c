//! nginx in front of a server, as `deploy/proxies/nginx.conf` sets it up: it ends TLS, and devices connect to it.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::time::{Instant, sleep};
use tokio_rustls::rustls::ClientConfig;

use super::socket;
use crate::process::{self, Memory};

/// The configuration that is shipped.
const SHIPPED: &str = include_str!("../../../deploy/proxies/nginx.conf");

/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(10);

/// One process of nginx, which is killed when this is dropped.
pub struct Front {
    child: Child,
    address: SocketAddr,
    tls: Arc<ClientConfig>,
}

impl Front {
    /// Starts nginx with its files in `directory`, in front of the server at `behind`.
    pub async fn start(directory: &Path, [certificate, key]: [&Path; 2], behind: SocketAddr) -> anyhow::Result<Self> {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let file = directory.join("nginx.conf");
        std::fs::write(&file, settings(directory, [certificate, key], address, behind)?)?;
        let mut command = Command::new("nginx");
        command.args(["-e", "stderr", "-c"]).arg(&file).stdin(Stdio::null());
        let child = command.spawn().context("nginx")?;
        let mut front = Self { child, address, tls: socket::trust(certificate)? };
        let started = Instant::now();
        while TcpStream::connect(address).is_err() {
            ensure!(front.child.try_wait()?.is_none(), "nginx ended at once");
            ensure!(started.elapsed() < PATIENCE, "nginx does not listen");
            sleep(Duration::from_millis(20)).await;
        }
        Ok(front)
    }

    /// The address to which devices connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The authorities that a device has to trust.
    pub fn tls(&self) -> Arc<ClientConfig> {
        self.tls.clone()
    }

    /// The processor time of the process so far, in seconds.
    pub fn cpu_seconds(&self) -> anyhow::Result<f64> {
        process::cpu_seconds(self.child.id())
    }

    /// The memory of the process now.
    pub fn memory(&self) -> anyhow::Result<Memory> {
        process::memory(self.child.id())
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The shipped configuration with the places of this machine, as one process in the foreground without a log.
fn settings(
    directory: &Path,
    [certificate, key]: [&Path; 2],
    address: SocketAddr,
    behind: SocketAddr,
) -> anyhow::Result<String> {
    let here = directory.display();
    let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let folders: String = folders.iter().map(|name| format!("{name}_temp_path {here}/{name};\n")).collect();
    let places = [
        ("worker_processes auto;", format!("daemon off;\nmaster_process off;\npid {here}/pid;")),
        ("worker_rlimit_nofile 131072;", String::new()),
        ("server 127.0.0.1:8080;", format!("server {behind};")),
        ("access_log /var/log/nginx/feedgate.log without_query;", format!("access_log off;\n{folders}")),
        ("listen 443 ssl;", format!("listen {address} ssl;")),
        ("/etc/feedgate/tls.pem", certificate.display().to_string()),
        ("/etc/feedgate/tls.key", key.display().to_string()),
    ];
    let mut settings = SHIPPED.to_owned();
    for (shipped, place) in places {
        ensure!(settings.matches(shipped).count() == 1, "deploy/proxies/nginx.conf says {shipped:?} once");
        settings = settings.replace(shipped, &place);
    }
    Ok(settings)
}
