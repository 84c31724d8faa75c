//! Each engine keeps its data over a kill, and ends with the process that started it.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use feedgate_engines::{Engine, Kind, Nats, Postgres, Redis, RedisCluster};

/// Set in a copy of this test that only holds engines until it is killed.
const HOLD: &str = "FEEDGATE_ENGINES_HOLD";

fn wait_until(what: &str, ready: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(300);
    while !ready() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Every process whose working directory is `directory` or lies below it.
fn processes_in(directory: &Path) -> Vec<PathBuf> {
    let processes = std::fs::read_dir("/proc").expect("Linux").flatten();
    let cwd = |path: &PathBuf| std::fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory));
    processes.map(|entry| entry.path()).filter(cwd).collect()
}

fn leaves_nothing_behind<K: Kind>(engine: Engine<K>) {
    let (directory, port) = (engine.directory().to_owned(), engine.port());
    assert!(!processes_in(&directory).is_empty() && TcpStream::connect(("127.0.0.1", port)).is_ok());
    drop(engine);
    assert_eq!(processes_in(&directory), Vec::<PathBuf>::new());
    assert!(!directory.exists() && TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn redis_keeps_its_data_over_a_kill_and_leaves_nothing_behind() {
    let mut redis = Redis::start_with(&["--appendfsync", "always"]);
    redis.cli(&["set", "word", "kept"]);
    let (port, pid) = (redis.port(), redis.pid());
    redis.kill();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    redis.restart();
    assert_eq!((redis.cli(&["get", "word"]).trim(), redis.port()), ("kept", port));
    assert_ne!(redis.pid(), pid);
    redis.stop();
    assert!(redis.log().contains("bye bye"), "{}", redis.log());
    redis.restart();
    leaves_nothing_behind(redis);
}

#[test]
fn a_replica_is_in_step_and_can_be_promoted() {
    let mut master = Redis::start();
    master.cli(&["set", "word", "kept"]);
    let replica = Redis::replica_of(&master);
    master.kill();
    assert_eq!(replica.cli(&["get", "word"]).trim(), "kept");
    replica.cli(&["replicaof", "no", "one"]);
    assert_eq!(replica.cli(&["set", "word", "changed"]).trim(), "OK");
}

#[test]
fn a_paused_engine_hangs_until_it_is_resumed() {
    let mut redis = Redis::start();
    let port = redis.port().to_string();
    redis.pause();
    let mut client = Command::new("redis-cli").args(["-p", &port, "ping"]).stdout(Stdio::piped()).spawn().unwrap();
    let state = std::fs::read_to_string(format!("/proc/{}/stat", redis.pid())).unwrap();
    assert!(state.contains(") T "), "not stopped: {state}");
    assert!(client.try_wait().unwrap().is_none());
    redis.resume();
    assert_eq!(client.wait_with_output().unwrap().stdout, b"PONG\n");
}

#[test]
fn a_cluster_serves_every_slot_again_after_a_master_was_killed() {
    let mut cluster = RedisCluster::start();
    let set = |cluster: &RedisCluster, key: &str, value: &str| {
        let slot = cluster.nodes()[0].cli(&["cluster", "keyslot", key]).trim().parse().unwrap();
        let holder = cluster.holder_of(slot);
        assert_eq!(cluster.nodes()[holder].cli(&["set", key, value]).trim(), "OK");
        holder
    };
    let mut holders: Vec<_> = ["a", "b", "c", "d"].iter().map(|key| set(&cluster, key, "kept")).collect();
    let last = holders[3];
    holders.sort_unstable();
    holders.dedup();
    assert_eq!(holders, [0, 1, 2], "each master has had its key");
    cluster.node(last).kill();
    cluster.node(last).restart();
    cluster.wait_until_ok();
    assert_eq!(cluster.nodes()[last].cli(&["get", "d"]).trim(), "kept");
    assert_eq!(cluster.urls().len(), 3);
}

/// Sends one request of JetStream's API over a bare connection and answers the reply's JSON.
fn jetstream(nats: &Nats, subject: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", nats.port())).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(300))).expect("a socket with a deadline");
    let size = request.len();
    write!(stream, "CONNECT {{\"verbose\":false}}\r\nSUB reply 1\r\nPUB {subject} reply {size}\r\n{request}\r\n")
        .expect("a request that is taken");
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    lines.find(|line| line.starts_with("MSG reply")).expect("an answer of JetStream");
    lines.next().expect("the answer's body")
}

#[test]
fn nats_keeps_its_streams_over_a_kill_and_leaves_nothing_behind() {
    let mut nats = Nats::start();
    let made = jetstream(&nats, "$JS.API.STREAM.CREATE.WORK", r#"{"name":"WORK","subjects":["work.>"]}"#);
    assert!(made.contains(r#""did_create":true"#), "{made}");
    assert!(jetstream(&nats, "work.one", "job").contains(r#""seq":1"#));
    nats.kill();
    nats.restart();
    let kept = jetstream(&nats, "$JS.API.STREAM.INFO.WORK", "");
    assert!(kept.contains(r#""messages":1"#), "{kept}");
    nats.stop();
    nats.restart();
    leaves_nothing_behind(nats);
}

#[test]
fn postgres_keeps_what_it_committed_over_a_kill_and_leaves_nothing_behind() {
    let mut postgres = Postgres::start();
    let select = |postgres: &Postgres| postgres.psql("postgres", &["select word from words"]);
    postgres.psql("postgres", &["create table words (word text)", "insert into words values ('kept')"]);
    postgres.kill();
    postgres.restart();
    assert_eq!(select(&postgres), "kept\n");
    postgres.pause();
    postgres.resume();
    postgres.stop();
    assert!(postgres.log().contains("database system is shut down"), "{}", postgres.log());
    postgres.restart();
    assert_eq!(select(&postgres), "kept\n");
    leaves_nothing_behind(postgres);
}

#[test]
fn postgres_starts_again_while_backends_of_a_killed_postmaster_still_work() {
    let mut postgres = Postgres::start();
    let directory = postgres.directory().to_owned();
    // A backend that looks up only when its query is done: once there is this file.
    let spin = "do $$ begin while (pg_stat_file('done', true)).size is null loop end loop; end $$";
    let port = postgres.port().to_string();
    let mut client = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/psql"));
    let mut client = client.args([&port, "postgres", spin]).stderr(Stdio::null()).spawn().unwrap();
    let busy = "select count(*) from pg_stat_activity where query like 'do %' and state = 'active'";
    wait_until("the backend works", || postgres.psql("postgres", &[busy]) == "1\n");
    let pid = postgres.pid().to_string();
    assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
    let zombie = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") Z ");
    wait_until("the postmaster has ended", zombie);
    assert!(!processes_in(&directory).is_empty(), "the backend is still there");
    let ends = thread::spawn(move || {
        // The launcher waits for the backend in many short sleeps.
        let sleeps = |process: &PathBuf| {
            std::fs::read_to_string(process.join("cmdline")).is_ok_and(|it| it.starts_with("sleep"))
        };
        wait_until("the launcher waits", || processes_in(&directory).iter().any(sleeps));
        std::fs::write(directory.join("data/done"), "").unwrap();
    });
    postgres.restart();
    ends.join().unwrap();
    assert_eq!(postgres.psql("postgres", &["select 1"]), "1\n");
    client.wait().unwrap();
}

#[test]
fn a_shared_postgres_gives_every_test_a_fresh_database() {
    let postgres = Postgres::shared();
    let url = postgres.database("first");
    assert_eq!(url, format!("postgres://feedgate@127.0.0.1:{}/first", postgres.port()));
    postgres.psql("first", &["create table words (word text)"]);
    postgres.database("second");
    postgres.database("first");
    let tables = "select count(*) from information_schema.tables where table_name = 'words'";
    assert_eq!(postgres.psql("first", &[tables]), "0\n");
    assert_eq!(postgres.pid(), Postgres::shared().pid());
}

#[test]
fn the_death_of_the_test_process_takes_its_engines_with_it() {
    if env::var_os(HOLD).is_some() {
        let nats = Nats::start();
        for directory in [Redis::shared().directory(), nats.directory(), Postgres::shared().directory()] {
            println!("holds {}", directory.display());
        }
        thread::park();
    }
    let name = "the_death_of_the_test_process_takes_its_engines_with_it";
    let mut holder = Command::new(env::current_exe().unwrap());
    let mut holder =
        holder.args(["--exact", name, "--nocapture"]).env(HOLD, "1").stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines().map(Result::unwrap);
    let directory = |line: String| Some(PathBuf::from(line.split_once("holds ")?.1));
    let directories: Vec<_> = lines.filter_map(directory).take(3).collect();
    assert!(directories.len() == 3 && directories.iter().all(|one| !processes_in(one).is_empty()));
    holder.kill().unwrap();
    holder.wait().unwrap();
    for directory in directories {
        wait_until("its engine is gone", || processes_in(&directory).is_empty() && !directory.exists());
    }
}
