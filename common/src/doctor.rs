//! What a look at a store finds: checks of its rows against each other, and what is outstanding.

use crate::Millis;

/// How many findings of one check are kept in words. All are counted.
pub const SHOWN: usize = 10;

/// What one check has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The rows or files that were checked, in words.
    pub name: &'static str,
    /// How many rows or files were looked at.
    pub looked_at: u64,
    /// How many of the rows or files are wrong.
    pub wrong: u64,
    /// What is wrong with the first wrong ones, in words; at most [`SHOWN`] findings.
    pub findings: Vec<String>,
}

impl Check {
    /// A check that has looked at nothing.
    pub fn of(name: &'static str) -> Self {
        Self { name, looked_at: 0, wrong: 0, findings: vec![] }
    }

    /// Counts one more row or file that was looked at.
    pub fn look(&mut self) {
        self.looked_at += 1;
    }

    /// Notes what is wrong, unless it is `right`.
    pub fn expect(&mut self, right: bool, finding: impl FnOnce() -> String) {
        if !right {
            self.find(finding());
        }
    }

    /// Notes what is wrong.
    pub fn find(&mut self, finding: String) {
        self.wrong += 1;
        if self.findings.len() < SHOWN {
            self.findings.push(finding);
        }
    }
}

/// All that was found in a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The checks in their order.
    pub checks: Vec<Check>,
    /// How many events are outstanding: work that the workers go on with. That is no fault.
    pub outstanding: u64,
    /// Since when the oldest event is outstanding, in Unix ms; `None` if there is no event, or if it was reopened.
    pub oldest: Option<Millis>,
}

impl Report {
    /// Whether no check has found anything.
    pub fn is_sound(&self) -> bool {
        self.checks.iter().all(|check| check.wrong == 0)
    }
}
