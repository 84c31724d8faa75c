//! The numbers that a process gives at `/metrics`, read from their text and added up over processes.
//!
//! The text is OpenMetrics: a line for each sample, `name{label="value",…} number`. Lines that begin with `#` describe.

use std::collections::BTreeMap;

use anyhow::{Context, bail};

/// The numbers of the stores, which every process of a cluster gives alike, and the times: of several processes, the
/// largest value is taken.
const LARGEST: [&str; 9] = [
    "feedgate_archive_",
    "feedgate_events_outstanding",
    "feedgate_inbox_entries",
    "feedgate_inboxes",
    "feedgate_jobs_pending",
    "feedgate_oldest_event_age_seconds",
    "feedgate_sweep_age_seconds",
    "feedgate_uptime_seconds",
    "feedgate_worker_standstill_seconds",
];

/// The numbers that are 1 if all is well: of several processes, the smallest value is taken.
const SMALLEST: [&str; 2] = ["feedgate_lease_valid", "feedgate_store_up"];

/// Samples by name and labels, such as `feedgate_connections{transport="sse"}`.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Numbers(BTreeMap<String, f64>);

impl Numbers {
    /// Reads a page. Fails if the page is not of a Feedgate process, and names the first line that is wrong.
    pub(super) fn read(page: &str) -> anyhow::Result<Self> {
        let samples = page.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let samples: anyhow::Result<BTreeMap<_, _>> = samples.map(sample).collect();
        match samples? {
            samples if samples.keys().any(|name| name.starts_with("feedgate_")) => Ok(Self(samples)),
            _ => bail!("there are no numbers of Feedgate"),
        }
    }

    /// Adds the numbers of another process.
    pub(super) fn add(&mut self, other: Self) {
        for (name, value) in other.0 {
            let is_of = |names: &[&str]| names.iter().any(|first| name.starts_with(first));
            let (largest, smallest) = (is_of(&LARGEST), is_of(&SMALLEST));
            self.0
                .entry(name)
                .and_modify(|sum| {
                    *sum = if largest {
                        sum.max(value)
                    } else if smallest {
                        sum.min(value)
                    } else {
                        *sum + value
                    };
                })
                .or_insert(value);
        }
    }

    /// The sum of all samples of this name, whatever their labels; `None` if there is no such sample.
    pub(super) fn sum(&self, name: &str) -> Option<f64> {
        self.labelled(name).map(|(_, value)| value).reduce(|sum, value| sum + value)
    }

    /// The samples of a name, each with its labels as they stand in the page.
    pub(super) fn labelled<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
        let of_name = self.0.range(name.to_owned()..).take_while(move |(key, _)| key.starts_with(name));
        of_name.filter_map(move |(key, value)| {
            let rest = &key[name.len()..];
            let labels = if rest.is_empty() { rest } else { rest.strip_prefix('{')?.strip_suffix('}')? };
            Some((labels, *value))
        })
    }

    /// How much each sample has grown since `before`. A counter that is smaller, since its process was restarted,
    /// counts as 0.
    pub(super) fn since(&self, before: &Self) -> Self {
        let grown = |(name, now): (&String, &f64)| {
            let was = before.0.get(name).copied().unwrap_or_default();
            (name.clone(), (now - was).max(0.0))
        };
        Self(self.0.iter().map(grown).collect())
    }

    /// The bound of the bucket in which this share of a histogram's values lies, in the histogram's unit; infinite
    /// above the last bound. `None` if the histogram has no values.
    pub(super) fn quantile(&self, histogram: &str, share: f64) -> Option<f64> {
        let mut buckets: Vec<(f64, f64)> = vec![];
        for (labels, count) in self.labelled(&format!("{histogram}_bucket")) {
            let bound = labels.rsplit_once("le=\"").and_then(|(_, rest)| rest.split('"').next()?.parse().ok());
            buckets.push((bound?, count));
        }
        buckets.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        let alike = buckets.chunk_by(|one, other| one.0 == other.0);
        let counts: Vec<(f64, f64)> = alike.map(|of| (of[0].0, of.iter().map(|(_, count)| count).sum())).collect();
        let all = counts.last().map(|(_, count)| *count).filter(|all| *all > 0.0)?;
        counts.into_iter().find(|(_, count)| *count >= all * share).map(|(bound, _)| bound)
    }
}

fn sample(line: &str) -> anyhow::Result<(String, f64)> {
    let (name, value) = line.rsplit_once(' ').unwrap_or_default();
    let value = value.parse().with_context(|| format!("not a line of metrics: {line:?}"))?;
    Ok((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# TYPE feedgate_connections gauge\n\
        feedgate_connections{transport=\"sse\"} 2\n\
        feedgate_connections{transport=\"websocket\"} 40\n\
        feedgate_inboxes 7\n\
        feedgate_store_up{store=\"archive\"} 1\n\
        feedgate_accept_seconds_bucket{le=\"0.01\"} 90\n\
        feedgate_accept_seconds_bucket{le=\"0.1\"} 99\n\
        feedgate_accept_seconds_bucket{le=\"+Inf\"} 100\n\
        feedgate_writes_total{outcome=\"accepted\"} 100\n\
        # EOF\n";

    fn page() -> Numbers {
        Numbers::read(PAGE).unwrap()
    }

    #[test]
    fn a_page_is_read_by_name_and_labels() {
        let page = page();
        assert_eq!((page.sum("feedgate_connections"), page.sum("feedgate_inbox")), (Some(42.0), None));
        let labelled: Vec<_> = page.labelled("feedgate_connections").collect();
        assert_eq!(labelled, [("transport=\"sse\"", 2.0), ("transport=\"websocket\"", 40.0)]);
    }

    #[test]
    fn a_page_of_another_program_is_refused() {
        assert!(Numbers::read("go_threads 7\n").unwrap_err().to_string().contains("no numbers of Feedgate"));
        assert!(Numbers::read("<html>\n").unwrap_err().to_string().contains("<html>"));
    }

    #[test]
    fn processes_add_up_and_say_the_same_of_their_stores() {
        let mut both = page();
        both.add(Numbers::read("feedgate_inboxes 7\nfeedgate_store_up{store=\"archive\"} 0\nfeedgate_connections{transport=\"sse\"} 3\n").unwrap());
        assert_eq!(both.sum("feedgate_connections"), Some(45.0));
        assert_eq!((both.sum("feedgate_inboxes"), both.sum("feedgate_store_up")), (Some(7.0), Some(0.0)));
    }

    #[test]
    fn a_quantile_is_the_bound_of_its_bucket() {
        let page = page();
        assert_eq!(page.quantile("feedgate_accept_seconds", 0.5), Some(0.01));
        assert_eq!(page.quantile("feedgate_accept_seconds", 0.99), Some(0.1));
        assert_eq!(page.quantile("feedgate_accept_seconds", 1.0), Some(f64::INFINITY));
        assert_eq!(page.since(&page).quantile("feedgate_accept_seconds", 0.5), None);
    }

    #[test]
    fn a_counter_that_began_anew_has_not_shrunk() {
        let anew = Numbers::read("feedgate_writes_total{outcome=\"accepted\"} 3\n").unwrap();
        assert_eq!(anew.since(&page()).sum("feedgate_writes_total"), Some(0.0));
    }
}
