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

use crate::kinds::Kind;
use crate::launcher::{run, script, wait_until};
use crate::port::free_port;

const LOG_LINES_SHOWN: usize = 30;

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
    /// which). They hold for every restart as well.
    #[must_use]
    pub fn start_with(arguments: &[&str]) -> Self {
        let directory = tempfile::Builder::new().prefix("feedgate-").tempdir().expect("a temporary directory").keep();
        let sweeper =
            script("sweep").arg(&directory).stdin(Stdio::piped()).spawn().expect("bash for tests/engines/sweep");
        let port = free_port();
        let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        let child = launch::<K>(port, &directory, &arguments);
        let mut engine = Self { port, directory, arguments, child, sweeper, kind: PhantomData };
        engine.wait_until_it_answers();
        engine
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

    /// Lets it hang, connections open: SIGSTOP to all its processes.
    pub fn pause(&mut self) {
        self.signal("STOP");
    }

    /// Lets it go on after [`pause`](Self::pause): SIGCONT.
    pub fn resume(&mut self) {
        self.signal("CONT");
    }

    /// Starts it again on the same port and directory; kills it first if it runs.
    pub fn restart(&mut self) {
        self.kill();
        self.child = launch::<K>(self.port, &self.directory, &self.arguments);
        self.wait_until_it_answers();
    }

    /// Starts it again with its directory at another port; kills it first if it runs.
    pub fn restart_elsewhere(&mut self) {
        self.kill();
        self.port = free_port();
        self.restart();
    }

    /// The last lines it wrote.
    pub fn log(&self) -> String {
        let text = fs::read(self.directory.join("log")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n")
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

    fn wait_until_it_answers(&mut self) {
        let (port, directory, pid) = (self.port, self.directory.clone(), self.pid());
        let mut ended = None;
        let mut settled = || {
            ended = self.child.try_wait().expect("the state of a child");
            ended.is_some() || K::answers(port, &directory, pid)
        };
        let log = || fs::read_to_string(directory.join("log")).unwrap_or_default();
        wait_until("the engine answers", &mut settled, log);
        assert!(ended.is_none(), "the engine ended:\n{}", self.log());
    }
}

impl<K: Kind> Drop for Engine<K> {
    fn drop(&mut self) {
        drop(self.sweeper.stdin.take());
        // A failure here must not hide the test's.
        let _ = (self.child.kill(), self.child.wait(), self.sweeper.wait());
    }
}

fn launch<K: Kind>(port: u16, directory: &Path, arguments: &[String]) -> Child {
    let log = File::options().create(true).append(true).open(directory.join("log")).expect("the engine's log");
    let mut command = script(K::LAUNCHER);
    command.arg(port.to_string()).arg(directory).args(arguments).stdin(Stdio::null());
    command.stdout(log.try_clone().expect("a handle of the log")).stderr(log);
    command.spawn().expect("bash for a launcher of tests/engines")
}
