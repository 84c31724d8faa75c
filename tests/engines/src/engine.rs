//! One server in one directory.
//!
//! ```text
//!  start ─▶ [answers] ─ kill | stop ─▶ [ended] ─ restart ─▶ [answers]
//!               │ pause        ▲
//!               ▼              │ kill
//!           [hangs] ─ resume ─▶ [answers]
//!  drop, exit or death of the test process: its pipe to `tests/engines/sweep` closes, which kills
//!  the engine's processes and removes the directory
//! ```

use std::fs::{self, File};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::OnceLock;

use crate::launcher::{run, script, wait_until};
use crate::port::{PortTaken, free_port, on_free_ports};

const LOG_LINES_SHOWN: usize = 30;
/// How each of the engines says, in small or capital letters, that it cannot listen on a port.
const TAKEN: &str = "address already in use";

/// A kind of engine.
pub trait Kind: Sized + 'static {
    /// The script in `tests/engines`.
    const LAUNCHER: &str;
    /// The signal that asks for a proper end.
    const STOP: &str = "TERM";

    /// The URL by which a client connects.
    fn url(port: u16) -> String;
    /// Whether process `pid`, and no other, serves clients on the port.
    fn answers(port: u16, directory: &Path, pid: u32) -> bool;
    /// The place of [`Engine::shared`].
    fn shared() -> &'static OnceLock<Engine<Self>>;
}

/// A running server: [`Redis`](crate::Redis), [`Nats`](crate::Nats) or [`Postgres`](crate::Postgres).
///
/// It listens on the loopback alone. Dropping it kills it and removes its directory; the end of the test
/// process, of any kind, does the same. Every method blocks; one that starts the server returns when
/// it answers and panics with its log when it does not within a minute.
#[derive(Debug)]
pub struct Engine<K: Kind> {
    port: u16,
    directory: PathBuf,
    arguments: Vec<String>,
    child: Child,
    sweeper: Child,
    kind: PhantomData<K>,
}

impl<K: Kind> Engine<K> {
    /// A server on a free port, with an empty directory of its own.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// As [`start`](Self::start), with more arguments for the launcher (the head of `tests/engines/<engine>` says
    /// which). They hold for every restart as well. If another process takes the port meanwhile, the server
    /// starts on another port.
    #[must_use]
    pub fn start_with(arguments: &[&str]) -> Self {
        on_free_ports(|| Self::try_start(free_port(), arguments))
    }

    /// One try to start it on this port. [`PortTaken`]: another process has this port, or a further one that the
    /// arguments name; nothing is left of the try.
    pub fn try_start(port: u16, arguments: &[&str]) -> Result<Self, PortTaken> {
        let directory = tempfile::Builder::new().prefix("feedgate-").tempdir().expect("a temporary directory").keep();
        let sweeper =
            script("sweep").arg(&directory).stdin(Stdio::piped()).spawn().expect("bash for tests/engines/sweep");
        let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        let child = launch::<K>(port, &directory, &arguments);
        let mut engine = Self { port, directory, arguments, child, sweeper, kind: PhantomData };
        engine.wait_until_it_answers(0)?;
        Ok(engine)
    }

    /// One server for all tests of this process, with no argument; it goes when the process goes. It cannot be
    /// killed or paused: a test that does so starts its own.
    pub fn shared() -> &'static Self {
        K::shared().get_or_init(Self::start)
    }

    /// The URL by which a client connects.
    pub fn url(&self) -> String {
        K::url(self.port)
    }

    /// The port on 127.0.0.1; the same after a restart.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The directory with the data of the engine, and with its log in `log`.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The server's first process: it changes with a restart.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as a power cut ends its machine: SIGKILL to all its processes.
    pub fn kill(&mut self) {
        self.end("KILL");
    }

    /// Asks it to end and waits until it has: SIGTERM; SIGINT for PostgreSQL, which waits for its
    /// clients to leave when it gets the other.
    pub fn stop(&mut self) {
        self.end(K::STOP);
    }

    /// Lets it hang, connections open: SIGSTOP to all its processes. Its first process has stopped when this is done.
    pub fn pause(&mut self) {
        self.signal("STOP");
        let (threads, log) = (PathBuf::from(format!("/proc/{}/task", self.pid())), self.log());
        wait_until("all its threads have stopped", || have_stopped(&threads), || log.clone());
    }

    /// Lets it go on after [`pause`](Self::pause): SIGCONT.
    pub fn resume(&mut self) {
        self.signal("CONT");
    }

    /// Starts it again on the same port and directory; kills it first if it runs. If another process has the port, it
    /// waits a second for that one to leave.
    pub fn restart(&mut self) {
        self.kill();
        on_free_ports(|| self.try_again());
    }

    /// Starts it again with its directory at another port; kills it first if it runs.
    pub fn restart_elsewhere(&mut self) {
        self.kill();
        on_free_ports(|| {
            self.port = free_port();
            self.try_again()
        });
    }

    /// The last lines it wrote.
    pub fn log(&self) -> String {
        let text = self.log_after(0);
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n")
    }

    /// What it wrote after so many bytes.
    fn log_after(&self, start: usize) -> String {
        let text = fs::read(self.directory.join("log")).unwrap_or_default();
        String::from_utf8_lossy(text.get(start..).unwrap_or_default()).into_owned()
    }

    fn try_again(&mut self) -> Result<(), PortTaken> {
        let written = fs::metadata(self.directory.join("log")).map_or(0, |log| log.len() as usize);
        self.child = launch::<K>(self.port, &self.directory, &self.arguments);
        self.wait_until_it_answers(written)
    }

    fn ended(&mut self) -> bool {
        self.child.try_wait().expect("the state of a child").is_some()
    }

    fn signal(&mut self, signal: &str) {
        assert!(!self.ended(), "the engine has ended and takes no {signal}:\n{}", self.log());
        let mut command = script("signal");
        run(command.args([signal, &self.pid().to_string()]).arg(&self.directory)).expect("a signal to an engine");
    }

    fn end(&mut self, signal: &str) {
        if !self.ended() {
            self.signal(signal);
            let log = self.log();
            wait_until("the engine ends", || self.ended(), || log.clone());
        }
    }

    /// `written`: how long its log was before it was launched.
    fn wait_until_it_answers(&mut self, written: usize) -> Result<(), PortTaken> {
        let (port, directory, pid) = (self.port, self.directory.clone(), self.pid());
        let mut ended = None;
        let mut settled = || {
            ended = self.child.try_wait().expect("the state of a child");
            ended.is_some() || K::answers(port, &directory, pid)
        };
        let log = || fs::read_to_string(directory.join("log")).unwrap_or_default();
        wait_until("the engine answers", &mut settled, log);
        if ended.is_none() {
            return Ok(());
        }
        let log = self.log_after(written);
        assert!(log.to_lowercase().contains(TAKEN), "the engine ended:\n{}", self.log());
        Err(PortTaken { log })
    }
}

impl<K: Kind> Drop for Engine<K> {
    fn drop(&mut self) {
        drop(self.sweeper.stdin.take());
        // A failure here must not hide the test's.
        let _ = (self.child.kill(), self.child.wait(), self.sweeper.wait());
    }
}

/// Whether all threads in this folder of `/proc` have stopped. One that has ended meanwhile has not: look again.
fn have_stopped(threads: &Path) -> bool {
    let stopped =
        |thread: fs::DirEntry| fs::read_to_string(thread.path().join("stat")).is_ok_and(|stat| stat.contains(") T "));
    fs::read_dir(threads).is_ok_and(|threads| threads.flatten().all(stopped))
}

fn launch<K: Kind>(port: u16, directory: &Path, arguments: &[String]) -> Child {
    let log = File::options().create(true).append(true).open(directory.join("log")).expect("the engine's log");
    let mut command = script(K::LAUNCHER);
    command.arg(port.to_string()).arg(directory).args(arguments).stdin(Stdio::null());
    command.stdout(log.try_clone().expect("a handle of the log")).stderr(log);
    command.spawn().expect("bash for a launcher of tests/engines")
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;
    use crate::kinds::{Nats, NatsServer, Postgres, PostgresServer, Redis, RedisServer};

    fn listen(port: u16) -> Result<TcpListener, PortTaken> {
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| PortTaken { log: error.to_string() })
    }

    /// A port that somebody listens on while this lives.
    fn taken() -> (TcpListener, u16) {
        on_free_ports(|| {
            let port = free_port();
            Ok((listen(port)?, port))
        })
    }

    fn starts_elsewhere<K: Kind>() {
        let (_listener, port) = taken();
        let mut ports = vec![free_port(), port];
        let tried = || Engine::<K>::try_start(ports.pop().unwrap(), &[]);
        let mut engine = on_free_ports(tried);
        assert!(engine.port() != port && ports.is_empty());

        let port = engine.port();
        engine.kill();
        // The last of the killed processes may have the port for a moment longer.
        let mut another = Some(on_free_ports(|| listen(port)));
        let mut refused = 0;
        on_free_ports(|| {
            let again = engine.try_again();
            if again.is_err() {
                refused += 1;
                drop(another.take());
            }
            again
        });
        assert_eq!((engine.port(), refused), (port, 1), "it waits for the port that its clients know");
    }

    #[test]
    fn a_redis_whose_port_was_taken_starts_on_another() {
        starts_elsewhere::<RedisServer>();
    }

    #[test]
    fn a_nats_whose_port_was_taken_starts_on_another() {
        starts_elsewhere::<NatsServer>();
    }

    #[test]
    fn a_postgres_whose_port_was_taken_starts_on_another() {
        starts_elsewhere::<PostgresServer>();
    }

    #[test]
    fn a_further_port_that_was_taken_is_told_from_other_failures() {
        let (_listener, port) = taken();
        let port = port.to_string();
        let bus = ["--cluster-enabled", "yes", "--cluster-port", &port];
        assert!(Redis::try_start(free_port(), &bus).is_err());
        assert!(Nats::try_start(free_port(), &["--http_port", &port]).is_err());
        let route = format!("nats://127.0.0.1:{port}");
        assert!(
            Nats::try_start(free_port(), &["--cluster_name", "c", "--cluster", &route, "--routes", &route]).is_err()
        );
    }

    #[test]
    #[should_panic(expected = "the engine ended")]
    fn an_engine_that_cannot_start_is_not_tried_again() {
        let _ = Postgres::start_with(&["-c", "no_such_setting=1"]);
    }
}
