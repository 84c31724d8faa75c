//! What a reader may rely on anywhere in the tree: every source says what it is, every link leads
//! somewhere, every failpoint is real, every mutant names a test that exists.

#[path = "tidy/circles.rs"]
mod circles;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the tree").to_owned()
}

/// Every file of the tree whose name ends so, as (path from the root, text): what git knows or would
/// take in, or all of it where there is no git.
fn files(ending: &str) -> Vec<(String, String)> {
    let git = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .ok()
        .filter(|output| output.status.success() && !output.stdout.is_empty());
    let paths: Vec<String> = match git {
        Some(output) => String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect(),
        None => walk(&root()),
    };
    let mut found = Vec::new();
    for path in paths.into_iter().filter(|path| path.ends_with(ending)) {
        if let Ok(text) = fs::read_to_string(root().join(&path)) {
            found.push((path, text));
        }
    }
    assert!(!found.is_empty(), "no file ends with {ending}");
    found
}

fn walk(dir: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).expect("a folder that can be read").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let skipped = ["target", "node_modules", ".git", "data"].iter().any(|skipped| *skipped == name);
        if path.is_dir() && !skipped {
            paths.extend(walk(&path));
        } else if path.is_file() {
            paths.push(path.strip_prefix(root()).expect("walked from the root").to_string_lossy().into_owned());
        }
    }
    paths
}

#[test]
fn every_source_file_opens_by_saying_what_it_is() {
    let silent: Vec<_> = files(".rs").into_iter().filter(|(_, text)| !text.starts_with("//!")).collect();
    assert!(silent.is_empty(), "no //! at the top of {:?}", silent.iter().map(|(path, _)| path).collect::<Vec<_>>());
}

#[test]
fn no_file_has_a_name_that_says_nothing() {
    const SAY_NOTHING: [&str; 9] =
        ["utils", "util", "helpers", "handlers", "models", "service", "manager", "types", "misc"];
    for (path, _) in files(".rs") {
        let stem = Path::new(&path).file_stem().unwrap().to_string_lossy().into_owned();
        assert!(!SAY_NOTHING.contains(&stem.as_str()), "{path}: call it what it is");
    }
}

#[test]
fn every_link_of_a_document_leads_to_a_file() {
    for (path, text) in files(".md") {
        let folder = root().join(&path).parent().unwrap().to_owned();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            assert!(folder.join(target).exists(), "{path} links to {target}, which is not there");
        }
    }
}

/// Fails if a text has a line of more characters than `width`, but in tables and code. `text_of` gives what is text of
/// a line, or `None` where the whole line is something else.
fn no_line_is_longer(width: usize, ending: &str, text_of: impl Fn(&str) -> Option<&str>) {
    let mut long = Vec::new();
    for (path, text) in files(ending) {
        let mut in_code = false;
        for (n, line) in text.lines().enumerate() {
            let Some(text) = text_of(line.trim_start()) else {
                in_code = false;
                continue;
            };
            let is_fence = text.starts_with("```");
            in_code ^= is_fence;
            let may_be_long = in_code || is_fence || text.starts_with('|');
            if !may_be_long && line.chars().count() > width {
                long.push(format!("{path}:{}", n + 1));
            }
        }
    }
    assert!(long.is_empty(), "longer than {width} characters: {long:?}");
}

#[test]
fn no_line_of_a_document_is_longer_than_100_characters_but_in_tables_and_code() {
    no_line_is_longer(100, ".md", |line| Some(line));
}

#[test]
fn no_line_of_a_comment_is_longer_than_120_characters_but_in_tables_and_code() {
    no_line_is_longer(120, ".rs", |line| Some(line.strip_prefix("//")?.trim_start_matches(['/', '!', ' '])));
}

/// The endings of the sources whose comments are read, each with what begins a line of comment there.
const COMMENTS: [(&str, &[&str]); 4] =
    [(".rs", &["//"]), (".js", &["//", "/**", "* "]), (".mjs", &["//", "/**", "* "]), (".lua", &["--"])];

/// Words that send the reader elsewhere for the subject of a sentence.
const RIDDLES: [&str; 5] = ["See the module", "The same", "Whoever", " whoever ", "It is."];

/// The comments of a source, each the text of neighbouring lines that hold nothing but comment, with the number of its
/// first line. `marks` are the beginnings of such lines.
fn comments(text: &str, marks: &[&str]) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut last = None;
    for (n, line) in text.lines().enumerate() {
        let Some(comment) = marks.iter().find_map(|mark| line.trim_start().strip_prefix(mark)) else { continue };
        let words = comment.trim_start_matches(['/', '!']).trim_end_matches("*/").trim();
        match found.last_mut() {
            Some((_, whole)) if last.is_some_and(|last| last + 1 == n) => *whole += &format!(" {words}"),
            _ => found.push((n + 1, words.to_owned())),
        }
        last = Some(n);
    }
    found
}

#[test]
fn every_comment_can_be_understood_by_itself() {
    let mut riddles = Vec::new();
    for (ending, marks) in COMMENTS {
        for (path, text) in files(ending) {
            for (line, comment) in comments(&text, marks) {
                let is_short = comment.split_whitespace().count() <= 3 && !comment.starts_with('#');
                if is_short || RIDDLES.iter().any(|riddle| comment.contains(riddle)) {
                    riddles.push(format!("{path}:{line}: {comment}"));
                }
            }
        }
    }
    assert!(riddles.is_empty(), "name the subject, and say what it is or does:\n{}", riddles.join("\n"));
}

#[test]
fn every_test_in_the_list_of_hostile_clients_is_where_the_list_says() {
    let (path, list) = files("docs/hostile.md").remove(0);
    let folder = root().join(&path).parent().unwrap().to_owned();
    let link = |name: &str| {
        let target = list.lines().find_map(|line| line.strip_prefix(&format!("[{name}]: ")));
        target.unwrap_or_else(|| panic!("[{name}] leads nowhere")).to_owned()
    };
    let mut rows = 0;
    for line in list.lines().filter(|line| line.starts_with("| ") && !line.contains("| test |")) {
        // Where a cell holds no test, it says why there is none.
        let cell = line.split(" | ").nth(1).unwrap_or_else(|| panic!("no test in {line}"));
        let Some((name, tests)) = cell.strip_prefix('[').and_then(|cell| cell.split_once(']')) else {
            assert_eq!(cell, "–", "{line}");
            continue;
        };
        let text = fs::read_to_string(folder.join(link(name))).unwrap_or_else(|error| panic!("[{name}]: {error}"));
        for test in tests.split('`').skip(1).step_by(2) {
            assert!(text.contains(test), "{} has no {test}", link(name));
        }
        rows += 1;
    }
    assert!(rows > 20, "the list has rows: {rows}");
}

#[test]
fn the_hosted_ci_runs_every_part_of_the_tests() {
    let read = |path| fs::read_to_string(root().join(path)).expect("it is there");
    let (script, workflow) = (read("tests/run"), read(".github/workflows/ci.yml"));
    let list =
        script.split_once("\nall=(").and_then(|(_, rest)| rest.split_once(')')).expect("the list of all parts").0;
    let matrix = workflow.split_once("        parts:\n").and_then(|(_, rest)| rest.split_once("    steps:"));
    let run: BTreeSet<_> = matrix.expect("the parts that run side by side").0.split_whitespace().collect();
    let forgotten: Vec<_> = list.split_whitespace().filter(|part| !run.contains(part)).collect();
    assert!(forgotten.is_empty(), ".github/workflows/ci.yml runs none of {forgotten:?}");
}

#[test]
fn every_named_failpoint_is_passed_by_some_code_and_no_other_is() {
    let mut hit = BTreeSet::new();
    for (path, text) in files(".rs") {
        if path.contains("/src/") && !path.ends_with("failpoint.rs") {
            let calls = text.split("failpoint::hit(\"").skip(1);
            hit.extend(calls.filter_map(|rest| rest.split('"').next().map(str::to_owned)));
        }
    }
    let named: BTreeSet<String> = feedgate_common::failpoint::NAMES.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(hit, named);
}

/// The rooms of the gateway, the lowest first; rooms of equal rank stand together. A room is a folder or a file.
const ROOMS: [&[&str]; 7] = [
    &["around", "clock", "limits"],
    &["net"],
    &["auth", "protocol", "settings"],
    &["subscription"],
    &["node"],
    &["api", "connection", "console"],
    &["fuzzed", "serve"],
];

#[test]
fn a_room_of_the_gateway_imports_only_from_itself_and_from_rooms_below_it() {
    let rank = |room: &str| ROOMS.iter().position(|rooms| rooms.contains(&room));
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for (path, text) in files(".rs") {
        let Some(inside) = path.strip_prefix("gateway/src/").filter(|inside| *inside != "lib.rs") else { continue };
        let room = inside.split(['/', '.']).next().unwrap_or_default();
        let own = rank(room).unwrap_or_else(|| panic!("{path}: this room has no place in the order of rooms"));
        seen.insert(room.to_owned());
        for named in text.split("crate::").skip(1) {
            // What is no room stands in lib.rs, which is above all rooms. Braces hide which rooms a line imports from.
            let other = named.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            if other != room && rank(other).is_none_or(|other| other >= own) {
                wrong.push(format!("{path} imports {:?}", named.lines().next().unwrap_or_default()));
            }
        }
    }
    assert_eq!(seen.len(), ROOMS.concat().len(), "a room of the list is gone");
    assert!(wrong.is_empty(), "a room imports from above or beside it: {wrong:#?}");
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let circles = circles::circles(&files(".rs"));
    assert!(circles.is_empty(), "give what both sides need a file of its own: {circles:#?}");
}

/// The values of `key = '...'` in a list of mutants.
fn values<'a>(list: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    list.lines()
        .filter_map(move |line| line.strip_prefix(key)?.trim_start().strip_prefix("= "))
        .map(|value| value.trim_matches(['\'', '"']))
}

#[test]
fn every_mutant_names_a_test_that_exists() {
    let sources = files(".rs");
    let lists = files(".toml").into_iter().filter(|(path, _)| path.starts_with("tests/mutants/"));
    let mut mutants = 0;
    for (path, list) in lists {
        for fault in values(&list, "fault") {
            let file = fault.split(' ').next().unwrap_or_default();
            assert!(
                root().join("tests/faults").join(file).is_file(),
                "{path} names the fault {file:?}, which is nowhere"
            );
            mutants += 1;
        }
        for named in values(&list, "test") {
            let test = named.rsplit([' ', ':']).next().unwrap_or_default();
            let exists = sources.iter().any(|(_, source)| source.contains(&format!("fn {test}(")));
            assert!(!test.is_empty() && exists, "{path} names the test {test:?}, which is nowhere");
            mutants += 1;
        }
    }
    assert!(mutants > 100, "only {mutants} mutants were found");
}

#[test]
fn the_image_is_built_with_a_rust_that_every_crate_accepts() {
    let minor = |text: &str, before: &str| -> u32 {
        let after = &text[text.find(before).expect(before) + before.len()..];
        after.split(|c: char| !c.is_ascii_digit()).next().expect("a number").parse().expect("a number")
    };
    let (_, image) = files("deploy/Dockerfile").remove(0);
    let wanted = "rust-version = \"1.";
    let crates = files("Cargo.toml").into_iter().filter(|(_, text)| text.contains(wanted));
    let (path, least) = crates.map(|(path, text)| (path, minor(&text, wanted))).max_by_key(|of| of.1).expect("one");
    let given = minor(&image, "FROM rust:1.");
    assert!(given >= least, "deploy/Dockerfile builds with Rust 1.{given}, {path} needs 1.{least}");
}
