//! The table of figures: a row without an attack, and a row for each attack.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures for the person who runs it")]

use feedgate_tests::load::{Report, Seen, milliseconds, quantile};

use crate::attack::Tally;

/// What was measured during one attack.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) seen: Seen,
    /// Processors that the server kept busy.
    pub(crate) cores: f64,
    /// The greatest resident memory of the server, in bytes.
    pub(crate) peak: u64,
    /// What came of the attacker's connections.
    pub(crate) ended: Tally,
}

/// All of them; the first is that without an attack.
#[derive(Default)]
pub(crate) struct Table(Vec<[f64; 4]>, Vec<String>);

impl Table {
    /// Reports a row and keeps it.
    pub(crate) fn add(&mut self, row: Row, report: &mut Report) {
        report.heading(row.name);
        let [p50, p99] = [0.5, 0.99].map(|share| milliseconds(quantile(row.seen.took.clone(), share)));
        let memory = row.peak as f64 / 1e6;
        let figures = [p50, p99, memory, row.cores];
        let names = [
            ("publish to device, p50", "ms"),
            ("publish to device, p99", "ms"),
            ("peak memory", "MB"),
            ("processor", "cores"),
        ];
        for ((what, unit), value) in names.into_iter().zip(figures) {
            report.figure(&format!("{}: {what}", row.name), value, unit);
        }
        let posts = row.seen.took.len() as u64;
        report.count(&format!("{}: posts", row.name), posts, "posts");
        report.count(&format!("{}: posts refused or lost", row.name), row.seen.failed, "posts");
        report.count(&format!("{}: attacker's connections", row.name), row.ended.opened, "connections");
        report.count(&format!("{}: refused or ended by the server", row.name), row.ended.refused, "connections");
        let [p50_peace, p99_peace, memory_peace, _] = *self.0.first().unwrap_or(&figures);
        self.1.push(format!(
            "| {} | {p50:.1} | {:.1} × | {p99:.1} | {:.1} × | {} of {posts} | {memory:.0} | {:.1} × | {:.2} |",
            row.name,
            p50 / p50_peace,
            p99 / p99_peace,
            row.seen.failed,
            memory / memory_peace,
            row.cores
        ));
        self.0.push(figures);
    }

    /// Prints all rows as Markdown.
    pub(crate) fn print(&self, report: &Report) {
        report.heading("beside no attack");
        println!("| attack | p50, ms | | p99, ms | | failed | memory, MB | | cores |");
        println!("|---|---|---|---|---|---|---|---|---|");
        self.1.iter().for_each(|line| println!("{line}"));
    }
}
