//! Runs the schedule of a seed or of a file, and makes a schedule that fails as small as it can.

use std::fs;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// How much time may be spent to make a failing schedule smaller.
const PATIENCE: Duration = Duration::from_secs(20);

/// The seeds to try: the one that `FEEDGATE_SEED` names, or as many as `FEEDGATE_SEEDS` says, or `usual`.
///
/// # Panics
/// If they are no numbers.
pub fn seeds(usual: u64) -> Range<u64> {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(text.parse().unwrap_or_else(|_| panic!("{name}: {text:?} is no number")))
    };
    match number("FEEDGATE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("FEEDGATE_SEEDS").unwrap_or(usual),
    }
}

/// Runs `run` on the steps of a seed's schedule.
///
/// # Panics
/// If `run` panics. It first looks for the fewest steps with which `run` still panics, and prints these.
pub fn hold<S: Clone + Serialize>(seed: u64, steps: Vec<S>, run: impl Fn(&[S])) {
    let fails = |steps: &[S]| catch_unwind(AssertUnwindSafe(|| run(steps))).is_err();
    if !fails(&steps) {
        return;
    }
    let loud = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let least = shrunk(steps, fails);
    panic::set_hook(loud);
    eprintln!("FEEDGATE_SEED={seed} fails; so does FEEDGATE_SCHEDULE=<a file of these lines>:\n{}", told(&least));
    run(&least);
    panic!("FEEDGATE_SEED={seed} fails, but not always");
}

/// Takes steps out of a schedule that fails, more and more of them, as long as what is left still fails.
fn shrunk<S: Clone>(mut steps: Vec<S>, fails: impl Fn(&[S]) -> bool) -> Vec<S> {
    let started = Instant::now();
    let mut chunk = steps.len().div_ceil(2);
    while chunk > 0 && started.elapsed() < PATIENCE {
        let (mut at, before) = (0, steps.len());
        while at < steps.len() && started.elapsed() < PATIENCE {
            let fewer = [&steps[..at], &steps[(at + chunk).min(steps.len())..]].concat();
            if fails(&fewer) {
                steps = fewer;
            } else {
                at += chunk;
            }
        }
        // A pass of single steps may make room for another.
        if chunk > 1 || steps.len() == before {
            chunk /= 2;
        }
    }
    steps
}

/// The schedule in the file that the environment names by `variable`, one step a line, if it names one.
///
/// # Panics
/// If the file holds no schedule.
pub fn given<S: DeserializeOwned>(variable: &str) -> Option<Vec<S>> {
    let path = std::env::var_os(variable)?;
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{variable}: {path:?}: {error}"));
    let step = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line:?} is no step: {error}"));
    Some(text.lines().map(step).collect())
}

/// The schedule as such a file holds it.
fn told<S: Serialize>(steps: &[S]) -> String {
    steps.iter().map(|step| serde_json::to_string(step).expect("plain data") + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_what_it_takes() {
        let steps: Vec<u32> = (0..100).collect();
        assert_eq!(shrunk(steps, |part| part.contains(&17) && part.contains(&63)), [17, 63]);
    }
}
