//! What was measured: a line each as it becomes known, and all of it as JSON at the end if asked.

use std::path::Path;

use serde_json::{Map, Value, json};

/// See the module.
#[derive(Default)]
pub(crate) struct Report(Map<String, Value>);

impl Report {
    /// A figure. Three significant digits are more than such a measurement bears.
    pub(crate) fn figure(&mut self, name: &str, value: f64, unit: &str) {
        let digits = (2.0 - value.abs().max(1e-9).log10().floor()).clamp(0.0, 6.0) as usize;
        println!("{name}: {value:.digits$} {unit}");
        self.0.insert(name.to_owned(), json!({ "value": value, "unit": unit }));
    }

    /// A count.
    pub(crate) fn count(&mut self, name: &str, value: u64, unit: &str) {
        println!("{name}: {value} {unit}");
        self.0.insert(name.to_owned(), json!({ "value": value, "unit": unit }));
    }

    /// Words.
    pub(crate) fn text(&mut self, name: &str, value: &str) {
        println!("{name}: {value}");
        self.0.insert(name.to_owned(), json!(value));
    }

    /// A heading, for people.
    pub(crate) fn heading(&self, words: &str) {
        println!("\n# {words}");
    }

    /// All of it into a file.
    pub(crate) fn write(self, path: &Path) -> anyhow::Result<()> {
        Ok(std::fs::write(path, serde_json::to_string_pretty(&Value::Object(self.0))? + "\n")?)
    }
}
