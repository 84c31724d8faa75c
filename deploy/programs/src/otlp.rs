//! Sends the spans of this process to a collector, by OTLP over HTTP.
//!
//! ```text
//!   a span ends ─▶ queue, or left out if that is full ─▶ a batch a second, or as soon as one is whole ─▶ POST /v1/traces
//! ```
//!
//! Invariants: the code that ends a span never waits. Memory is bounded: [`QUEUE`] spans and one batch. A collector
//! that is away or slow costs spans and a line in the log now and then, and nothing else.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use async_trait::async_trait;
use feedgate_common::trace::{self, Nanos, Sink, Span, Stage, Value};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Request, Response};
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::life::Parts;
use crate::outbound::{self, Outbound, Reach};
use crate::settings::Settings;

/// The most spans that wait. Further spans are left out.
const QUEUE: usize = 4096;

/// The most spans in one request.
const BATCH: usize = 512;

/// How long the first span of a batch waits for others.
const LINGER: Duration = Duration::from_secs(1);

/// How long the collector may take for a request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How long the last spans may take when the process ends.
const LAST: Duration = Duration::from_secs(1);

/// The least time between two log lines about spans that were not sent.
const SAID_EVERY: Duration = Duration::from_secs(60);

/// The most bytes that are read of an answer.
const ANSWER_MAX: usize = 64 * 1024;

/// Begins to trace the program, if the settings say so. Gives the part that sends the spans. Fails if the system has no
/// certificates of authorities.
pub(crate) fn begin(program: &'static str, settings: &Settings) -> anyhow::Result<Option<Sending>> {
    let Some(url) = settings.traces.url() else { return Ok(None) };
    let client = Client(Outbound::new(Reach::All, 1)?);
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(url)
        .with_timeout(TIMEOUT)
        .build()
        .context("traces.endpoint")?;
    exporter.set_resource(&resource(program, settings));
    let (queue, spans) = mpsc::channel(QUEUE);
    let left_out = Arc::new(AtomicU64::new(0));
    trace::begin(Queue { queue, left_out: left_out.clone(), threshold: threshold(settings.traces.sample) });
    Ok(Some(Sending { exporter, spans, scope: scope(), left_out, said: None }))
}

/// Adds the part that sends the spans to the parts of this process.
pub(crate) fn add(parts: &mut Parts, sending: Option<Sending>) {
    if let Some(sending) = sending {
        let stop = parts.stop();
        parts.add(async move {
            sending.run(stop).await;
            Ok(())
        });
    }
}

/// The attributes that name this process. It also contains the attributes of `OTEL_RESOURCE_ATTRIBUTES` and
/// `OTEL_SERVICE_NAME` from the environment.
fn resource(program: &'static str, settings: &Settings) -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let named = match std::env::var("OTEL_SERVICE_NAME") {
        Ok(_) => Resource::builder(),
        Err(_) => Resource::builder().with_service_name(program),
    };
    let namespace = KeyValue::new("service.namespace", "feedgate");
    let instance = (!settings.node.is_empty()).then(|| KeyValue::new("service.instance.id", settings.node.clone()));
    named.with_attributes([version, namespace].into_iter().chain(instance)).build()
}

fn scope() -> InstrumentationScope {
    InstrumentationScope::builder("feedgate").with_version(env!("CARGO_PKG_VERSION")).build()
}

/// The bound for sampling: a trace is sampled if the last 63 bits of its id are below it, as OpenTelemetry does.
fn threshold(share: f64) -> u64 {
    (share * 2_f64.powi(63)) as u64
}

/// The queue of the spans that wait to be sent.
struct Queue {
    queue: mpsc::Sender<Span>,
    left_out: Arc<AtomicU64>,
    threshold: u64,
}

impl Sink for Queue {
    #[expect(clippy::disallowed_methods, reason = "the clock of spans")]
    fn now(&self) -> Nanos {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Nanos::try_from(since.as_nanos()).unwrap_or(Nanos::MAX)
    }

    fn number(&self) -> u64 {
        // If this is no random number, the trace looks odd, and nothing else is harmed.
        getrandom::u64().unwrap_or(1)
    }

    fn samples(&self, trace: u128) -> bool {
        trace as u64 >> 1 < self.threshold
    }

    fn ended(&self, span: Span) {
        if self.queue.try_send(span).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Sends the spans that wait.
pub(crate) struct Sending {
    exporter: SpanExporter,
    spans: mpsc::Receiver<Span>,
    scope: InstrumentationScope,
    left_out: Arc<AtomicU64>,
    /// When the log was last told about spans that were not sent.
    said: Option<Instant>,
}

impl Sending {
    /// Sends spans until `stop`, and then the spans that still wait.
    async fn run(mut self, stop: CancellationToken) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            tokio::select! {
                _ = self.spans.recv_many(&mut batch, BATCH) => {}
                () = stop.cancelled() => break,
            }
            let linger = tokio::time::sleep(LINGER);
            tokio::pin!(linger);
            while batch.len() < BATCH {
                let room = BATCH - batch.len();
                tokio::select! {
                    _ = self.spans.recv_many(&mut batch, room) => {}
                    () = &mut linger => break,
                    () = stop.cancelled() => break,
                }
            }
            self.send(&mut batch).await;
        }
        let last = async {
            while self.spans.try_recv().map(|span| batch.push(span)).is_ok() {
                if batch.len() == BATCH {
                    self.send(&mut batch).await;
                }
            }
            if !batch.is_empty() {
                self.send(&mut batch).await;
            }
        };
        let _ = timeout(LAST, last).await;
    }

    /// Sends the batch, and leaves it empty. The spans of a batch that is not taken are left out.
    async fn send(&mut self, batch: &mut Vec<Span>) {
        let count = batch.len() as u64;
        let spans = batch.drain(..).map(|span| data(span, &self.scope)).collect();
        let sent = match timeout(TIMEOUT, self.exporter.export(spans)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(outbound::told(&error)),
            Err(_) => Err(format!("no answer within {TIMEOUT:?}")),
        };
        if sent.is_err() {
            self.left_out.fetch_add(count, Ordering::Relaxed);
        }
        let why = sent.err().unwrap_or_else(|| "more spans have ended than were taken".to_owned());
        let is_due = self.said.is_none_or(|at| at.elapsed() >= SAID_EVERY);
        if is_due && self.left_out.load(Ordering::Relaxed) > 0 {
            self.said = Some(Instant::now());
            let left_out = self.left_out.swap(0, Ordering::Relaxed);
            tracing::warn!(why, left_out, "spans of traces were left out; posts go on as ever");
        }
    }
}

/// A span as the exporter takes it.
fn data(span: Span, scope: &InstrumentationScope) -> SpanData {
    let Span { stage, at, parent, remote, began, ended, attributes, failed } = span;
    let (trace, id) = (TraceId::from(at.trace), SpanId::from(at.span));
    let time = |nanos| UNIX_EPOCH + Duration::from_nanos(nanos);
    let name = name(stage, &attributes);
    let attributes = attributes.into_iter().map(|(key, value)| match value {
        Value::Text(text) => KeyValue::new(key, text),
        Value::Number(number) => KeyValue::new(key, number),
    });
    SpanData {
        span_context: SpanContext::new(trace, id, TraceFlags::SAMPLED, false, TraceState::default()),
        parent_span_id: parent.map_or(SpanId::INVALID, SpanId::from),
        parent_span_is_remote: remote,
        span_kind: kind(stage),
        name: name.into(),
        start_time: time(began),
        end_time: time(ended.max(began)),
        attributes: attributes.collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: failed.map_or(Status::Unset, Status::error),
        instrumentation_scope: scope.clone(),
    }
}

/// The name of a span. A request has its method and route as the name.
fn name(stage: Stage, attributes: &[(&'static str, Value)]) -> String {
    let text = |wanted: &str| {
        let found = attributes.iter().find(|(key, _)| *key == wanted);
        found.and_then(|(_, value)| if let Value::Text(text) = value { Some(text.as_str()) } else { None })
    };
    match stage {
        Stage::Request => match (text("http.request.method"), text("http.route")) {
            (Some(method), Some(route)) => format!("{method} {route}"),
            _ => "request".to_owned(),
        },
        Stage::Accept => "accept".to_owned(),
        Stage::Job => "job".to_owned(),
        Stage::Step => "step".to_owned(),
        Stage::Push => "push".to_owned(),
        Stage::Frame => "frame".to_owned(),
    }
}

fn kind(stage: Stage) -> SpanKind {
    match stage {
        Stage::Request => SpanKind::Server,
        Stage::Job | Stage::Push => SpanKind::Consumer,
        Stage::Accept | Stage::Step | Stage::Frame => SpanKind::Internal,
    }
}

/// The client with which this program calls other servers, as the exporter takes it.
struct Client(Outbound);

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.0.send(request.map(Full::new)).await?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let mut response = Response::new(outbound::body(answer, ANSWER_MAX).await?);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_sampled_by_its_id_alone_and_a_share_is_a_share_of_ids() {
        let samples = |share: f64, trace: u128| {
            let (queue, _spans) = mpsc::channel(1);
            Queue { queue, left_out: Arc::default(), threshold: threshold(share) }.samples(trace)
        };
        let ids = || (0..1000_u128).map(|n| trace::trace_of(&format!("call-{n}")));
        assert_eq!(ids().filter(|id| samples(1.0, *id)).count(), 1000);
        assert_eq!(ids().filter(|id| samples(0.0, *id)).count(), 0);
        let half = ids().filter(|id| samples(0.5, *id)).count();
        assert!((400..600).contains(&half), "{half}");
    }

    #[test]
    fn a_span_that_finds_no_room_is_left_out_and_counted() {
        let (queue, mut spans) = mpsc::channel(1);
        let queue = Queue { queue, left_out: Arc::default(), threshold: 0 };
        let at = trace::At { trace: 1, span: 2 };
        let span = || Span {
            stage: Stage::Frame,
            at,
            parent: Some(3),
            remote: false,
            began: 5,
            ended: 4,
            attributes: vec![],
            failed: Some("gone"),
        };
        queue.ended(span());
        queue.ended(span());
        assert_eq!(queue.left_out.load(Ordering::Relaxed), 1);
        let sent = data(spans.try_recv().unwrap(), &scope());
        assert_eq!((sent.parent_span_id, sent.status), (SpanId::from(3), Status::error("gone")));
        assert_eq!(sent.start_time, sent.end_time, "a clock that was set back makes no span that ends before it began");
    }
}
