//! What differs between the engines: the launcher, the URL, and how to see that the engine answers.
//!
//! Each answer carries the process id, so that no other server on the port can be taken for it.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::engine::{Engine, Kind};
use crate::launcher::{run, script};

/// A single Redis; its append-only file survives a kill.
pub type Redis = Engine<RedisServer>;
/// A NATS server with JetStream.
pub type Nats = Engine<NatsServer>;
/// A PostgreSQL server; its superuser `feedgate` needs no password.
pub type Postgres = Engine<PostgresServer>;

/// The kind of [`Redis`].
#[derive(Debug)]
pub enum RedisServer {}

impl Kind for RedisServer {
    const LAUNCHER: &str = "redis";

    fn url(port: u16) -> String {
        format!("redis://127.0.0.1:{port}")
    }

    fn answers(port: u16, _: &Path, pid: u32) -> bool {
        // A server that still loads its data answers INFO too, and says so; a replica is there when it is in step.
        // Another process may listen on the port and never answer: so not by redis-cli, which would wait.
        let info = ask(port, "INFO\r\nQUIT\r\n").unwrap_or_default();
        let says = |line: String| info.lines().any(|other| other == line);
        says(format!("process_id:{pid}"))
            && says("loading:0".to_owned())
            && (says("role:master".to_owned()) || says("master_link_status:up".to_owned()))
    }

    fn shared() -> &'static OnceLock<Engine<Self>> {
        static SHARED: OnceLock<Redis> = OnceLock::new();
        &SHARED
    }
}

impl Redis {
    /// A replica of `master`, in step with it when this returns.
    #[must_use]
    pub fn replica_of(master: &Self) -> Self {
        Self::start_with(&["--replicaof", "127.0.0.1", &master.port().to_string()])
    }

    /// Runs one command through redis-cli and answers what that prints; panics if Redis refuses it.
    pub fn cli(&self, command: &[&str]) -> String {
        redis_cli(self.port(), command).expect("a command to Redis")
    }
}

/// A connection whose reads end after a second.
fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    Ok(stream)
}

/// Sends this and reads what comes until the server closes the connection.
fn ask(port: u16, text: &str) -> io::Result<String> {
    let (mut stream, mut answer) = (connect(port)?, String::new());
    stream.write_all(text.as_bytes())?;
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

pub(crate) fn redis_cli(port: u16, command: &[&str]) -> Result<String, String> {
    let output = run(Command::new("redis-cli").args(["-e", "-p", &port.to_string()]).args(command))?;
    Ok(output.replace('\r', ""))
}

/// The kind of [`Nats`].
#[derive(Debug)]
pub enum NatsServer {}

impl Kind for NatsServer {
    const LAUNCHER: &str = "nats";

    fn url(port: u16) -> String {
        format!("nats://127.0.0.1:{port}")
    }

    fn answers(port: u16, directory: &Path, pid: u32) -> bool {
        // The server speaks first, once JetStream has recovered its streams. One of a cluster opens its second port
        // after that.
        let mut greeting = String::new();
        connect(port).and_then(|stream| BufReader::new(stream).read_line(&mut greeting)).is_ok()
            && greeting.contains(&format!(r#""server_name":"{pid}""#))
            && greeting.contains(r#""jetstream":true"#)
            && (!greeting.contains(r#""cluster":"#) || hears_its_cluster(directory))
    }

    fn shared() -> &'static OnceLock<Engine<Self>> {
        static SHARED: OnceLock<Nats> = OnceLock::new();
        &SHARED
    }
}

/// Whether a NATS has opened the port for the others of its cluster.
fn hears_its_cluster(directory: &Path) -> bool {
    fs::read_to_string(directory.join("log")).is_ok_and(|log| log.contains("Listening for route connections"))
}

/// The kind of [`Postgres`].
#[derive(Debug)]
pub enum PostgresServer {}

impl Kind for PostgresServer {
    const LAUNCHER: &str = "postgres";
    const STOP: &str = "INT";

    fn url(port: u16) -> String {
        database_url(port, "postgres")
    }

    fn answers(_: u16, directory: &Path, pid: u32) -> bool {
        // What pg_ctl looks at: the first line is the process, the eighth its state.
        let file = fs::read_to_string(directory.join("data/postmaster.pid")).unwrap_or_default();
        let mut lines = file.lines().map(str::trim);
        lines.next() == Some(&pid.to_string()) && lines.nth(6) == Some("ready")
    }

    fn shared() -> &'static OnceLock<Engine<Self>> {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        &SHARED
    }
}

impl Postgres {
    /// Makes an empty database and answers its URL; one of that name is dropped first, its clients cut off.
    /// `name`: of a-z, 0-9 and `_`.
    pub fn database(&self, name: &str) -> String {
        self.copy("template1", name)
    }

    /// Makes a database `name` with all that is in the database `of`, and answers its URL; one of that name is dropped
    /// first, its clients cut off. The clients of `of` have five seconds to go away. Panics if one is left.
    pub fn copy(&self, of: &str, name: &str) -> String {
        let drop = format!("drop database if exists {name} with (force)");
        self.psql("postgres", &[&drop, &format!("create database {name} template {of}")]);
        database_url(self.port(), name)
    }

    /// Runs statements through psql, each a transaction of its own, and answers their rows: one on a line, a tab
    /// between columns. Panics if one fails.
    pub fn psql(&self, database: &str, statements: &[&str]) -> String {
        let mut command = script("psql");
        run(command.args([&self.port().to_string(), database]).args(statements)).expect("SQL that is right")
    }
}

fn database_url(port: u16, name: &str) -> String {
    format!("postgres://feedgate@127.0.0.1:{port}/{name}")
}
