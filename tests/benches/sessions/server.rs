//! The real server as a child process, in a directory of its own, and a backend that talks to it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow, ensure};
use feedgate_gateway::Keys;
use feedgate_tests::process::{self, Memory};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, header};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::sleep;

/// How often the measured server pings. Shorter than the default of 25 s, so that a run is short.
pub(crate) const PING_INTERVAL: Duration = Duration::from_secs(10);

/// Operations in a batch, at most.
const BATCH: usize = 1000;

/// See the module.
pub(crate) struct Server {
    child: Child,
    binary: PathBuf,
    directory: TempDir,
    pub(crate) address: SocketAddr,
    api_key: String,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// Builds the release binary beside this one and answers where it is.
pub(crate) fn build() -> anyhow::Result<PathBuf> {
    let here = std::env::current_exe()?;
    let target = here.parent().and_then(Path::parent).context("a benchmark lies in target/release/deps")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo).args(["build", "--release", "--package", "feedgate"]).status()?;
    ensure!(built.success(), "the server could not be built");
    Ok(target.join("feedgate"))
}

fn spawn(binary: &Path, directory: &Path, address: SocketAddr) -> anyhow::Result<Child> {
    let (data, config) = (directory.join("data"), directory.join("feedgate.toml"));
    Command::new(binary)
        .args(["serve", "--listen", &address.to_string(), "--data"])
        .args([data.as_os_str(), "--config".as_ref(), config.as_os_str()])
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| binary.display().to_string())
}

impl Server {
    /// Starts `binary` on a free port and an empty directory, and waits until it answers.
    pub(crate) async fn start(binary: &Path) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let config = format!("[gateway]\nping_interval_secs = {}\n", PING_INTERVAL.as_secs());
        std::fs::write(directory.path().join("feedgate.toml"), config)?;
        let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let child = spawn(binary, directory.path(), address)?;
        let client = Client::builder(TokioExecutor::new()).build_http();
        let binary = binary.to_owned();
        let mut server = Self { child, binary, directory, address, api_key: String::new(), client };
        server.ready().await?;
        server.api_key = server.secret("api_key")?;
        Ok(server)
    }

    /// Stops it in good order and starts it again on the same data: a heap without a past.
    pub(crate) async fn restart(&mut self) -> anyhow::Result<()> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM)?;
        let ended = self.child.wait()?;
        ensure!(ended.success(), "the server ended with {ended}");
        self.child = spawn(&self.binary, self.directory.path(), self.address)?;
        self.ready().await
    }

    async fn ready(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        while self.request(Method::GET, "/readyz", None).await.is_err() {
            ensure!(self.child.try_wait()?.is_none(), "the server ended at once");
            ensure!(started.elapsed() < Duration::from_secs(20), "the server did not answer");
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    fn secret(&self, name: &str) -> anyhow::Result<String> {
        let path = self.directory.path().join("data/secrets").join(name);
        Ok(std::fs::read_to_string(&path).with_context(|| path.display().to_string())?.trim().to_owned())
    }

    /// A token for each user, good for an hour.
    pub(crate) fn tokens(&self, users: impl Iterator<Item = String>) -> anyhow::Result<Vec<String>> {
        let keys = Keys::new(&self.api_key, self.secret("token_key")?.as_bytes());
        let expires_at = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() + 3600;
        users.map(|user| Ok(keys.mint(&user.parse()?, None, expires_at))).collect()
    }

    /// Lets `users` follow `author`.
    pub(crate) async fn follow(&self, users: &[String], author: &str) -> anyhow::Result<()> {
        for chunk in users.chunks(BATCH) {
            let ops = chunk.iter().map(|user| json!({"op": "follow", "user": user, "author": author}));
            self.batch("/v1/follows/batch", ops.collect()).await?;
        }
        Ok(())
    }

    /// Publishes one item of `author` with a body of about `bytes` bytes.
    pub(crate) async fn publish(&self, author: &str, bytes: usize) -> anyhow::Result<()> {
        let item = json!({"author": author, "body": {"text": "x".repeat(bytes)}});
        self.request(Method::POST, "/v1/items", Some(item)).await?;
        Ok(())
    }

    /// Publishes `count` of them, in one commit.
    pub(crate) async fn publish_burst(&self, author: &str, bytes: usize, count: u64) -> anyhow::Result<()> {
        let item = json!({"author": author, "body": {"text": "x".repeat(bytes)}});
        self.batch("/v1/items/batch", (0..count).map(|_| item.clone()).collect()).await
    }

    async fn batch(&self, path: &str, ops: Vec<Value>) -> anyhow::Result<()> {
        let answer = self.request(Method::POST, path, Some(json!({ "ops": ops }))).await?;
        let results = answer["results"].as_array().context("a batch answers with results")?;
        match results.iter().find(|result| result["status"].as_u64().is_none_or(|status| status >= 300)) {
            Some(refused) => Err(anyhow!("{path}: {refused}")),
            None => Ok(()),
        }
    }

    /// Reads the user's feed page, which makes the inbox if there is none.
    pub(crate) async fn page(&self, user: &str) -> anyhow::Result<()> {
        self.request(Method::GET, &format!("/v1/users/{user}/feed"), None).await.map(|_| ())
    }

    /// Waits until nothing is left to do.
    pub(crate) async fn quiet(&self) -> anyhow::Result<Value> {
        let started = Instant::now();
        loop {
            let stats = self.request(Method::GET, "/v1/stats", None).await?;
            if stats["jobs"]["pending"] == 0 && stats["archive"]["events_outstanding"] == 0 {
                return Ok(stats);
            }
            ensure!(started.elapsed() < Duration::from_secs(60), "the server does not come to rest: {stats}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Sessions it counts.
    pub(crate) async fn sessions(&self) -> anyhow::Result<u64> {
        let stats = self.request(Method::GET, "/v1/stats", None).await?;
        stats["sessions"]["sessions"].as_u64().context("the stats count the sessions")
    }

    /// Its processor time so far.
    pub(crate) fn cpu_seconds(&self) -> anyhow::Result<f64> {
        process::cpu_seconds(self.child.id())
    }

    /// Its memory once that stands still, or after eight seconds.
    pub(crate) async fn settled_memory(&self) -> anyhow::Result<Memory> {
        let mut last = process::memory(self.child.id())?;
        let mut still = 0;
        for _ in 0..32 {
            sleep(Duration::from_millis(250)).await;
            let now = process::memory(self.child.id())?;
            still = if now.anonymous.abs_diff(last.anonymous) < 64 * 1024 { still + 1 } else { 0 };
            last = now;
            if still == 8 {
                break;
            }
        }
        Ok(last)
    }

    async fn request(&self, method: Method, path: &str, body: Option<Value>) -> anyhow::Result<Value> {
        let body = body.map(|value| value.to_string()).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address))
            .header(header::AUTHORIZATION, format!("Bearer {}", self.api_key))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::from(body))?;
        let (head, body) = self.client.request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        ensure!(head.status.is_success(), "{path}: {} {}", head.status, String::from_utf8_lossy(&body));
        Ok(serde_json::from_slice(&body).unwrap_or_default())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already; its directory goes with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
