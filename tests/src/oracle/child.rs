//! A server in a process of its own, which may be killed at any moment, and the parent that starts it again.
//!
//! ```text
//!   the test ── one Ask, a line ──▶ child: stores on disk, a worker, a node
//!            ◀─ its Answer, a line ─
//!            ◀─ nothing: it was killed ── start it again, ask again
//! ```
//!
//! Devices live with the test and keep what they have seen; all else is what the disk kept.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use feedgate_common::{DisplayKey, Millis, Position};
use serde::{Deserialize, Serialize};

use super::device::{Changes, Line, Look, Page, Serves};
use super::history::{Inbox, Op, User};

/// What a child is asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Ask {
    /// To accept this, at this time.
    Write(Op, Millis),
    /// To answer as [`Serves::changes`] does.
    Changes(Inbox, Position, usize),
    /// To answer as [`Serves::page`] does.
    Page(Inbox, Option<DisplayKey>, usize, Look),
    /// To answer as [`Serves::lines`] does.
    Lines(User),
    /// To drop an inbox.
    Sleep(Inbox),
    /// To answer when nothing is outstanding and the node has heard of everything.
    Settle,
}

/// What a child answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Whether it was accepted.
    Accepted(bool),
    /// The answer to [`Ask::Changes`].
    Changes(Changes),
    /// The answer to [`Ask::Page`].
    Page(Page),
    /// The answer to [`Ask::Lines`].
    Lines(Vec<Line>),
    /// The work that [`Ask::Sleep`] or [`Ask::Settle`] asked for is done.
    Done,
}

/// A child, and who starts it again.
pub struct Survivor {
    program: PathBuf,
    dir: PathBuf,
    /// Whether the next child is to let follows show the whole past.
    whole_past: AtomicBool,
    running: Mutex<Option<Running>>,
    deaths: Mutex<BTreeMap<String, u64>>,
}

struct Running {
    process: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// The failpoint it is to die at.
    armed: Option<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // A child that has died already is only waited for.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

impl Running {
    fn start((program, dir, whole_past): (&Path, &Path, bool), armed: Option<String>) -> Self {
        let mut command = Command::new(program);
        command
            .arg(dir)
            .args(whole_past.then_some("all"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .env_remove("FEEDGATE_FAILPOINT");
        if let Some(failpoint) = &armed {
            command.env("FEEDGATE_FAILPOINT", failpoint);
        }
        let mut process = command.spawn().expect("the child starts");
        let asks = process.stdin.take().expect("piped");
        let answers = BufReader::new(process.stdout.take().expect("piped"));
        Self { process, asks, answers, armed }
    }

    /// `None`: it is dead.
    fn ask(&mut self, ask: &Ask) -> Option<Answer> {
        let mut line = serde_json::to_string(ask).expect("plain data") + "\n";
        self.asks.write_all(line.as_bytes()).ok()?;
        line.clear();
        self.answers.read_line(&mut line).ok()?;
        line.ends_with('\n').then(|| serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}")))
    }
}

impl Survivor {
    /// A child that runs `program` over the stores in `dir`. It is started when it is first asked.
    pub fn new(program: impl Into<PathBuf>, dir: &Path) -> Self {
        Self {
            program: program.into(),
            dir: dir.to_owned(),
            whole_past: AtomicBool::default(),
            running: Mutex::default(),
            deaths: Mutex::default(),
        }
    }

    /// Kills it wherever it stands; from now on a follow shows the whole past, or the newest of it.
    pub fn change(&self, whole_past: bool) {
        self.whole_past.store(whole_past, Ordering::Relaxed);
        self.kill(None);
    }

    fn start(&self, armed: Option<String>) -> Running {
        Running::start((&self.program, &self.dir, self.whole_past.load(Ordering::Relaxed)), armed)
    }

    /// Kills it wherever it stands; the next one dies at `failpoint`, written as `FEEDGATE_FAILPOINT` is.
    pub fn kill(&self, failpoint: Option<String>) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.take().is_some() {
            self.died("anywhere");
        }
        *running = Some(self.start(failpoint));
    }

    /// Asks until there is an answer; how often it had died meanwhile.
    ///
    /// # Panics
    /// If it dies of anything but SIGKILL.
    pub fn ask(&self, ask: &Ask) -> (Answer, u64) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let mut deaths = 0;
        loop {
            let child = running.get_or_insert_with(|| self.start(None));
            if let Some(answer) = child.ask(ask) {
                return (answer, deaths);
            }
            let status = child.process.wait().expect("a child can be waited for");
            assert_eq!(status.signal(), Some(9), "asked {ask:?}, the child ended by itself: {status}");
            let armed = child.armed.take().expect("nobody else kills it");
            self.died(armed.split(':').next().unwrap_or_default());
            deaths += 1;
            *running = None;
        }
    }

    /// How often the child was killed, by failpoint.
    pub fn deaths(&self) -> BTreeMap<String, u64> {
        self.deaths.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn died(&self, at: &str) {
        *self.deaths.lock().unwrap_or_else(PoisonError::into_inner).entry(at.to_owned()).or_default() += 1;
    }
}

#[async_trait]
impl Serves for Survivor {
    async fn changes(&self, inbox: Inbox, after: Position, limit: usize) -> Changes {
        match self.ask(&Ask::Changes(inbox, after, limit)).0 {
            Answer::Changes(changes) => changes,
            other => unreachable!("a read was answered {other:?}"),
        }
    }

    async fn page(&self, inbox: Inbox, before: Option<DisplayKey>, limit: usize, look: Look) -> Page {
        match self.ask(&Ask::Page(inbox, before, limit, look)).0 {
            Answer::Page(page) => page,
            other => unreachable!("a page was answered {other:?}"),
        }
    }

    async fn lines(&self, user: User) -> Vec<Line> {
        match self.ask(&Ask::Lines(user)).0 {
            Answer::Lines(lines) => lines,
            other => unreachable!("lines were answered {other:?}"),
        }
    }
}
