//! Reads the settings from several sources, each of which overrides the one before it.
//!
//! ```text
//!   defaults ◀─ TOML file (--config) ◀─ FEEDGATE_* environment ◀─ flags
//! ```
//!
//! Invariants: nothing unknown is accepted silently (a misspelt key is an error that names the nearest known key). All
//! errors are told at once, each with its source. No error repeats the value of a URL, which may hold a password.
//!
//! `gateway.batch` of the file is `FEEDGATE_GATEWAY_BATCH` in the environment, and `feeds.likes.cap` is
//! `FEEDGATE_FEEDS_LIKES_CAP`: the name of a feed that no file names is taken to be in lower case. A URL may also be
//! the content of a file: `archive_url_file` names one for `archive_url`, in every layer. Variables that Kubernetes
//! gives for a Service whose name starts with `feedgate` are ignored.

mod service_links;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use toml::{Table, Value};

use self::service_links::is_service_link;
use crate::reach;
use crate::settings::{Feed, Settings};

/// The prefix of our variables in the environment.
const PREFIX: &str = "FEEDGATE_";

/// Variables with our prefix that are not settings: the command line reads them.
const NOT_SETTINGS: [&str; 6] =
    ["FEEDGATE_CONFIG", "FEEDGATE_URL", "FEEDGATE_KEY", reach::CA, reach::CERTIFICATE, reach::CERTIFICATE_KEY];

/// The section whose keys contain names that the operator chooses, such as `feeds.likes.cap`.
const FEEDS: &str = "feeds.";

/// Stands for the name of a feed in an error that proposes a key when no name is known.
const ANY_FEED: &str = "NAME";

/// The end of a key that holds a URL; the next constant is appended to it to name a file that holds the URL.
const URL: &str = "_url";
const FILE: &str = "_file";

/// The variable that only builds with debug assertions read: see [`feedgate_common::failpoint`].
const FAILPOINT: Option<&str> = if cfg!(debug_assertions) { Some("FEEDGATE_FAILPOINT") } else { None };

/// One value that a source gives.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    /// The source for errors: the file, the variable or the flag.
    pub(crate) source: String,
    /// The key with dots, such as `gateway.batch`.
    pub(crate) key: String,
    /// The value, which may still be of the wrong type.
    pub(crate) value: Value,
}

/// Whether the variable with this name is meant as a setting.
pub(crate) fn is_setting(name: &str) -> bool {
    name.starts_with(PREFIX) && !NOT_SETTINGS.contains(&name)
}

/// The settings of all layers together, or all that is wrong with them.
pub(crate) fn settings(
    file: Option<&Path>,
    environment: impl Iterator<Item = (String, String)>,
    flags: Vec<Given>,
) -> Result<Settings, Vec<String>> {
    let mut problems = Vec::new();
    let file = file.map_or_else(Vec::new, |path| of_file(path, &mut problems));
    layered(file, environment, flags, problems)
}

/// The settings of the values that the layers give. `problems` holds what is known to be wrong already.
fn layered(
    file: Vec<Given>,
    environment: impl Iterator<Item = (String, String)>,
    flags: Vec<Given>,
    mut problems: Vec<String>,
) -> Result<Settings, Vec<String>> {
    let given_to_us = |(name, value): &(String, String)| !is_service_link(name, value);
    let environment: Vec<(String, String)> = environment.filter(given_to_us).collect();
    let mut known = known();
    know_feeds(&mut known, &file, &environment);
    let environment = environment.into_iter();
    let environment = of_environment(environment, &known, &mut problems);
    problems.extend([&file, &environment].into_iter().flat_map(|layer| twice(layer)));

    let mut merged = table(&Settings::default());
    for one in [file, environment, flags].into_iter().flatten() {
        if let Err(problem) = read_url(one).and_then(|one| put(&mut merged, &known, one)) {
            problems.push(problem);
        }
    }
    let settings: Settings = merged.try_into().map_err(|e: toml::de::Error| vec![e.message().to_owned()])?;
    problems.extend(settings.problems());
    if problems.is_empty() { Ok(settings) } else { Err(problems) }
}

/// Every key with its default, except those of named feeds.
fn known() -> BTreeMap<String, Value> {
    leaves("", &table(&Settings::default())).collect()
}

/// Adds the keys of the feeds that any source names. A variable belongs to a feed of the file if the names match.
fn know_feeds(known: &mut BTreeMap<String, Value>, file: &[Given], environment: &[(String, String)]) {
    let in_file = file.iter().filter_map(|given| given.key.strip_prefix(FEEDS)?.split('.').next());
    known.extend(in_file.flat_map(of_feed));
    let defaults = feed_defaults();
    for (given, _) in environment {
        let feed = given.strip_prefix(&variable(FEEDS)).unwrap_or_default();
        let name = defaults.keys().find_map(|key| feed.strip_suffix(&format!("_{}", key.to_uppercase())));
        let Some(name) = name.filter(|name| !name.is_empty()) else { continue };
        if !known.keys().any(|known| variable(known) == *given) {
            known.extend(of_feed(&name.to_lowercase()));
        }
    }
}

fn feed_defaults() -> Table {
    Table::try_from(Feed::default()).expect("a feed's settings are a TOML table")
}

/// The keys of a feed of this name with their defaults.
fn of_feed(name: &str) -> impl Iterator<Item = (String, Value)> + use<> {
    let section = format!("{FEEDS}{name}");
    feed_defaults().into_iter().map(move |(key, value)| (format!("{section}.{key}"), value))
}

/// Every setting that is no secret, under its key with dots. URLs of stores are shown without any part that may be a
/// password.
pub(crate) fn values(settings: &Settings) -> BTreeMap<String, Value> {
    leaves("", &table(settings)).filter(|(_, value)| !value.is_table()).collect()
}

/// The settings with these values under their keys with dots. The values must be valid for these keys.
pub(crate) fn with_values(settings: &Settings, values: impl Iterator<Item = (String, Value)>) -> Settings {
    let mut table = table(settings);
    values.for_each(|(key, value)| *slot(&mut table, &key) = value);
    let merged: Settings = table.try_into().expect("each value comes from settings");
    // A table has no passwords.
    let (archive_url, inbox_url) = (settings.archive_url.clone(), settings.inbox_url.clone());
    Settings { archive_url, inbox_url, bus_url: settings.bus_url.clone(), ..merged }
}

fn table(settings: &Settings) -> Table {
    Table::try_from(settings).expect("settings are a TOML table")
}

/// The values of a table under their keys with dots.
fn leaves<'a>(prefix: &str, table: &'a Table) -> Box<dyn Iterator<Item = (String, Value)> + 'a> {
    let prefix = prefix.to_owned();
    Box::new(table.iter().flat_map(move |(name, value)| {
        let key = format!("{prefix}{name}");
        match value {
            Value::Table(inner) if !inner.is_empty() => leaves(&format!("{key}."), inner),
            leaf => Box::new(std::iter::once((key, leaf.clone()))),
        }
    }))
}

fn of_file(path: &Path, problems: &mut Vec<String>) -> Vec<Given> {
    let source = path.display().to_string();
    let read = std::fs::read_to_string(path).map_err(|e| format!("{source} cannot be read: {e}"));
    match read.and_then(|text| of_text(&source, &text)) {
        Ok(given) => given,
        Err(problem) => {
            problems.push(problem);
            Vec::new()
        }
    }
}

/// The values in a text of TOML, or why the text is no TOML.
fn of_text(source: &str, text: &str) -> Result<Vec<Given>, String> {
    let table = text.parse::<Table>().map_err(|error| {
        // The `Display` of the error shows the line, which may hold a password.
        let line = 1 + error.span().map_or(0, |span| text[..span.start].matches('\n').count());
        format!("{source} is not TOML: line {line}: {}", error.message())
    })?;
    Ok(leaves("", &table).map(|(key, value)| Given { source: source.to_owned(), key, value }).collect())
}

fn of_environment(
    environment: impl Iterator<Item = (String, String)>,
    known: &BTreeMap<String, Value>,
    problems: &mut Vec<String>,
) -> Vec<Given> {
    let files = known.keys().filter(|key| key.ends_with(URL)).map(|key| format!("{key}{FILE}"));
    // A section has no variable, only its keys have.
    let values = known.iter().filter(|(_, value)| !value.is_table()).map(|(key, _)| key.clone());
    let variables: BTreeMap<String, String> = values.chain(files).map(|key| (variable(&key), key)).collect();
    let mut given = Vec::new();
    for (name, text) in environment.filter(|(name, _)| name.starts_with(PREFIX)) {
        let mut meant = known.keys().filter(|key| variable(key) == name);
        if let (Some(one), Some(other)) = (meant.next(), meant.next()) {
            problems.push(format!("{name} may mean {one} or {other}; give both in a file"));
            continue;
        }
        match variables.get(&name) {
            Some(key) => {
                let value = match known.get(key) {
                    Some(like) => typed(text, like),
                    None => Value::String(text),
                };
                given.push(Given { source: name, key: key.clone(), value });
            }
            None if NOT_SETTINGS.contains(&name.as_str()) || FAILPOINT == Some(name.as_str()) => {}
            None => {
                let of_feed = of_feed(ANY_FEED).map(|(key, _)| variable(&key));
                problems.push(unknown("variable", &name, variables.keys().cloned().chain(of_feed)));
            }
        }
    }
    given
}

fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace(['.', '-'], "_").to_uppercase())
}

/// Reads the text of a variable as the kind of value that its key has. If the text is not of that kind, gives it as
/// text, which [`put`] then refuses.
fn typed(text: String, like: &Value) -> Value {
    match like {
        Value::Integer(_) => text.parse().map(Value::Integer).unwrap_or(Value::String(text)),
        Value::Float(_) => text.parse().map(Value::Float).unwrap_or(Value::String(text)),
        Value::Boolean(_) => text.parse().map(Value::Boolean).unwrap_or(Value::String(text)),
        Value::Array(_) => {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            Value::Array(parts.map(|part| Value::String(part.to_owned())).collect())
        }
        Value::String(_) | Value::Datetime(_) | Value::Table(_) => Value::String(text),
    }
}

/// An error for each URL that one layer gives both directly and by a file.
fn twice(layer: &[Given]) -> impl Iterator<Item = String> {
    let has = |key: &str| layer.iter().any(|given| given.key == key);
    let files = layer.iter().filter_map(|given| Some((given, given.key.strip_suffix(FILE)?)));
    files.filter(move |(_, key)| key.ends_with(URL) && has(key)).map(|(given, key)| {
        format!("{}: {key} and {} must not both be given; take one of them out", given.source, given.key)
    })
}

/// If the key names a file with a URL, such as `archive_url_file`, reads the URL from that file; gives other values
/// unchanged.
fn read_url(given: Given) -> Result<Given, String> {
    let (Some(key), Value::String(path)) = (given.key.strip_suffix(FILE).filter(|k| k.ends_with(URL)), &given.value)
    else {
        return Ok(given);
    };
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{}: {}: {path} cannot be read: {error}", given.source, given.key))?;
    Ok(Given { source: path.clone(), key: key.to_owned(), value: Value::String(text.trim().to_owned()) })
}

/// Sets one value, if the settings are still valid with it.
fn put(merged: &mut Table, known: &BTreeMap<String, Value>, given: Given) -> Result<(), String> {
    let Given { source, key, value } = given;
    let Some(default) = known.get(&key) else {
        let section = format!("{key}.");
        if value == Value::Table(Table::new()) && known.keys().any(|known| known.starts_with(&section)) {
            slot(merged, &key);
            return Ok(());
        }
        // A line of TOML belongs to the section above it. An operator who adds a line at the end may not think of that.
        if let Some((section, name)) = key.rsplit_once('.')
            && known.get(name).is_some_and(|default| !default.is_table())
        {
            return Err(format!("{source}: {name} stands below [{section}]; it belongs above the first section"));
        }
        if value.is_table() {
            let sections = known.keys().filter_map(|known| Some(known.rsplit_once('.')?.0.to_owned()));
            return Err(format!("{source}: {}", unknown("section", &key, sections.chain(["feeds".to_owned()]))));
        }
        let of_feed = of_feed(ANY_FEED).map(|(key, _)| key);
        return Err(format!("{source}: {}", unknown("key", &key, known.keys().cloned().chain(of_feed))));
    };
    let mut tried = merged.clone();
    *slot(&mut tried, &key) = value.clone();
    match tried.clone().try_into::<Settings>() {
        Ok(_) => {
            *merged = tried;
            Ok(())
        }
        Err(_) => {
            let is = if key.ends_with(URL) { value.type_str().to_owned() } else { value.to_string() };
            Err(format!("{source}: {key} must be {}, it is {is}", expected(&key, default)))
        }
    }
}

/// The place of a value. If the value belongs to a named feed that has no values yet, the table of that feed is made.
fn slot<'a>(table: &'a mut Table, key: &str) -> &'a mut Value {
    let (section, rest) = key.split_once('.').map_or((key, None), |(section, rest)| (section, Some(rest)));
    let value = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
    match (rest, value) {
        (None, value) => value,
        (Some(rest), Value::Table(inner)) => slot(inner, rest),
        (Some(_), _) => unreachable!("only a table has keys below it"),
    }
}

fn expected(key: &str, default: &Value) -> String {
    match default {
        _ if key.ends_with("listen") => format!("an IP address and a port, such as {default}"),
        _ if key.ends_with("client_address") => {
            r#""connection", "forwarded", "x-forwarded-for" or "proxy-protocol""#.to_owned()
        }
        _ if key == "backfill" => format!("a whole number in range, such as {default}, or \"all\""),
        _ if key == "log_format" => r#""text" or "json""#.to_owned(),
        _ if key == "comments.visible" => r#""all" or "mutual""#.to_owned(),
        Value::Integer(n) => format!("a whole number in range, such as {n}"),
        Value::Float(n) => format!("a number, such as {n:?}"),
        Value::Array(_) => "a list of strings".to_owned(),
        Value::Boolean(_) => "true or false".to_owned(),
        Value::Table(_) => "a section".to_owned(),
        Value::String(_) | Value::Datetime(_) => format!("a string, such as {default}"),
    }
}

fn unknown(what: &str, name: &str, known: impl Iterator<Item = String>) -> String {
    // A key that stands in the wrong section is nearer to the same key of another one than to any other key.
    let last = |key: &str| key.rsplit('.').next().map(str::to_owned);
    let far = |candidate: &String| (last(candidate) != last(name), distance(name, candidate));
    let nearest = known.min_by_key(far).expect("there are settings");
    format!("there is no {what} {name}; the nearest is {nearest}")
}

/// How many characters must be inserted, removed or replaced to make `b` from `a`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// The fuzz target: lines such as `FEEDGATE_BACKFILL=5` are variables, and the others are the file. Settings that are
/// accepted are printed as a file that means the same; those that are refused are so with words.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzzed(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    // Such a setting names a file to read.
    if text.to_ascii_lowercase().contains(FILE) {
        return;
    }
    let variable = |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    let (variables, lines): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with(PREFIX));
    let read = |text: &str, variables: &[&str]| {
        let file = of_text("feedgate.toml", text).map_err(|problem| vec![problem])?;
        layered(file, variables.iter().filter_map(|line| variable(line)), vec![], vec![])
    };
    match read(&lines.join("\n"), &variables) {
        Ok(settings) => {
            let print = |settings: &Settings| toml::to_string(settings).expect("settings are a TOML table");
            let printed = print(&settings);
            let again = read(&printed, &[]).unwrap_or_else(|problems| panic!("{problems:?} in\n{printed}"));
            assert_eq!(print(&again), printed);
        }
        Err(problems) => {
            assert!(!problems.is_empty() && problems.iter().all(|problem| !problem.trim().is_empty()), "{problems:?}");
        }
    }
}
