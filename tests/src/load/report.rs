//! The report of a benchmark: prints each figure as it becomes known, and writes all of them as JSON if asked.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures for the person who runs it")]

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::{Map, Value, json};

/// The figures of one benchmark run, by name.
#[derive(Default)]
pub struct Report(Map<String, Value>);

impl Report {
    /// A figure. Three significant digits are more than such a measurement bears.
    pub fn figure(&mut self, name: &str, value: f64, unit: &str) {
        let digits = (2.0 - value.abs().max(1e-9).log10().floor()).clamp(0.0, 6.0) as usize;
        println!("{name}: {value:.digits$} {unit}");
        self.0.insert(name.to_owned(), json!({ "value": value, "unit": unit }));
    }

    /// Adds a count, which is a whole number, with its unit.
    pub fn count(&mut self, name: &str, value: u64, unit: &str) {
        println!("{name}: {value} {unit}");
        self.0.insert(name.to_owned(), json!({ "value": value, "unit": unit }));
    }

    /// Adds a text, such as a commit or a target.
    pub fn text(&mut self, name: &str, value: &str) {
        println!("{name}: {value}");
        self.0.insert(name.to_owned(), json!(value));
    }

    /// A heading, for people.
    pub fn heading(&self, words: &str) {
        println!("\n# {words}");
    }

    /// What was measured: the binaries that the caller brought, or else what stands checked out; and how to run `bench`
    /// again.
    pub fn origin(&mut self, bench: &str, brought: Option<&Path>) {
        match brought {
            // The commit of brought binaries is known only to the user who brings them.
            Some(brought) => self.text("binaries", &brought.display().to_string()),
            None => self.text("commit", &commit()),
        }
        self.text("command", &command(bench));
    }

    /// Ends the report of `bench`, which began at `started` with this load average, with what was measured. Writes all
    /// of it as JSON, if there is a file for it.
    pub fn finish(
        mut self,
        bench: &str,
        (started, load): (Instant, &str),
        brought: Option<&Path>,
        json: Option<&Path>,
    ) -> anyhow::Result<()> {
        self.heading("this run");
        self.figure("seconds", started.elapsed().as_secs_f64(), "s");
        self.text("load average before, 1 min", load);
        self.origin(bench, brought);
        json.map_or(Ok(()), |path| self.write(path))
    }

    /// Writes the whole report into a file, as JSON.
    pub fn write(self, path: &Path) -> anyhow::Result<()> {
        Ok(std::fs::write(path, serde_json::to_string_pretty(&Value::Object(self.0))? + "\n")?)
    }
}

/// What to say to run this again.
fn command(bench: &str) -> String {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let ours = if words.is_empty() { String::new() } else { format!(" -- {}", words.join(" ")) };
    format!("cargo bench -p feedgate-tests --bench {bench}{ours}")
}

/// What stands checked out, with a `+` if it was changed since.
fn commit() -> String {
    let git = |words: &[&str]| {
        let output = Command::new("git").args(words).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    match (git(&["rev-parse", "HEAD"]), git(&["status", "--porcelain"])) {
        (Some(head), Some(changes)) if changes.is_empty() => head,
        (Some(head), _) => head + "+",
        (None, _) => "unknown".to_owned(),
    }
}
