//! One picture of `feedgate top`: the present numbers, the rates since the last picture, and what is wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use super::numbers::Numbers;

/// Outcomes and reasons that are normal. All others are shown when they happen.
const FINE: [&str; 8] = ["accepted", "done", "sent", "coalesced", "goodbye", "gone", "replaced", "answered"];

/// Draws the numbers of `now`, and what has happened in the time `passed` since `before`. The last line has no newline.
pub(super) fn draw(title: &str, passed: Duration, before: &Numbers, now: &Numbers) -> String {
    let grown = now.since(before);
    let picture = Picture { now, grown: &grown, secs: passed.as_secs_f64().max(0.001) };
    let mut lines =
        vec![format!("feedgate at {title}, up {}", time(now.sum("feedgate_uptime_seconds").unwrap_or(0.0)))];
    lines.push(String::new());
    lines.extend(picture.lines());
    let wrong = picture.wrong();
    if !wrong.is_empty() {
        lines.push(String::new());
        lines.extend(wrong.into_iter().map(|what| format!("! {what}")));
    }
    lines.join("\n")
}

struct Picture<'a> {
    now: &'a Numbers,
    /// How much each counter has grown.
    grown: &'a Numbers,
    secs: f64,
}

impl Picture<'_> {
    fn lines(&self) -> Vec<String> {
        let row = |name: &str, cells: Vec<String>| format!("{name:<10}{}", cells.join("   "));
        let mut lines = vec![];
        if self.now.sum("feedgate_sessions").is_some() {
            lines.push(row(
                "devices",
                vec![
                    format!(
                        "{} sessions of {} users",
                        self.count("feedgate_sessions"),
                        self.count("feedgate_users_online")
                    ),
                    format!("{} connections{}", self.count("feedgate_connections"), self.parts()),
                    format!(
                        "{} a second begun, {} ended",
                        self.rate("feedgate_session_requests_total"),
                        self.rate("feedgate_session_ends_total")
                    ),
                ],
            ));
            lines.push(row(
                "writes",
                vec![
                    format!("{} a second", self.rate("feedgate_writes_total")),
                    format!("commit {}", self.times("feedgate_accept_seconds")),
                ],
            ));
            lines.push(row(
                "pushes",
                vec![
                    format!("{} wakes a second", self.rate("feedgate_wakes_total")),
                    format!("publish to push {}", self.times("feedgate_publish_to_push_seconds")),
                    format!("{} resets a second", self.rate("feedgate_resets_total")),
                ],
            ));
            lines.push(row(
                "API",
                vec![
                    format!("{} answers a second", self.rate("feedgate_http_requests_total")),
                    format!("answered {}", self.times("feedgate_http_request_seconds")),
                ],
            ));
        }
        if self.now.sum("feedgate_jobs_total").is_some() {
            lines.push(row(
                "fan-out",
                vec![
                    format!("{} jobs a second", self.rate("feedgate_jobs_total")),
                    format!("each {}", self.times("feedgate_job_seconds")),
                ],
            ));
        }
        if self.now.sum("feedgate_archive_items").is_some() {
            lines.push(row(
                "stores",
                vec![
                    format!(
                        "{} items, {} follows",
                        self.count("feedgate_archive_items"),
                        self.count("feedgate_archive_edges")
                    ),
                    format!(
                        "{} inboxes with {} changes",
                        self.count("feedgate_inboxes"),
                        self.count("feedgate_inbox_entries")
                    ),
                    format!("{} events outstanding", self.count("feedgate_events_outstanding")),
                ],
            ));
        }
        lines
    }

    /// The problems that a person should look at.
    fn wrong(&self) -> Vec<String> {
        let mut wrong = vec![];
        for (store, up) in self.now.labelled("feedgate_store_up") {
            if up == 0.0 {
                wrong.push(format!("the store {} does not answer", value(store)));
            }
        }
        if self.now.sum("feedgate_lease_valid") == Some(0.0) {
            wrong.push("a node has lost its lease: nothing is pushed there".to_owned());
        }
        let age = self.now.sum("feedgate_oldest_event_age_seconds").unwrap_or_default();
        if age >= 10.0 {
            wrong.push(format!("the oldest outstanding event is {} old", time(age)));
        }
        let still = self.now.sum("feedgate_worker_standstill_seconds").unwrap_or_default();
        if still >= 10.0 {
            wrong.push(format!("a worker has had work and done none of it for {}", time(still)));
        }
        let outcomes = [
            ("feedgate_session_requests_total", "requests for a session"),
            ("feedgate_session_ends_total", "sessions ended"),
            ("feedgate_writes_total", "writes"),
            ("feedgate_http_problems_total", "problems of the API"),
            ("feedgate_jobs_total", "jobs"),
            ("feedgate_postgresql_calls_total", "calls to PostgreSQL"),
            ("feedgate_redis_calls_total", "calls to Redis"),
        ];
        for (name, what) in outcomes {
            let mut by_outcome: BTreeMap<&str, f64> = BTreeMap::new();
            for (labels, count) in self.grown.labelled(name) {
                *by_outcome.entry(value(labels)).or_default() += count;
            }
            let happened = by_outcome.into_iter().filter(|(outcome, count)| *count > 0.0 && !FINE.contains(outcome));
            wrong.extend(
                happened.map(|(outcome, count)| format!("{} {what} a second: {outcome}", number(count / self.secs))),
            );
        }
        wrong
    }

    fn count(&self, name: &str) -> String {
        number(self.now.sum(name).unwrap_or_default())
    }

    fn rate(&self, counter: &str) -> String {
        number(self.grown.sum(counter).unwrap_or_default() / self.secs)
    }

    fn times(&self, histogram: &str) -> String {
        let bound = |share| match self.grown.quantile(histogram, share) {
            None => "-".to_owned(),
            Some(secs) if secs.is_infinite() => "beyond all bounds".to_owned(),
            Some(secs) => format!("≤ {}", time(secs)),
        };
        format!("p50 {}, p99 {}", bound(0.5), bound(0.99))
    }

    /// The connections of each transport that has any.
    fn parts(&self) -> String {
        let parts = self.now.labelled("feedgate_connections").filter(|(_, count)| *count > 0.0);
        let parts: Vec<String> = parts.map(|(labels, count)| format!("{} {}", value(labels), number(count))).collect();
        if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
    }
}

/// The value of the last of these labels, since outcomes and reasons are last.
fn value(labels: &str) -> &str {
    labels.rsplit_once("=\"").map_or(labels, |(_, rest)| rest.trim_end_matches('"'))
}

/// A number with a comma between thousands, and with one decimal if it is below ten and not whole.
fn number(n: f64) -> String {
    if n < 10.0 && n.fract() >= 0.05 && n.fract() < 0.95 {
        return format!("{n:.1}");
    }
    let digits = format!("{n:.0}");
    let first = digits.len() % 3;
    let groups = [&digits[..first]].into_iter().filter(|group| !group.is_empty()).map(str::to_owned);
    let rest = digits.as_bytes()[first..].chunks(3).map(|group| String::from_utf8_lossy(group).into_owned());
    groups.chain(rest).collect::<Vec<_>>().join(",")
}

/// A time in the largest unit of which it has at least one.
fn time(secs: f64) -> String {
    let units = [(86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (0.001, "ms")];
    let (unit, name) = units.into_iter().find(|(unit, _)| secs >= *unit).unwrap_or((0.001, "ms"));
    format!("{} {name}", number(secs / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(page: &str) -> Numbers {
        Numbers::read(page).unwrap()
    }

    const BEFORE: &str = "feedgate_sessions 1000\nfeedgate_users_online 900\n\
        feedgate_connections{transport=\"sse\"} 0\nfeedgate_connections{transport=\"websocket\"} 1234\n\
        feedgate_uptime_seconds 7300\nfeedgate_store_up{store=\"archive\"} 1\nfeedgate_lease_valid 1\n\
        feedgate_writes_total{outcome=\"accepted\"} 100\nfeedgate_writes_total{outcome=\"failed\"} 5\n\
        feedgate_accept_seconds_bucket{le=\"0.0025\"} 100\nfeedgate_accept_seconds_bucket{le=\"+Inf\"} 105\n";

    #[test]
    fn a_picture_shows_what_there_is_and_what_happened_a_second() {
        let now =
            BEFORE.replace("accepted\"} 100", "accepted\"} 400").replace("le=\"0.0025\"} 100", "le=\"0.0025\"} 400");
        let now = now.replace("+Inf\"} 105", "+Inf\"} 405");
        let picture = draw("host:1", Duration::from_secs(2), &numbers(BEFORE), &numbers(&now));
        assert_eq!(picture.lines().next(), Some("feedgate at host:1, up 2 h"));
        assert!(
            picture.contains("devices   1,000 sessions of 900 users   1,234 connections (websocket 1,234)"),
            "{picture}"
        );
        assert!(picture.contains("writes    150 a second   commit p50 ≤ 2.5 ms, p99 ≤ 2.5 ms"), "{picture}");
        assert!(!picture.contains('!'), "nothing is wrong: {picture}");
    }

    #[test]
    fn what_is_wrong_is_named_below() {
        let now = BEFORE
            .replace("failed\"} 5", "failed\"} 6")
            .replace("store_up{store=\"archive\"} 1", "store_up{store=\"archive\"} 0");
        let now = now.replace("lease_valid 1", "lease_valid 0") + "feedgate_oldest_event_age_seconds 120\n";
        let picture = draw("host:1", Duration::from_secs(2), &numbers(BEFORE), &numbers(&now));
        let wrong: Vec<&str> = picture.lines().filter(|line| line.starts_with('!')).collect();
        assert_eq!(
            wrong,
            [
                "! the store archive does not answer",
                "! a node has lost its lease: nothing is pushed there",
                "! the oldest outstanding event is 2 min old",
                "! 0.5 writes a second: failed",
            ]
        );
    }

    #[test]
    fn numbers_and_times_are_short() {
        assert_eq!(
            [0.0, 0.04, 1.25, 9.96, 12.3, 999.6, 1_234_567.0].map(number),
            ["0", "0", "1.2", "10", "12", "1,000", "1,234,567"]
        );
        assert_eq!([0.0005, 0.25, 59.0, 60.0, 90_000.0].map(time), ["0.5 ms", "250 ms", "59 s", "1 min", "1 d"]);
    }
}
