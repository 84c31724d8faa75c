//! Every command, with what it takes and what it refuses.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use crate::server::{Running, Server, directory, feedgate, ok, program, refused, soon};

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn tail(here: &Path, args: &[&str]) -> Running {
    let mut command = feedgate(here);
    command.arg("tail").args(args);
    Running::start(command)
}

#[test]
fn publish_prints_what_was_accepted() {
    let (_kept, here) = directory();
    let _server = Server::start(&here);
    ok(&here, &["follow", "bob", "ann"]);
    let all = ["--id", "7", "--kind", "post", "--foreign-id", "k 1", "--rank", "-5", "--published-at", "1000"];
    let accepted = json(&ok(&here, &[&["publish", "--author", "ann", r#"{"b":1, "a":2}"#], &all[..]].concat()));
    assert_eq!(accepted, serde_json::json!({"id": "7", "author": "ann", "outbox_seq": 1, "published_at": 1000}));
    let line = tail(&here, &["--user", "bob"]).line().unwrap();
    assert!(line.contains(r#""body":{"b":1, "a":2}"#), "{line}");
    let item = &json(&line)["item"];
    assert_eq!((&item["kind"], &item["rank"], &item["foreign_id"]), (&"post".into(), &(-5).into(), &"k 1".into()));
}

#[test]
fn publish_to_named_readers_reaches_them_and_nobody_else() {
    let (_kept, here) = directory();
    let _server = Server::start(&here);
    ok(&here, &["follow", "joe", "ann"]);
    let accepted = json(&ok(&here, &["publish", "--author", "ann", "--to", "bob,eve", "1"]));
    assert_eq!(accepted["outbox_seq"], serde_json::Value::Null);
    for reader in ["bob", "eve"] {
        let line = json(&tail(&here, &["--user", reader]).line().unwrap());
        assert_eq!((&line["item"]["id"], &line["item"]["direct"]), (&accepted["id"], &true.into()));
    }
    assert_eq!(json(&ok(&here, &["feed", "--user", "joe"]))["items"], serde_json::json!([]));
    let (_, stderr) = refused(&here, &["publish", "--author", "ann", "--to", "bob,e e", "1"]);
    assert!(stderr.contains("A-Z a-z 0-9"), "{stderr}");
}

#[test]
fn class_says_what_is_now_and_what_cannot_be() {
    let (_kept, here) = directory();
    let _server = Server::start(&here);
    assert_eq!(ok(&here, &["class", "ann", "pull"]), "ann is of class pull\n");
    ok(&here, &["follow", "bob", "ann"]);
    let tail = tail(&here, &["--user", "bob"]);
    ok(&here, &["publish", "--author", "ann", "1"]);
    assert_eq!(json(&tail.line().unwrap())["item"]["author"], "ann");
    ok(&here, &["class", "news", "everyone"]);
    let (_, stderr) = refused(&here, &["class", "news", "push"]);
    assert!(stderr.contains("everyone follows news"), "{stderr}");
    let (_, stderr) = refused(&here, &["class", "ann", "star"]);
    assert!(stderr.contains("[possible values: auto, push, pull, everyone]"), "{stderr}");
}

#[test]
fn publish_reads_stdin_for_a_dash() {
    let (_kept, here) = directory();
    let _server = Server::start(&here);
    std::fs::write(here.join("body.json"), "[1,\n2]").unwrap();
    let stdin = std::fs::File::open(here.join("body.json")).unwrap();
    let output = feedgate(&here).args(["publish", "--author", "ann", "-"]).stdin(stdin).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let (_, stderr) = refused(&here, &["publish", "--author", "ann", "-"]);
    assert!(stderr.contains("a body must be JSON"), "{stderr}");
}

#[test]
fn follow_and_unfollow_say_what_is_now() {
    let (_kept, here) = directory();
    let _server = Server::start(&here);
    for _ in 0..2 {
        assert_eq!(ok(&here, &["follow", "bob", "ann"]), "bob follows ann\n");
    }
    assert_eq!(ok(&here, &["unfollow", "bob", "ann"]), "bob does not follow ann\n");
}

#[test]
fn token_prints_the_token_alone() {
    let (_kept, here) = directory();
    let _server = Server::start(&here);
    let token = ok(&here, &["token", "--user", "bob", "--device", "d1", "--ttl", "90s"]);
    assert_eq!(token.trim_end().split('.').count(), 3);
    assert_eq!(token.lines().count(), 1);
}

#[test]
fn feed_goes_page_by_page() {
    let (_kept, here) = directory();
    let _server = Server::start(&here);
    ok(&here, &["follow", "bob", "ann"]);
    let tail = tail(&here, &["--user", "bob"]);
    for n in 1..=3 {
        ok(&here, &["publish", "--author", "ann", "--id", &n.to_string(), "0", "--rank", &n.to_string()]);
        // Its place on the page is sure once it has arrived.
        tail.lines_until(&format!(r#""id":"{n}""#));
    }
    let first = json(&ok(&here, &["feed", "--user", "bob", "--limit", "2"]));
    assert_eq!((&first["items"][0]["id"], &first["items"][1]["id"]), (&"3".into(), &"2".into()));
    let cursor = first["next"].as_str().unwrap();
    let second = json(&ok(&here, &["feed", "--user", "bob", "--limit", "2", "--cursor", cursor]));
    assert_eq!((&second["items"][0]["id"], &second["next"]), (&"1".into(), &serde_json::Value::Null));
}

#[test]
fn a_named_feed_is_configured_filled_by_kind_and_read_by_its_name() {
    let (_kept, here) = directory();
    std::fs::write(here.join("feedgate.toml"), "[feeds.notifications]\nkinds = [\"like\"]\ncap = 2\n").unwrap();
    let server = Server::start_with(&here, &["--config", "feedgate.toml", "--listen", "127.0.0.1:0"]);
    ok(&here, &["follow", "bob", "ann"]);
    let [likes, posts] = ["notifications", "feed"].map(|name| tail(&here, &["--user", "bob", "--name", name]));
    for id in ["1", "2", "3"] {
        ok(&here, &["publish", "--author", "ann", "--kind", "like", "--id", id, "0", "--rank", id]);
        likes.lines_until(&format!(r#""id":"{id}""#));
    }
    ok(&here, &["publish", "--author", "ann", "--kind", "post", "--id", "4", "0"]);
    let first = json(&posts.line().unwrap());
    assert_eq!((&first["offset"], &first["item"]["id"]), (&1.into(), &"4".into()), "a log of its own");
    let named = json(&ok(&here, &["feed", "--user", "bob", "--name", "notifications"]));
    assert_eq!((&named["items"][0]["id"], &named["items"][1]["id"]), (&"3".into(), &"2".into()));
    assert_eq!((named["items"].as_array().unwrap().len(), &named["next"]), (2, &serde_json::Value::Null));
    for command in ["feed", "tail"] {
        let (_, stderr) = refused(&here, &[command, "--user", "bob", "--name", "likes"]);
        assert!(stderr.contains(r#"no feed named "likes"; there is "feed", "notifications""#), "{stderr}");
    }

    server.stop();
    let server = Server::start(&here);
    let (_, stderr) = refused(&here, &["feed", "--user", "bob", "--name", "notifications"]);
    assert!(stderr.contains(r#"there is "feed""#), "{stderr}");
    server.stop();
    let _server = Server::start_with(&here, &["--config", "feedgate.toml", "--listen", "127.0.0.1:0"]);
    assert_eq!(json(&ok(&here, &["feed", "--user", "bob", "--name", "notifications"]))["items"], named["items"]);
}

#[test]
fn tail_prints_edits_deletes_and_unfollows_as_they_come() {
    let (_kept, here) = directory();
    let _server = Server::start(&here);
    ok(&here, &["follow", "bob", "ann"]);
    let tail = tail(&here, &["--user", "bob"]);
    ok(&here, &["publish", "--author", "ann", "--id", "1", "0"]);
    let add = json(&tail.line().unwrap());
    ok(&here, &["unfollow", "bob", "ann"]);
    let forget = json(&tail.line().unwrap());
    assert_eq!((&add["op"], &forget["op"], &forget["author"]), (&"add".into(), &"forget".into(), &"ann".into()));
    assert_eq!(forget["offset"].as_u64().unwrap(), add["offset"].as_u64().unwrap() + 1);
    assert_eq!(forget["epoch"], add["epoch"]);
}

#[test]
fn tail_goes_on_after_the_server_was_away_without_a_gap_or_a_repeat() {
    let (_kept, here) = directory();
    let server = Server::start(&here);
    ok(&here, &["follow", "bob", "ann"]);
    let tail = tail(&here, &["--user", "bob"]);
    ok(&here, &["publish", "--author", "ann", "--id", "1", "0"]);
    let first = json(&tail.line().unwrap());
    let address = server.place("HTTP API").replace("http://", "").replace("/v1", "");
    drop(server); // by SIGKILL
    let _server = Server::start_with(&here, &["--listen", &address]);
    ok(&here, &["publish", "--author", "ann", "--id", "2", "0"]);
    let second = json(&tail.line().unwrap());
    assert_eq!((&first["item"]["id"], &second["item"]["id"]), (&"1".into(), &"2".into()));
    assert_eq!(second["offset"].as_u64().unwrap(), first["offset"].as_u64().unwrap() + 1);
}

#[test]
fn tail_from_a_position_that_is_gone_says_reset() {
    let (_kept, here) = directory();
    let _server = Server::start(&here);
    let reset = json(&tail(&here, &["--user", "bob", "--since", "999:5"]).line().unwrap());
    assert_eq!(reset["op"], "reset");
    assert_ne!(reset["epoch"], "999");
}

#[test]
fn tail_ends_when_nobody_reads_it_any_more() {
    let (_kept, here) = directory();
    let _server = Server::start(&here);
    let mut command = program("sh", &here);
    command.args(["-c", r#""$0" tail --user bob --since 999:5 | head -n 1"#]);
    let shell = Running::start({
        command.arg(env!("CARGO_BIN_EXE_feedgate"));
        command
    });
    // `sh` waits for both ends of the pipe.
    let first = shell.line();
    assert!(first.as_ref().is_some_and(|line| line.contains("reset")), "{first:?}, then {:?}", shell.end());
    assert_eq!(shell.line(), None);
    assert!(shell.end().0.success());
}

/// A pipe holds 64 KiB at most: one of the lines and the beginning of the other. The rest of that line waits for a
/// reader that never reads.
#[test]
fn tail_ends_by_ctrl_c_while_its_reader_reads_nothing() {
    let (_kept, here) = directory();
    let _server = Server::start(&here);
    ok(&here, &["follow", "bob", "ann"]);
    let long = format!("{:?}", "x".repeat(60_000));
    (0..2).for_each(|_| _ = ok(&here, &["publish", "--author", "ann", &long]));
    let (reader, writer) = std::io::pipe().unwrap();
    let mut tail = feedgate(&here).args(["tail", "--user", "bob", "--lines", "2"]).stdout(writer).spawn().unwrap();
    soon("the second line has begun", || rustix::io::ioctl_fionread(&reader).unwrap() > 62_000);
    kill_process(Pid::from_child(&tail), Signal::INT).unwrap();
    soon("tail ends", || tail.try_wait().unwrap().is_some_and(|ended| ended.success()));
}

#[test]
fn a_device_that_connects_elsewhere_ends_the_older_tail() {
    let (_kept, here) = directory();
    let _server = Server::start(&here);
    let older = tail(&here, &["--user", "bob", "--device", "d", "--since", "999:5"]);
    older.line().unwrap();
    let newer = tail(&here, &["--user", "bob", "--device", "d", "--since", "999:5"]);
    newer.line().unwrap();
    let (status, stderr) = older.end();
    assert!(status.code() == Some(1) && stderr.contains("(4500)"), "{stderr}");
}

#[test]
fn a_server_that_does_not_run_is_said_with_how_to_start_it() {
    let (_kept, here) = directory();
    for args in
        [&["follow", "a", "b"][..], &["token", "--user", "a"], &["tail", "--user", "a"], &["feed", "--user", "a"]]
    {
        let (code, stderr) = refused(&here, args);
        assert!(code == 1 && stderr.contains("no server runs on the data directory data"), "{stderr}");
        assert!(stderr.contains("feedgate serve"), "{stderr}");
        let elsewhere = [args, &["--url", "http://127.0.0.1:1", "--key", "0123456789abcdef"]].concat();
        let (code, stderr) = refused(&here, &elsewhere);
        assert!(code == 1 && stderr.contains("no server answers at http://127.0.0.1:1"), "{stderr}");
    }
}

#[test]
fn every_bad_argument_is_refused_with_what_would_be_right() {
    let (_kept, here) = directory();
    let _server = Server::start(&here);
    let cases: &[(&[&str], i32, &str)] = &[
        (&["publish", "--author", "ann", "hello"], 1, r#"'{"text":"hello"}'"#),
        (&["publish", "--author", "a b", "1"], 2, "a user id may hold only"),
        (&["publish", "--author", "ann"], 2, "<BODY>"),
        (&["publish", "1"], 2, "--author"),
        (&["publish", "--author", "ann", "--id", "-1", "1"], 2, "--id"),
        (&["publish", "--author", "ann", "--id", "x", "1"], 2, "an item id is a decimal number"),
        (&["publish", "--author", "ann", "--published-at", "99999999999999", "1"], 1, "published_at"),
        (&["publish", "--author", "ann", "--kind", "", "1"], 1, "kind"),
        (&["publish", "--author", "ann", "--foreign-id", "", "1"], 1, "foreign_id"),
        (&["publish", "--author", "ann", "--rank", "1.5", "1"], 2, "--rank"),
        (&["follow", "bob"], 2, "<AUTHOR>"),
        (&["follow", "bob", ""], 2, "1 to 64 characters"),
        (&["unfollow", "bob", "a/b"], 2, "a user id may hold only"),
        (&["token"], 2, "--user"),
        (&["token", "--user", "bob", "--ttl", "1y"], 2, "such as 10m"),
        (&["token", "--user", "bob", "--device", "a b"], 2, "a device id may hold only"),
        (&["feed", "--user", "bob", "--limit", "0"], 2, "1..=100"),
        (&["feed", "--user", "bob", "--cursor", "what?"], 1, "cursor"),
        (&["tail"], 2, "--user"),
        (&["tail", "--user", "bob", "--since", "7"], 2, "EPOCH:OFFSET"),
        (&["tail", "--user", "bob", "-n", "1001"], 2, "0..=1000"),
        (&["follow", "a", "b", "--url", "https://127.0.0.1:1"], 1, "https://127.0.0.1:1: "),
        (&["follow", "a", "b", "--url", "feed.example"], 1, "http://HOST:PORT"),
        (&["follow", "a", "b", "--key", "wrong"], 1, "Credentials refused"),
        (&["follow", "a", "b", "--key", "two words"], 1, "printable ASCII"),
        (&["--listen", "8080"], 2, "--listen"),
        (&["serve", "--config", "nowhere.toml"], 1, "nowhere.toml cannot be read"),
        (&["publish", "--author", "ann", "--to", "", "1"], 2, "1 to 64 characters"),
        (&["class", "ann"], 2, "<CLASS>"),
        (&["import"], 2, "<FILE>"),
        (&["likes"], 2, "unrecognized subcommand"),
    ];
    for (args, wants_code, wants) in cases {
        let (code, stderr) = refused(&here, args);
        assert_eq!(code, *wants_code, "{args:?}: {stderr}");
        assert!(stderr.contains(wants), "{args:?} should say {wants:?}: {stderr}");
    }
    assert_eq!(json(&ok(&here, &["feed", "--user", "bob"]))["items"], serde_json::json!([]));
}

#[test]
fn check_config_prints_what_is_in_effect_or_everything_that_is_wrong() {
    let (_kept, here) = directory();
    let config = ok(&here, &["default-config"]);
    std::fs::write(here.join("feedgate.toml"), &config).unwrap();
    let effective = ok(&here, &["check-config", "--config", "feedgate.toml", "--listen", "127.0.0.1:9"]);
    assert!(effective.contains("listen = \"127.0.0.1:9\"") && effective.contains("[gateway]"), "{effective}");
    assert!(effective.contains("log_format = \"text\""), "{effective}");
    let plain = ok(&here, &["check-config"]);
    assert_eq!(plain, ok(&here, &["check-config", "--config", "feedgate.toml"]));

    std::fs::write(
        here.join("feedgate.toml"),
        "lisen = 1\nbuckets = 0\narchive_url = \"mysql://u:p@h\"\n[feeds.likes]\n",
    )
    .unwrap();
    let (code, stderr) = refused(&here, &["check-config", "--config", "feedgate.toml"]);
    assert_eq!(code, 1);
    for wants in [
        "no key lisen; the nearest is listen",
        "feeds.likes.kinds must name at least one",
        "buckets must be 1 to",
        "archive_url must be \"embedded:\" or \"postgres:",
    ] {
        assert!(stderr.contains(wants), "{wants}: {stderr}");
    }
    assert!(!stderr.contains("u:p"), "{stderr}");
    let output = feedgate(&here).arg("check-config").env("FEEDGATE_BUCKET", "1").output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("no variable FEEDGATE_BUCKET; the nearest is FEEDGATE_BUCKETS"), "{stderr}");
    assert!(!here.join("data").exists());
}

#[test]
fn check_config_names_each_file_of_tls_that_cannot_be_used_and_an_admin_port_that_is_not_opened() {
    let (_kept, here) = directory();
    std::fs::write(here.join("empty.pem"), "").unwrap();
    let file = "[tls]\ncertificate = \"none.pem\"\nkey = \"none.key\"\n\
                [admin_tls]\ncertificate = \"empty.pem\"\nkey = \"empty.pem\"\n";
    let (right, said) = checked(&here, file, &[]);
    assert!(!right && said.contains("tls.certificate: none.pem cannot be read"), "{said}");
    assert!(said.contains("admin_tls.certificate empty.pem with admin_tls.key empty.pem"), "{said}");

    let (right, said) = checked(&here, "admin_listen = \"127.0.0.1:9\"\n", &[]);
    assert!(right && said.contains("note: admin_listen 127.0.0.1:9 is not opened"), "{said}");
    let (right, said) = checked(&here, "admin_listen = \"127.0.0.1:9\"\nlisten = \"0.0.0.0:8080\"\n", &[]);
    assert!(right && !said.contains("note:"), "{said}");
}

/// Settings of a file and variables as `check-config` answers to them.
fn checked(here: &Path, file: &str, variables: &[(&str, &str)]) -> (bool, String) {
    std::fs::write(here.join("feedgate.toml"), file).unwrap();
    let variables = variables.iter().copied();
    let output = feedgate(here).args(["check-config", "--config", "feedgate.toml"]).envs(variables).output().unwrap();
    (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

#[test]
fn stores_are_all_embedded_or_none_is() {
    let (_kept, here) = directory();
    let (right, said) = checked(&here, "bus_url = \"nats://c\"\n", &[]);
    assert!(
        !right && said.contains("archive_url and inbox_url must not be \"embedded:\" while bus_url is not"),
        "{said}"
    );
    let (code, stderr) = refused(&here, &["--config", "feedgate.toml", "--listen", "127.0.0.1:0"]);
    assert!(code == 1 && stderr.contains("all three are embedded or none is"), "{stderr}");
}

#[test]
fn no_password_is_shown_wherever_a_url_comes_from() {
    let (_kept, here) = directory();
    std::fs::write(here.join("archive_url"), "postgres://ann:secret@db/feed\n").unwrap();
    let shared = [("FEEDGATE_INBOX_URL", "redis://:secret@a,b"), ("FEEDGATE_BUS_URL", "nats://secret@c")];
    let (right, said) = checked(&here, "archive_url_file = \"archive_url\"\n", &shared);
    if cfg!(feature = "cluster") {
        assert!(right && said.contains("inbox_url = \"redis://***@a,b\""), "{said}");
    } else {
        assert!(!right && said.contains("build with: cargo build --release --features cluster"), "{said}");
    }
    assert!(said.contains("postgres://***@db/feed") && !said.contains("secret@"), "{said}");

    for (file, wants) in [
        ("archive_url = postgres://ann:secret@db\n", "feedgate.toml is not TOML: line 1: "),
        ("\n\ninbox_url = [\"redis://:secret@a\"]\n", "inbox_url must be a string, such as \"embedded:\", it is array"),
        ("bus_url = \"nats:secret@c\"\n", "bus_url must be \"embedded:\" or \"nats://HOST:PORT\", it is "),
        ("bus_url_file = \"nowhere\"\n", "bus_url_file: nowhere cannot be read"),
    ] {
        let (right, said) = checked(&here, file, &[]);
        assert!(!right && said.contains(wants) && !said.contains("secret"), "{wants}: {said}");
    }
}

#[test]
fn secrets_are_made_where_they_are_asked_for_and_stay() {
    let (_kept, here) = directory();
    assert_eq!(ok(&here, &["secrets", "shared/secrets"]), "the secrets are in shared/secrets\n");
    let key = std::fs::read_to_string(here.join("shared/secrets/api_key")).unwrap();
    ok(&here, &["secrets", "shared/secrets"]);
    assert_eq!(std::fs::read_to_string(here.join("shared/secrets/api_key")).unwrap(), key);
    // One key in 64 begins so; the command line takes it all the same.
    let key = format!("-{}", &key[1..]);
    std::fs::write(here.join("shared/secrets/api_key"), &key).unwrap();
    std::fs::write(here.join("feedgate.toml"), "secrets = \"shared/secrets\"\n").unwrap();
    let server = Server::start_with(&here, &["--config", "feedgate.toml", "--listen", "127.0.0.1:0"]);
    assert_eq!(server.place("Secrets"), "shared/secrets");
    ok(&here, &["follow", "bob", "ann", "--key", &key]);
    ok(&here, &["follow", "bob", "ann", "--config", "feedgate.toml"]);
    assert!(!here.join("data/secrets").exists());
}

#[test]
fn an_api_key_is_printed_once_and_does_what_its_roles_say() {
    let (_kept, here) = directory();
    assert!(Server::start(&here).stop().0.success());
    let key = ok(&here, &["api-key", "shop", "--role", "publish"]);
    let key = key.trim();
    let _server = Server::start(&here);
    ok(&here, &["follow", "bob", "ann", "--key", key]);
    let (code, said) = refused(&here, &["feed", "--user", "bob", "--key", key]);
    assert!(code == 1 && said.contains("takes the role read"), "{said}");
    let (code, said) = refused(&here, &["api-key", "shop", "--role", "read"]);
    assert!(code == 1 && said.contains("there is a key shop already"), "{said}");
    let (code, said) = refused(&here, &["api-key", "more", "--role", "write"]);
    assert!(code == 2 && said.contains("read, publish or admin"), "{said}");
}

#[test]
fn ready_asks_a_server_whether_it_is() {
    let (_kept, here) = directory();
    let server = Server::start(&here);
    let url = server.place("HTTP API").replace("/v1", "");
    assert_eq!(ok(&here, &["ready", &url]), "ready\n");
    drop(server);
    let (code, stderr) = refused(&here, &["ready", &url]);
    assert!(code == 1 && stderr.contains("no server answers"), "{stderr}");
}

#[test]
fn a_setting_that_is_not_utf_8_is_refused_and_no_other_directory_is_taken_for_it() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let (_kept, here) = directory();
    let odd = OsStr::from_bytes(b"odd-\xff");
    for command in [
        feedgate(&here).arg("check-config").arg("--data").arg(odd),
        feedgate(&here).arg("check-config").env("FEEDGATE_DATA", odd),
    ] {
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && stderr.contains("UTF-8"), "{output:?}");
    }
    let output = feedgate(&here).arg("check-config").env("FEEDGATE_ARCHIVE_URL", odd).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("FEEDGATE_ARCHIVE_URL must be UTF-8") && !stderr.contains("odd"), "{stderr}");
}

#[test]
fn a_key_in_the_environment_is_no_reason_to_refuse_the_settings() {
    let (_kept, here) = directory();
    let output = feedgate(&here).arg("check-config").env("FEEDGATE_KEY", "x").output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_doctor_finds_a_store_that_was_killed_sound_and_a_damaged_one_not() {
    let (_kept, here) = directory();
    let server = Server::start(&here);
    ok(&here, &["follow", "bob", "ann"]);
    ok(&here, &["publish", "--author", "ann", "1"]);
    ok(&here, &["feed", "--user", "bob"]);
    let (_, stderr) = refused(&here, &["backup", "copies/today"]);
    assert!(stderr.contains("there is no directory copies, in which the backup is to be"), "{stderr}");
    ok(&here, &["backup", "copy"]);
    let (code, stderr) = refused(&here, &["doctor"]);
    assert!(code == 2 && stderr.contains("in use"), "{code} {stderr}");
    // A dropped server is killed.
    drop(server);
    for args in [&["doctor"][..], &["doctor", "--backup", "copy"]] {
        let said = ok(&here, args);
        assert!(said.contains("the store is sound") && said.contains("ok     follower counts: 1 looked at"), "{said}");
    }
    let inboxes = |more: &[&str]| {
        let said = ok(&here, &[&["doctor"][..], more].concat());
        said.lines().find_map(|line| Some(line.split_once("inboxes: ")?.1.to_owned()))
    };
    assert_eq!(inboxes(&[]).as_deref(), Some("1 looked at"));
    assert_eq!(inboxes(&["--inboxes", "all"]).as_deref(), Some("1 looked at"));
    assert_eq!([inboxes(&["--inboxes", "0"]), inboxes(&["--backup", "copy"])], [None, None]);
    let (code, stderr) = refused(&here, &["doctor", "--inboxes", "some"]);
    assert!(code == 2 && stderr.contains("it is a number or \"all\", not \"some\""), "{code} {stderr}");
    let mut names: Vec<_> = std::fs::read_dir(&here).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["copy", "data"], "nothing is left beside them");

    let rows = here.join("copy/archive.rows");
    let mut bytes = std::fs::read(&rows).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&rows, bytes).unwrap();
    let journals = std::fs::read_dir(here.join("data/archive")).unwrap().map(|entry| entry.unwrap().path());
    let journal = journals.filter(|path| path.extension().is_some_and(|of| of == "jnl")).max().unwrap();
    std::fs::File::options().write(true).open(journal).unwrap().set_len(100).unwrap();
    for args in [&["doctor"][..], &["doctor", "--backup", "copy"]] {
        let output = crate::server::run(&here, args);
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.code() == Some(1) && said.contains("WRONG  "), "{said}");
    }
    let (code, stderr) = refused(&here, &["doctor", "--data", "nowhere"]);
    assert!(code == 2 && stderr.contains("nowhere"), "{code} {stderr}");
    let (code, _) = refused(&here, &["doctor", "--backup", "data"]);
    assert_eq!(code, 2);
}

#[test]
fn top_shows_the_sessions_and_writes_of_a_running_server() {
    let (_kept, here) = directory();
    let server = Server::start(&here);
    let tail = tail(&here, &["--user", "bob"]);
    ok(&here, &["follow", "bob", "ann"]);
    ok(&here, &["publish", "--author", "ann", "1"]);
    tail.line().unwrap();
    let shown = ok(&here, &["top", "--every", "1", "--count", "1"]);
    assert!(shown.contains("1 sessions of 1 users   1 connections (websocket 1)"), "{shown}");
    assert!(shown.contains("1 items, 1 follows"), "{shown}");
    let (_, stderr) = refused(&here, &["top", "--also", "http://127.0.0.1:1"]);
    assert!(stderr.contains("no server answers at http://127.0.0.1:1"), "{stderr}");
    let (_, stderr) = refused(&here, &["top", "--key", "wrong"]);
    assert!(stderr.contains("key"), "{stderr}");
    drop(tail);
    server.stop();
    let (_, stderr) = refused(&here, &["top"]);
    assert!(stderr.contains("no server runs on the data directory"), "{stderr}");
    let (_, stderr) = refused(&here, &["backup", "copy"]);
    assert!(
        stderr.contains("start it with: feedgate serve") && !stderr.contains("--url"),
        "a backup has none: {stderr}"
    );
}
