//! The settings of traces: where traces are sent, and how many.

use hyper::Uri;
use serde::{Deserialize, Serialize};

use crate::outbound::{is_without_user, shown};

/// The path that OTLP over HTTP adds to the URL of a collector.
const PATH: &str = "/v1/traces";

/// The settings of traces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Traces {
    /// The URL of a collector that takes OTLP over HTTP; empty: nothing is traced.
    pub(crate) endpoint: String,
    /// The share of traced writes, 0 to 1, among the writes whose callers name no trace.
    pub(crate) sample: f64,
}

impl Default for Traces {
    fn default() -> Self {
        Self { endpoint: String::new(), sample: 1.0 }
    }
}

impl Traces {
    /// The URL to which spans are sent; `None` if nothing is traced.
    #[cfg_attr(not(feature = "otlp"), expect(dead_code, reason = "nothing is sent"))]
    pub(crate) fn url(&self) -> Option<String> {
        let is_on = !self.endpoint.is_empty() && self.sample > 0.0;
        is_on.then(|| format!("{}{PATH}", self.endpoint.trim_end_matches('/')))
    }

    /// All that is wrong with the settings, in a program that can send traces or cannot, as `can_send` says.
    pub(super) fn problems(&self, can_send: bool) -> Vec<String> {
        let (endpoint, sample) = (&self.endpoint, self.sample);
        let mut problems = vec![];
        if !endpoint.is_empty() {
            if !can_send {
                problems.push(
                    "traces.endpoint is for a program that was built with the feature otlp, and this one was not; build \
                     with: cargo build --release --features otlp, or leave it empty"
                        .to_owned(),
                );
            } else if !is_url(endpoint) {
                problems.push(format!(
                    "traces.endpoint must be the URL of a collector for OTLP over HTTP, without a user and without {PATH}, \
                     such as \"http://collector.example:4318\", it is {:?}",
                    shown(endpoint)
                ));
            }
        }
        if !(0.0..=1.0).contains(&sample) {
            problems.push(format!("traces.sample must be 0 to 1, it is {sample}"));
        }
        problems
    }
}

fn is_url(text: &str) -> bool {
    let Ok(url) = text.parse::<Uri>() else { return false };
    let is_http = matches!(url.scheme_str(), Some("http" | "https"));
    is_http && is_without_user(&url) && url.query().is_none() && !url.path().ends_with(PATH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traces(endpoint: &str, sample: f64) -> Traces {
        Traces { endpoint: endpoint.to_owned(), sample }
    }

    #[test]
    fn traces_go_to_a_url_of_a_collector_and_only_from_a_program_that_can_send_them() {
        assert_eq!(Traces::default().problems(false), Vec::<String>::new());
        for good in ["http://127.0.0.1:4318", "https://otlp.example/", "http://[::1]:4318/base"] {
            assert_eq!(traces(good, 0.5).problems(true), Vec::<String>::new());
            let [problem] = &traces(good, 0.5).problems(false)[..] else { panic!("{good}") };
            assert!(problem.contains("cargo build --release --features otlp"), "{problem}");
        }
        for bad in [
            "collector:4318",
            "grpc://a:4317",
            "http://a:4318/v1/traces",
            "http://a/?b",
            "http://u:p@a:4318",
            "http:// a",
            "/a",
        ] {
            let [problem] = &traces(bad, 1.0).problems(true)[..] else { panic!("{bad}") };
            assert!(problem.starts_with("traces.endpoint must be") && problem.contains("http://"), "{problem}");
        }
        for bad in [-0.1, 1.1, f64::NAN] {
            assert!(traces("", bad).problems(true)[0].starts_with("traces.sample must be 0 to 1"));
        }
    }

    #[test]
    #[cfg(feature = "otlp")]
    fn nothing_is_sent_without_a_collector_or_a_sample() {
        assert_eq!(traces("http://a:4318/", 1.0).url().as_deref(), Some("http://a:4318/v1/traces"));
        assert_eq!((traces("", 1.0).url(), traces("http://a:4318", 0.0).url()), (None, None));
    }
}
