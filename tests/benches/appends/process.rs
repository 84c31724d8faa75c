//! What this process has used, from `/proc`.

use std::{fs, process};

/// CPU seconds of all threads, user and system.
pub(crate) struct Used(f64);

impl Used {
    pub(crate) fn now() -> Self {
        Self(cpu_seconds())
    }

    /// CPU seconds since then.
    pub(crate) fn since(&self) -> f64 {
        cpu_seconds() - self.0
    }
}

/// The kernel counts in ticks of 10 ms.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux shows every process its own");
    let (_, fields) = stat.rsplit_once(") ").expect("the name stands in parentheses");
    let ticks = |at: usize| fields.split(' ').nth(at).and_then(|n| n.parse::<u64>().ok()).expect("a count of ticks");
    (ticks(11) + ticks(12)) as f64 / 100.0
}

/// Resident memory in bytes.
pub(crate) fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux shows every process its own");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("every process has memory");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number of KiB") * 1024
}

/// The commit that was measured.
pub(crate) fn commit() -> String {
    let git = |words: &[&str]| {
        let output = process::Command::new("git").args(words).output().ok().filter(|o| o.status.success());
        output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
    };
    let changed = git(&["status", "--porcelain"]).is_none_or(|lines| !lines.is_empty());
    let commit = git(&["rev-parse", "HEAD"]).unwrap_or_else(|| "unknown".into());
    if changed { format!("{commit} and changes") } else { commit }
}
