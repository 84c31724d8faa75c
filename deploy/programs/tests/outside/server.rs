//! The real binary as a child process, on a free port and a directory of its own.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::Instant;

/// Nothing here takes a tenth of it on an idle machine.
const WITHIN: Duration = Duration::from_secs(60);

/// The command `feedgate`, to be run in `directory`.
pub(crate) fn feedgate(directory: &Path) -> Command {
    program(env!("CARGO_BIN_EXE_feedgate"), directory)
}

/// A program with nothing of the caller's environment that it would take as a setting.
pub(crate) fn program(path: &str, directory: &Path) -> Command {
    let mut command = Command::new(path);
    let ours = std::env::vars_os().map(|(name, _)| name).filter(|name| name.to_string_lossy().starts_with("FEEDGATE_"));
    for name in ours {
        command.env_remove(name);
    }
    command.current_dir(directory).stdin(Stdio::null());
    command
}

/// Runs a command of the program to its end.
pub(crate) fn run(directory: &Path, args: &[&str]) -> Output {
    feedgate(directory).args(args).output().unwrap()
}

/// The stdout of a command that must succeed.
pub(crate) fn ok(directory: &Path, args: &[&str]) -> String {
    let output = run(directory, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The exit code and stderr of a command that must fail.
pub(crate) fn refused(directory: &Path, args: &[&str]) -> (i32, String) {
    refusal(feedgate(directory).args(args))
}

/// The exit code and stderr of any command that must fail.
pub(crate) fn refusal(command: &mut Command) -> (i32, String) {
    let output = command.output().unwrap();
    assert!(!output.status.success(), "{command:?} succeeded: {}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{command:?}");
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// Waits for what has no other sign.
pub(crate) fn soon(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < WITHIN, "waited in vain until {what}");
        std::thread::yield_now();
    }
}

/// A child whose stdout is read line by line; killed when dropped.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    stderr: BufReader<ChildStderr>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = reader(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, lines, stderr }
    }

    /// The next line of stdout; `None` at its end.
    pub(crate) fn line(&self) -> Option<String> {
        match self.lines.recv_timeout(WITHIN) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no line within {WITHIN:?}"),
        }
    }

    /// Every line up to the one that contains `end`.
    pub(crate) fn lines_until(&self, end: &str) -> Vec<String> {
        let mut lines = Vec::new();
        while lines.last().is_none_or(|last: &String| !last.contains(end)) {
            match self.line() {
                Some(line) => lines.push(line),
                None => panic!("stdout ended before {end:?}: {lines:?}"),
            }
        }
        lines
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until a line of stderr contains `text`.
    pub(crate) fn says(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert!(self.stderr.read_line(&mut line).unwrap() > 0, "stderr ended before {text:?}");
        }
    }

    /// How it ended, and the rest of its stderr. Waits for the end.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        while self.line().is_some() {}
        let status = self.child.wait().unwrap();
        let mut stderr = String::new();
        self.stderr.read_to_string(&mut stderr).unwrap();
        (status, stderr)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn reader(stdout: ChildStdout) -> Receiver<String> {
    let (sender, lines) = sync_channel(1024);
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

/// A server that takes connections.
pub(crate) struct Server {
    pub(crate) running: Running,
    /// Lines of the banner.
    pub(crate) banner: Vec<String>,
}

impl Server {
    /// In `directory`, with its data in `directory/data`.
    pub(crate) fn start(directory: &Path) -> Self {
        Self::start_with(directory, &["--listen", "127.0.0.1:0"])
    }

    pub(crate) fn start_with(directory: &Path, args: &[&str]) -> Self {
        let mut command = feedgate(directory);
        command.args(args);
        Self::of(Running::start(command))
    }

    /// Waits until it serves.
    pub(crate) fn of(running: Running) -> Self {
        let banner = running.lines_until("Ctrl-C stops the server.");
        Self { running, banner }
    }

    /// The value of a line such as `HTTP API   http://…`.
    pub(crate) fn place(&self, what: &str) -> String {
        let line = self.banner.iter().find_map(|line| line.trim().strip_prefix(what));
        line.unwrap_or_else(|| panic!("the banner says nothing of {what}: {:?}", self.banner)).trim().to_owned()
    }

    /// The commands of the tour, as printed.
    pub(crate) fn tour(&self) -> Vec<String> {
        let after = self.banner.iter().skip_while(|line| !line.starts_with("A tour")).skip(1);
        after.filter(|line| line.starts_with("  ")).map(|line| line.trim().to_owned()).collect()
    }

    /// As Ctrl-C does it.
    pub(crate) fn stop(self) -> (ExitStatus, String) {
        self.running.signal(Signal::INT);
        self.running.end()
    }
}

/// A directory that is gone when dropped, by its real path.
pub(crate) fn directory() -> (tempfile::TempDir, PathBuf) {
    let made = tempfile::tempdir().unwrap();
    let path = made.path().canonicalize().unwrap();
    (made, path)
}
