//! `GET /metrics`: the numbers of this process in the format OpenMetrics, and what is counted of requests.
//!
//! ```text
//!   request ──▶ measured (route, status, time, problem) ──▶ the route
//!   scrape  ──▶ what is registered, and what the stores say within a second
//! ```
//!
//! Invariant: a store that does not answer removes only its own numbers: `feedgate_store_up` is 0 then.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use feedgate_common::error::Result;
use feedgate_common::feed::Feeds;
use feedgate_common::metrics::{
    self, CONTENT_TYPE, Counter, Gauge, Histogram, Labels, Reading, Registry, Series, Unit,
};
use feedgate_common::{Archive, Jobs, Millis, labels};
use tokio::time::{Instant, timeout};

use super::ROUTES;
use super::access::ReadKey;
use super::problem::Kind;
use super::query::NoQuery;
use super::traced;
use crate::clock;

/// How long a scrape waits for each store; all are asked at once.
const STORES_WITHIN: Duration = Duration::from_secs(1);

/// The class of a status: `2xx` and so on.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// A route of the list of routes, or no route: `other`.
#[derive(Debug, Clone, Copy)]
struct Route(usize);

impl Route {
    /// The route that the router has found for a request.
    fn of(request: &Request) -> Self {
        let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
        let found = path.and_then(|path| ROUTES.iter().position(|(route, _)| *route == path));
        Self(found.unwrap_or(ROUTES.len()))
    }

    fn name(self) -> &'static str {
        ROUTES.get(self.0).map_or("other", |(path, _)| path)
    }
}

impl Labels for Route {
    fn all() -> Vec<Self> {
        (0..=ROUTES.len()).map(Self).collect()
    }

    fn index(self) -> usize {
        self.0
    }

    fn pairs(self) -> Vec<(&'static str, &'static str)> {
        vec![("route", self.name())]
    }
}

/// An answer: its route, and the class of its status.
#[derive(Debug, Clone, Copy)]
struct Answer(Route, usize);

impl Answer {
    fn of(route: Route, status: StatusCode) -> Self {
        Self(route, usize::from(status.as_u16() / 100).clamp(1, CLASSES.len()) - 1)
    }
}

impl Labels for Answer {
    fn all() -> Vec<Self> {
        Route::all().into_iter().flat_map(|route| (0..CLASSES.len()).map(move |class| Self(route, class))).collect()
    }

    fn index(self) -> usize {
        self.0.0 * CLASSES.len() + self.1
    }

    fn pairs(self) -> Vec<(&'static str, &'static str)> {
        [self.0.pairs(), vec![("status", CLASSES[self.1])]].concat()
    }
}

impl Labels for Kind {
    fn all() -> Vec<Self> {
        Self::ALL.to_vec()
    }

    fn index(self) -> usize {
        self as usize
    }

    fn pairs(self) -> Vec<(&'static str, &'static str)> {
        vec![("type", self.name())]
    }
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteOutcome {
    /// The write is committed, or repeats an earlier one.
    Accepted,
    /// A rule refuses the write.
    Refused,
    /// The Archive has not answered.
    Failed,
}

labels!(WriteOutcome, "outcome": Accepted "accepted", Refused "refused", Failed "failed");

/// What is counted of requests.
#[derive(Debug)]
pub(crate) struct Metrics {
    answers: Series<Answer, Counter>,
    times: Series<Route, Histogram>,
    problems: Series<Kind, Counter>,
    writes: Series<WriteOutcome, Counter>,
    /// How long the Archive takes for a call of writes.
    accepting: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            answers: Series::default(),
            times: Series::new(Histogram::of_times_of_many),
            problems: Series::default(),
            writes: Series::default(),
            accepting: Histogram::of_times(),
        }
    }
}

impl Metrics {
    /// Counts `writes` writes that one call of `accept` is to commit, and gives the result of `accept`.
    pub(super) async fn writing<T, E>(
        &self,
        writes: usize,
        accept: impl Future<Output = Result<Vec<std::result::Result<T, E>>>>,
    ) -> Result<Vec<std::result::Result<T, E>>> {
        let began = Instant::now();
        let written = accept.await;
        match &written {
            Ok(written) => {
                self.accepting.took(began.elapsed());
                let accepted = written.iter().filter(|written| written.is_ok()).count();
                self.writes.of(WriteOutcome::Accepted).inc_by(accepted as u64);
                self.writes.of(WriteOutcome::Refused).inc_by((written.len() - accepted) as u64);
            }
            Err(_) => _ = self.writes.of(WriteOutcome::Failed).inc_by(writes as u64),
        }
        written
    }

    /// Registers these numbers, each under its name.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let Self { answers, times, problems, writes, accepting } = self;
        registry.register("http_requests", "Requests that were answered", answers.clone());
        let help = "From the head of a request to the head of its answer";
        registry.register_with_unit("http_request", help, Unit::Seconds, times.clone());
        registry.register("http_problems", "Answers with a problem, by its type", problems.clone());
        registry.register("writes", "Writes of backends", writes.clone());
        let help = "How long a call of writes takes to be committed";
        registry.register_with_unit("accept", help, Unit::Seconds, accepting.clone());
    }
}

/// The middleware around every route: counts the answer.
pub(super) async fn measured(State(metrics): State<Arc<Metrics>>, request: Request, next: Next) -> Response {
    let (route, began) = (Route::of(&request), Instant::now());
    let response = traced::around(route.name(), request, next).await;
    metrics.times.of(route).took(began.elapsed());
    metrics.answers.of(Answer::of(route, response.status())).inc();
    if let Some(kind) = response.extensions().get::<Kind>() {
        metrics.problems.of(*kind).inc();
    }
    response
}

/// Answers `GET /metrics` with all numbers of this process, and counts of the stores.
pub(super) async fn read(
    _: ReadKey,
    State(registry): State<Arc<Registry>>,
    State(archive): State<Arc<dyn Archive>>,
    State(feeds): State<Arc<Feeds>>,
    State(jobs): State<Arc<dyn Jobs>>,
    _: NoQuery,
) -> impl IntoResponse {
    let stores = stores(&*archive, &feeds, &*jobs).await;
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], metrics::text(&[&registry, &stores]))
}

/// The counts of the stores that answer in time.
async fn stores(archive: &dyn Archive, feeds: &Feeds, jobs: &dyn Jobs) -> Registry {
    let (archive, oldest, inboxes, pending) = tokio::join!(
        in_time(archive.counts()),
        in_time(archive.outstanding(None, Millis::MAX, 1)),
        in_time(feeds.inboxes().counts()),
        in_time(jobs.pending()),
    );
    let mut registry = metrics::registry();
    let up = [archive.is_some() && oldest.is_some(), inboxes.is_some(), pending.is_some()];
    registry.register("store_up", "Whether the store has answered this scrape", answered(up));
    let mut show = |name: &str, help: &str, value: u64| {
        registry.register(name, help, Reading::new(move || value as f64));
    };
    if let Some(counts) = archive {
        show("archive_users", "Users in the Archive", counts.users);
        show("archive_items", "Items in the Archive", counts.items);
        show("archive_edges", "Follow edges in the Archive", counts.edges);
        show("events_outstanding", "Writes whose fan-out is not finished", counts.events);
    }
    if let Some(counts) = inboxes {
        show("inboxes", "Inboxes that are kept", counts.inboxes);
        show("inbox_entries", "Changes in the logs of all inboxes", counts.entries);
    }
    if let Some(pending) = pending {
        show("jobs_pending", "Jobs in the queue that are not acknowledged", pending);
    }
    if let Some(lines) = oldest {
        // The time of a reopened write is the year 1970. So its age is shown, but as a day at most.
        let age = lines.first().map_or(0, |line| (clock::now() - line.since).clamp(0, 86_400_000));
        let help = "The age of the oldest write whose fan-out is not finished, a day at most";
        let age = Reading::new(move || age as f64 / 1000.0);
        registry.register_with_unit("oldest_event_age", help, Unit::Seconds, age);
    }
    registry
}

async fn in_time<T>(call: impl Future<Output = Result<T>>) -> Option<T> {
    timeout(STORES_WITHIN, call).await.ok()?.ok()
}

/// A store that a scrape asks.
#[derive(Debug, Clone, Copy)]
enum Store {
    Archive,
    Inboxes,
    Jobs,
}

labels!(Store, "store": Archive "archive", Inboxes "inboxes", Jobs "jobs");

/// Whether each store has answered.
fn answered(up: [bool; 3]) -> Series<Store, Gauge> {
    let series = Series::<Store, Gauge>::default();
    for (store, up) in Store::all().into_iter().zip(up) {
        series.of(store).set(up.into());
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_route_and_class_has_a_series_of_its_own_and_a_strange_status_is_an_error() {
        assert!(Answer::all().into_iter().enumerate().all(|(n, answer)| answer.index() == n));
        assert!(Kind::all().into_iter().enumerate().all(|(n, kind)| kind.index() == n));
        let class = |status| Answer::of(Route(0), StatusCode::from_u16(status).unwrap()).pairs()[1].1;
        assert_eq!([101, 200, 304, 404, 503, 999].map(class), ["1xx", "2xx", "3xx", "4xx", "5xx", "5xx"]);
    }
}
