//! The log of a process: the events that its filter lets through go to stderr, as text for people or as JSON for
//! programs.
//!
//! Invariants: in the format `json` each event is one line, one JSON object, whatever text is in it. A line is written
//! by one call, so that two threads never mix their lines. A log that cannot be written stops nothing.
//!
//! `docs/logs.md` lists the fields.

use std::fmt::{self, Debug};
use std::io::{self, IsTerminal, Write};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::{self, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, reload};

/// The filter for clients of the stores. Without it, they would log more at every start; the setting `log` may ask for
/// that.
const QUIET: &str = "sqlx=warn,async_nats=warn";

/// The field that holds the sentence of an event.
const MESSAGE: &str = "message";

/// How an event is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// A line for people, with colours on a terminal.
    #[default]
    Text,
    /// A line with one JSON object.
    Json,
}

/// What the log of this process lets through, to be replaced while it runs.
pub(crate) type Filter = reload::Handle<EnvFilter, Registry>;

/// Begins the log: the events that the filter `what` lets through go to stderr. Fails if `what` is no filter, or if
/// this process has a log already.
pub(crate) fn begin(what: &str, format: LogFormat) -> anyhow::Result<Filter> {
    let (filter, handle) = reload::Layer::new(filter(what).context("log")?);
    let filtered = Registry::default().with(filter);
    match format {
        LogFormat::Text => {
            let colours = io::stderr().is_terminal();
            let text = tracing_subscriber::fmt::layer().with_ansi(colours).with_writer(io::stderr);
            filtered.with(text).try_init()?;
        }
        LogFormat::Json => filtered.with(Json(io::stderr)).try_init()?,
    }
    Ok(handle)
}

/// The filter that the setting `log` means. Fails if the text is no filter. Spaces around the parts of the text are
/// left out: `EnvFilter` reads a space before a part as a byte of its target, so that this part lets nothing through;
/// and `EnvFilter` panics if that byte is half a character. A part that is one word must be a level: `EnvFilter` reads
/// any other word as the name of a part of the code, so that a misspelt level lets nothing through.
pub(crate) fn filter(what: &str) -> anyhow::Result<EnvFilter> {
    let parts: Vec<&str> = what.split(',').map(str::trim).collect();
    let is_one_word = |part: &&&str| !part.is_empty() && !part.contains(['=', '[']);
    if let Some(word) = parts.iter().filter(is_one_word).find(|part| part.parse::<LevelFilter>().is_err()) {
        bail!("{word:?} is no level; levels are error, warn, info, debug, trace and off");
    }
    Ok(EnvFilter::try_new(format!("{QUIET},{}", parts.join(",")))?)
}

/// Writes each event as a line of JSON to the writer that the function gives.
struct Json<F>(F);

/// The fields of an event, or of a span.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl<S, F, W> Layer<S> for Json<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    F: Fn() -> W + 'static,
    W: Write,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: layer::Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: layer::Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: layer::Context<'_, S>) {
        let mut fields = Fields::default();
        // The fields of an event replace fields of its spans with the same name, and those of an inner span replace an
        // outer one's.
        for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(of_span) = span.extensions().get::<Fields>() {
                fields.0.extend(of_span.0.clone());
            }
        }
        event.record(&mut fields);
        // If the log cannot be written, there is nobody else to tell.
        let _ = (self.0)().write_all(line(event, fields.0).as_bytes());
    }
}

/// The line of an event with these fields, and its end.
fn line(event: &Event<'_>, mut fields: Map<String, Value>) -> String {
    /// An event in the order in which a person wants to read it.
    #[derive(Serialize)]
    struct Line<'a> {
        time: String,
        level: &'a str,
        target: &'a str,
        message: Value,
        fields: Map<String, Value>,
    }
    let mut time = String::new();
    SystemTime.format_time(&mut Writer::new(&mut time)).expect("a string takes all text");
    let message = fields.remove(MESSAGE).unwrap_or_else(|| "".into());
    let (level, target) = (event.metadata().level().as_str(), event.metadata().target());
    let line = Line { time, level, target, message, fields };
    serde_json::to_string(&line).expect("texts and numbers serialize") + "\n"
}

impl Fields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, fmt::format(format_args!("{value:?}")));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines that are written while `events` runs.
    fn lines(events: impl FnOnce()) -> Vec<Value> {
        let memory = Memory::default();
        let to = memory.clone();
        let subscriber = Registry::default().with(Json(move || to.clone()));
        tracing::subscriber::with_default(subscriber, events);
        let text = String::from_utf8(std::mem::take(&mut *memory.0.lock().unwrap())).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'), "{text}");
        text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    #[test]
    fn a_filter_may_have_spaces_around_its_parts() {
        let shown = |what: &str| filter(what).unwrap().to_string();
        assert_eq!(shown(" info , feedgate_gateway=debug "), shown("info,feedgate_gateway=debug"));
        assert_eq!(shown(" ü=debug"), shown("ü=debug"));
        assert!(filter("info, feedgate_gateway=loud").is_err());
    }

    #[test]
    fn a_part_of_one_word_is_a_level() {
        for right in ["INFO", "off,feedgate_common=debug", "", "info,", "warn,[request]=debug", "[request]"] {
            assert!(filter(right).is_ok(), "{right}");
        }
        for wrong in ["loud", "verbose", "info,feedgate_gateway", "warning"] {
            let word = wrong.rsplit(',').next().unwrap();
            let said = filter(wrong).unwrap_err().to_string();
            assert_eq!(said, format!("{word:?} is no level; levels are error, warn, info, debug, trace and off"));
        }
    }

    #[test]
    fn an_event_is_one_object_with_its_fields_by_their_kinds() {
        let strange = "a \"quote\",\nand {a}: line\u{1b}[0m";
        let lines = lines(|| {
            tracing::warn!(target: "here", count = 3_u64, less = -1, is = true, share = 0.5, no = f64::NAN, text = strange,
                shown = %"shown", seen = ?Some(1), "the sentence {}", 7);
        });
        let [line] = &lines[..] else { panic!("{lines:?}") };
        let keys: Vec<&String> = line.as_object().unwrap().keys().collect();
        assert_eq!(keys.len(), 5, "{keys:?}");
        assert_eq!((&line["level"], &line["target"]), (&"WARN".into(), &"here".into()));
        assert_eq!(line["message"], "the sentence 7");
        let fields = serde_json::json!({
            "count": 3, "less": -1, "is": true, "share": 0.5, "no": null, "text": strange, "shown": "shown",
            "seen": "Some(1)",
        });
        assert_eq!(line["fields"], fields);
        let time = line["time"].as_str().unwrap();
        let shape: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(shape, "0000-00-00T00:00:00.000000Z");
    }

    #[test]
    fn an_event_has_the_fields_of_its_spans_and_its_own_stand_over_them() {
        let lines = lines(|| {
            let _outer = tracing::error_span!("outer", of = "outer", outer = 1, late = tracing::field::Empty).entered();
            let inner = tracing::error_span!("inner", of = "inner", mine = "span");
            tracing::Span::current().record("late", true);
            inner.in_scope(|| tracing::info!(mine = "event", "within both"));
            tracing::info!("within one");
        });
        let fields: Vec<&Value> = lines.iter().map(|line| &line["fields"]).collect();
        let within_both = serde_json::json!({"of": "inner", "outer": 1, "late": true, "mine": "event"});
        assert_eq!(fields, [&within_both, &serde_json::json!({"of": "outer", "outer": 1, "late": true})]);
    }

    #[test]
    fn an_event_without_a_sentence_has_an_empty_one() {
        let lines = lines(|| tracing::info!(count = 1));
        assert_eq!((&lines[0]["message"], &lines[0]["fields"]), (&"".into(), &serde_json::json!({"count": 1})));
    }
}
