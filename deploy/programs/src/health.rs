//! Answers two questions about a worker's health over HTTP, and tells its numbers, on a port of its own.
//!
//! ```text
//!   GET /healthz   its loops come round, and it    503: restart it
//!                  does steps while it has work
//!   GET /readyz    and every store answers         503: wait, or look after the stores
//!   GET /metrics   what it counts, as OpenMetrics  from memory: it needs no store
//! ```
//!
//! Invariant: at most [`CONNECTIONS_MAX`] peers at a time, each for at most [`WITHIN`].

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use feedgate_common::archive::Status;
use feedgate_common::error::Result;
use feedgate_common::metrics::{self, CONTENT_TYPE, Registry};
use feedgate_common::{Doorbell, Inboxes, Jobs, Sessions};
use feedgate_gateway::Arrivals;
use feedgate_timeline::Pulse;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::stores::Stores;

/// If the stores do not all answer a small read within this time, they are not available.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// A worker that has work, but has done no step for this long, may work again after a restart.
const STANDSTILL_MAX: Duration = Duration::from_secs(60);

/// The most time for a whole connection.
const WITHIN: Duration = Duration::from_secs(5);

/// The `Content-Type` of all answers except `/metrics`.
const JSON: &str = "application/json";

/// The most connections at a time: more than any monitor needs.
const CONNECTIONS_MAX: usize = 32;

/// The stores of a worker and its pulse, from which the answers about its health are made.
pub(crate) struct Health {
    archive: Arc<dyn Status>,
    inboxes: Arc<dyn Inboxes>,
    sessions: Arc<dyn Sessions>,
    jobs: Arc<dyn Jobs>,
    doorbell: Arc<dyn Doorbell>,
    pulse: Arc<Pulse>,
    silence_max: Duration,
    registry: Registry,
}

impl Health {
    /// The health of the worker with this pulse on these stores. Each loop of the worker may take `silence_max` to come
    /// round. `registry` holds the numbers of the worker.
    pub(crate) fn new(stores: &Stores, pulse: Arc<Pulse>, silence_max: Duration, registry: Registry) -> Self {
        Self {
            archive: stores.archive.clone(),
            inboxes: stores.inboxes.clone(),
            sessions: stores.sessions.clone(),
            jobs: stores.jobs.clone(),
            doorbell: stores.doorbell.clone(),
            pulse,
            silence_max,
            registry,
        }
    }

    /// Answers until told to stop.
    pub(crate) async fn serve(self, listener: TcpListener, stop: CancellationToken) -> anyhow::Result<()> {
        let (health, permits) = (Arc::new(self), Arc::new(Semaphore::new(CONNECTIONS_MAX)));
        let mut arrivals = Arrivals::of(listener);
        loop {
            let next = async {
                let permit = permits.clone().acquire_owned().await.expect("the semaphore is never closed");
                (arrivals.next().await.0, permit)
            };
            let (stream, permit) = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                next = next => next,
            };
            let health = health.clone();
            tokio::spawn(async move {
                // A peer that asks too slowly, or goes away, gets no answer.
                _ = timeout(WITHIN, health.converse(stream)).await;
                drop(permit);
            });
        }
    }

    async fn converse(&self, stream: TcpStream) -> hyper::Result<()> {
        let service = service_fn(|request: Request<Incoming>| async move {
            let (status, kind, body) = match (request.method(), request.uri().path()) {
                (&Method::GET, "/metrics") => (StatusCode::OK, CONTENT_TYPE, metrics::text(&[&self.registry])),
                (&Method::GET, "/healthz") => told(self.alive()),
                (&Method::GET, "/readyz") => told(match self.ready().await {
                    Ok(ready) => self.alive().map(|_| ready),
                    away => away,
                }),
                _ => {
                    let detail =
                        "a worker answers GET /healthz, /readyz and /metrics alone; a gateway answers the rest";
                    (StatusCode::NOT_FOUND, JSON, json!({"title": "No such route", "detail": detail}).to_string())
                }
            };
            let response = Response::builder().status(status).header("content-type", kind);
            Ok::<_, Infallible>(response.body(Full::new(Bytes::from(body))).expect("its parts are right"))
        });
        http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), service).await
    }

    fn alive(&self) -> std::result::Result<&'static str, String> {
        let silence = self.pulse.silence();
        if silence > self.silence_max {
            return Err(format!("a loop of the worker has not come round for {} s", silence.as_secs()));
        }
        let standstill = self.pulse.standstill();
        if standstill > STANDSTILL_MAX {
            let secs = standstill.as_secs();
            return Err(format!(
                "work waits, and no step of it was done for {secs} s; /readyz says which store is away"
            ));
        }
        Ok("alive")
    }

    async fn ready(&self) -> std::result::Result<&'static str, String> {
        let stores = async {
            self.archive.ping().await?;
            self.inboxes.ping().await?;
            self.sessions.ping().await?;
            self.jobs.ping().await?;
            self.doorbell.ping().await
        };
        let answered: Result<()> = timeout(ANSWERS_WITHIN, stores)
            .await
            .map_err(|_| format!("a store did not answer within {ANSWERS_WITHIN:?}"))?;
        answered.map(|()| "ready").map_err(|error| error.to_string())
    }
}

fn told(answer: std::result::Result<&str, String>) -> (StatusCode, &'static str, String) {
    let (status, body) = match answer {
        Ok(status) => (StatusCode::OK, json!({ "status": status })),
        Err(detail) => (StatusCode::SERVICE_UNAVAILABLE, json!({"title": "Not available", "detail": detail})),
    };
    (status, JSON, body.to_string())
}
