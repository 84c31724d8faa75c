//! The programs `gateway` and `timeline`: each is one half of `feedgate`, over stores that are shared.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::bail;
use clap::Parser;

use crate::cli::{self, Serve};
use crate::kind::{EMBEDDED, Kind};
use crate::layers::Given;
use crate::reload::Source;
use crate::serve::{self, Role};
use crate::{commands, effective};

/// The program that serves devices and backends.
pub(crate) const GATEWAY: Role = Role { name: "gateway", gateway: true, worker: false };
/// The program that fans posts out to inboxes.
pub(crate) const TIMELINE: Role = Role { name: "timeline", gateway: false, worker: true };

/// A gateway of a Feedgate cluster: it serves devices and backends.
///
/// Any number of them run over the same PostgreSQL, Redis and NATS, and share their secrets. Settings come from the
/// file, the environment (FEEDGATE_*) and flags; `feedgate default-config` prints them all.
#[derive(Parser)]
#[command(name = "gateway", version)]
pub(crate) struct Gateway {
    #[command(flatten)]
    serve: Serve,
    /// Print the settings that are in effect, or all that is wrong with them, and end
    #[arg(long)]
    check_config: bool,
}

/// A worker of a Feedgate cluster: it fans posts out to the inboxes of their readers.
///
/// Any number of them run over the same PostgreSQL, Redis and NATS; they keep nothing themselves. Settings come from
/// the file, the environment (FEEDGATE_*) and flags; `feedgate default-config` prints them all.
#[derive(Parser)]
#[command(name = "timeline", version)]
pub(crate) struct Timeline {
    /// Where /healthz and /readyz are answered [default: 127.0.0.1:8082]
    #[arg(long, value_name = "IP:PORT")]
    health_listen: Option<SocketAddr>,
    /// This process's name in the cluster, of A-Za-z0-9_- [default: the machine's name]
    #[arg(long)]
    node: Option<String>,
    /// A TOML file with settings
    #[arg(long, value_name = "FILE", env = "FEEDGATE_CONFIG")]
    config: Option<PathBuf>,
    /// Print the settings that are in effect, or all that is wrong with them, and end
    #[arg(long)]
    check_config: bool,
}

impl Gateway {
    /// Serves until a signal; fails if it could not start, or could not go on.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let check_config = self.check_config;
        run(GATEWAY, Arc::new(move || effective::server_settings(&self.serve)), check_config)
    }
}

impl Timeline {
    /// Works until a signal; fails if it could not start, or could not go on.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut flags: Vec<Given> = Vec::new();
        flags.extend(self.health_listen.map(|a| cli::text("--health-listen", "health_listen", a.to_string())));
        flags.extend(self.node.map(|node| cli::text("--node", "node", node)));
        let (config, check_config) = (self.config, self.check_config);
        run(TIMELINE, Arc::new(move || effective::effective(config.as_deref(), flags.clone())), check_config)
    }
}

fn run(role: Role, source: Source, check_config: bool) -> anyhow::Result<()> {
    let settings = source()?;
    if settings.kind() == Ok(Kind::Embedded) {
        bail!(
            "`{}` shares its stores with other processes, and \"{EMBEDDED}\" belongs to one process alone: set \
             archive_url (postgres://…), inbox_url (redis://…) and bus_url (nats://…), or run `feedgate`, which is \
             everything in one process",
            role.name
        );
    }
    if check_config { commands::show(&settings, role) } else { serve::run(role, source, false) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_lines_are_consistent() {
        Gateway::command().debug_assert();
        Timeline::command().debug_assert();
    }
}
