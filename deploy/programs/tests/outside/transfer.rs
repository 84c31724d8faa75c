//! `import` and `export` with files as other systems write them.

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
