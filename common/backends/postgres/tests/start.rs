//! From a URL to an Archive: what is refused, in which words, and what several processes do at once.

#![allow(clippy::unwrap_used, reason = "a test: what fails says where")]

mod server;

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use feedgate_common::StoreError;
use feedgate_common::archive::{ArchiveCounts, Names, Status, Write, Writes};
use feedgate_engines::{PortTaken, Postgres, free_port, on_free_ports};
use feedgate_postgres::{Options, PostgresArchive};
use server::{execute, open, post, server, user};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Executor};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::time::timeout;

async fn failure(url: &str) -> StoreError {
    match PostgresArchive::connect(url, Options::default()).await {
        Err(error) => error,
        Ok(_) => panic!("{url} was taken"),
    }
}

/// What a person has to change before a store opens.
async fn refusal(url: &str) -> String {
    match failure(url).await {
        StoreError::Misconfigured(why) => why.to_string(),
        error => panic!("not {error}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_start_at_once_agree_on_one_store() {
    let url = server().database("start");
    let starts: Vec<_> = (0..8)
        .map(|n| {
            let url = url.clone();
            let options = Options { buckets: 16 + n, max_connections: 2, ..Options::default() };
            tokio::spawn(async move { Arc::new(PostgresArchive::connect(&url, options).await.unwrap()) })
        })
        .collect();
    let mut archives = vec![];
    for start in starts {
        archives.push(start.await.unwrap());
    }
    let buckets = archives[0].buckets();
    assert!((16..24).contains(&buckets) && archives.iter().all(|archive| archive.buckets() == buckets));
    let name = [user("ann")];
    assert_eq!(archives[0].intern(&name).await.unwrap(), archives[7].intern(&name).await.unwrap());
    let wants = ArchiveCounts { users: 1, ..ArchiveCounts::default() };
    assert_eq!(archives[3].counts().await.unwrap(), wants);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_keeps_the_number_of_buckets_it_was_made_with() {
    let url = server().database("layout");
    for buckets in [16, 64] {
        let options = Options { buckets, ..Options::default() };
        assert_eq!(PostgresArchive::connect(&url, options).await.unwrap().buckets(), 16);
    }
}

/// During a deploy processes of this version go on beside those of a later one, whose migrations only add.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_a_later_version_are_left_as_they_are() {
    let url = server().database("later");
    open(&url).await;
    let later = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (9999, 'later', true, '\\x00', 0)";
    execute(&url, later).await;
    open(&url).await.intern(&[user("ann")]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_a_url_or_its_server_is_said_and_what_would_be_right() {
    // Of its own, since it gets other rules.
    let server = Postgres::start_with(&["-c", "fsync=off"]);
    let there = server.database("there");
    let address = format!("127.0.0.1:{}", server.port());

    let why = refusal("mysql://nobody").await;
    assert!(why.contains("postgres://user:password@host:port/database"), "{why}");
    let why = refusal("postgres://guest:s3cret@host:notaport/x").await;
    assert!(why.contains("postgres://user:password@host:port/database") && !why.contains("s3cret"), "{why}");
    let why = refusal("postgres://guest:a/b@host/x").await;
    assert!(why.contains("a / ? # @ or % of the password is %2F"), "{why}");
    let away = failure("postgres://feedgate@127.0.0.1:1/there").await;
    assert!(matches!(&away, StoreError::Unavailable(why) if why.contains("no PostgreSQL at 127.0.0.1:1")), "{away}");
    let source = away.source().and_then(|source| source.downcast_ref::<io::Error>());
    assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::ConnectionRefused));
    let why = refusal(&there.replace("/there", "/missing")).await;
    assert!(why.contains("\"missing\" does not exist") && why.contains("create the database"), "{why}");
    let why = refusal(&format!("{there}?options=-c%20synchronous_commit%3Doff")).await;
    assert!(why.contains("synchronous_commit is off"), "{why}");

    execute(&there, "CREATE ROLE guest LOGIN PASSWORD 'right'").await;
    let rules = "host all feedgate 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    fs::write(server.directory().join("data/pg_hba.conf"), rules).unwrap();
    execute(&there, "SELECT pg_reload_conf()").await;
    let why = refusal(&format!("postgres://guest:wrong@{address}/there")).await;
    assert!(why.contains("password") && why.contains("archive_url"), "{why}");
    let why = refusal(&format!("postgres://guest:right@{address}/there")).await;
    assert!(why.contains("permission denied for schema public") && why.contains("must own the database"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_holds_the_tables_of_others_is_refused_and_so_are_migrations_that_were_changed() {
    let url = server().database("of_others");
    execute(&url, "CREATE TABLE items (a integer)").await;
    let why = refusal(&url).await;
    assert!(why.contains("\"items\" already exists") && why.contains("a database of its own"), "{why}");
    let url = server().database("changed");
    open(&url).await;
    execute(&url, "UPDATE _sqlx_migrations SET checksum = '\\x00' WHERE version = 3").await;
    let why = refusal(&url).await;
    assert!(why.contains("migration 3 was previously applied but has been modified"), "{why}");
}

/// Rows that a backup holds locked for a minute, or an index over many rows, must not end the start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_takes_as_long_as_it_needs_however_short_a_start_waits_for_the_server() {
    let url = server().database("long");
    open(&url).await;
    execute(&url, "ALTER TABLE authors DROP COLUMN finished; DELETE FROM _sqlx_migrations WHERE version = 21").await;
    let mut holder = url.parse::<PgConnectOptions>().unwrap().connect().await.unwrap();
    holder.execute("BEGIN; LOCK TABLE authors").await.unwrap();
    let options = Options { buckets: 16, reach_within: Duration::from_secs(2), ..Options::default() };
    let mut start = tokio::spawn(async move { PostgresArchive::connect(&url, options).await.map(drop) });
    assert!(timeout(Duration::from_secs(5), &mut start).await.is_err(), "the start has ended");
    holder.execute("COMMIT").await.unwrap();
    start.await.unwrap().unwrap();
}

/// `pg_dump` and `feedgate doctor` read tables for as long as they run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_migration_waits_for_a_table_that_somebody_reads_the_version_before_writes_to_it() {
    let url = server().database("waits");
    let old = open(&url).await;
    old.write(vec![Write::Publish(post("ann", "before"))], 1).await.unwrap()[0].clone().unwrap();
    execute(&url, "ALTER TABLE authors DROP COLUMN finished; DELETE FROM _sqlx_migrations WHERE version = 21").await;
    let mut reader = url.parse::<PgConnectOptions>().unwrap().connect().await.unwrap();
    reader.execute("BEGIN; SELECT FROM authors").await.unwrap();
    let options = Options { buckets: 16, ..Options::default() };
    let there = url.clone();
    let start = tokio::spawn(async move { PostgresArchive::connect(&there, options).await.map(drop) });
    let waits = "SELECT count(*) FROM pg_locks WHERE relation = 'authors'::regclass AND NOT granted";
    for n in 0..2 {
        while sqlx::query_scalar::<_, i64>(waits).fetch_one(&mut reader).await.unwrap() == 0 {}
        let written = old.write(vec![Write::Publish(post("ann", &n.to_string()))], 2).await;
        assert!(written.unwrap()[0].is_ok());
    }
    assert!(!start.is_finished());
    reader.execute("COMMIT").await.unwrap();
    start.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_is_no_postgresql_is_named_by_its_address() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let url = format!("postgres://feedgate@{address}/x");
    let options = Options { reach_within: Duration::from_millis(200), ..Options::default() };
    let Err(error) = PostgresArchive::connect(&url, options).await else { panic!("{url} was taken") };
    let error = error.to_string();
    assert!(error.contains(&format!("what listens at {address} gave no session within 200.0ms")), "{error}");
    drop(silent);
    let other = TcpListener::bind(address).await.unwrap();
    let greets = tokio::spawn(async move {
        let (mut peer, _) = other.accept().await.unwrap();
        peer.write_all(b"INFO {}\r\n").await.unwrap();
        peer
    });
    let error = failure(&url).await.to_string();
    assert!(error.contains(&format!("what listens at {address} does not speak as PostgreSQL does")), "{error}");
    greets.await.unwrap();
}

/// PgBouncer takes no settings of a session, or drops them if it is told to. Without them a statement could run for
/// ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_is_refused_with_what_would_be_right() {
    server().database("pooled");
    for (more, says) in [
        ("", "unsupported startup parameter"),
        ("ignore_startup_parameters = options, extra_float_digits", "statement_timeout is 0"),
        ("ignore_startup_parameters = options, extra_float_digits\npool_mode = transaction", "statement_timeout is 0"),
    ] {
        let pooler = on_free_ports(|| Pooler::try_start("pooled", more));
        let why = refusal(&format!("postgres://feedgate@127.0.0.1:{}/pooled", pooler.port)).await;
        assert!(why.contains(says) && why.contains("archive_url must name PostgreSQL itself"), "{why}");
    }
}

/// A PgBouncer before the shared server.
struct Pooler {
    port: u16,
    child: Child,
    says: BufReader<ChildStderr>,
    _directory: tempfile::TempDir,
}

impl Pooler {
    /// Starts one for this database, with more settings, and waits until it accepts connections. If it ends before
    /// that, its port may be taken.
    fn try_start(database: &str, more: &str) -> Result<Self, PortTaken> {
        let (directory, port, behind) = (tempfile::tempdir().unwrap(), free_port(), server().port());
        let settings = format!(
            "[databases]\n{database} = host=127.0.0.1 port={behind} user=feedgate\n[pgbouncer]\nauth_type = any\n\
             listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n{more}\n"
        );
        let path = directory.path().join("pgbouncer.ini");
        fs::write(&path, settings).unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = Command::new("pgbouncer");
        // It does not run as root.
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.args(["-u", "nobody"]);
        }
        let mut child = command.arg(path).stderr(Stdio::piped()).spawn().expect("pgbouncer");
        let says = BufReader::new(child.stderr.take().unwrap());
        let (mut pooler, mut log) = (Self { port, child, says, _directory: directory }, String::new());
        while !log.contains("process up") {
            if pooler.says.read_line(&mut log).unwrap() == 0 {
                return Err(PortTaken { log });
            }
        }
        Ok(pooler)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
