//! `feedgate check-config --against URL`: tells which settings of the files differ from those of a running server.

use std::process::ExitCode;

use anyhow::Context;
use feedgate_gateway::Shown;
use hyper::Method;
use serde::Deserialize;

use crate::change::{self, Change, Changes};
use crate::client::Client;
use crate::settings::Settings;
use crate::stdout::print;

/// The exit code if a reload takes all settings that differ.
const RELOAD: u8 = 3;

/// The exit code if a setting that differs needs a restart.
const RESTART: u8 = 4;

/// The answer of the server.
#[derive(Deserialize)]
struct Told {
    settings: Vec<Shown>,
}

/// Prints the settings that differ from those of the server at `url`, and whether the server needs a reload or a
/// restart to take them. Gives the exit code. Changes nothing.
pub(crate) async fn compare(settings: Settings, url: String, key: Option<String>) -> anyhow::Result<ExitCode> {
    let client = Client::at(&url, key, &settings.secrets_dir())?;
    let answer = client.call(Method::GET, "/v1/settings", None).await?;
    let told: Told = serde_json::from_str(&answer).context("the server does not tell its settings")?;
    let changes = change::between(&told.settings, &change::shown(&settings));
    print(&text(&changes))?;
    Ok(code(&changes))
}

fn code(changes: &Changes) -> ExitCode {
    match changes {
        Changes { restart, .. } if !restart.is_empty() => RESTART.into(),
        Changes { reload, .. } if !reload.is_empty() => RELOAD.into(),
        _ => ExitCode::SUCCESS,
    }
}

fn text(changes: &Changes) -> String {
    let sections = [("a reload takes:", &changes.reload), ("a restart is needed for:", &changes.restart)];
    let told = sections.into_iter().filter(|(_, changes)| !changes.is_empty());
    let told: Vec<String> = told
        .map(|(title, changes)| {
            [title.to_owned()].into_iter().chain(changes.iter().map(line)).collect::<Vec<_>>().join("\n")
        })
        .collect();
    if told.is_empty() { "no setting differs".to_owned() } else { told.join("\n") }
}

fn line(Change { name, before, after }: &Change) -> String {
    let value = |value: &Option<serde_json::Value>| value.as_ref().map_or("absent".to_owned(), ToString::to_string);
    format!("  {name}: {} (the server has {})", value(after), value(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_told_with_both_values_by_what_it_takes() {
        let change = |name: &str| Change { name: name.into(), before: Some(1.into()), after: None };
        let changes = |reload: &[&str], restart: &[&str]| Changes {
            reload: reload.iter().map(|name| change(name)).collect(),
            restart: restart.iter().map(|name| change(name)).collect(),
        };
        assert_eq!(text(&changes(&[], &[])), "no setting differs");
        let right =
            "a reload takes:\n  a: absent (the server has 1)\na restart is needed for:\n  b: absent (the server has 1)";
        assert_eq!(text(&changes(&["a"], &["b"])), right);
        let codes =
            [(&[][..], &[][..]), (&["a"], &[]), (&["a"], &["b"]), (&[], &["b"])].map(|(a, b)| code(&changes(a, b)));
        assert_eq!(codes, [ExitCode::SUCCESS, RELOAD.into(), RESTART.into(), RESTART.into()]);
    }
}
