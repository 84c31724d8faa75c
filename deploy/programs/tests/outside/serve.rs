//! The server from outside: what it prints, how it stops, what it finds again, what it refuses.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::server::{Running, Server, directory, feedgate, ok, program, refusal, refused, run};

/// Runs a line as a person would who pastes it into a shell.
fn paste(directory: &Path, line: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(directory).stdin(Stdio::null());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("FEEDGATE_")) {
        shell.env_remove(name);
    }
    shell
}

#[test]
fn the_tour_works_as_printed_line_by_line() {
    let (_kept, here) = directory();
    let server = Server::start(&here);
    let tour = server.tour();
    assert_eq!(tour.len(), 4, "{:?}", server.banner);

    let followed = paste(&here, &tour[0]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&followed.stdout), "bob follows ann\n");
    // A shell that is asked to run a job in the background and nothing else would be gone at once.
    let tail = Running::start(paste(&here, &format!("exec {}", tour[1].strip_suffix('&').unwrap())));
    let published = paste(&here, &tour[2]).output().unwrap();
    assert!(String::from_utf8_lossy(&published.stdout).contains(r#""author":"ann""#), "{published:?}");
    let line = tail.line().unwrap();
    assert!(line.contains(r#""op":"add""#) && line.contains(r#""body":{"text":"hello"}"#), "{line}");
    let page = String::from_utf8(paste(&here, &tour[3]).output().unwrap().stdout).unwrap();
    assert!(page.contains(r#""body":{"text":"hello"}"#), "{page}");
}

#[test]
fn the_tour_works_pasted_as_a_whole() {
    let (_kept, here) = directory();
    let server = Server::start(&here);
    let script = format!("{}\nwait", server.tour().join("\n"));
    let shell = Running::start(paste(&here, &script));
    // The order of tail and the others is the scheduler's; what they say is not.
    shell.lines_until("bob follows ann");
    shell.lines_until(r#""op":"add""#);
    drop(server);
}

#[test]
fn starting_again_finds_everything_where_it_was() {
    let (_kept, here) = directory();
    let server = Server::start(&here);
    ok(&here, &["follow", "bob", "ann"]);
    ok(&here, &["publish", "--author", "ann", r#"{"b":1,"a":2}"#]);
    let tail = tail(&here, &["--user", "bob"]);
    let line = tail.line().unwrap();
    drop(tail);
    let token = ok(&here, &["token", "--user", "bob", "--ttl", "1h"]);
    let key = std::fs::read_to_string(here.join("data/secrets/api_key")).unwrap();
    assert!(server.stop().0.success());

    let server = Server::start(&here);
    let page = ok(&here, &["feed", "--user", "bob"]);
    assert!(page.contains(r#""body":{"b":1,"a":2}"#), "{page}");
    assert_eq!(tail_since_start(&here, &line), line);
    assert_eq!(std::fs::read_to_string(here.join("data/secrets/api_key")).unwrap(), key);
    let url = server.place("HTTP API").replace("/v1", "");
    let (code, stderr) = refused(&here, &["feed", "--user", "bob", "--key", token.trim(), "--limit", "101"]);
    assert_eq!(code, 2, "{stderr}");
    // The old token still opens what is bob's.
    ok(&here, &["feed", "--user", "bob", "--key", token.trim(), "--url", &url]);
    assert!(server.stop().0.success());
}

fn tail(here: &Path, args: &[&str]) -> Running {
    let mut command = feedgate(here);
    command.arg("tail").args(args);
    Running::start(command)
}

fn tail_since_start(here: &Path, line: &str) -> String {
    let epoch = line.split('"').nth(3).unwrap();
    let tail = tail(here, &["--user", "bob", "--since", &format!("{epoch}:0")]);
    tail.line().unwrap()
}

#[test]
fn ctrl_c_closes_devices_with_3001_and_exits_with_0() {
    let (_kept, here) = directory();
    let server = Server::start(&here);
    ok(&here, &["follow", "bob", "ann"]);
    ok(&here, &["publish", "--author", "ann", "1"]);
    let mut tail = tail(&here, &["--user", "bob"]);
    tail.line().unwrap();
    let (status, stderr) = server.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert!(!stderr.contains("WARN") && !stderr.contains("ERROR"), "{stderr}");
    assert!(!here.join("data/server.url").exists());
    tail.says("(3001)");
    tail.signal(Signal::INT);
    assert_eq!(tail.end().0.code(), Some(0));
}

#[test]
fn a_link_to_the_console_is_printed_on_request_and_is_in_no_log() {
    let (_kept, here) = directory();
    let server = Server::start(&here);
    let console = server.place("Console");
    let (page, hint) = console.split_once(' ').unwrap();
    assert_eq!(hint, "(for a link that opens it: feedgate console)", "stdout is no terminal here");
    assert_eq!(page, server.place("HTTP API").replace("/v1", "/"));
    let links = [ok(&here, &["console"]), ok(&here, &["console"])];
    for link in &links {
        let ticket = link.trim().strip_prefix(page).and_then(|rest| rest.strip_prefix("#ticket=")).unwrap();
        assert_eq!(ticket.len(), 43, "{link}");
    }
    assert_ne!(links[0], links[1]);
}

#[test]
fn as_json_every_line_of_the_log_is_one_object_and_stdout_stays_as_it_is() {
    let (_kept, here) = directory();
    let mut command = feedgate(&here);
    command.args(["--listen", "127.0.0.1:0"]).envs([("FEEDGATE_LOG_FORMAT", "json"), ("FEEDGATE_LOG", "debug")]);
    let server = Server::of(Running::start(command));
    ok(&here, &["follow", "bob", "ann"]);
    let url = server.place("HTTP API").replace("/v1", "");
    refused(&here, &["feed", "--user", "bob", "--key", "a.b.c", "--url", &url]);
    let (status, stderr) = server.stop();
    assert!(status.success(), "{stderr}");
    let lines: Vec<serde_json::Value> =
        stderr.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect();
    for line in &lines {
        let is_text = ["time", "level", "target", "message"].iter().all(|name| line[name].is_string());
        assert!(is_text && line["fields"].is_object() && line.as_object().unwrap().len() == 5, "{line}");
    }
    let refused = lines.iter().find(|line| line["message"] == "a token was refused").expect(&stderr);
    assert_eq!((&refused["level"], &refused["fields"]["suppressed"]), (&"INFO".into(), &0.into()));
    assert_eq!(refused["target"], "feedgate_gateway::net::refusals");
}

#[test]
fn a_terminated_server_stops_as_well() {
    let (_kept, here) = directory();
    let server = Server::start(&here);
    server.running.signal(Signal::TERM);
    assert_eq!(server.running.end().0.code(), Some(0));
}

#[test]
fn secrets_are_for_their_owner_alone_and_anything_else_stops_the_start() {
    let (_kept, here) = directory();
    assert!(Server::start(&here).stop().0.success());
    let key = here.join("data/secrets/api_key");
    for (path, mode) in [("data", 0o700), ("data/secrets", 0o700), ("data/secrets/api_key", 0o600)] {
        assert_eq!(here.join(path).metadata().unwrap().permissions().mode() & 0o777, mode, "{path}");
    }
    std::fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let (code, stderr) = refused(&here, &["--listen", "127.0.0.1:0"]);
    assert!(code == 1 && stderr.contains("chmod 600"), "{stderr}");
    std::fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&key, "").unwrap();
    let (code, stderr) = refused(&here, &["--listen", "127.0.0.1:0"]);
    assert!(code == 1 && stderr.contains("is empty; restore the file"), "{stderr}");
}

#[test]
fn a_busy_port_and_a_directory_in_use_are_named_with_what_to_do() {
    let (_kept, here) = directory();
    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = busy.local_addr().unwrap().to_string();
    let (code, stderr) = refused(&here, &["--listen", &address]);
    assert!(code == 1 && stderr.contains(&format!("{address} is in use")) && stderr.contains("--listen"), "{stderr}");

    let server = Server::start(&here);
    let (code, stderr) = refused(&here, &["serve", "--listen", "127.0.0.1:0"]);
    assert!(code == 1 && stderr.contains("data is in use"), "{stderr}");
    ok(&here, &["follow", "bob", "ann"]);
    drop(server);

    std::fs::write(here.join("file"), "").unwrap();
    let (code, stderr) = refused(&here, &["--listen", "127.0.0.1:0", "--data", "file/data"]);
    assert!(code == 1 && stderr.contains("file/data cannot be used"), "{stderr}");
}

/// A server that is given `what` as descriptor 3, with these variables beside its own id.
fn given(here: &Path, what: impl Into<OwnedFd>, variables: &str, listen: &str) -> Command {
    let mut shell = program("sh", here);
    let line = format!("exec 3<&0 0</dev/null; LISTEN_PID=$$ {variables} exec \"$@\"");
    shell.args(["-c", &line, "sh", env!("CARGO_BIN_EXE_feedgate"), "--listen", listen]).stdin(Stdio::from(what.into()));
    shell
}

#[test]
fn a_socket_that_was_given_is_served_in_place_of_a_bind_and_keeps_those_who_came_before() {
    let (_kept, here) = directory();
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap().to_string();
    let mut early = TcpStream::connect(&address).unwrap();
    early.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    let command = given(&here, port, "LISTEN_FDS=1 LISTEN_FDNAMES=feedgate.socket", &address);
    let server = Server::of(Running::start(command));
    assert_eq!(server.place("HTTP API"), format!("http://{address}/v1"));
    let mut answer = String::new();
    early.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    ok(&here, &["follow", "bob", "ann"]);
    assert!(server.stop().0.success());
    assert!(TcpStream::connect(&address).is_err(), "it was held by the server alone");
}

#[test]
fn what_was_given_and_is_not_what_is_served_stops_the_start() {
    let (_kept, here) = directory();
    let port = || TcpListener::bind("127.0.0.1:0").unwrap();
    let own = |port: &TcpListener| port.local_addr().unwrap().to_string();
    let says = |command: &mut Command, what: &str| {
        let (code, stderr) = refusal(command);
        assert!(code == 1 && stderr.contains(what), "{stderr}");
    };
    let (one, other) = (port(), port());
    let fits_none = format!("at {} was given (LISTEN_FDS) and fits no setting: listen is {}", own(&one), own(&other));
    says(&mut given(&here, one, "LISTEN_FDS=1", &own(&other)), &fits_none);
    let one = port();
    let at = own(&one);
    says(&mut given(&here, one, "LISTEN_FDS=1 LISTEN_FDNAMES=admin_listen", &at), "the socket admin_listen at");
    says(&mut given(&here, port(), "LISTEN_FDS=some", "127.0.0.1:0"), "LISTEN_FDS is how many");
    says(&mut given(&here, port(), "LISTEN_FDS=1 LISTEN_FDNAMES=a:b", "127.0.0.1:0"), "LISTEN_FDNAMES has 2 names");
    says(&mut given(&here, port(), "LISTEN_FDS=2", "127.0.0.1:0"), "descriptor 4 (unknown) is no listener");
    let file = std::fs::File::open("/dev/null").unwrap();
    says(&mut given(&here, file, "LISTEN_FDS=1", "127.0.0.1:0"), "descriptor 3 (unknown) is no listener");
    let port = port();
    let connection = TcpStream::connect(port.local_addr().unwrap()).unwrap();
    says(&mut given(&here, connection, "LISTEN_FDS=1", "127.0.0.1:0"), "it does not listen");
}

#[test]
fn beyond_loopback_the_api_key_counts_on_the_admin_port_alone() {
    let (_kept, here) = directory();
    let server = Server::start_with(&here, &["--listen", "0.0.0.0:0", "--admin-listen", "127.0.0.1:0"]);
    // Clients find the admin port by themselves.
    ok(&here, &["follow", "bob", "ann"]);
    ok(&here, &["publish", "--author", "ann", "\"hi\""]);
    tail(&here, &["--user", "bob"]).line().unwrap();

    let devices = server.place("WebSocket").replace("ws://0.0.0.0", "http://127.0.0.1");
    let public = devices.strip_suffix("/connection/websocket").unwrap();
    let (_, stderr) = refused(&here, &["publish", "--author", "ann", "1", "--url", public]);
    assert!(stderr.contains("No such route") && stderr.contains("admin_listen"), "{stderr}");
    let (_, stderr) = refused(&here, &["feed", "--user", "bob", "--url", public]);
    assert!(stderr.contains("Credentials refused"), "{stderr}");
    let token = ok(&here, &["token", "--user", "bob"]);
    let page = ok(&here, &["feed", "--user", "bob", "--url", public, "--key", token.trim()]);
    assert!(page.contains("\"hi\""), "{page}");
    assert!(server.stop().0.success());
}

#[test]
fn a_second_ctrl_c_ends_it_at_once() {
    let (_kept, here) = directory();
    let server = Server::start(&here);
    let address = server.place("HTTP API").replace("http://", "").replace("/v1", "");
    let key = std::fs::read_to_string(here.join("data/secrets/api_key")).unwrap();
    // The server asks for the rest of a request that is on its way, and a drain waits for it.
    let mut half = TcpStream::connect(&address).unwrap();
    let head = format!(
        "POST /v1/items HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n\
         expect: 100-continue\r\ncontent-length: 9\r\n\r\n"
    );
    half.write_all(head.as_bytes()).unwrap();
    half.read_exact(&mut [0; 12]).unwrap();
    server.running.signal(Signal::INT);
    // It takes connections to the end, to tell them to go elsewhere.
    let url = format!("http://{address}");
    while run(&here, &["ready", &url]).status.success() {}
    server.running.signal(Signal::INT);
    assert_eq!(server.running.end().0.code(), Some(130));
}
