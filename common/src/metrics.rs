//! The numbers that operators watch, as counters and histograms that Prometheus reads in the format OpenMetrics.
//!
//! ```text
//!   the code that works ──one atomic addition──▶ Counter, Histogram ┐
//!   state that is kept anyway ◀──asked at each scrape── Reading     ├─▶ Registry ──▶ text
//! ```
//!
//! Invariants:
//! - The values of a label are a closed list that the program knows before it starts ([`Labels`]), never a name that a
//!   user, a device or a backend has chosen. So the number of series does not grow with the number of users, devices or
//!   requests.
//! - Every series is there from the start, with the value 0, so that a first event is seen as an increase.
//! - To count takes no lock and no look-up: the code that counts holds the series itself.

mod calls;
mod histogram;
mod series;

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;

pub use calls::{Call, Calls};
pub use histogram::Histogram;
pub use prometheus_client::metrics::counter::Counter;
pub use prometheus_client::metrics::gauge::Gauge;
pub use prometheus_client::registry::{Registry, Unit};
pub use series::{Labels, Series};

/// The `Content-Type` of [`text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A registry without metrics. What is registered in it is called `feedgate_…`.
pub fn registry() -> Registry {
    Registry::with_prefix("feedgate")
}

/// What these registries hold now, one after another, as a text in the format OpenMetrics. No two registries may hold
/// the same name.
pub fn text(registries: &[&Registry]) -> String {
    let mut text = String::new();
    let written = registries.iter().try_for_each(|registry| encode_registry(&mut text, registry));
    written.and_then(|()| encode_eof(&mut text)).expect("a string takes everything");
    text
}

/// A gauge whose value is asked for at each scrape, where the state is kept anyway.
#[derive(Clone)]
pub struct Reading(Arc<dyn Fn() -> f64 + Send + Sync>);

impl Reading {
    /// A gauge with the value that `read` gives. `read` is called at each scrape, and must not block.
    pub fn new(read: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reading")
    }
}

impl EncodeMetric for Reading {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_gauge(&(self.0)())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_reading_is_asked_for_at_each_scrape_and_the_text_ends_once() {
        let value = Arc::new(AtomicU32::new(1));
        let (mut first, mut second) = (registry(), registry());
        let read = value.clone();
        first.register("users", "Users", Reading::new(move || read.load(Ordering::Relaxed).into()));
        second.register("posts", "Posts", Counter::<u64>::default());
        value.store(7, Ordering::Relaxed);
        let text = text(&[&first, &second]);
        assert!(text.contains("feedgate_users 7") && text.contains("feedgate_posts_total 0"), "{text}");
        assert!(text.ends_with("# EOF\n") && text.matches("# EOF").count() == 1, "{text}");
    }
}
