//! The real programs as child processes, in a directory of their own.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail, ensure};
use feedgate_gateway::Keys;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::time::sleep;
use tokio_rustls::rustls::ClientConfig;

use super::front::Front;
use super::{Backend, socket};
use crate::process::{self, Memory};

/// How long a start may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Builds the release binaries beside this program, with these arguments of `cargo build` besides, and answers
/// the directory that they are in.
pub fn build(arguments: &[&str]) -> anyhow::Result<PathBuf> {
    let here = std::env::current_exe()?;
    let target = here.parent().and_then(Path::parent).context("a benchmark lies in target/release/deps")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the package lies in the workspace")?;
    let mut build = Command::new(cargo);
    build.args(["build", "--release"]).args(arguments).current_dir(root);
    // What cargo says to this program of its own package would make it build others anew.
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_a_package(name)) {
        build.env_remove(name);
    }
    let built = build.status()?;
    ensure!(built.success(), "the programs could not be built");
    Ok(target.to_owned())
}

/// The arguments of `cargo build` that make the one process.
pub(super) const PROGRAM: &[&str] = &["--package", "feedgate"];

/// Runs a benchmark on this thread with the release binaries in `brought`, or else with those of the package
/// `feedgate`, which are built first. `measure` gets the directory of the binaries.
pub fn run(brought: Option<PathBuf>, measure: impl AsyncFnOnce(&Path) -> anyhow::Result<()>) -> anyhow::Result<()> {
    run_with(PROGRAM, brought, measure)
}

/// Runs a benchmark as [`run`] does; what is not brought is built with these arguments of `cargo build`.
pub fn run_with(
    arguments: &[&str],
    brought: Option<PathBuf>,
    measure: impl AsyncFnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let binaries = brought.map_or_else(|| build(arguments), Ok)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, measure(&binaries))
}

fn is_of_a_package(variable: &OsStr) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| variable.as_encoded_bytes().starts_with(prefix.as_bytes()))
}

/// The directory of processes that share their secrets; it goes with this.
pub struct Home {
    directory: TempDir,
    binaries: PathBuf,
    api_key: String,
    keys: Keys,
}

impl Home {
    /// An empty one, with secrets, for the programs in `binaries`.
    pub fn make(binaries: &Path) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let secrets = directory.path().join("secrets");
        let feedgate = binaries.join("feedgate");
        let made = Command::new(&feedgate).arg("secrets").arg(&secrets).stdout(Stdio::null()).status();
        ensure!(made.with_context(|| feedgate.display().to_string())?.success(), "the secrets could not be made");
        let secret = |name| anyhow::Ok(std::fs::read_to_string(secrets.join(name))?.trim().to_owned());
        let api_key = secret("api_key")?;
        let keys = Keys::new(&api_key, secret("token_key")?.as_bytes());
        Ok(Self { directory, binaries: binaries.to_owned(), api_key, keys })
    }

    /// The directory of the data and the settings of every server of this home.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The key that backends of this server show.
    pub fn api_key(&self) -> &str {
        &self.api_key
    }

    /// A token for each user, good for an hour.
    pub fn tokens(&self, users: impl Iterator<Item = String>) -> anyhow::Result<Vec<String>> {
        let expires_at = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() + 3600;
        users.map(|user| Ok(self.keys.mint(&user.parse()?, None, 0, expires_at))).collect()
    }

    /// Makes a certificate for this machine, and its key.
    fn make_certificate(&self) -> anyhow::Result<[PathBuf; 2]> {
        let [certificate, key] = ["certificate.pem", "key.pem"].map(|file| self.directory.path().join(file));
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"])
            .args(["-subj", "/CN=server", "-addext", "subjectAltName=IP:127.0.0.1"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .arg("-out")
            .arg(&certificate)
            .arg("-keyout")
            .arg(&key)
            .stderr(Stdio::null())
            .status();
        ensure!(made.context("openssl")?.success(), "openssl could not make a certificate");
        Ok([certificate, key])
    }

    /// Starts nginx in front of a server of this home. Devices connect to it by TLS.
    pub async fn start_front(&self, server: &Server) -> anyhow::Result<Front> {
        let [certificate, key] = self.make_certificate()?;
        Front::start(self.path(), [&certificate, &key], server.address()).await
    }

    /// Starts `feedgate` as [`Self::start`] does, which serves its devices by TLS.
    pub async fn start_with_tls(&self, name: &str, settings: &str) -> anyhow::Result<Server> {
        let [certificate, key] = self.make_certificate()?;
        let settings = format!("{settings}[tls]\ncertificate = {certificate:?}\nkey = {key:?}\n");
        let command = ["feedgate", "serve", "--admin-listen", "127.0.0.1:0"];
        let mut server = self.start(name, &command, "--listen", &settings).await?;
        server.tls = Some(socket::trust(&certificate)?);
        Ok(server)
    }

    /// Starts a process called `name` (no other server of this home has that name) and waits until it is ready:
    /// `command` is the program and its arguments; `listens` is the flag that takes its address; `settings` is TOML.
    pub async fn start(&self, name: &str, command: &[&str], listens: &str, settings: &str) -> anyhow::Result<Server> {
        let directory = self.directory.path().join(name);
        std::fs::create_dir(&directory)?;
        let config = directory.join("feedgate.toml");
        // What is not worth a warning would stand between the figures.
        let (secrets, data) = (self.directory.path().join("secrets"), directory.join("data"));
        std::fs::write(
            &config,
            format!("secrets = {secrets:?}\ndata = {data:?}\nnode = {name:?}\nlog = \"warn\"\n{settings}"),
        )?;
        let (program, arguments) = command.split_first().context("a command begins with a program")?;
        let mut command = Command::new(self.binaries.join(program));
        command.args(arguments).args([listens, "127.0.0.1:0"]).args([OsStr::new("--config"), config.as_os_str()]);
        command.stdout(Stdio::piped());
        Server::start(name, command, &self.api_key).await
    }
}

/// One process, which is killed when this is dropped.
pub struct Server {
    name: String,
    command: Command,
    api_key: String,
    child: Child,
    _stdout: BufReader<ChildStdout>,
    devices: Option<SocketAddr>,
    tls: Option<Arc<ClientConfig>>,
    /// A client of the HTTP API of this process.
    pub backend: Backend,
}

impl Server {
    async fn start(name: &str, mut command: Command, api_key: &str) -> anyhow::Result<Self> {
        let (child, stdout, places) = spawn(&mut command)?;
        let (name, api_key) = (name.to_owned(), api_key.to_owned());
        let (devices, backend) = (places.devices, Backend::new(places.backends, &api_key));
        let mut server = Self { name, command, api_key, child, _stdout: stdout, devices, tls: None, backend };
        server.ready().await?;
        Ok(server)
    }

    /// Stops it in good order and starts it again on the same data, at another address: a heap without a past.
    pub async fn restart(&mut self) -> anyhow::Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let ended = self.child.wait()?;
        ensure!(ended.success(), "{} ended with {ended}", self.name);
        let (child, stdout, places) = spawn(&mut self.command)?;
        (self.child, self._stdout, self.devices) = (child, stdout, places.devices);
        self.backend = Backend::new(places.backends, &self.api_key);
        self.ready().await
    }

    async fn ready(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        while let Err(error) = self.backend.ready().await {
            ensure!(self.child.try_wait()?.is_none(), "{} ended at once", self.name);
            ensure!(started.elapsed() < PATIENCE, "{} is not ready: {error:#}", self.name);
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address to which devices connect; of a worker, that of its health.
    pub fn address(&self) -> SocketAddr {
        self.devices.unwrap_or_else(|| self.backend.address())
    }

    /// How devices trust it, if it serves them by TLS.
    pub fn tls(&self) -> Option<Arc<ClientConfig>> {
        self.tls.clone()
    }

    /// The processor time of the process so far, in seconds.
    pub fn cpu_seconds(&self) -> anyhow::Result<f64> {
        process::cpu_seconds(self.child.id())
    }

    /// The most resident memory that it has had since its start, in bytes.
    pub fn peak_memory(&self) -> anyhow::Result<u64> {
        process::peak_memory(self.child.id())
    }

    /// Its memory once that stands still, or after eight seconds.
    pub async fn settled_memory(&self) -> anyhow::Result<Memory> {
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
}

/// The addresses that a process has printed.
struct Places {
    /// Where devices connect; `None` for a worker.
    devices: Option<SocketAddr>,
    /// Where the HTTP API is, or the health of a worker.
    backends: SocketAddr,
}

/// Starts a program on ports that the kernel chooses, and waits until it has printed its addresses.
fn spawn(command: &mut Command) -> anyhow::Result<(Child, BufReader<ChildStdout>, Places)> {
    let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
    let mut stdout = BufReader::new(child.stdout.take().context("stdout is a pipe")?);
    let places = match places_of(&mut stdout) {
        Ok(places) => places,
        Err(error) => {
            child.kill()?;
            child.wait()?;
            return Err(error.context(format!("{command:?}")));
        }
    };
    Ok((child, stdout, places))
}

/// Reads the lines `WebSocket  ws://ADDRESS/connection/websocket` (or `wss://`) and `HTTP API   http://ADDRESS/v1`, or
/// for a worker `Health     http://ADDRESS/readyz`.
fn places_of(stdout: &mut impl BufRead) -> anyhow::Result<Places> {
    let mut devices = None;
    for line in stdout.lines() {
        let line = line?;
        let after = |name| line.trim().strip_prefix(name).map(address_in);
        if let Some(address) = after("WebSocket") {
            devices = Some(address?);
        } else if let Some(backends) = after("HTTP API").or_else(|| after("Health")) {
            return Ok(Places { devices, backends: backends? });
        }
    }
    bail!("it ended before it printed its address")
}

fn address_in(url: &str) -> anyhow::Result<SocketAddr> {
    let (_, rest) = url.split_once("://").context("a place is a URL")?;
    Ok(rest.split('/').next().unwrap_or(rest).parse()?)
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
