//! The way to Redis: one server or a cluster, by URL.
//!
//! ```text
//!   call ─▶ breaker ─▶ connection ─▶ server        breaker   after failures in a row: refuse, then let one try
//!             │            │                       single    a connection that is replaced when it failed
//!             ▼            ▼                       cluster   a `single` for each node, and which has which slots
//!        refused at once   within `Timeouts::call`, or given up
//!                                                  server    is it one that we can use?
//! ```
//!
//! Invariants: no call takes longer than [`Timeouts::call`]. A call that was cut short may have happened or not.
//! A server that is back is used again without a new [`Link`], within [`breaker::LONGEST`].

mod breaker;
mod cluster;
mod script;
mod server;
mod single;
mod slots;
mod verb;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use feedgate_common::StoreError;
use feedgate_common::error::Result;
use feedgate_common::metrics::{Calls, Registry};
use feedgate_tls::StoreTls;
use parking_lot::Mutex;
use redis::{Cmd, ErrorKind, IntoConnectionInfo, RedisError, RedisResult, ServerErrorKind, Value, cmd};
use tokio::time::Instant;

use breaker::Breaker;
use cluster::Cluster;
pub(crate) use script::Script;
use single::Single;
pub(crate) use verb::Verb;

/// How long Redis may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// To connect at the start.
    pub connect: Duration,
    /// To answer one call, connecting again included.
    pub call: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(2), call: Duration::from_secs(1) }
    }
}

/// Multiplexed connections, shared by everybody in the process. Cloning it is cheap.
#[derive(Clone)]
pub struct Link {
    route: Route,
    timeouts: Timeouts,
    /// For a single server, one breaker. For a cluster, a breaker for each share of the hash tags, so that a node that
    /// is down does not keep calls from the others.
    breakers: Arc<[Mutex<Breaker>]>,
    calls: Calls<Verb>,
}

#[derive(Clone)]
enum Route {
    Single(Arc<Single>),
    Cluster(Arc<Cluster>),
}

/// How the URL of a server with TLS begins.
const BY_TLS: &str = "rediss://";

/// Shares of a cluster's hash tags.
const SHARES: usize = 256;

impl Link {
    /// Connects to `redis://host:port/db` or, with several hosts (`redis://a:7000,b:7000`), to the cluster they
    /// belong to; `rediss://` by TLS. One host that belongs to a cluster will do too.
    ///
    /// # Errors
    /// `Misconfigured` if `url` is no such URL, if the password is wrong, if Redis is older than 7.0, or if a single
    /// server is a replica. `Unavailable` if no server answers.
    pub async fn connect(url: &str, timeouts: Timeouts) -> Result<Self> {
        Self::connect_with(url, &StoreTls::default(), timeouts).await
    }

    /// As [`connect`](Self::connect), with files for TLS, which are read for each connection of a `rediss://` URL.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and `Misconfigured` if there is no TLS with the server.
    pub async fn connect_with(url: &str, tls: &StoreTls, timeouts: Timeouts) -> Result<Self> {
        let connected = Self::connected(url, tls, timeouts).await;
        match connected {
            // A server without TLS may wait for the rest of what it takes for a command.
            Err(error @ StoreError::Unavailable(_)) if url.starts_with(BY_TLS) && is_silence(&error) => {
                Err(StoreError::unavailable(format_args!(
                    "Redis did not answer a handshake of TLS within {:?}; does it speak TLS on this port?",
                    timeouts.connect
                )))
            }
            connected => connected,
        }
    }

    async fn connected(url: &str, tls: &StoreTls, timeouts: Timeouts) -> Result<Self> {
        if url.matches("://").count() > 1 {
            return Err(StoreError::misconfigured(
                "inbox_url names the scheme once, also before several hosts: redis://HOST:PORT,HOST:PORT",
            ));
        }
        let hosts = cluster_hosts(url);
        let infos = hosts.iter().map(|host| host[..].into_connection_info()).collect::<RedisResult<Vec<_>>>();
        let infos = infos.map_err(|error| {
            StoreError::misconfigured(format_args!(
                "an inbox_url is redis://user:password@host:port, in which a / ? # @ or % of the password is %2F %3F %23 \
                 %40 or %25: {error}"
            ))
        })?;
        if let [one] = &infos[..] {
            let single = Single::new(one.clone(), tls.clone(), timeouts);
            let link = Self::over(Route::Single(Arc::new(single)), timeouts, 1);
            let info = link.info().await?;
            if !server::check(&info)? {
                server::warn_of_eviction(&[info]);
                return Ok(link);
            }
        }
        let connecting = Cluster::connect(infos, tls.clone(), timeouts);
        let connected = tokio::time::timeout(timeouts.connect, connecting).await;
        let cluster = connected.map_err(|_| silent(timeouts.connect))?.map_err(failed)?;
        let link = Self::over(Route::Cluster(cluster), timeouts, SHARES);
        let info = link.info().await?;
        server::check(&info)?;
        // Each master has its own policy. If one is away just now, the one that has answered is looked at.
        let all = link.on_masters(&cmd("INFO")).await.unwrap_or_default();
        let mut infos: Vec<String> = all.into_iter().filter_map(|info| redis::from_redis_value(info).ok()).collect();
        if infos.is_empty() {
            infos.push(info);
        }
        server::warn_of_eviction(&infos);
        Ok(link)
    }

    fn over(route: Route, timeouts: Timeouts, shares: usize) -> Self {
        let breakers = (0..shares).map(|_| Mutex::default()).collect();
        Self { route, timeouts, breakers, calls: Calls::default() }
    }

    /// Registers what is counted of the calls of this link and its clones, as `redis_calls` and `redis_call_seconds`.
    pub fn register(&self, registry: &mut Registry) {
        self.calls.register("redis", registry);
    }

    /// Whether one server may be away while others are there.
    pub(crate) fn is_cluster(&self) -> bool {
        matches!(self.route, Route::Cluster(_))
    }

    /// Asks whether the server answers; in a cluster, whether any master does.
    pub(crate) async fn ping(&self) -> Result<()> {
        let ping = cmd("PING");
        self.within(Verb::Ping, None, self.send(&ping, None)).await.map(drop)
    }

    /// Sends one command and answers its reply; fails like any call of this link, within its timeout.
    pub(crate) async fn call(&self, command: &Cmd) -> Result<Value> {
        let key = key_of(command);
        self.within(Verb::Command, key, self.send(command, key)).await
    }

    /// Runs a script by its hash. If the server does not know the hash, sends the whole script, which the server keeps.
    pub(crate) async fn script<K, A>(&self, script: &Script, keys: &[K], arguments: &[A]) -> Result<Value>
    where
        K: AsRef<[u8]> + Sync,
        A: AsRef<[u8]> + Sync,
    {
        let key = keys.first().map(AsRef::as_ref);
        self.within(script.verb, key, async {
            match self.send(&script.by_hash(keys, arguments), key).await {
                Err(e) if e.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                    self.send(&script.whole(keys, arguments), key).await
                }
                answer => answer,
            }
        })
        .await
    }

    /// Notes that the node which answers for `key` is no longer its master. The next call looks for the new one.
    pub(crate) fn look_again(&self, key: Option<&[u8]>) {
        match &self.route {
            Route::Single(single) => single.forget(),
            Route::Cluster(cluster) => cluster.look_again(key),
        }
    }

    async fn send(&self, command: &Cmd, key: Option<&[u8]>) -> RedisResult<Value> {
        match (&self.route, key) {
            (Route::Single(single), _) => single.call(command).await?.extract_error(),
            (Route::Cluster(cluster), Some(key)) => cluster.call(command, key).await,
            (Route::Cluster(cluster), None) => cluster.any(command).await,
        }
    }

    /// One command that every master answers.
    pub(crate) async fn on_masters(&self, command: &Cmd) -> Result<Vec<Value>> {
        let asked = tokio::time::timeout(self.timeouts.call, async {
            match &self.route {
                Route::Single(single) => Ok(vec![single.call(command).await?.extract_error()?]),
                Route::Cluster(cluster) => cluster.every(command).await,
            }
        });
        let call = self.calls.begin(Verb::Command, now);
        call.ended(asked.await.map_err(|_| silent(self.timeouts.call)).and_then(|answer| answer.map_err(failed)))
    }

    /// Reads `INFO` of the server; in a cluster, of any master, since the others may be away just now.
    async fn info(&self) -> Result<String> {
        let info = cmd("INFO");
        let asked = tokio::time::timeout(self.timeouts.connect, self.send(&info, None));
        let info = asked.await.map_err(|_| silent(self.timeouts.connect))?.map_err(failed)?;
        redis::from_redis_value(info).map_err(StoreError::unavailable)
    }

    fn breaker(&self, key: Option<&[u8]>) -> &Mutex<Breaker> {
        &self.breakers[key.map_or(0, share) % self.breakers.len()]
    }

    /// Makes a call about `key`, and counts it as `verb`.
    async fn within<T>(&self, verb: Verb, key: Option<&[u8]>, work: impl Future<Output = RedisResult<T>>) -> Result<T> {
        let call = self.calls.begin(verb, now);
        call.ended(self.guarded(key, work).await)
    }

    /// Makes a call if the breaker of `key` admits it, bounds its time, and tells the breaker what became of it.
    async fn guarded<T>(&self, key: Option<&[u8]>, work: impl Future<Output = RedisResult<T>>) -> Result<T> {
        let breaker = self.breaker(key);
        breaker.lock().admit(Instant::now(), self.timeouts.call).map_err(|wait| {
            StoreError::unavailable(format_args!("Redis has failed several times; it is tried again in {wait:?}"))
        })?;
        let mut pending = Pending { link: self, key, since: Instant::now(), heard: false };
        let answer = tokio::time::timeout(self.timeouts.call, work).await;
        pending.heard = true;
        let reached = matches!(&answer, Ok(Ok(_))) || matches!(&answer, Ok(Err(e)) if answered(e));
        match reached {
            true => breaker.lock().succeeded(),
            false => breaker.lock().failed(Instant::now()),
        }
        if !reached || matches!(&answer, Ok(Err(e)) if demoted(e)) {
            self.look_again(key);
        }
        answer.map_err(|_| silent(self.timeouts.call))?.map_err(failed)
    }
}

fn now() -> std::time::Instant {
    Instant::now().into_std()
}

/// A call that may have no answer yet. If it is dropped before the answer is heard, its caller has stopped waiting.
struct Pending<'a> {
    link: &'a Link,
    key: Option<&'a [u8]>,
    since: Instant,
    heard: bool,
}

impl Drop for Pending<'_> {
    /// A caller that gave up late shows that the server did not answer; a caller that gave up early shows nothing.
    fn drop(&mut self) {
        let now = Instant::now();
        if self.heard {
            return;
        }
        let breaker = self.link.breaker(self.key);
        if now - self.since < self.link.timeouts.call / 2 {
            breaker.lock().abandoned(now);
        } else {
            breaker.lock().failed(now);
            self.link.look_again(self.key);
        }
    }
}

/// The nodes named by a URL, a URL each.
fn cluster_hosts(url: &str) -> Vec<String> {
    let Some((scheme, rest)) = url.split_once("://") else { return vec![url.to_owned()] };
    if !rest.contains(',') {
        return vec![url.to_owned()];
    }
    let (credentials, hosts) = rest.rsplit_once('@').map_or(("", rest), |(c, hosts)| (c, hosts));
    let at = if credentials.is_empty() { String::new() } else { format!("{credentials}@") };
    hosts.trim_end_matches('/').split(',').map(|host| format!("{scheme}://{at}{host}")).collect()
}

/// The key that decides which node a command goes to.
fn key_of(command: &Cmd) -> Option<&[u8]> {
    let mut words = command.args_iter().map(|word| match word {
        redis::Arg::Simple(word) => word,
        _ => &b""[..],
    });
    let script = words.next().is_some_and(|name| name.starts_with(b"EVAL"));
    words.nth(if script { 2 } else { 0 })
}

/// The share of a key, by its hash tag: keys with one hash tag have one share.
fn share(key: &[u8]) -> usize {
    let tag = key.split(|&byte| byte == b'}').next().unwrap_or(key);
    tag.iter().fold(0, |sum: usize, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()))
}

/// Whether the server has answered; an error of the server is an answer too.
fn answered(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension | ErrorKind::UnexpectedReturnType)
}

fn demoted(error: &RedisError) -> bool {
    use ServerErrorKind::{MasterDown, ReadOnly};
    matches!(error.kind(), ErrorKind::Server(MasterDown | ReadOnly))
}

/// Whether a server has said nothing at all, in place of an error.
fn is_silence(error: &StoreError) -> bool {
    let said = error.source().and_then(|source| source.downcast_ref::<RedisError>());
    said.is_none_or(RedisError::is_timeout)
}

fn silent(after: Duration) -> StoreError {
    StoreError::unavailable(format_args!("Redis did not answer within {after:?}"))
}

/// The error that the caller gets. If another program has put something else in place of our keys, or a script failed
/// in the middle, it is `Corrupt`: a person must look at it.
fn failed(error: RedisError) -> StoreError {
    if let Some(why) = feedgate_tls::refusal(&error) {
        return StoreError::misconfigured(format_args!("no TLS with Redis: {why}"));
    }
    // Redis cannot write to its disk, and takes no writes until it can, also not those of a script.
    if error.code() == Some("MISCONF") {
        let why = error.detail().unwrap_or_default();
        return StoreError::down(format_args!("Redis: {}", why.split(" script:").next().unwrap_or(why)));
    }
    let detail = error.detail().unwrap_or_default();
    // A slot is being moved to another master, and one of the keys of the script is there already.
    let is_moving = detail.contains("non local key");
    let damaged = error.code() == Some("WRONGTYPE") || (detail.contains("user_script:") && !is_moving);
    if damaged {
        return StoreError::corrupt(format_args!("Redis: {error}")).with_source(error);
    }
    if error.kind() == ErrorKind::Parse {
        // The words of the parser say nothing more, and have several lines.
        return StoreError::unavailable(
            "what listens there does not speak as Redis does; check host and port in inbox_url",
        );
    }
    match to_change(&error) {
        Some(help) => StoreError::misconfigured(format_args!("Redis: {error} ({help})")).with_source(error),
        None => StoreError::unavailable(format_args!("Redis: {error}")).with_source(error),
    }
}

/// What a person has to change before the server takes such a call; `None` if it may take it later.
fn to_change(error: &RedisError) -> Option<&'static str> {
    const PASSWORD: &str = "check the password in inbox_url, as in redis://:PASSWORD@HOST:PORT";
    let says = |words: &str| error.detail().is_some_and(|detail| detail.contains(words));
    match error.code() {
        Some("NOAUTH" | "WRONGPASS") => Some(PASSWORD),
        Some("NOPERM") => Some("the user in inbox_url needs the right to all keys and commands: ~* +@all"),
        _ if error.kind() == ErrorKind::AuthenticationFailed => Some(PASSWORD),
        _ if says("SELECT is not allowed in cluster mode") => {
            Some("a Redis Cluster has one database; leave its number out of inbox_url")
        }
        _ if says("cluster support disabled") => {
            Some("several hosts in inbox_url are the nodes of one Redis Cluster; name a server that is in none alone")
        }
        _ if error.kind() == ErrorKind::InvalidClientConfig => Some("inbox_url is redis://:PASSWORD@HOST:PORT"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redis_without_room_on_its_disk_is_down_and_says_why_not_damaged() {
        for script in ["", " script: 3f2a, on @user_script:30."] {
            let said = format!("-MISCONF Errors writing to the AOF file: No space left on device{script}\r\n");
            let refused = redis::parse_redis_value(said.as_bytes()).and_then(Value::extract_error).unwrap_err();
            let StoreError::Down(why) = failed(refused) else { panic!("{said}") };
            assert_eq!(&*why, "Redis: Errors writing to the AOF file: No space left on device");
        }
    }

    #[test]
    fn a_script_that_met_a_slot_on_its_way_to_another_master_is_tried_again_and_nothing_is_damaged() {
        let moving =
            "-ERR Script attempted to access a non local key in a cluster node script: 0f, on @user_script:8.\r\n";
        let failed_inside = "-ERR Bad data format script: 0f, on @user_script:8.\r\n";
        for (said, is_damaged) in [(moving, false), (failed_inside, true)] {
            let refused = redis::parse_redis_value(said.as_bytes()).and_then(Value::extract_error).unwrap_err();
            assert_eq!(matches!(failed(refused), StoreError::Corrupt(_)), is_damaged, "{said}");
        }
    }

    #[test]
    fn a_redis_that_does_not_take_the_password_is_misconfigured_and_its_error_is_kept() {
        for code in ["NOAUTH", "WRONGPASS"] {
            let said = format!("-{code} no\r\n");
            let refused = redis::parse_redis_value(said.as_bytes()).and_then(Value::extract_error).unwrap_err();
            let error = failed(refused);
            assert!(matches!(error, StoreError::Misconfigured(_)), "{error}");
            let source = error.source().and_then(|source| source.downcast_ref::<RedisError>());
            assert_eq!(source.and_then(RedisError::code), Some(code));
            assert!(error.to_string().contains("check the password in inbox_url"), "{error}");
        }
    }

    #[test]
    fn what_a_person_has_to_change_is_said_and_is_no_reason_to_wait() {
        for (said, help) in [
            ("-NOPERM this user has no permissions to run the 'info' command", "~* +@all"),
            ("-ERR SELECT is not allowed in cluster mode", "leave its number out of inbox_url"),
            ("-ERR This instance has cluster support disabled", "the nodes of one Redis Cluster"),
        ] {
            let refused = redis::parse_redis_value(format!("{said}\r\n").as_bytes());
            let error = failed(refused.and_then(Value::extract_error).unwrap_err());
            assert!(matches!(&error, StoreError::Misconfigured(why) if why.contains(help)), "{error}");
        }
        let error = failed(redis::parse_redis_value(b"INFO {}\r\n").unwrap_err());
        assert!(matches!(&error, StoreError::Unavailable(why) if why.contains("does not speak as Redis")), "{error}");
    }

    #[tokio::test]
    async fn a_url_that_repeats_its_scheme_is_refused_with_what_would_be_right() {
        let refused = Link::connect("redis://a:7000,redis://b:7001", Timeouts::default()).await.err().unwrap();
        assert!(matches!(&refused, StoreError::Misconfigured(why) if why.contains("HOST:PORT,HOST:PORT")), "{refused}");
        let refused = Link::connect("redis://:a/b@c:7000", Timeouts::default()).await.err().unwrap();
        assert!(matches!(&refused, StoreError::Misconfigured(why) if why.contains("/ ? # @ or %")), "{refused}");
    }

    #[test]
    fn a_url_with_several_hosts_names_a_cluster() {
        assert_eq!(cluster_hosts("redis://127.0.0.1:6379/0"), ["redis://127.0.0.1:6379/0"]);
        let hosts = cluster_hosts("rediss://u:p@a:7000,b:7001/");
        assert_eq!(hosts, ["rediss://u:p@a:7000", "rediss://u:p@b:7001"]);
    }

    #[test]
    fn a_command_goes_where_its_first_key_lies() {
        assert_eq!(key_of(cmd("HGET").arg("{b001}").arg("x")), Some(&b"{b001}"[..]));
        assert_eq!(key_of(cmd("EVALSHA").arg("hash").arg(1).arg("{b001}")), Some(&b"{b001}"[..]));
        assert_eq!(key_of(&cmd("PING")), None);
    }
}
