//! The command line: the text of each comment on a command or an argument is its help.
//!
//! Names of users, devices and items are checked here by the rules of the domain, so that a command never sends what
//! the server would refuse.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use feedgate_common::{DeviceId, FeedId, ItemId, Millis, Position, UserId};
use feedgate_gateway::Role;
use toml::Value;

use crate::layers::Given;

/// The longest life of a token that the server gives, in seconds: 30 days.
const TTL_MAX_SECS: u64 = 30 * 24 * 3600;

/// The most changes that `tail` can begin with: the log keeps at least this many.
const LINES_MAX: u64 = 1000;

/// How many things a command handles at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Most {
    /// As many as there are.
    All,
    /// At most this many.
    Of(u64),
}

impl FromStr for Most {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            number => number.parse().map(Self::Of).map_err(|_| format!("it is a number or \"all\", not {text:?}")),
        }
    }
}

/// A real-time feed gateway. Without a command it serves.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) start: Start,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run the server (what happens without a command)
    Serve(Start),
    /// Print a token (JWT) with which a user's device may connect
    Token {
        /// The user whose token it is
        #[arg(long)]
        user: UserId,
        /// The device it is for; else the device names itself
        #[arg(long)]
        device: Option<DeviceId>,
        /// How long it is valid: 90s, 10m, 1h or 7d; at most 30d
        #[arg(long, default_value = "1h", value_parser = duration)]
        ttl: Duration,
        #[command(flatten)]
        server: Server,
    },
    /// Publish an item and print what the server accepted
    Publish(Publish),
    /// Let READER follow AUTHOR
    Follow(Edge),
    /// Let READER no longer follow AUTHOR
    Unfollow(Edge),
    /// Say how AUTHOR's items reach the followers, from the next one on
    Class {
        /// The user whose items it is about
        author: UserId,
        /// auto: by the number of followers; push: written into every feed; pull: taken as each follower reads;
        /// everyone: pull, and everybody follows, for good
        #[arg(value_parser = ["auto", "push", "pull", "everyone"])]
        class: String,
        #[command(flatten)]
        server: Server,
    },
    /// Print a page of a user's feed, newest first
    Feed {
        /// The user whose feed it is
        #[arg(long)]
        user: UserId,
        /// Which of the user's feeds
        #[arg(long, default_value = FeedId::MAIN_NAME)]
        name: String,
        /// How many items to print
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u8).range(1..=100))]
        limit: u8,
        /// The `next` of the page before
        #[arg(long)]
        cursor: Option<String>,
        #[command(flatten)]
        server: Server,
    },
    /// Import a file of NDJSON lines, such as `export` prints; what is there already stays as it is
    Import {
        /// The file; - reads stdin
        file: PathBuf,
        /// Skip the lines before this one
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
        from_line: u64,
        #[command(flatten)]
        server: Server,
    },
    /// Print everything that readers' feeds are made of, as NDJSON lines
    Export {
        /// Go on after this one of the cursors it printed
        #[arg(long)]
        cursor: Option<String>,
        #[command(flatten)]
        server: Server,
    },
    /// Copy all that the server on --data has stored, while it runs, into a new directory
    Backup {
        /// The directory to make
        directory: PathBuf,
        #[command(flatten)]
        place: Place,
    },
    /// Make the empty or new directory --data from a backup; start the server on it afterwards
    Restore {
        /// A directory that `backup` has made
        backup: PathBuf,
        #[command(flatten)]
        place: Place,
    },
    /// Check the store of a stopped server on --data, a backup, or the PostgreSQL of a cluster, and change nothing.
    /// Ends with 0 if it is sound, 1 if something is wrong, 2 if it could not be looked at
    Doctor {
        /// A directory that `backup` has made, to be checked in place of --data
        #[arg(long, value_name = "DIR")]
        backup: Option<PathBuf>,
        /// A new directory for the copy that is looked at; it is removed in the end [default: beside what is checked]
        #[arg(long, value_name = "DIR")]
        scratch: Option<PathBuf>,
        /// How many inboxes are compared with the archive, spread over all users: a number, or "all"
        #[arg(long, value_name = "NUMBER", default_value = "1000")]
        inboxes: Most,
        #[command(flatten)]
        place: Place,
    },
    /// Print a link that opens the console in a browser, once, within ten minutes
    Console {
        #[command(flatten)]
        server: Server,
    },
    /// Connect as a device and print a line of JSON for each change of a user's feed
    Tail(Tail),
    /// Show what a server does, drawn anew every few seconds until Ctrl-C
    Top(Top),
    /// Succeed if the server at URL says that it is ready, as a health check
    Ready {
        /// http://HOST:PORT of a gateway's admin port or a worker's health port
        url: String,
    },
    /// Make the secrets that all processes of a cluster share, unless they are there
    Secrets {
        /// The directory for them; it is made for its owner alone
        directory: PathBuf,
    },
    /// Make a further API key and print it; the gateways take it from their next reload or start
    ApiKey {
        /// What the key is called, such as the backend that has it
        name: String,
        /// What the key may do: read, publish or admin; may be given more than once
        #[arg(long = "role", required = true)]
        roles: Vec<Role>,
        #[command(flatten)]
        place: Place,
    },
    /// Print the settings that are in effect, or all that is wrong with them
    CheckConfig {
        #[command(flatten)]
        serve: Serve,
        /// Print which of them differ from those of the server at http://HOST:PORT instead. Ends with 0 if none does, 3
        /// if a reload takes all that do, 4 if some need a restart
        #[arg(long, value_name = "URL")]
        against: Option<String>,
        /// The API key for that [default: the one in --data]
        #[arg(long, env = "FEEDGATE_KEY", hide_env_values = true, allow_hyphen_values = true)]
        key: Option<String>,
    },
    /// Print a configuration file with every setting, its default and what it means
    DefaultConfig,
}

#[derive(Args)]
pub(crate) struct Start {
    #[command(flatten)]
    pub(crate) serve: Serve,
    /// Go on with what is left of a data directory from which files or secrets are missing; secrets are made anew
    #[arg(long)]
    pub(crate) accept_loss: bool,
}

#[derive(Args)]
pub(crate) struct Serve {
    /// IP address and port to listen on [default: 127.0.0.1:8080]
    #[arg(long, value_name = "IP:PORT")]
    listen: Option<SocketAddr>,
    /// Where backends connect when --listen is not loopback or a port has TLS [default: 127.0.0.1:8081]
    #[arg(long, value_name = "IP:PORT")]
    admin_listen: Option<SocketAddr>,
    /// This process's name in a cluster, of A-Za-z0-9_- [default: the machine's name]
    #[arg(long)]
    node: Option<String>,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// Where the settings and the data are.
#[derive(Args)]
pub(crate) struct Place {
    /// The directory that holds everything the server keeps [default: data]
    // This is text, as all settings are: a path that is not UTF-8 could only be shown as another path.
    #[arg(long, value_name = "DIR")]
    data: Option<String>,
    /// A TOML file with settings; `default-config` prints one
    #[arg(long, value_name = "FILE", env = "FEEDGATE_CONFIG")]
    pub(crate) config: Option<PathBuf>,
}

/// The server that a command talks to.
#[derive(Args)]
pub(crate) struct Server {
    /// The address of the server, http://HOST:PORT or https://HOST:PORT [default: the server that runs on --data]
    #[arg(long, env = "FEEDGATE_URL")]
    pub(crate) url: Option<String>,
    /// The API key [default: the one in --data]
    // One key in 64 begins with a hyphen.
    #[arg(long, env = "FEEDGATE_KEY", hide_env_values = true, allow_hyphen_values = true)]
    pub(crate) key: Option<String>,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Args)]
pub(crate) struct Publish {
    /// The user who publishes it
    #[arg(long)]
    pub(crate) author: UserId,
    /// The backend's own word for what it is; it decides to which feed the item goes
    #[arg(long)]
    pub(crate) kind: Option<String>,
    /// The id of the item, a decimal number [default: the server gives one]
    #[arg(long)]
    pub(crate) id: Option<ItemId>,
    /// Your own unique key for it
    #[arg(long)]
    pub(crate) foreign_id: Option<String>,
    /// Its place in the feed, the greatest on top [default: --published-at]
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) rank: Option<i64>,
    /// The only readers it is for: names, separated by commas [default: all who follow the author]
    #[arg(long, value_name = "USER,…", value_delimiter = ',')]
    pub(crate) to: Vec<UserId>,
    /// When it was published, Unix time in ms [default: now]
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) published_at: Option<Millis>,
    /// The contents, as JSON; - reads them from stdin
    #[arg(allow_hyphen_values = true)]
    pub(crate) body: String,
    #[command(flatten)]
    pub(crate) server: Server,
}

#[derive(Args)]
pub(crate) struct Edge {
    /// The user who follows
    pub(crate) reader: UserId,
    /// The user who is followed
    pub(crate) author: UserId,
    #[command(flatten)]
    pub(crate) server: Server,
}

#[derive(Args)]
pub(crate) struct Top {
    /// Another process of the same cluster, such as http://HOST:PORT of a worker's health port: its numbers are added.
    /// May be given more than once
    #[arg(long, value_name = "URL")]
    pub(crate) also: Vec<String>,
    /// The seconds between two pictures
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=60))]
    pub(crate) every: u64,
    /// End after so many pictures
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: Option<u32>,
    #[command(flatten)]
    pub(crate) server: Server,
}

#[derive(Args)]
pub(crate) struct Tail {
    /// The user whose feed it is
    #[arg(long)]
    pub(crate) user: UserId,
    /// Which of the user's feeds
    #[arg(long, default_value = FeedId::MAIN_NAME)]
    pub(crate) name: String,
    /// The device to connect as; the newest connection of a device replaces an older one
    #[arg(long)]
    pub(crate) device: Option<DeviceId>,
    /// Begin after this position instead, such as 3:17
    #[arg(long, value_name = "EPOCH:OFFSET", value_parser = position)]
    pub(crate) since: Option<Position>,
    /// Begin with this many of the changes that were before
    #[arg(long, short = 'n', default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=LINES_MAX))]
    pub(crate) lines: u64,
    #[command(flatten)]
    pub(crate) server: Server,
}

impl Serve {
    /// The flags as the topmost layer of settings.
    pub(crate) fn given(&self) -> Vec<Given> {
        let mut given = self.place.given();
        for (flag, key, address) in
            [("--listen", "listen", self.listen), ("--admin-listen", "admin_listen", self.admin_listen)]
        {
            given.extend(address.map(|address| text(flag, key, address.to_string())));
        }
        given.extend(self.node.iter().map(|node| text("--node", "node", node.clone())));
        given
    }
}

impl Place {
    /// The flags as the topmost layer of settings.
    pub(crate) fn given(&self) -> Vec<Given> {
        self.data.iter().map(|data| text("--data", "data", data.clone())).collect()
    }
}

/// A flag that gives a setting, as text.
pub(crate) fn text(flag: &str, key: &str, value: String) -> Given {
    Given { source: flag.to_owned(), key: key.to_owned(), value: Value::String(value) }
}

fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("a duration is a whole number and s, m, h or d, such as 10m, at most 30d; not {text:?}");
    let unit = match text.as_bytes().last() {
        Some(b's') => 1,
        Some(b'm') => 60,
        Some(b'h') => 3600,
        Some(b'd') => 24 * 3600,
        _ => return Err(wrong()),
    };
    let number = &text[..text.len() - 1];
    let plain = number.bytes().all(|b| b.is_ascii_digit());
    let secs = plain.then(|| number.parse::<u64>().ok()?.checked_mul(unit)).flatten().ok_or_else(wrong)?;
    if (1..=TTL_MAX_SECS).contains(&secs) { Ok(Duration::from_secs(secs)) } else { Err(wrong()) }
}

fn position(text: &str) -> Result<Position, String> {
    let read = text.split_once(':').and_then(|(epoch, offset)| {
        let plain = !offset.is_empty() && offset.bytes().all(|b| b.is_ascii_digit());
        Some(Position { epoch: epoch.parse().ok()?, offset: plain.then(|| offset.parse().ok()).flatten()? })
    });
    read.ok_or_else(|| format!("a position is EPOCH:OFFSET as tail printed them, such as 3:17; not {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use feedgate_common::Epoch;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_duration_is_a_number_and_a_unit() {
        for (good, secs) in [("90s", 90), ("10m", 600), ("1h", 3600), ("30d", TTL_MAX_SECS)] {
            assert_eq!(duration(good), Ok(Duration::from_secs(secs)));
        }
        for bad in ["", "1", "h", "0s", "-1h", "+1h", "1.5h", "1 h", "31d", "99999999999999999999d", "1w"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_position_is_an_epoch_and_an_offset() {
        assert_eq!(position("3:17"), Ok(Position { epoch: Epoch(3), offset: 17 }));
        for bad in ["", "3", "3:", ":17", "3:-1", "3:+1", "a:1", "3:17:1"] {
            assert!(position(bad).is_err(), "{bad}");
        }
    }
}
