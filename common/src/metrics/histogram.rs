//! How often a measured value was in each of some ranges.
//!
//! The histogram of the crate `prometheus-client` takes a lock for each value; this one adds to two atomics.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// The upper bounds of the ranges for times, in microseconds: from a millisecond to a minute.
const TIMES: &[u64] =
    &[1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 2_500_000, 10_000_000, 60_000_000];

/// The upper bounds of the ranges for times of which there are many series, in microseconds.
const FEW_TIMES: &[u64] = &[1_000, 5_000, 25_000, 100_000, 500_000, 2_500_000, 10_000_000];

/// The upper bounds of the ranges for numbers of things.
const COUNTS: &[u64] = &[0, 1, 3, 10, 30, 100, 300, 1_000];

/// A histogram. All clones share the same numbers.
#[derive(Debug, Clone)]
pub struct Histogram(Arc<Ranges>);

#[derive(Debug)]
struct Ranges {
    /// The greatest value of each range but the last one, which has no bound.
    bounds: &'static [u64],
    /// How many values were in each range.
    values: Box<[AtomicU64]>,
    sum: AtomicU64,
    /// How many units of an added number make one unit that is shown: 1,000,000 for times, since microseconds are added
    /// and seconds are shown.
    per_unit: f64,
}

impl Histogram {
    /// A histogram of times, for [`Histogram::took`].
    pub fn of_times() -> Self {
        Self::new(TIMES, 1e6)
    }

    /// A histogram of times with seven bounds in place of twelve, for [`Histogram::took`]: each bound is a series of
    /// its own, for each value of a label.
    pub fn of_times_of_many() -> Self {
        Self::new(FEW_TIMES, 1e6)
    }

    /// A histogram of numbers of things, for [`Histogram::add`].
    pub fn of_counts() -> Self {
        Self::new(COUNTS, 1.0)
    }

    fn new(bounds: &'static [u64], per_unit: f64) -> Self {
        let values = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self(Arc::new(Ranges { bounds, values, sum: AtomicU64::new(0), per_unit }))
    }

    /// Adds a time, in whole microseconds.
    pub fn took(&self, time: Duration) {
        self.add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// Adds a number of things.
    pub fn add(&self, value: u64) {
        let Ranges { bounds, values, sum, .. } = &*self.0;
        let range = bounds.iter().position(|bound| value <= *bound).unwrap_or(bounds.len());
        values[range].fetch_add(1, Ordering::Relaxed);
        sum.fetch_add(value, Ordering::Relaxed);
    }
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let Ranges { bounds, values, sum, per_unit } = &*self.0;
        let bounds = bounds.iter().map(|bound| *bound as f64 / per_unit).chain([f64::INFINITY]);
        let values = values.iter().map(|values| values.load(Ordering::Relaxed));
        let buckets: Vec<(f64, u64)> = bounds.zip(values).collect();
        // The count is made from the ranges that were just read, so that both agree, whatever is added meanwhile.
        let count = buckets.iter().map(|(_, values)| values).sum();
        let sum = sum.load(Ordering::Relaxed) as f64 / per_unit;
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

#[cfg(test)]
mod tests {
    use super::super::{registry, text};
    use super::*;

    #[test]
    fn a_value_counts_in_the_range_that_it_is_the_bound_of_and_in_all_above() {
        let (histogram, mut registry) = (Histogram::of_counts(), registry());
        registry.register("entries", "Entries", histogram.clone());
        [0, 3, 4, 1_001].into_iter().for_each(|value| histogram.add(value));
        let text = text(&[&registry]);
        for (bound, values) in [("0.0", 1), ("1.0", 1), ("3.0", 2), ("10.0", 3), ("1000.0", 3), ("+Inf", 4)] {
            let line = format!("feedgate_entries_bucket{{le=\"{bound}\"}} {values}\n");
            assert!(text.contains(&line), "{line}{text}");
        }
        assert!(
            text.contains("feedgate_entries_count 4\n") && text.contains("feedgate_entries_sum 1008.0\n"),
            "{text}"
        );
    }

    #[test]
    fn times_are_shown_in_seconds() {
        let (histogram, mut registry) = (Histogram::of_times(), registry());
        registry.register("wait", "Wait", histogram.clone());
        histogram.took(Duration::from_micros(2_500));
        let text = text(&[&registry]);
        let wants = ["{le=\"0.001\"} 0\n", "{le=\"0.0025\"} 1\n", "feedgate_wait_sum 0.0025\n"];
        assert!(wants.iter().all(|line| text.contains(line)), "{text}");
    }
}
