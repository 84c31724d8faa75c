//! A PostgreSQL server of a test's own, in a temporary directory, on a free port.

#![allow(dead_code, clippy::unwrap_used, reason = "each test uses its part; what fails says where")]

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

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
