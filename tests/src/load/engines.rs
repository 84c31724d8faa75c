//! The engines behind the cluster, with the settings of `deploy/`: where they are, and what they were asked.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use feedgate_engines::{Nats, Postgres, Redis, free_port, on_free_ports};

use super::Backend;
use crate::process;

const DATABASE: &str = "feedgate";

/// The engines of one run, and the port on which NATS tells its counters.
pub struct Engines {
    postgres: Postgres,
    redis: Redis,
    nats: Nats,
    /// The port of NATS that tells its counts of messages.
    monitor: Backend,
}

/// How often each command was sent to an engine, by the name of the command.
pub type Calls = BTreeMap<String, u64>;

impl Engines {
    /// Starts PostgreSQL, Redis and NATS with the settings of `deploy/`.
    pub fn start() -> anyhow::Result<Self> {
        let config = format!("config_file={}", settings("postgresql.conf")?.display());
        let postgres = Postgres::start_with(&[
            "-c",
            &config,
            "-c",
            "shared_preload_libraries=pg_stat_statements",
            "-c",
            "max_connections=500",
        ]);
        postgres.database(DATABASE);
        postgres.psql(DATABASE, &["create extension pg_stat_statements"]);
        let path = |name| anyhow::Ok(settings(name)?.display().to_string());
        let redis = Redis::start_with(&["--conf", &path("redis.conf")?]);
        let config = path("nats.conf")?;
        let (nats, monitor) = on_free_ports(|| {
            let monitor = free_port();
            let nats = Nats::try_start(free_port(), &["--config", &config, "--http_port", &monitor.to_string()])?;
            Ok((nats, monitor))
        });
        let monitor = Backend::new((Ipv4Addr::LOCALHOST, monitor).into(), "none");
        Ok(Self { postgres, redis, nats, monitor })
    }

    /// The settings, as TOML, by which a process of the cluster finds the engines.
    pub fn settings(&self) -> String {
        let postgres = self.postgres.port();
        format!(
            "archive_url = \"postgres://feedgate@127.0.0.1:{postgres}/{DATABASE}\"\ninbox_url = \"{}\"\nbus_url = \"{}\"\n",
            self.redis.url(),
            self.nats.url()
        )
    }

    /// Processor time of each so far, in seconds.
    pub fn cpu_seconds(&self) -> anyhow::Result<Vec<(String, f64)>> {
        let engines = [("PostgreSQL", self.postgres.pid()), ("Redis", self.redis.pid()), ("NATS", self.nats.pid())];
        let each = engines.map(|(name, pid)| Ok((name.to_owned(), process::cpu_seconds_with_children(pid)?)));
        each.into_iter().collect()
    }

    /// What they were asked so far: statements, commands (those within scripts too), messages.
    pub async fn calls(&self) -> anyhow::Result<Calls> {
        let mut calls = self.statements()?;
        calls.extend(self.commands()?);
        let messages = self.monitor.get("/varz").await?;
        for (name, field) in [("NATS: messages in", "in_msgs"), ("NATS: messages out", "out_msgs")] {
            calls.insert(name.to_owned(), messages[field].as_u64().context("NATS counts its messages")?);
        }
        Ok(calls)
    }

    fn statements(&self) -> anyhow::Result<Calls> {
        let sql = "select calls, regexp_replace(query, '\\s+', ' ', 'g') from pg_stat_statements s \
                   join pg_database d on d.oid = s.dbid where datname = current_database() and query !~ 'pg_stat'";
        let rows = self.postgres.psql(DATABASE, &[sql]);
        let mut calls = Calls::new();
        for row in rows.lines() {
            let (count, query) = row.split_once('\t').context("two columns")?;
            *calls.entry(format!("PostgreSQL: {}", query.trim())).or_default() += count.parse::<u64>()?;
        }
        Ok(calls)
    }

    fn commands(&self) -> anyhow::Result<Calls> {
        let info = self.redis.cli(&["info", "commandstats"]);
        // A line of `INFO commandstats` is `cmdstat_evalsha:calls=12,usec=...`.
        let counts = info.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(":calls="));
        let mut calls = Calls::new();
        for (name, rest) in counts {
            let count: String = rest.chars().take_while(char::is_ascii_digit).collect();
            calls.insert(format!("Redis: {name}"), count.parse()?);
        }
        let stats = self.redis.cli(&["info", "stats"]);
        let reads = stats.lines().find_map(|line| line.strip_prefix("total_reads_processed:"));
        calls.insert("Redis: reads of a socket".to_owned(), reads.context("Redis counts its reads")?.trim().parse()?);
        Ok(calls)
    }
}

/// The settings that operators are given.
fn settings(name: &str) -> anyhow::Result<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(name).canonicalize()?;
    ensure!(path.is_file(), "{} must be a file", path.display());
    Ok(path)
}
