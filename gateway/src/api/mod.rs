//! The HTTP API: backends write and read with the API key, readers read what they may see.
//!
//! ```text
//!   request ─▶ access (who) ─▶ query, payload (is it well-formed) ─▶ one file per resource ─▶ answer
//!                 │ 401 403 429      │ 400 408 413 415 422 503          │ 404 409 410 412 429 503
//!                 └──────────────────┴────────── problem ◀──────────────┘
//! ```
//!
//! Invariants: a request that got a 4xx has changed nothing; an accepted write is durable before its answer; an unknown
//! field, parameter or route is refused and named. The routes are listed in `ROUTES` and in `docs/openapi.json`, and a
//! test compares the two.

pub(crate) mod access;
mod answer;
mod audience_lists;
mod authors;
pub(crate) mod backup;
mod batch;
mod changes;
mod coding;
mod comments;
mod console;
mod cors;
mod cursor;
mod dead_notices;
mod deadline;
mod devices;
mod erasures;
pub(crate) mod events;
mod explain;
mod feed;
mod fields;
mod follows;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzed;
mod graph;
mod health;
pub(crate) mod inside;
mod items;
pub(crate) mod metrics;
mod names;
mod outbox;
pub(crate) mod payload;
mod people;
mod pins;
mod problem;
mod problems;
mod publish;
mod query;
mod rankings;
mod reactions;
mod relay;
mod reposts;
mod search;
mod seeing;
mod seen;
mod session;
mod sessions;
pub(crate) mod settings;
mod shields;
mod stats;
mod time;
mod token;
mod traced;
mod transfer;
mod versions;
pub(crate) mod writer;

use std::ops::Deref;
use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRef, OriginalUri};
use axum::http::{Method, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, delete, get, post, put};
use feedgate_common::feed::Feeds;
use feedgate_common::graph::Shield;
use feedgate_common::metrics::Registry;
use feedgate_common::named::NamedFeeds;
use feedgate_common::{Archive, Jobs};
use tokio_util::sync::CancellationToken;

use crate::auth::verifier::Verifier;
use crate::node::lease::Lease;
use crate::node::revocations::Revocations;
use crate::node::uptime::Uptime;
use crate::node::vitals::Vitals;
use crate::node::{LocalSessions, Node, Reads};
use crate::settings::LiveSettings;
use access::Access;
use backup::Copying;
use events::Streams;
use metrics::Metrics;
use payload::{DeviceMemory, Memory};
use problem::{Kind, Problem, short};
use writer::Writer;

/// What requests are answered with. The router clones this for each request, so all parts are behind one counter.
#[derive(Clone)]
pub(crate) struct Api(Arc<ApiParts>);

impl Deref for Api {
    type Target = ApiParts;

    fn deref(&self) -> &ApiParts {
        &self.0
    }
}

/// The parts of the API. A handler takes only those that it uses.
pub(crate) struct ApiParts {
    pub(crate) access: Arc<Access>,
    /// The store that decides, as requests read it.
    pub(crate) archive: Arc<dyn Archive>,
    pub(crate) node: Arc<Node>,
    /// The memory for the bodies of backends' requests.
    pub(crate) memory: Memory,
    /// The memory for the bodies of devices' requests.
    pub(crate) device_memory: DeviceMemory,
    /// What is counted of requests.
    pub(crate) metrics: Arc<Metrics>,
    /// The registry that answers a scrape.
    pub(crate) registry: Arc<Registry>,
    /// Cancelled when the drain begins.
    pub(crate) stopping: CancellationToken,
    pub(crate) writer: Writer,
    /// The places of streams of events.
    pub(crate) streams: Streams,
    /// The place of the only backup at a time.
    pub(crate) copying: Copying,
    /// Tells the settings that are in use now.
    pub(crate) shown: settings::Telling,
}

/// The named feeds that are configured when the request comes.
impl FromRef<Api> for Arc<NamedFeeds> {
    fn from_ref(api: &Api) -> Self {
        api.node.reads.feeds.named()
    }
}

/// Lets a handler take each of these parts of the API as its `State`.
macro_rules! parts {
    ($($part:ty: $($field:ident).+),+) => {
        $(impl FromRef<Api> for $part {
            fn from_ref(api: &Api) -> Self {
                api.$($field).+.clone()
            }
        })+
    };
}

parts! {
    Arc<Access>: access,
    Arc<dyn Archive>: archive,
    Copying: copying,
    settings::Telling: shown,
    DeviceMemory: device_memory,
    Memory: memory,
    Arc<Feeds>: node.reads.feeds,
    Arc<dyn Jobs>: node.jobs,
    Arc<Lease>: node.lease,
    Arc<LocalSessions>: node.local,
    Arc<Reads>: node.reads,
    Arc<Registry>: registry,
    Arc<Revocations>: node.revocations,
    Arc<LiveSettings>: node.settings,
    CancellationToken: stopping,
    Streams: streams,
    Uptime: node.uptime,
    Arc<Verifier>: access.verifier,
    Arc<Vitals>: node.vitals,
    Writer: writer
}

/// A path, and the handlers of its methods.
type Route = (&'static str, fn() -> MethodRouter<Api>);

/// All routes of the API.
const ROUTES: &[Route] = &[
    ("/v1/items", || get(items::by_ids).post(publish::one)),
    ("/v1/items/batch", || post(publish::many)),
    ("/v1/items/{id}", || get(items::read).patch(items::edit).delete(items::delete)),
    ("/v1/items/{id}/comments", || get(comments::list).post(comments::make)),
    ("/v1/items/{id}/comments/{comment}", || get(comments::read).patch(comments::edit).delete(comments::delete)),
    ("/v1/items/{id}/reactions", || get(reactions::list)),
    ("/v1/items/{id}/reactions/{kind}/{user}", || put(reactions::give).delete(reactions::take_back)),
    ("/v1/comments/batch", || post(comments::many::change)),
    ("/v1/reactions/batch", || post(reactions::many::change)),
    ("/v1/items/{id}/reposts", || get(reposts::list)),
    ("/v1/items/{id}/versions", || get(versions::list)),
    ("/v1/search/items", || get(search::items)),
    ("/v1/search/users", || get(search::users)),
    ("/v1/follows/batch", || post(graph::many)),
    ("/v1/users/{user}", || get(people::read).put(people::put).delete(people::remove)),
    ("/v1/people/batch", || post(people::many)),
    ("/v1/users/{user}/following", || get(follows::following)),
    ("/v1/users/{user}/following/{author}", || put(follows::follow).delete(follows::unfollow)),
    ("/v1/users/{user}/followers", || get(follows::followers)),
    ("/v1/users/{user}/followers/{reader}", || put(follows::accept)),
    ("/v1/users/{user}/requests", || get(follows::requests)),
    ("/v1/users/{user}/requests/{reader}", || delete(follows::refuse)),
    ("/v1/users/{user}/mutual", || get(follows::mutual)),
    ("/v1/users/{user}/muted", || shields::all(Shield::Mute)),
    ("/v1/users/{user}/muted/{other}", || shields::one(Shield::Mute)),
    ("/v1/users/{user}/hidden", || shields::all(Shield::Hide)),
    ("/v1/users/{user}/hidden/{other}", || shields::one(Shield::Hide)),
    ("/v1/users/{user}/blocked", || shields::all(Shield::Block)),
    ("/v1/users/{user}/blocked/{other}", || shields::one(Shield::Block)),
    ("/v1/users/{user}/lists", || get(audience_lists::all)),
    ("/v1/users/{user}/lists/{list}", || get(audience_lists::members)),
    ("/v1/users/{user}/lists/{list}/{member}", || put(audience_lists::put_on).delete(audience_lists::take_off)),
    ("/v1/lists/batch", || post(audience_lists::many)),
    ("/v1/users/{user}/feed", || get(feed::page)),
    ("/v1/users/{user}/changes", || get(changes::read)),
    ("/v1/users/{user}/feeds/{feed}/ranking", || get(rankings::read).put(rankings::put)),
    ("/v1/users/{user}/seen", || get(seen::read).put(seen::see)),
    ("/v1/users/{user}/outbox", || get(outbox::page)),
    ("/v1/users/{user}/pins/{id}", || put(pins::pin).delete(pins::unpin)),
    ("/v1/users/{user}/sent", || get(outbox::sent)),
    ("/v1/users/{user}/sessions", || get(sessions::list)),
    ("/v1/users/{user}/sessions/{device}", || delete(sessions::kick)),
    ("/v1/users/{user}/devices", || get(devices::list)),
    ("/v1/users/{user}/devices/{device}", || put(devices::register).delete(devices::unregister)),
    ("/v1/push/dead", || get(dead_notices::list).delete(dead_notices::forget)),
    ("/v1/push/dead/retry", || post(dead_notices::retry)),
    ("/v1/users/{user}/token", || post(token::mint)),
    ("/v1/users/{user}/revoke", || post(token::revoke)),
    ("/v1/users/{user}/erase", || post(erasures::erase)),
    ("/v1/users/{user}/export", || get(transfer::of_user)),
    ("/v1/erasures/{id}", || get(erasures::read)),
    ("/v1/authors/{author}", || get(authors::read).put(authors::classify)),
    ("/v1/import", || post(transfer::import)),
    ("/v1/export", || get(transfer::export)),
    ("/v1/backup", || get(backup::copy)),
    ("/v1/settings", || get(settings::tell)),
    ("/v1/events", || get(events::follow)),
    ("/v1/explain", || get(explain::read)),
    ("/v1/stats", || get(stats::read)),
    ("/metrics", || get(metrics::read)),
    ("/v1/console/ticket", || post(console::ticket)),
    ("/v1/console/session", || post(console::session)),
    ("/connection/http_stream", || post(session::http_stream)),
    ("/connection/sse", || get(session::sse).fallback(session::only_get)),
    ("/connection/uni_sse", || get(session::uni_sse).fallback(session::only_get)),
    ("/emulation", || post(session::emulation)),
    ("/healthz", || get(health::alive)),
    ("/readyz", || get(health::ready)),
    ("/openapi.json", || get(openapi)),
    ("/problems/{name}", || get(problems::explain)),
];

/// The API as a router, to be merged with other routes of the same port. This router has a fallback, so the other
/// router must not have one.
pub(crate) fn router(parts: ApiParts) -> Router {
    let api = Api(Arc::new(parts));
    let routes = ROUTES.iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods()));
    let routes = routes.method_not_allowed_fallback(no_such_method).fallback(no_such_route);
    let sharing = from_fn_with_state(api.node.settings.clone(), cors::share);
    let measured = from_fn_with_state(api.metrics.clone(), metrics::measured);
    routes.layer(from_fn(deadline::in_time)).layer(sharing).layer(measured).with_state(api)
}

async fn no_such_route(OriginalUri(uri): OriginalUri) -> Problem {
    let detail = format!("there is nothing at {}; /openapi.json lists the routes", short(uri.path()));
    Problem::new(Kind::NoSuchRoute, detail)
}

/// The problem for a method that the path does not have. The router adds `Allow` to it.
async fn no_such_method(method: Method) -> Problem {
    let detail = format!("this path does not take {}; the header Allow lists what it takes", short(method.as_str()));
    Problem::new(Kind::MethodNotAllowed, detail)
}

/// Answers `GET /openapi.json` from `docs/openapi.json`.
async fn openapi(_: query::NoQuery) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], include_str!("../../../docs/openapi.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_parses_and_names_exactly_the_paths_that_are_routed() {
        let document: serde_json::Value =
            serde_json::from_str(include_str!("../../../docs/openapi.json")).expect("the document is JSON");
        assert_eq!(document["openapi"], "3.1.0");
        let mut documented: Vec<&str> =
            document["paths"].as_object().expect("paths is an object").keys().map(|path| &**path).collect();
        let mut routed: Vec<&str> = ROUTES.iter().map(|(path, _)| *path).collect();
        documented.sort_unstable();
        routed.sort_unstable();
        assert_eq!(documented, routed);
    }

    #[test]
    fn the_document_names_every_type_of_problem_and_no_other() {
        let document: serde_json::Value =
            serde_json::from_str(include_str!("../../../docs/openapi.json")).expect("the document is JSON");
        let documented = &document["components"]["schemas"]["Problem"]["properties"]["type"]["enum"];
        let known: Vec<String> = Kind::ALL.iter().map(|kind| format!("/problems/{}", kind.name())).collect();
        assert_eq!(*documented, serde_json::json!(known));
    }
}
