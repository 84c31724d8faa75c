//! Tests of settings from every layer, right and wrong.

use super::*;
use crate::log::LogFormat;

fn env(pairs: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> + use<> {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect::<Vec<_>>().into_iter()
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

fn flag(key: &str, value: &str) -> Given {
    Given { source: format!("--{key}"), key: key.to_owned(), value: Value::String(value.to_owned()) }
}

#[test]
fn each_layer_stands_over_the_one_before() {
    let file = file("listen = \"127.0.0.1:1\"\nbackfill = 1\nbuckets = 32\n[gateway]\nbatch = 10\n");
    let env = env(&[
        ("FEEDGATE_LISTEN", "127.0.0.1:2"),
        ("FEEDGATE_BACKFILL", "2"),
        ("FEEDGATE_GATEWAY_ALLOWED_ORIGINS", "https://a.example, https://b.example"),
        ("FEEDGATE_URL", "http://elsewhere"),
        ("PATH", "/bin"),
    ]);
    let settings = settings(Some(file.path()), env, vec![flag("listen", "127.0.0.1:3")]).unwrap();
    assert_eq!((settings.listen.port(), settings.backfill.newest(), settings.buckets), (3, 2, 32));
    assert_eq!(settings.gateway.batch, 10);
    assert_eq!(settings.gateway.allowed_origins, ["https://a.example", "https://b.example"]);
    assert_eq!(settings.timeline, Settings::default().timeline);
}

#[test]
fn a_share_is_a_number_in_a_file_and_in_a_variable() {
    let sample = |text: &str, variable: &[(&str, &str)]| {
        settings(Some(file(text).path()), env(variable), vec![]).map(|settings| settings.traces.sample)
    };
    assert_eq!(sample("[traces]\nsample = 0.25\n", &[]).unwrap(), 0.25);
    assert_eq!(sample("[traces]\nsample = 0\n", &[]).unwrap(), 0.0, "a whole number is one too");
    assert_eq!(sample("", &[("FEEDGATE_TRACES_SAMPLE", "0.5")]).unwrap(), 0.5);
    let wrong = sample("", &[("FEEDGATE_TRACES_SAMPLE", "half")]).unwrap_err().join("\n");
    assert!(wrong.contains("traces.sample must be a number, such as 1.0, it is \"half\""), "{wrong}");
}

#[test]
fn a_named_feed_is_given_by_the_file_or_by_variables_or_by_both() {
    let text = "[feeds.notifications]\nkinds = [\"like\"]\ncap = 5\n[feeds.My-Stories]\nkinds = [\"story\"]\n";
    let file = file(text);
    let env = env(&[
        ("FEEDGATE_FEEDS_NOTIFICATIONS_KINDS", "like, comment"),
        ("FEEDGATE_FEEDS_NOTIFICATIONS_TTL_HOURS", "720"),
        ("FEEDGATE_FEEDS_MY_STORIES_CAP", "7"),
        ("FEEDGATE_FEEDS_AT_WORK_KINDS", "memo"),
    ]);
    let effective = settings(Some(file.path()), env, vec![]).unwrap();
    let feed = |kinds: &[&str], cap, ttl_hours| Feed {
        kinds: kinds.iter().map(|&kind| kind.into()).collect(),
        cap,
        ttl_hours,
        ..Feed::default()
    };
    let wanted = [
        ("notifications", feed(&["like", "comment"], 5, 720)),
        ("My-Stories", feed(&["story"], 7, 0)),
        ("at_work", feed(&["memo"], 1000, 0)),
    ];
    assert_eq!(effective.feeds, wanted.map(|(name, feed)| (name.into(), feed)).into());
    let shown = self::file(&toml::to_string(&effective).unwrap());
    assert_eq!(settings(Some(shown.path()), self::env(&[]), vec![]).unwrap(), effective, "check-config prints a file");
}

#[test]
fn what_is_wrong_with_a_named_feed_is_said_with_everything_else() {
    for (text, variable, right) in [
        ("[feeds.likes]\n", "", "feeds.likes.kinds must name at least one kind"),
        (
            "[feeds.picks]\nranked = true\nkinds = [\"like\"]\n",
            "",
            "feeds.picks.ranked: a ranked feed holds rankings alone",
        ),
        ("[feeds.picks]\nranked = 1\n", "", "feeds.picks.ranked must be true or false, it is 1"),
        ("[feeds.likes]\nkind = [\"like\"]\n", "", "no key feeds.likes.kind; the nearest is feeds.likes.kinds"),
        ("[feeds.likes]\nkinds = \"like\"\n", "", "feeds.likes.kinds must be a list of strings, it is \"like\""),
        ("[feeds.likes]\nkinds = [\"like\"]\ncap = -1\n", "", "feeds.likes.cap must be a whole number in range"),
        ("[feeds.\"a.b\"]\nkinds = [\"like\"]\n", "", "no key feeds.a.b.kinds; the nearest is feeds.a.kinds"),
        ("[feeds.feed]\nkinds = [\"like\"]\n", "", "another feed named \"feed\""),
        ("feeds = 3\n", "", "feeds must be a section, it is 3"),
        ("[feeds]\nlikes = 3\n", "", "no key feeds.likes; the nearest is feeds.likes.cap"),
        ("", "FEEDGATE_FEEDS_LIKES_CAP", "feeds.likes.cap must be a whole number in range, such as 1000, it is \"x\""),
        ("[feed.likes]\nkinds = [\"like\"]\n", "", "no key feed.likes.kinds; the nearest is feeds.NAME.kinds"),
        ("", "FEEDGATE_FEEDS_X_TTL", "no variable FEEDGATE_FEEDS_X_TTL; the nearest is FEEDGATE_FEEDS_NAME_CAP"),
        ("", "FEEDGATE_FEEDS_LIKES_TTL", "no variable FEEDGATE_FEEDS_LIKES_TTL; the nearest is "),
        ("", "FEEDGATE_FEEDS", "no variable FEEDGATE_FEEDS;"),
        ("", "FEEDGATE_FEEDS__CAP", "no variable FEEDGATE_FEEDS__CAP"),
        (
            "[feeds.Likes]\nkinds = [\"a\"]\n[feeds.likes]\nkinds = [\"b\"]\n",
            "FEEDGATE_FEEDS_LIKES_CAP",
            "FEEDGATE_FEEDS_LIKES_CAP may mean feeds.Likes.cap or feeds.likes.cap; give both in a file",
        ),
    ] {
        let file = file(&format!("backfill = 1001\n{text}"));
        let given: &[_] = if variable.is_empty() { &[] } else { &[(variable, "x")] };
        let problems = settings(Some(file.path()), env(given), vec![]).unwrap_err().join("\n");
        assert!(problems.contains(right), "{right}\n---\n{problems}");
    }
    let all = file("backfill = 1001\n[feeds.likes]\nkinds = [\"like\"]\ncap = 0\n[feeds.stories]\n");
    let problems = settings(Some(all.path()), env(&[]), vec![]).unwrap_err();
    assert_eq!(problems.len(), 3, "{problems:?}");
}

#[test]
fn s12_backfill_is_a_number_or_all() {
    let given = |text: &str| settings(Some(file(text).path()), env(&[]), vec![]).unwrap();
    let backfill = |settings: Settings| (settings.backfill.newest(), settings.policy().whole_past);
    assert_eq!(backfill(given("")), (100, false));
    assert_eq!(backfill(given("backfill = 0")), (0, false));
    assert_eq!(backfill(given("backfill = \"all\"")), (100, true));
    let by_variable = settings(None, env(&[("FEEDGATE_BACKFILL", "all")]), vec![]).unwrap();
    assert_eq!(backfill(by_variable), (100, true));
    for wrong in ["\"All\"", "-1", "true", "1001"] {
        let problems = settings(Some(file(&format!("backfill = {wrong}")).path()), env(&[]), vec![]).unwrap_err();
        assert!(problems.iter().all(|problem| problem.contains("or \"all\"")), "{problems:?}");
    }
}

#[test]
fn the_example_of_a_named_feed_in_the_default_config_is_right() {
    let (_, example) = crate::DEFAULT_CONFIG.split_once("# [feeds.").unwrap();
    let lines = example.split("\n\n").next().unwrap().lines().map(|line| line.strip_prefix("# ").unwrap_or(line));
    let text = format!("[feeds.{}\n", lines.collect::<Vec<_>>().join("\n"));
    let settings = settings(Some(file(&text).path()), env(&[]), vec![]).unwrap();
    let kinds = ["like".into(), "comment".into()].to_vec();
    assert_eq!(settings.feeds, [("notifications".into(), Feed { kinds, ..Feed::default() })].into());
}

#[test]
fn whatever_is_unknown_is_an_error_that_names_the_nearest() {
    let file = file(
        "lisen = \"127.0.0.1:1\"\nwebhook_url = \"https://push.example/\"\n[gateway]\nping_interval = 3\nown_posts = true\n\
         [gateways]\nx = 1\n[timelin]\n[timeline]\nwebhook_url = 7\n[feeds.likes]\nlog = \"info\"\n",
    );
    let problems = settings(Some(file.path()), env(&[("FEEDGATE_LISTN", "1"), ("FEEDGATE_BUCKET", "1")]), vec![]);
    let problems = problems.unwrap_err().join("\n");
    for right in [
        "no key lisen; the nearest is listen",
        "no key gateway.ping_interval; the nearest is gateway.ping_interval_secs",
        "no key gateways.x; the nearest is gateway.batch",
        "no key webhook_url; the nearest is push.webhook_url",
        "no key timeline.webhook_url; the nearest is push.webhook_url",
        "own_posts stands below [gateway]; it belongs above the first section",
        "log stands below [feeds.likes]; it belongs above the first section",
        "no section timelin; the nearest is timeline",
        "no variable FEEDGATE_LISTN; the nearest is FEEDGATE_LISTEN",
        "no variable FEEDGATE_BUCKET; the nearest is FEEDGATE_BUCKETS",
    ] {
        assert!(problems.contains(right), "{right}\n---\n{problems}");
    }
}

#[test]
fn the_variables_of_a_kubernetes_service_named_feedgate_are_passed_over() {
    let of_service = [
        ("FEEDGATE_SERVICE_HOST", "10.0.0.11"),
        ("FEEDGATE_SERVICE_PORT", "8080"),
        ("FEEDGATE_PORT", "tcp://10.0.0.11:8080"),
        ("FEEDGATE_PORT_8080_TCP", "tcp://10.0.0.11:8080"),
        ("FEEDGATE_FEEDS_SERVICE_PORT_KINDS", "8080"),
    ];
    let settings = settings(None, env(&of_service), vec![]).unwrap();
    assert_eq!(settings, Settings::default());
}

#[test]
fn a_value_of_the_wrong_kind_names_its_source_and_what_would_be_right() {
    let file = file("backfill = \"many\"\nbuckets = 70000\ngateway = 3\n");
    let env = env(&[("FEEDGATE_GATEWAY_BATCH", "-1")]);
    let problems = settings(Some(file.path()), env, vec![flag("listen", "8080")]).unwrap_err().join("\n");
    for right in [
        "backfill must be a whole number in range, such as 100, or \"all\", it is \"many\"",
        "buckets must be a whole number in range, such as 16, it is 70000",
        "no key gateway;",
        "FEEDGATE_GATEWAY_BATCH: gateway.batch must be a whole number in range, such as 100, it is -1",
        "--listen: listen must be an IP address and a port, such as \"127.0.0.1:8080\", it is \"8080\"",
    ] {
        assert!(problems.contains(right), "{right}\n---\n{problems}");
    }
}

#[test]
fn a_file_that_is_missing_or_not_toml_says_so() {
    let missing = settings(Some(Path::new("/nonexistent.toml")), env(&[]), vec![]).unwrap_err();
    assert!(missing[0].starts_with("/nonexistent.toml cannot be read: "), "{missing:?}");
    let broken = file("listen =");
    let problems = settings(Some(broken.path()), env(&[]), vec![]).unwrap_err();
    assert!(problems[0].contains("is not TOML") && problems[0].contains("line 1"), "{problems:?}");
}

#[test]
fn a_setting_that_is_one_of_two_words_refuses_another_one_with_both() {
    let json = file("log_format = \"json\"\n");
    assert_eq!(settings(Some(json.path()), env(&[]), vec![]).unwrap().log_format, LogFormat::Json);
    let over_it = env(&[("FEEDGATE_LOG_FORMAT", "text")]);
    assert_eq!(settings(Some(json.path()), over_it, vec![]).unwrap().log_format, LogFormat::Text);
    for wrong in ["JSON", "xml", ""] {
        let problems = settings(None, env(&[("FEEDGATE_LOG_FORMAT", wrong)]), vec![]).unwrap_err();
        let right = format!("FEEDGATE_LOG_FORMAT: log_format must be \"text\" or \"json\", it is {wrong:?}");
        assert_eq!(problems, [right]);
    }
    let number = file("log_format = 1\n");
    let problems = settings(Some(number.path()), env(&[]), vec![]).unwrap_err();
    assert!(problems[0].ends_with(": log_format must be \"text\" or \"json\", it is 1"), "{problems:?}");
    let friends = file("[comments]\nvisible = \"friends\"\n");
    let problems = settings(Some(friends.path()), env(&[]), vec![]).unwrap_err();
    assert!(
        problems[0].ends_with(": comments.visible must be \"all\" or \"mutual\", it is \"friends\""),
        "{problems:?}"
    );
}

#[test]
fn the_default_config_is_the_defaults_and_names_every_key() {
    let text = crate::DEFAULT_CONFIG;
    let table: Table = text.parse().unwrap();
    assert_eq!(leaves("", &table).collect::<BTreeMap<_, _>>(), known());
    for (n, line) in text.lines().enumerate().filter(|(_, line)| line.contains(" = ")) {
        let above = text.lines().nth(n.wrapping_sub(1)).unwrap_or_default();
        assert!(above.starts_with('#'), "line {}: {line:?} has no comment above it", n + 1);
    }
}

/// Every name `FEEDGATE_…` in the text of a file.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines
        .flat_map(move |line| line.match_indices(PREFIX).map(move |(at, _)| line[at..].split(|c| !is_name(c)).next()))
        .flatten()
}

#[test]
fn what_is_deployed_names_only_variables_that_there_are() {
    let known = known();
    let right: Vec<String> = known.keys().flat_map(|key| [variable(key), variable(&format!("{key}{FILE}"))]).collect();
    for (file, text, wants) in [
        ("compose.yaml", include_str!("../../../compose.yaml"), 5),
        ("Dockerfile", include_str!("../../../Dockerfile"), 4),
        ("feedgate.service", include_str!("../../../systemd/feedgate.service"), 1),
        ("feedgate-gateway.service", include_str!("../../../systemd/feedgate-gateway.service"), 4),
        ("feedgate-timeline.service", include_str!("../../../systemd/feedgate-timeline.service"), 2),
    ] {
        let named: Vec<&str> = named(text).collect();
        assert!(named.len() >= wants, "{file}: {named:?}");
        for name in named {
            assert!(right.iter().any(|right| right == name) || NOT_SETTINGS.contains(&name), "{file}: {name}");
        }
    }
}

#[test]
fn a_url_may_stand_in_a_file_of_its_own() {
    let url = file("embedded:\n");
    let path = url.path().to_str().unwrap();
    let lower = file("archive_url = \"mysql://\"\nbus_url = \"mysql://\"\n");
    let variable = env(&[("FEEDGATE_ARCHIVE_URL_FILE", path)]);
    settings(Some(lower.path()), variable, vec![flag("bus_url_file", path)]).unwrap();

    let both = env(&[("FEEDGATE_BUS_URL", "embedded:"), ("FEEDGATE_BUS_URL_FILE", path)]);
    let problems = settings(None, both, vec![]).unwrap_err();
    let wants = "FEEDGATE_BUS_URL_FILE: bus_url and bus_url_file must not both be given; take one of them out";
    assert_eq!(problems, [wants]);
}

#[test]
fn the_distance_counts_edits() {
    for (a, b, wants) in [("", "", 0), ("listen", "lisen", 1), ("abc", "cab", 2), ("", "abc", 3), ("ab", "ba", 2)] {
        assert_eq!(distance(a, b), wants, "{a} {b}");
    }
}

/// A line as a person may write it: a real key or none, a real value or none.
fn a_line() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let keys: Vec<String> =
        known().into_keys().map(|key| key.rsplit('.').next().unwrap_or_default().to_owned()).collect();
    let key = prop_oneof![proptest::sample::select(keys), "[a-z_.\\[\\]]{0,12}"];
    let value = prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        "\"[ -~]{0,20}\"",
        "\\[\\]|true|1e400|nan|'''|\\{\\}|\"redis://u:hunter2@h\"",
        "\\PC{0,20}",
    ];
    prop_oneof![
        (key, value).prop_map(|(key, value)| format!("{key} = {value}")),
        "\\[(gateway|timeline|feeds|feeds\\.[a-z]{1,4}|nothing)\\]",
        "\\PC{0,30}",
    ]
}

proptest::proptest! {
    #[test]
    fn whatever_a_file_and_the_environment_say_is_taken_or_refused_with_words_and_no_url_is_repeated(
        lines in proptest::collection::vec(a_line(), 0..12),
        variables in proptest::collection::vec(("FEEDGATE_[A-Z_]{0,16}", "\\PC{0,20}|redis://u:hunter2@h"), 0..4),
    ) {
        let file = file(&lines.join("\n"));
        // The paths of such variables would be read as files, so these are left out.
        let variables = variables.into_iter().filter(|(name, _)| !name.ends_with("_FILE"));
        if let Err(problems) = settings(Some(file.path()), variables, vec![]) {
            proptest::prop_assert!(!problems.is_empty());
            for problem in problems {
                proptest::prop_assert!(!problem.trim().is_empty());
                let names_a_url = problem.contains("_url");
                proptest::prop_assert!(!names_a_url || !problem.contains("hunter2"), "{}", problem);
            }
        }
    }
}
