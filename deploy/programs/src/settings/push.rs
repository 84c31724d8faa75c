//! The settings of push notifications: the webhook, and how it is called.

use std::time::Duration;

use feedgate_timeline::PushSettings;
use hyper::Uri;
use serde::{Deserialize, Serialize};

use crate::outbound::{Reach, bare, is_without_user};

/// The most notices in one call.
const BATCH_MAX: usize = 100;

/// The most calls under way at a time.
const CALLS_MAX: usize = 256;

/// The settings of the sender, as in [`PushSettings`], with the unit in each name; and the URL and the hosts that it
/// may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Push {
    /// The URL that is called. If the text is empty, readers who are away get no push notifications.
    pub(crate) webhook_url: String,
    /// Hosts that may have private addresses.
    pub(crate) allow_private: Vec<String>,
    pub(crate) debounce_secs: u32,
    pub(crate) min_interval_secs: u32,
    pub(crate) calls_per_sec: u32,
    pub(crate) calls_at_once: usize,
    pub(crate) batch: usize,
    pub(crate) timeout_secs: u32,
    pub(crate) retry_first_secs: u32,
    pub(crate) retry_max_secs: u32,
    pub(crate) tries: u32,
}

impl Default for Push {
    fn default() -> Self {
        let PushSettings {
            debounce,
            min_interval,
            calls_per_sec,
            calls_at_once,
            batch,
            timeout,
            retry_first,
            retry_max,
            tries,
        } = PushSettings::default();
        let secs = |time: Duration| u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
        Self {
            webhook_url: String::new(),
            allow_private: vec![],
            debounce_secs: secs(debounce),
            min_interval_secs: secs(min_interval),
            calls_per_sec,
            calls_at_once,
            batch,
            timeout_secs: secs(timeout),
            retry_first_secs: secs(retry_first),
            retry_max_secs: secs(retry_max),
            tries,
        }
    }
}

impl Push {
    /// The settings in the form in which the sender takes them.
    pub(crate) fn settings(&self) -> PushSettings {
        let secs = |secs: u32| Duration::from_secs(secs.into());
        PushSettings {
            debounce: secs(self.debounce_secs),
            min_interval: secs(self.min_interval_secs),
            calls_per_sec: self.calls_per_sec,
            calls_at_once: self.calls_at_once,
            batch: self.batch,
            timeout: secs(self.timeout_secs),
            retry_first: secs(self.retry_first_secs),
            retry_max: secs(self.retry_max_secs),
            tries: self.tries,
        }
    }

    /// Which addresses a call may reach.
    pub(crate) fn reach(&self) -> Reach {
        Reach::Public { but: self.allow_private.clone().into() }
    }

    /// The URL that is called; `None` if none is set. Only TLS proves which server answers, so HTTP without TLS is
    /// allowed only for hosts that `allow_private` names.
    pub(crate) fn webhook(&self) -> Result<Option<Uri>, String> {
        if self.webhook_url.is_empty() {
            return Ok(None);
        }
        let url: Option<Uri> = self.webhook_url.parse().ok();
        let named = |host: &str| self.allow_private.iter().any(|allowed| bare(allowed) == bare(host));
        let safe = |url: &Uri| match (url.scheme_str(), url.host()) {
            (Some("https"), Some(host)) => !host.is_empty(),
            (Some("http"), Some(host)) => named(host),
            _ => false,
        };
        let wrong = "push.webhook_url must be an https URL without a user, such as https://push.example/feedgate; http is \
                     for hosts that push.allow_private names";
        let url = url.filter(|url| safe(url) && is_without_user(url)).ok_or_else(|| wrong.to_owned())?;
        self.reach().check(&url).map_err(|why| format!("push.webhook_url: {why}"))?;
        Ok(Some(url))
    }

    pub(super) fn problems(&self) -> Vec<String> {
        let bounds = [
            ("calls_per_sec", u64::from(self.calls_per_sec), 1000),
            ("calls_at_once", self.calls_at_once as u64, CALLS_MAX as u64),
            ("batch", self.batch as u64, BATCH_MAX as u64),
            ("timeout_secs", self.timeout_secs.into(), 60),
            ("retry_first_secs", self.retry_first_secs.into(), 86_400),
            ("retry_max_secs", self.retry_max_secs.into(), 86_400),
            ("tries", self.tries.into(), 100),
        ];
        let wrong = bounds.into_iter().filter(|(_, value, most)| !(1..=*most).contains(value));
        let wrong = wrong.map(|(name, value, most)| format!("push.{name} must be 1 to {most}, it is {value}"));
        wrong.chain(self.webhook().err()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_webhook_is_called_over_tls_or_where_private_addresses_are_allowed() {
        let checked = |url: &str| {
            let allow_private = ["10.0.0.1", "hooks.internal", "fd00::1"].map(str::to_owned).to_vec();
            Push { webhook_url: url.to_owned(), allow_private, ..Push::default() }.webhook().map(drop)
        };
        for right in [
            "",
            "https://push.example/a?b=c",
            "http://10.0.0.1:9000/",
            "https://10.0.0.1/",
            "http://hooks.internal/",
            "http://[fd00::1]:9000/",
        ] {
            assert_eq!(checked(right), Ok(()), "{right}");
        }
        for wrong in
            ["http://push.example/", "push.example", "ftp://push.example/", "https://", "https://a:b@push.example/"]
        {
            let error = checked(wrong).unwrap_err();
            assert!(error.contains("push.webhook_url must be an https URL"), "{wrong}: {error}");
        }
        let error = checked("https://192.168.0.1/").unwrap_err();
        assert!(error.contains("push.webhook_url: 192.168.0.1 is private"), "{error}");
    }

    #[test]
    fn each_wrong_number_is_named() {
        let wrong =
            Push { calls_per_sec: 0, calls_at_once: 257, batch: 101, timeout_secs: 0, tries: 101, ..Push::default() };
        let problems = wrong.problems();
        assert_eq!(problems.len(), 5, "{problems:?}");
        assert_eq!(problems[2], "push.batch must be 1 to 100, it is 101");
    }
}
