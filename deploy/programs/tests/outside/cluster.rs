//! Gateways and workers as programs of their own, over the real engines.

use std::path::PathBuf;
use std::process::Command;

use feedgate_engines::{Nats, Postgres, Redis};
use rustix::process::Signal;

use crate::server::{Running, Server, directory, feedgate, ok, program, refusal, refused, soon};

/// Engines, and a directory with the settings and secrets of everybody who runs over them.
struct Cluster {
    redis: Redis,
    _nats: Nats,
    _kept: tempfile::TempDir,
    here: PathBuf,
}

impl Cluster {
    /// `name`: of its database.
    fn start(name: &str) -> Self {
        let (kept, here) = directory();
        let (redis, nats, archive) = (Redis::start(), Nats::start(), Postgres::shared().database(name));
        std::fs::write(here.join("archive_url"), archive).unwrap();
        let settings = format!(
            "archive_url_file = \"archive_url\"\ninbox_url = \"{}\"\nbus_url = \"{}\"\nsecrets = \"secrets\"\n",
            redis.url(),
            nats.url()
        );
        std::fs::write(here.join("feedgate.toml"), settings).unwrap();
        ok(&here, &["secrets", "secrets"]);
        Self { redis, _nats: nats, _kept: kept, here }
    }

    fn gateway(&self, data: &str) -> Command {
        let mut command = program(env!("CARGO_BIN_EXE_gateway"), &self.here);
        command.args(["--config", "feedgate.toml", "--listen", "127.0.0.1:0", "--data", data]);
        command
    }

    fn timeline(&self) -> Command {
        let mut command = program(env!("CARGO_BIN_EXE_timeline"), &self.here);
        command.args(["--config", "feedgate.toml", "--health-listen", "127.0.0.1:0"]);
        command
    }

    /// A command of `feedgate` to the gateway with that data directory.
    fn ask(&self, data: &str, args: &[&str]) -> String {
        ok(&self.here, &[args, &["--config", "feedgate.toml", "--data", data]].concat())
    }

    fn tail(&self, data: &str) -> Running {
        let mut command = feedgate(&self.here);
        command.args(["tail", "--user", "bob", "--config", "feedgate.toml", "--data", data]);
        Running::start(command)
    }
}

fn start(command: Command) -> Server {
    Server::of(Running::start(command))
}

/// Stops a program as a machine that goes down does it.
fn terminate(server: Server) {
    server.running.signal(Signal::TERM);
    let (status, stderr) = server.running.end();
    let (_, stopping) = stderr.split_once("stopping; once more to stop at once").unwrap();
    assert!(status.code() == Some(0) && !stopping.contains("WARN") && !stopping.contains("ERROR"), "{stderr}");
}

#[test]
fn a_post_goes_from_one_gateway_to_a_device_on_another_and_all_of_them_stop_well() {
    let cluster = Cluster::start("two_gateways");
    let (first, second) = (start(cluster.gateway("a")), start(cluster.gateway("b")));
    let (worker, spare) = (start(cluster.timeline()), start(cluster.timeline()));
    cluster.ask("a", &["follow", "bob", "ann"]);
    let device = cluster.tail("b");
    cluster.ask("a", &["publish", "--author", "ann", "1"]);
    assert!(device.line().unwrap().contains("\"body\":1"));
    terminate(worker);
    cluster.ask("b", &["publish", "--author", "ann", "2"]);
    assert!(device.line().unwrap().contains("\"body\":2"));
    drop(device);
    [spare, second, first].into_iter().for_each(terminate);
}

#[test]
fn everything_in_one_process_runs_over_shared_stores_too() {
    let cluster = Cluster::start("one_process");
    let args = ["--config", "feedgate.toml", "--listen", "127.0.0.1:0", "--data", "a"];
    let server = Server::start_with(&cluster.here, &args);
    cluster.ask("a", &["follow", "bob", "ann"]);
    cluster.ask("a", &["publish", "--author", "ann", "1"]);
    assert!(cluster.tail("a").line().unwrap().contains("\"body\":1"));
    terminate(server);
}

#[test]
fn an_engine_that_comes_late_is_waited_for() {
    let mut cluster = Cluster::start("late_engine");
    cluster.redis.stop();
    let mut worker = Running::start(cluster.timeline());
    worker.says(&format!("waiting for Redis at {}", cluster.redis.url()));
    cluster.redis.restart();
    terminate(Server::of(worker));
}

#[test]
fn an_engine_that_never_comes_ends_the_start_with_its_name() {
    let mut cluster = Cluster::start("no_engine");
    cluster.redis.stop();
    // So long, because PostgreSQL has the same time to take a connection, also on a busy machine.
    let (code, stderr) = refusal(cluster.timeline().env("FEEDGATE_WAIT_FOR_STORES_SECS", "10"));
    let wants = format!("timeline: Redis (inbox_url = \"{}\") was not there within 10 s", cluster.redis.url());
    assert!(code == 1 && stderr.contains(&wants), "{stderr}");
}

#[test]
fn a_migration_goes_on_after_the_time_that_a_start_waits_for_engines() {
    let cluster = Cluster::start("migrating");
    terminate(start(cluster.timeline()));
    let sql = |statements: &str| Postgres::shared().psql("migrating", &[statements]);
    // As the version before left it.
    sql("drop function edges_came_or_went, edges_updated, reader_listens, followers_changed cascade;
         alter table follower_counts drop column changed; alter table authors drop column finished;
         delete from _sqlx_migrations where version > 20");
    let holder = std::thread::spawn(move || sql("lock table authors; select pg_sleep(8)"));
    let held = "select count(*) from pg_locks where relation = 'authors'::regclass and mode = 'AccessExclusiveLock'";
    soon("the table is locked", || sql(held).trim() == "1");
    let mut worker = cluster.timeline();
    worker.env("FEEDGATE_WAIT_FOR_STORES_SECS", "3");
    let mut worker = Running::start(worker);
    worker.says("the tables are brought to this version");
    terminate(Server::of(worker));
    holder.join().unwrap();
}

#[test]
fn what_waiting_cannot_mend_ends_the_start_at_once() {
    let cluster = Cluster::start("hopeless");
    let nowhere = Postgres::shared().url().replace("/postgres", "/nowhere");
    std::fs::write(cluster.here.join("elsewhere"), nowhere).unwrap();
    let (code, stderr) = refusal(cluster.gateway("a").env("FEEDGATE_ARCHIVE_URL_FILE", "elsewhere"));
    assert!(code == 1 && stderr.contains("PostgreSQL (archive_url = ") && stderr.contains("nowhere"), "{stderr}");
    assert!(!stderr.contains("was not there within"), "{stderr}");

    cluster.redis.cli(&["config", "set", "requirepass", "right"]);
    let wrong = cluster.redis.url().replace("redis://", "redis://:wrong@");
    for url in [wrong, cluster.redis.url()] {
        let (code, stderr) = refusal(cluster.gateway("a").env("FEEDGATE_INBOX_URL", url));
        assert!(stderr.contains("check the password in inbox_url"), "{stderr}");
        assert!(code == 1 && stderr.contains("Redis (inbox_url = ") && !stderr.contains("wrong@"), "{stderr}");
        assert!(!stderr.contains("was not there within"), "{stderr}");
    }
    let right = cluster.redis.url().replace("redis://", "redis://:right@");
    let mut gateway = cluster.gateway("a");
    gateway.env("FEEDGATE_INBOX_URL", right);
    terminate(start(gateway));
}

#[test]
fn a_worker_without_a_store_is_not_ready_until_it_is_back() {
    let mut cluster = Cluster::start("not_ready");
    let worker = start(cluster.timeline());
    let url = worker.place("Health").replace("/readyz", "");
    assert_eq!(ok(&cluster.here, &["ready", &url]), "ready\n");
    let asked = ["check-config", "--config", "feedgate.toml", "--against", &url];
    let (code, stderr) = refused(&cluster.here, &asked);
    assert!(code == 1 && stderr.contains("a worker answers GET /healthz, /readyz and /metrics alone"), "{stderr}");
    cluster.redis.stop();
    let (code, stderr) = refused(&cluster.here, &["ready", &url]);
    assert!(code == 1 && stderr.contains("Not available") && stderr.contains("Redis"), "{stderr}");
    cluster.redis.restart();
    while !feedgate(&cluster.here).args(["ready", &url]).output().unwrap().status.success() {}
}

#[test]
fn two_gateways_do_not_share_a_data_directory() {
    let cluster = Cluster::start("one_directory");
    let _first = start(cluster.gateway("a"));
    let (code, stderr) = refusal(&mut cluster.gateway("a"));
    assert!(code == 1 && stderr.contains("is in use by another process"), "{stderr}");
}

#[test]
fn embedded_stores_and_missing_secrets_are_refused_with_what_to_do() {
    let (_kept, here) = directory();
    for path in [env!("CARGO_BIN_EXE_gateway"), env!("CARGO_BIN_EXE_timeline")] {
        let (code, stderr) = refusal(&mut program(path, &here));
        assert!(code == 1 && stderr.contains("belongs to one process alone: set archive_url"), "{stderr}");
    }
    let urls = [
        ("FEEDGATE_ARCHIVE_URL", "postgres://127.0.0.1:1/x"),
        ("FEEDGATE_INBOX_URL", "redis://127.0.0.1:1"),
        ("FEEDGATE_BUS_URL", "nats://127.0.0.1:1"),
        ("FEEDGATE_LISTEN", "127.0.0.1:0"),
    ];
    let (code, stderr) = refusal(program(env!("CARGO_BIN_EXE_gateway"), &here).envs(urls));
    assert!(code == 1 && stderr.contains("make them once with `feedgate secrets DIR`"), "{stderr}");
    assert!(!here.join("data/secrets").exists());
}

#[test]
fn a_doctor_looks_into_postgresql_while_a_gateway_goes_on_and_says_what_is_wrong() {
    let cluster = Cluster::start("doctored");
    let doctor = ["doctor", "--config", "feedgate.toml"];
    let (code, stderr) = refused(&cluster.here, &doctor);
    assert!(code == 2 && stderr.contains("the database has no tables of Feedgate"), "{code} {stderr}");
    let gateway = start(cluster.gateway("data"));
    cluster.ask("data", &["follow", "bob", "ann"]);
    cluster.ask("data", &["publish", "--author", "ann", "1"]);
    let said = ok(&cluster.here, &doctor);
    assert!(said.contains("the store is sound") && said.contains("ok     follower counts: 1 looked at"), "{said}");
    assert!(said.contains("2 events are outstanding"), "no worker runs: {said}");
    assert!(said.contains("ok     inboxes: 0 looked at"), "{said}");
    cluster.ask("data", &["feed", "--user", "bob"]);
    assert!(ok(&cluster.here, &doctor).contains("ok     inboxes: 1 looked at"));
    Postgres::shared().psql("doctored", &["update follower_counts set followers = 7"]);
    let output = crate::server::run(&cluster.here, &doctor);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.code() == Some(1) && said.contains("author 2 has 1 followers, and 7 are counted"), "{said}");
    drop(gateway);
}
