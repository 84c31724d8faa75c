//! A Redis Cluster: a connection to each node, and which node has which slots.
//!
//! ```text
//!   call ─▶ its slot ─▶ master ─┬─ answers
//!                               ├─ MOVED, ASK, TRYAGAIN ─▶ goes on there, [`HOPS`] times at most
//!                               └─ silent, or no master any more ─▶ its connection is dropped
//!   whatever is not a plain answer ─▶ all nodes are asked for their view, and what most of them see counts
//! ```
//!
//! Invariants: a silent node delays only the calls to that node. The connection to a master goes when a call to one of
//! its slots has failed. The view is renewed as long as calls fail, at most every [`RENEW`], from the nodes of the last
//! view and those of the URL: a cluster that is there again, at whatever address, is found again.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use feedgate_tls::StoreTls;
use futures_util::future::{select_ok, try_join_all};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use parking_lot::Mutex;
use redis::{Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value, cmd};
use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio::time::{sleep, timeout};

use super::single::Single;
use super::slots::{Address, Slots, most_common, slot_of};
use super::{Timeouts, answered};

/// The most nodes that one call is sent to, one after the other.
const HOPS: usize = 6;

/// The pause before a call is repeated whose keys are being moved.
const MOVING: Duration = Duration::from_millis(20);

/// The view of the cluster is renewed at most this often.
const RENEW: Duration = Duration::from_millis(250);

/// The connections to the nodes of a Redis Cluster, and the last known map of its slots.
pub(super) struct Cluster {
    /// The nodes that the URL names.
    seeds: Vec<Address>,
    /// Credentials and protocol, the same for all nodes.
    like: ConnectionInfo,
    tls: StoreTls,
    timeouts: Timeouts,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    slots: Arc<Slots>,
    nodes: HashMap<Address, Arc<Single>>,
    renewing: bool,
    /// When the last renewal has ended.
    renewed: Option<Instant>,
}

/// Where a call goes next.
enum Next {
    Moved(Address),
    Ask(Address),
    Again,
}

impl Cluster {
    /// Connects to the cluster of these nodes. Each node is reached by TLS with these files if the first one in the
    /// list is.
    pub(super) async fn connect(
        infos: Vec<ConnectionInfo>,
        tls: StoreTls,
        timeouts: Timeouts,
    ) -> RedisResult<Arc<Self>> {
        let seeds = infos.iter().filter_map(|info| Address::of(info.addr())).collect();
        let nowhere = || RedisError::from((ErrorKind::InvalidClientConfig, "no node is named by host and port"));
        let like = infos.into_iter().next().ok_or_else(nowhere)?;
        let cluster = Arc::new(Self { seeds, like, tls, timeouts, state: Mutex::default() });
        let slots = cluster.look().await?;
        cluster.state.lock().slots = Arc::new(slots);
        Ok(cluster)
    }

    /// Sends one command about `key` to the master of its slot, and gives the answer.
    pub(super) async fn call(self: &Arc<Self>, command: &Cmd, key: &[u8]) -> RedisResult<Value> {
        let mut at = self.master_of(key)?;
        let mut asking = false;
        for _ in 1..HOPS {
            let error = match self.ask(&at, command, asking).await {
                Err(error) => error,
                answer => return answer,
            };
            asking = false;
            match next(&error, &at) {
                Some(Next::Moved(to)) => at = to,
                Some(Next::Ask(to)) => (at, asking) = (to, true),
                Some(Next::Again) => {
                    sleep(MOVING).await;
                    at = self.master_of(key)?;
                }
                None => return Err(error),
            }
        }
        self.ask(&at, command, asking).await
    }

    /// Sends one command to all masters, and gives the first answer that is no error.
    pub(super) async fn any(self: &Arc<Self>, command: &Cmd) -> RedisResult<Value> {
        let slots = self.state.lock().slots.clone();
        let asked = slots.masters().into_iter().map(|master| self.ask(master, command, false).boxed());
        select_ok(asked).await.map(|(answer, _)| answer)
    }

    /// Sends one command to all masters, and gives all answers. Fails if one of them fails.
    pub(super) async fn every(self: &Arc<Self>, command: &Cmd) -> RedisResult<Vec<Value>> {
        let slots = self.state.lock().slots.clone();
        try_join_all(slots.masters().into_iter().map(|master| self.ask(master, command, false))).await
    }

    /// After a call about `key` was given up: drops the connection to its node, and looks for the node that has it now.
    pub(super) fn look_again(self: &Arc<Self>, key: Option<&[u8]>) {
        if let Some(Ok(master)) = key.map(|key| self.master_of(key)) {
            self.node(&master).forget();
        }
        self.renew();
    }

    fn master_of(self: &Arc<Self>, key: &[u8]) -> RedisResult<Address> {
        let slot = slot_of(key);
        let master = self.state.lock().slots.master(slot).cloned();
        master.ok_or_else(|| {
            self.renew();
            RedisError::from((ErrorKind::Client, "no node of the cluster has the slot", slot.to_string()))
        })
    }

    /// Asks the node at `at`. If the answer shows that the node is lost or the view is old, the view is renewed for the
    /// next call.
    async fn ask(self: &Arc<Self>, at: &Address, command: &Cmd, asking: bool) -> RedisResult<Value> {
        use ServerErrorKind::{BusyLoading, ClusterDown, MasterDown, Moved, ReadOnly};
        let node = self.node(at);
        let answer = if asking { node.call_asking(command).await } else { node.call(command).await };
        let answer = answer.and_then(Value::extract_error);
        if let Err(error) = &answer {
            if !answered(error) {
                node.forget();
                self.renew();
            } else if let ErrorKind::Server(BusyLoading | ClusterDown | MasterDown | Moved | ReadOnly) = error.kind() {
                self.renew();
            }
        }
        answer
    }

    fn node(&self, at: &Address) -> Arc<Single> {
        let mut state = self.state.lock();
        if let Some(node) = state.nodes.get(at) {
            return node.clone();
        }
        let info = self.like.clone().set_addr(self.reached(at));
        let node = Arc::new(Single::new(info, self.tls.clone(), self.timeouts));
        state.nodes.insert(at.clone(), node.clone());
        node
    }

    /// The address at which a node is reached: by TLS, if the nodes of the URL are.
    fn reached(&self, Address { host, port }: &Address) -> ConnectionAddr {
        let (host, port) = (host.clone(), *port);
        match self.like.addr() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
                ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: tls_params.clone() }
            }
            _ => ConnectionAddr::Tcp(host, port),
        }
    }

    /// Renews the view, in a task that ends within [`Timeouts::call`], unless that was done just now.
    fn renew(self: &Arc<Self>) {
        // A call may be given up because the runtime ends.
        let Ok(runtime) = Handle::try_current() else { return };
        {
            let mut state = self.state.lock();
            if state.renewing || state.renewed.is_some_and(|renewed| renewed.elapsed() < RENEW) {
                return;
            }
            state.renewing = true;
        }
        let cluster = self.clone();
        runtime.spawn(async move {
            let found = cluster.look().await;
            let mut state = cluster.state.lock();
            (state.renewing, state.renewed) = (false, Some(Instant::now()));
            match found {
                Ok(slots) => {
                    let stay: BTreeSet<&Address> = slots.nodes().into_iter().chain(&cluster.seeds).collect();
                    state.nodes.retain(|address, _| stay.contains(address));
                    state.slots = Arc::new(slots);
                }
                Err(error) => tracing::debug!(%error, "no node of the Redis Cluster says which has which slots"),
            }
        });
    }

    /// Asks the nodes of the last view and of the URL for their map of slots, and gives the map that most of them have.
    /// Each node is waited for at most [`Timeouts::call`].
    async fn look(&self) -> RedisResult<Slots> {
        let last = self.state.lock().slots.clone();
        let asked: BTreeSet<&Address> = last.nodes().into_iter().chain(&self.seeds).collect();
        let (mut views, mut error) = (vec![], None);
        let mut answers: FuturesUnordered<_> = asked.iter().map(|address| self.view_of(address)).collect();
        while let Some(answer) = answers.next().await {
            answer.map_or_else(|refused| error = Some(refused), |view| views.push(view));
            if most_common(&views).is_some_and(|(_, voters)| 2 * voters > asked.len()) {
                break;
            }
        }
        match (most_common(&views), error) {
            (Some((slots, _)), _) => Ok(slots.clone()),
            (None, error) => Err(error.unwrap_or_else(silent)),
        }
    }

    async fn view_of(&self, address: &Address) -> RedisResult<Slots> {
        let node = self.node(address);
        let answer = timeout(self.timeouts.call, node.call(cmd("CLUSTER").arg("SLOTS"))).await;
        let answer = answer.map_err(|_| silent()).flatten().and_then(Value::extract_error);
        if answer.as_ref().is_err_and(|error| !answered(error)) {
            node.forget();
        }
        let empty = || RedisError::from((ErrorKind::Client, "the cluster has given its slots to no node yet"));
        Slots::read(&answer?, address).ok_or_else(empty)
    }
}

/// Where a node that refuses a call wants it to go.
fn next(error: &RedisError, asked: &Address) -> Option<Next> {
    let named = || Address::named(error.redirect_node()?.0, asked);
    match error.kind() {
        ErrorKind::Server(ServerErrorKind::Moved) => named().map(Next::Moved),
        ErrorKind::Server(ServerErrorKind::Ask) => named().map(Next::Ask),
        ErrorKind::Server(ServerErrorKind::TryAgain) => Some(Next::Again),
        _ => None,
    }
}

fn silent() -> RedisError {
    RedisError::from((ErrorKind::Io, "no node of the cluster answers"))
}
