//! `import` and `export` with files as other systems write them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use crate::server::{Server, directory, ok, refused, run};

fn item(id: &str, text: &[u8]) -> Vec<u8> {
    let head = format!(r#"{{"type":"item","id":"{id}","author":"ann","published_at":1,"body":""#);
    [head.as_bytes(), text, b"\"}\n"].concat()
}

#[test]
fn a_file_is_taken_in_to_the_byte_and_a_line_that_is_not_utf_8_is_refused_by_its_number() {
    let (_kept, here) = directory();
    let _server = Server::start(&here);
    let lines = [item("1", "grün".as_bytes()), item("2", b"gr\xfcn"), item("3", b"green")].concat();
    std::fs::write(here.join("history.ndjson"), lines).unwrap();
    let output = run(&here, &["import", "history.ndjson"]);
    let [said, why] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(said, "2 new, 0 were there already, 1 refused\n", "{why}");
    assert!(why.contains("line 2: a line must be UTF-8"), "{why}");
    let whole = ok(&here, &["export"]);
    assert!(whole.contains(r#""body":"grün""#) && whole.contains(r#""id":"3""#), "{whole}");
    assert!(!whole.contains(r#""id":"2""#), "{whole}");
}

#[test]
fn an_export_goes_on_behind_a_cursor_it_gave_and_refuses_any_other() {
    let (_kept, here) = directory();
    let _server = Server::start(&here);
    ok(&here, &["publish", "--author", "ann", "1"]);
    ok(&here, &["follow", "bob", "ann"]);
    let whole = ok(&here, &["export"]);
    let (head, rest) = whole.split_once("\"cursor\":\"").unwrap();
    let (cursor, rest) = rest.split_once("\"}\n").unwrap();
    assert!(head.contains(r#""type":"item""#) && rest.contains(r#""type":"follow""#), "{whole}");
    assert_eq!(ok(&here, &["export", "--cursor", cursor]), rest);
    let (_, stderr) = refused(&here, &["export", "--cursor", "x"]);
    assert!(stderr.contains("cursor must be one that an export has given") && !stderr.contains("go on"), "{stderr}");
}

/// A request to `listener`, which is answered with these lines; gives its body.
fn answered(listener: &TcpListener, answer: &str) -> String {
    let (mut peer, _) = listener.accept().unwrap();
    let (mut head, mut reader) = (String::new(), BufReader::new(peer.try_clone().unwrap()));
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
    }
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap()];
    reader.read_exact(&mut body).unwrap();
    let length = answer.len();
    write!(peer, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{answer}").unwrap();
    String::from_utf8(body).unwrap()
}

#[test]
fn an_import_whose_server_stops_sends_only_what_was_not_taken_in_and_counts_the_rest_as_it_was() {
    let (_kept, here) = directory();
    std::fs::write(here.join("history.ndjson"), "1\n2\n3\n").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let taken = r#"{"lines":2,"new":2,"unchanged":0,"refused":0}"#;
        let stopped = r#"{"resume_from_line":3,"stopped":{"detail":"away"}}"#;
        let done = r#"{"done":true,"lines":1,"new":1,"unchanged":0,"refused":0}"#;
        [answered(&listener, &format!("{taken}\n{stopped}\n")), answered(&listener, &format!("{done}\n"))]
    });
    let said = ok(&here, &["import", "history.ndjson", "--url", &url, "--key", "k"]);
    assert_eq!(said, "3 new, 0 were there already, 0 refused\n");
    assert_eq!(server.join().unwrap(), ["1\n2\n3\n", "3\n"]);
}
