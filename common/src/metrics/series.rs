//! One metric for each value of its labels.

use std::fmt::{self, Debug};
use std::marker::PhantomData;
use std::sync::Arc;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// The values of the labels of a metric: a closed list.
pub trait Labels: Copy + Debug + Send + Sync + 'static {
    /// All values, each once.
    fn all() -> Vec<Self>;

    /// The place of this value in [`Labels::all`].
    fn index(self) -> usize;

    /// The name of each label, and its value.
    fn pairs(self) -> Vec<(&'static str, &'static str)>;
}

/// One metric for each value of the labels `L`. All clones share the same metrics.
#[derive(Debug)]
pub struct Series<L, M> {
    each: Arc<[M]>,
    labels: PhantomData<L>,
}

impl<L, M> Clone for Series<L, M> {
    fn clone(&self) -> Self {
        Self { each: self.each.clone(), labels: PhantomData }
    }
}

impl<L: Labels, M: Default> Default for Series<L, M> {
    fn default() -> Self {
        Self::new(M::default)
    }
}

impl<L: Labels, M> Series<L, M> {
    /// A metric that `make` makes for each value.
    pub fn new(make: impl Fn() -> M) -> Self {
        Self { each: L::all().into_iter().map(|_| make()).collect(), labels: PhantomData }
    }

    /// The metric for these values of the labels.
    pub fn of(&self, labels: L) -> &M {
        &self.each[labels.index()]
    }
}

impl<L: Labels, M: EncodeMetric + TypedMetric> EncodeMetric for Series<L, M> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (labels, metric) in L::all().into_iter().zip(&*self.each) {
            metric.encode(encoder.encode_family(&labels.pairs())?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        M::TYPE
    }
}

/// Makes an enum the values of one label: `labels!(Lane, "lane": Posts "posts", Edges "edges")`. The enum must number
/// its variants from 0, and the list must have all of them, in their order.
#[macro_export]
macro_rules! labels {
    ($name:ident, $label:literal: $($variant:ident $value:literal),+ $(,)?) => {
        impl $crate::metrics::Labels for $name {
            fn all() -> Vec<Self> {
                vec![$(Self::$variant),+]
            }

            fn index(self) -> usize {
                self as usize
            }

            fn pairs(self) -> Vec<(&'static str, &'static str)> {
                let value = match self { $(Self::$variant => $value),+ };
                vec![($label, value)]
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::super::{Counter, registry, text};
    use super::*;

    #[derive(Debug, Clone, Copy)]
    enum Lane {
        Posts,
        Edges,
    }
    labels!(Lane, "lane": Posts "posts", Edges "edges");

    #[test]
    fn every_value_of_a_label_is_there_from_the_start_and_counts_by_itself() {
        let (jobs, mut registry) = (Series::<Lane, Counter>::default(), registry());
        registry.register("jobs", "Jobs", jobs.clone());
        let lines = |posts, edges| {
            format!("feedgate_jobs_total{{lane=\"posts\"}} {posts}\nfeedgate_jobs_total{{lane=\"edges\"}} {edges}\n")
        };
        assert!(text(&[&registry]).contains(&lines(0, 0)));
        jobs.of(Lane::Posts).inc_by(2);
        jobs.of(Lane::Edges).inc();
        assert!(text(&[&registry]).contains(&lines(2, 1)));
    }
}
