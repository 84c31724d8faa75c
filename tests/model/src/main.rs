//! Visits all states of configurations and prints what it found: `feedgate-model NAME…`, or `all`. `NAME+what=n` makes
//! one larger: `cargo run --release -p feedgate-model -- pull+records=3+sleeps=1`.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use feedgate_model::configurations::{ALL, named};
use feedgate_model::{Bounds, Fanout};
use stateright::{Checker, Model};

fn main() -> io::Result<ExitCode> {
    let names: Vec<String> = std::env::args().skip(1).flat_map(expanded).collect();
    let mut out = io::stdout().lock();
    let mut code = if names.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    for name in &names {
        match parse(name) {
            Ok(bounds) => {
                if !check(&mut out, name, bounds)? {
                    code = ExitCode::FAILURE;
                }
            }
            Err(wrong) => {
                writeln!(out, "{wrong}")?;
                code = ExitCode::FAILURE;
            }
        }
    }
    if names.is_empty() {
        let known: Vec<&str> = ALL.iter().map(|bounds| bounds.name).collect();
        writeln!(out, "name a configuration: all, {}", known.join(", "))?;
    }
    Ok(code)
}

fn expanded(name: String) -> Vec<String> {
    if name == "all" { ALL.iter().map(|bounds| bounds.name.to_owned()).collect() } else { vec![name] }
}

fn parse(text: &str) -> Result<Bounds, String> {
    let mut parts = text.split('+');
    let name = parts.next().unwrap_or_default();
    let mut bounds = named(name).ok_or_else(|| format!("there is no configuration {name:?}"))?;
    for part in parts {
        let (what, n) = part.split_once('=').ok_or_else(|| format!("{part:?} is not what=n"))?;
        let n: u8 = n.parse().map_err(|_| format!("{n:?} is not a number"))?;
        match what {
            "readers" => bounds.readers = n.clamp(1, 2).into(),
            "authors" => bounds.authors = n.clamp(1, 2).into(),
            "feeds" => bounds.feeds = n.clamp(1, 2).into(),
            "named_meanwhile" => bounds.named_meanwhile = n > 0,
            "executors" => bounds.executors = n.clamp(0, 2).into(),
            "follow_workers" => bounds.follow_workers = n.clamp(0, 2).into(),
            "takers" => bounds.takers = n.clamp(0, 2).into(),
            "rebuilds" => bounds.rebuilds = n.clamp(0, 2).into(),
            "devices" => bounds.devices = n.clamp(0, 2).into(),
            "backfill" => bounds.backfill = n.into(),
            "news_limit" => bounds.news_limit = n.max(1).into(),
            "keep" => bounds.keep = n.max(1).into(),
            "notes" => bounds.notes = n.into(),
            "records" => bounds.records = n,
            "edits" => bounds.edits = n > 0,
            "deletes" => bounds.deletes = n > 0,
            "narrowed" => bounds.narrowed = n,
            "moves" => bounds.moves = n,
            "replaced" => bounds.replaced = n,
            "own" => bounds.own = n > 0,
            "addressed" => bounds.addressed = n,
            "classes_changed" => bounds.classes_changed = n,
            "follows_changed" => bounds.follows_changed = n,
            "whole_past" => bounds.whole_past = n > 0,
            "remembers" => bounds.remembers = n > 0,
            "shields_changed" => bounds.shields_changed = n,
            "sleeps" => bounds.sleeps = n,
            "trims" => bounds.trims = n,
            "crashes" => bounds.crashes = n,
            "rollbacks" => bounds.rollbacks = n,
            _ => return Err(format!("{what:?} is not a bound that can be given here")),
        }
    }
    Ok(bounds)
}

fn check(out: &mut impl Write, name: &str, bounds: Bounds) -> io::Result<bool> {
    let begun = Instant::now();
    let model = Fanout::new(bounds);
    let checker = model.checker().threads(2).spawn_bfs().join();
    let found = checker.discoveries();
    let verdict = if found.is_empty() { "passes" } else { "FAILS" };
    let states = checker.unique_state_count();
    let depth = checker.max_depth();
    writeln!(out, "{name:<40} {verdict}  {states:>9} states, depth {depth:>2}, {:.1?}", begun.elapsed())?;
    for path in found.values() {
        writeln!(out, "  {:?}: {:?}", model.broken(path.last_state()), path.clone().into_actions())?;
    }
    Ok(found.is_empty())
}
