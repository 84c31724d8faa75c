//! A PostgreSQL server of a test's own, in a temporary directory, on a free port.

#![allow(dead_code, clippy::unwrap_used, reason = "each test uses its part; what fails says where")]

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use feedgate_common::archive::{Publish, Write};
use feedgate_common::{Body, UserId};
use feedgate_postgres::{Options, PostgresArchive};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Executor};
use tempfile::TempDir;

const BIN: &str = "/usr/lib/postgresql/15/bin";

pub(crate) struct Server {
    dir: TempDir,
    port: u16,
    settings: Vec<String>,
    child: Child,
}

/// As the user postgres: the server refuses to run as root.
fn command(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--init-groups", "--pdeathsig=KILL", "--"]);
    command.arg(format!("{BIN}/{program}")).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/tmp");
    command
}

impl Server {
    /// With these settings besides the defaults, as `name=value`.
    pub(crate) async fn start(settings: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let chown = Command::new("chown").arg("postgres").arg(dir.path()).status().unwrap();
        assert!(chown.success());
        let data = dir.path().join("data");
        let made = command("initdb").args(["-A", "trust", "-U", "postgres", "-N", "-D"]).arg(&data).status().unwrap();
        assert!(made.success(), "initdb");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let child = run(&data, port, &settings);
        let server = Self { dir, port, settings, child };
        server.ready().await;
        server
    }

    async fn ready(&self) {
        let ready = || command("pg_isready").args(["-h", "127.0.0.1", "-p", &self.port.to_string()]).status().unwrap();
        while !ready().success() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) async fn restart(&mut self) {
        _ = fs::remove_file(self.dir.path().join("data/postmaster.pid"));
        self.child = run(&self.dir.path().join("data"), self.port, &self.settings);
        self.ready().await;
    }

    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

fn run(data: &Path, port: u16, settings: &[String]) -> Child {
    let mut command = command("postgres");
    command.arg("-D").arg(data).args(["-p", &port.to_string(), "-k", "", "-h", "127.0.0.1"]);
    for setting in settings {
        command.args(["-c", setting]);
    }
    command.spawn().unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// A statement outside of the Archive.
pub(crate) async fn execute(url: &str, sql: String) -> u64 {
    let options: PgConnectOptions = url.parse().unwrap();
    let mut connection = options.connect().await.unwrap();
    let done = connection.execute(sqlx::AssertSqlSafe(sql)).await.unwrap();
    done.rows_affected()
}

impl Server {
    /// Makes an empty database; its URL.
    pub(crate) async fn database(&self, name: &str) -> String {
        execute(&self.url("postgres"), format!("CREATE DATABASE \"{name}\"")).await;
        self.url(name)
    }
}

/// An Archive laid out for 16 buckets.
pub(crate) async fn open(url: &str) -> PostgresArchive {
    let options = Options { buckets: 16, ..Options::default() };
    PostgresArchive::connect(url, options).await.unwrap()
}

pub(crate) fn user(name: &str) -> UserId {
    name.parse().unwrap()
}

/// A publish with nothing but an author and a text.
pub(crate) fn post(author: &str, text: &str) -> Publish {
    Publish {
        author: user(author),
        body: Body::parse(format!("{{\"text\":\"{text}\"}}")).unwrap(),
        kind: None,
        id: None,
        foreign_id: None,
        published_at: None,
        rank: None,
        idempotency_key: None,
    }
}

pub(crate) fn follow(reader: &str, author: &str) -> Write {
    Write::Follow { reader: user(reader), author: user(author) }
}

impl Server {
    /// From now on everybody but postgres needs a password.
    pub(crate) async fn ask_for_passwords(&self) {
        let rules = "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
        fs::write(self.dir.path().join("data/pg_hba.conf"), rules).unwrap();
        execute(&self.url("postgres"), "SELECT pg_reload_conf()".into()).await;
    }
}
