//! The scripts of `tests/engines`, and waiting for what they start.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(5);

/// The command of a script in `tests/engines`.
pub(crate) fn script(name: &str) -> Command {
    Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join(name))
}

/// Runs a command to its end; its output, or an `Err` with what it had to say.
pub(crate) fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(format!("{command:?} ended with {}: {}{}", output.status, text(&output.stdout), text(&output.stderr)))
    }
}

/// Asks again and again until `ready` is true; panics with `seen` when it takes too long.
pub(crate) fn wait_until(what: &str, mut ready: impl FnMut() -> bool, seen: impl Fn() -> String) {
    let deadline = Instant::now() + PATIENCE;
    while !ready() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}\n{}", seen());
        thread::sleep(PAUSE);
    }
}
