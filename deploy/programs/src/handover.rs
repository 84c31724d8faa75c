//! Gives the ports of this process over to a new program when this process gets SIGUSR2. The process then runs that
//! program.
//!
//! ```text
//!   SIGUSR2 ─▶ the program at the path of this one ─▶ does it take the settings? ─ no ─▶ the log says why; all goes on
//!      yes ─▶ last call: for a second, each answer ends its connection
//!          ─▶ nothing is accepted: the kernel keeps connections ─▶ sessions end ─▶ stores close ─▶ exec ─▶ accepts
//! ```
//!
//! Invariants: nothing stops before the new program has read the settings. From then on there is always a program: if
//! the new one cannot be executed, this one is executed again. The ports stay open throughout, so no connection is
//! refused.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use command_fds::{CommandFdExt, FdMapping};
use nix::sys::signal::{SigSet, Signal as Number};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use crate::passed::{BEGAN, Began, FIRST, Held};

/// The program that this process runs, even if there is another file at its path now.
const MYSELF: &str = "/proc/self/exe";

/// How long answers end their connections before connections are no longer accepted. So a client that keeps its
/// connection learns of it from an answer, and loses no request.
pub(crate) const LAST_CALL: Duration = Duration::from_secs(1);

/// How long the new program may take to read the settings.
const CHECKED_WITHIN: Duration = Duration::from_secs(10);

/// How often this process checks whether the new program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Asks for a hand-over.
pub(crate) struct Asked(Signal);

impl Asked {
    /// Makes SIGUSR2 an event from now on, which does not end the process.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let asked = signal(SignalKind::user_defined2())?;
        // A program that hands over blocks SIGUSR2 first. Now this program listens to the signal, and lets it through.
        only_usr2().thread_unblock().context("SIGUSR2 cannot be let through")?;
        Ok(Self(asked))
    }

    /// Waits until a hand-over is asked for, to a program that accepts the settings. Cancel safe.
    pub(crate) async fn next(&mut self, successor: &Successor) {
        loop {
            self.0.recv().await;
            let checked = successor.clone();
            let checked = tokio::task::spawn_blocking(move || checked.check()).await;
            match checked.map_err(anyhow::Error::from).and_then(|checked| checked) {
                Ok(()) => return,
                Err(error) => {
                    let why = crate::told(&error);
                    tracing::error!("nothing is handed over, and all goes on as it was: {why}");
                }
            }
        }
    }
}

fn only_usr2() -> SigSet {
    SigSet::from_iter([Number::SIGUSR2])
}

/// The program that takes over, with its command line.
#[derive(Debug, Clone)]
pub(crate) struct Successor {
    program: OsString,
    check: Vec<OsString>,
    start: Vec<OsString>,
}

impl Successor {
    /// The program at the path by which this process was started, with the same command line. `has_commands` says
    /// whether a command checks the settings, as for `feedgate`, and not a flag.
    pub(crate) fn of(has_commands: bool) -> Self {
        let mut line = std::env::args_os();
        let program = line.next().unwrap_or_else(|| MYSELF.into());
        let args: Vec<OsString> = line.collect();
        Self { program, check: check_line(has_commands, &args), start: start_line(&args) }
    }

    /// Lets the new program read its settings. Blocks until it has.
    fn check(&self) -> anyhow::Result<()> {
        let name = self.program.display();
        let mut command = self.command(&self.program, &self.check);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("{name} cannot be run"))?;
        let began = Instant::now();
        let ended = loop {
            match child.try_wait()? {
                Some(ended) => break ended,
                None if began.elapsed() < CHECKED_WITHIN => std::thread::sleep(LOOK_EVERY),
                None => {
                    child.kill()?;
                    child.wait()?;
                    bail!("{name} did not read its settings within {CHECKED_WITHIN:?}");
                }
            }
        };
        if ended.success() {
            return Ok(());
        }
        let mut said = String::new();
        child.stderr.take().expect("it is piped").read_to_string(&mut said)?;
        Err(anyhow!("{name} does not start ({ended}): {}", said.trim().replace("\n  ", "; ").replace('\n', " ")))
    }

    /// Replaces this program by the new one, or else by itself. Returns only if neither of the two can be executed.
    pub(crate) fn execute(&self, held: &[Held], began: Began) -> anyhow::Error {
        let began = began.executed();
        // A second SIGUSR2 would end the new program until it handles the signal.
        if let Err(error) = only_usr2().thread_block() {
            tracing::warn!(%error, "SIGUSR2 cannot be held back");
        }
        let error = self.execute_one(&self.program, held, began);
        tracing::error!("{} cannot be executed, so this program goes on: {error:#}", self.program.display());
        self.execute_one(OsStr::new(MYSELF), held, began).context("this program cannot be executed again")
    }

    fn execute_one(&self, program: &OsStr, held: &[Held], began: Began) -> anyhow::Error {
        let names: Vec<&str> = held.iter().map(|held| held.setting).collect();
        let mappings = held.iter().zip(FIRST..).map(|(held, child_fd)| {
            // These numbers are above all numbers that are given, so that no given descriptor is overwritten if the
            // execution fails.
            let above = FIRST + held_max(names.len());
            Ok(FdMapping { parent_fd: rustix::io::fcntl_dupfd_cloexec(&held.listener, above)?, child_fd })
        });
        let mappings = match mappings.collect::<rustix::io::Result<Vec<_>>>() {
            Ok(mappings) => mappings,
            Err(error) => return anyhow::Error::from(error).context("a listener cannot be copied"),
        };
        let mut command = self.command(program, &self.start);
        command.arg0(&self.program);
        command.env("LISTEN_PID", std::process::id().to_string());
        command.env("LISTEN_FDS", names.len().to_string()).env("LISTEN_FDNAMES", names.join(":"));
        command.env(BEGAN, began.to_string());
        match command.fd_mappings(mappings) {
            Ok(command) => command.exec().into(),
            Err(error) => error.into(),
        }
    }

    fn command(&self, program: &OsStr, args: &[OsString]) -> Command {
        let mut command = Command::new(program);
        command.args(args);
        for variable in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", BEGAN] {
            command.env_remove(variable);
        }
        command
    }
}

/// The count of listeners as a number of descriptors.
fn held_max(count: usize) -> i32 {
    i32::try_from(count).expect("a process has few ports")
}

/// The command line with which a program, with commands or without, reads the settings that this line gives, and then
/// ends.
fn check_line(has_commands: bool, args: &[OsString]) -> Vec<OsString> {
    let given = start_line(args);
    if !has_commands {
        return given.into_iter().chain(["--check-config".into()]).collect();
    }
    let flags = given.strip_prefix(&["serve".into()]).unwrap_or(&given);
    [OsString::from("check-config")].into_iter().chain(flags.iter().cloned()).collect()
}

/// The command line of the next process. Only the person who starts the first process accepts a loss, and only once.
fn start_line(args: &[OsString]) -> Vec<OsString> {
    args.iter().filter(|arg| *arg != "--accept-loss").cloned().collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn line(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn the_new_program_checks_the_settings_that_it_will_be_started_with() {
        for given in
            ["", "serve", "--data d --listen 127.0.0.1:1", "serve --accept-loss --listen 127.0.0.1:1 --data serve"]
        {
            let check = check_line(true, &line(given));
            let parsed = Cli::try_parse_from([OsString::from("feedgate")].into_iter().chain(check)).unwrap();
            let Some(Command::CheckConfig { serve, against: None, .. }) = parsed.command else { panic!("{given}") };
            let started = Cli::try_parse_from([OsString::from("feedgate")].into_iter().chain(line(given))).unwrap();
            let start = match started.command {
                Some(Command::Serve(start)) => start,
                _ => started.start,
            };
            let keys = |given: Vec<crate::layers::Given>| {
                given.iter().map(|g| (g.key.clone(), g.value.clone())).collect::<Vec<_>>()
            };
            assert_eq!(keys(serve.given()), keys(start.serve.given()), "{given}");
        }
        assert_eq!(check_line(false, &line("--node a")), line("--node a --check-config"));
    }

    #[test]
    fn a_loss_is_not_accepted_again_at_a_hand_over() {
        assert_eq!(start_line(&line("serve --accept-loss --data d")), line("serve --data d"));
    }
}
