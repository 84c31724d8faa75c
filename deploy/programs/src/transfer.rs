//! The commands `import` and `export`: they move whole stores, with a line of NDJSON for each thing that happened.
//!
//! ```text
//!   import   file ─▶ some thousand lines ─▶ POST /v1/import ─▶ refused lines by number, a progress bar
//!   export   GET /v1/export ─▶ a piece up to its cursor ─▶ stdout
//! ```
//!
//! Invariants: a transfer that breaks off is resumed from the line or the cursor that it had reached. No part of a
//! piece is ever printed alone.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use hyper::body::Bytes;
use serde::Deserialize;
use tokio::time::Instant;
use tokio::time::sleep;

use crate::cli::Server;
use crate::client::{ApiError, Client, query, strange};

/// The most lines in one request.
const LINES: usize = 5000;

/// About how many bytes one request holds at most.
const BYTES: usize = 4 * 1024 * 1024;

/// How often a request is tried while the server is away.
const TRIES: u32 = 6;

/// The width of the bar, in characters.
const BAR: usize = 30;

/// The least time between two draws of the bar.
const REDRAWN: Duration = Duration::from_millis(200);

/// One line of the server's report.
#[derive(Deserialize)]
struct Report {
    line: Option<u64>,
    refused: Option<serde_json::Value>,
    resume_from_line: Option<u64>,
    stopped: Option<serde_json::Value>,
    done: Option<bool>,
    #[serde(default)]
    lines: u64,
    #[serde(default)]
    new: u64,
    #[serde(default)]
    unchanged: u64,
}

/// The counts of an import's lines.
#[derive(Debug, Default, PartialEq, Eq)]
struct Totals {
    new: u64,
    unchanged: u64,
    refused: u64,
}

/// Sends the lines of a file, or of stdin for `-`, from line `from_line` on.
pub(crate) async fn import(file: &Path, from_line: u64, server: Server) -> anyhow::Result<()> {
    let stdin = file.as_os_str() == "-";
    let (mut lines, bytes): (Box<dyn BufRead>, _) = if stdin {
        (Box::new(BufReader::new(std::io::stdin())), None)
    } else {
        let opened = File::open(file).with_context(|| format!("{} cannot be opened", file.display()))?;
        let bytes = opened.metadata().ok().map(|meta| meta.len());
        (Box::new(BufReader::new(opened)), bytes)
    };
    let client = Client::find(server)?;
    let (mut bar, mut totals) = (Bar::new(bytes), Totals::default());
    let mut next = 1;
    loop {
        let mut part = Part::default();
        while part.lines < LINES && part.text.len() < BYTES {
            let before = part.text.len();
            if lines.read_until(b'\n', &mut part.text).with_context(|| format!("{} cannot be read", file.display()))?
                == 0
            {
                break;
            }
            bar.bytes += (part.text.len() - before) as u64;
            if next + (part.lines as u64) < from_line {
                // The line is counted, but not sent.
                part.text.truncate(before);
                next += 1;
            } else {
                part.lines += 1;
            }
        }
        if part.lines == 0 {
            break;
        }
        let first = next;
        next += part.lines as u64;
        part.send(&client, first, &mut totals, &mut bar).await?;
        bar.draw(next - 1, false);
    }
    bar.draw(next - 1, true);
    let Totals { new, unchanged, refused } = totals;
    crate::stdout::print(&format!("{new} new, {unchanged} were there already, {refused} refused"))?;
    if refused > 0 {
        let lines = if refused == 1 { "line was refused: it" } else { "lines were refused: each" };
        bail!("{refused} {lines} is named above, and everything else is in");
    }
    Ok(())
}

/// The lines of one request.
#[derive(Default)]
struct Part {
    text: Vec<u8>,
    lines: usize,
}

impl Part {
    /// Sends the lines, of which the first has the number `first` in the file, and tries again until all are taken in.
    /// What was taken in before the server stopped is counted, and not sent again.
    async fn send(self, client: &Client, mut first: u64, totals: &mut Totals, bar: &mut Bar) -> anyhow::Result<()> {
        // The bytes are sent unchanged: the server says which lines are not UTF-8.
        let mut text = Bytes::from(self.text);
        let resume = |line: u64| format!("it broke off; go on with: --from-line {line}");
        let mut pause = Duration::from_millis(500);
        for attempt in 1.. {
            match client.import(text.clone()).await {
                Ok(answer) => {
                    let Answer { taken, stopped } = read(&answer, first, bar)?;
                    totals.new += taken.new;
                    totals.unchanged += taken.unchanged;
                    totals.refused += taken.refused;
                    let Some((line, why)) = stopped else { return Ok(()) };
                    if attempt == TRIES {
                        bail!("{why}\n{}", resume(line));
                    }
                    text = behind(text, line.saturating_sub(first));
                    first = line;
                }
                Err(error) if attempt == TRIES || !error.may_pass() => {
                    return Err(error).context(resume(first));
                }
                Err(_) => {}
            }
            sleep(pause).await;
            pause *= 2;
        }
        unreachable!("the last try returns")
    }
}

/// What is behind the first `lines` lines of a text.
fn behind(text: Bytes, lines: u64) -> Bytes {
    let mut from = 0;
    for _ in 0..lines {
        let Some(newline) = text[from..].iter().position(|&byte| byte == b'\n') else { return Bytes::new() };
        from += newline + 1;
    }
    text.slice(from..)
}

/// The outcome of a report.
struct Answer {
    /// The counts of the lines that were taken in or refused.
    taken: Totals,
    /// The line of the file from which on nothing was taken in, and why; `None` if all was.
    stopped: Option<(u64, String)>,
}

/// Reads a report on lines of which the first has the number `first` in the file. Shows the refused lines among those
/// that were taken in.
fn read(answer: &str, first: u64, bar: &mut Bar) -> anyhow::Result<Answer> {
    let (mut refused, mut taken, mut lines, mut done, mut stopped) = (vec![], Totals::default(), 0, false, None);
    for line in answer.lines() {
        let report: Report = serde_json::from_str(line).map_err(|error| strange(&error))?;
        let why = |problem: &serde_json::Value| problem["detail"].as_str().unwrap_or_default().to_owned();
        match report {
            Report { line: Some(line), refused: Some(problem), .. } => refused.push((first + line - 1, why(&problem))),
            Report { resume_from_line: Some(line), stopped: Some(problem), .. } => {
                stopped = Some((first + line - 1, why(&problem)));
            }
            Report { lines: upto, new, unchanged, done: ended, .. } => {
                (lines, taken.new, taken.unchanged) = (upto, new, unchanged);
                done |= ended.unwrap_or(false);
            }
        }
    }
    if !done && stopped.is_none() {
        stopped = Some((first + lines, "the server's report breaks off".to_owned()));
    }
    // What is sent again is refused again.
    refused.retain(|(line, _)| stopped.as_ref().is_none_or(|(from, _)| line < from));
    for (line, why) in &refused {
        bar.clear();
        eprintln!("line {line}: {why}");
    }
    taken.refused = refused.len() as u64;
    Ok(Answer { taken, stopped })
}

/// A progress bar on stderr, if that is a terminal.
struct Bar {
    shown: bool,
    /// The bytes read so far. The next field is the number of all bytes, if it is known.
    bytes: u64,
    of: Option<u64>,
    begun: Instant,
    drawn: Option<Instant>,
}

impl Bar {
    fn new(of: Option<u64>) -> Self {
        Self { shown: std::io::stderr().is_terminal(), bytes: 0, of, begun: Instant::now(), drawn: None }
    }

    fn draw(&mut self, lines: u64, last: bool) {
        if !self.shown || (!last && self.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAWN)) {
            return;
        }
        self.drawn = Some(Instant::now());
        let rate = lines as f64 / self.begun.elapsed().as_secs_f64().max(0.001);
        let done = match self.of {
            Some(of) if of > 0 => {
                let full = (self.bytes.min(of) * BAR as u64 / of) as usize;
                format!("[{}{}] {:3} %  ", "#".repeat(full), "-".repeat(BAR - full), self.bytes.min(of) * 100 / of)
            }
            _ => String::new(),
        };
        eprint!("\r{done}{lines} lines, {rate:.0}/s{}", if last { "\n" } else { "" });
    }

    fn clear(&self) {
        if self.shown {
            eprint!("\r{:79}\r", "");
        }
    }
}

/// Prints everything, or everything behind a cursor.
pub(crate) async fn export(cursor: Option<String>, server: Server) -> anyhow::Result<()> {
    let client = Client::find(server)?;
    let mut at = cursor.clone();
    let (mut tries, mut pause) = (TRIES, Duration::from_millis(500));
    loop {
        let before = at.clone();
        let path = at.as_deref().map_or("/v1/export".into(), |at| format!("/v1/export?cursor={}", query(at)));
        let mut piece = Vec::new();
        let broken = client
            .stream(&path, |bytes| {
                piece.extend_from_slice(bytes);
                print_whole(&mut piece, &mut at)
            })
            .await;
        match broken {
            Ok(()) => return out(&piece),
            Err(error) => {
                let may_pass = error.downcast_ref::<ApiError>().is_some_and(ApiError::may_pass);
                tries = if at == before { tries - 1 } else { TRIES };
                if tries == 0 || !may_pass {
                    let Some(at) = at.filter(|at| cursor.as_ref() != Some(at)) else { return Err(error) };
                    return Err(error).context(format!("it broke off; go on with: --cursor {at}"));
                }
            }
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(8));
    }
}

/// Prints the part of `piece` up to its last cursor, and sets `at` to that cursor.
fn print_whole(piece: &mut Vec<u8>, at: &mut Option<String>) -> anyhow::Result<()> {
    const MARK: &[u8] = br#"{"type":"cursor","cursor":""#;
    let (mut end, mut start) = (0, 0);
    while let Some(newline) = piece[start..].iter().position(|&byte| byte == b'\n') {
        let line = &piece[start..start + newline];
        start += newline + 1;
        if let Some(rest) = line.strip_prefix(MARK) {
            *at = Some(String::from_utf8_lossy(rest).trim_end_matches("\"}").to_owned());
            end = start;
        }
    }
    out(&piece[..end])?;
    piece.drain(..end);
    Ok(())
}

fn out(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).context("stdout cannot be written")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_lines_by_their_number_in_the_file() {
        let mut bar = Bar::new(None);
        let answer = "{\"line\":2,\"refused\":{\"detail\":\"no\"}}\n{\"lines\":3,\"new\":2,\"unchanged\":0,\"refused\":1}\n\
                      {\"done\":true,\"lines\":3,\"new\":2,\"unchanged\":0,\"refused\":1}\n";
        let whole = read(answer, 101, &mut bar).unwrap();
        assert_eq!((whole.taken, whole.stopped), (Totals { new: 2, unchanged: 0, refused: 1 }, None));
        let answer = "{\"resume_from_line\":2,\"stopped\":{\"detail\":\"away\"}}\n";
        let stopped = read(answer, 101, &mut bar).unwrap();
        assert_eq!((stopped.taken, stopped.stopped), (Totals::default(), Some((102, "away".to_owned()))));
        let broken = read("", 101, &mut bar).unwrap();
        assert_eq!(broken.stopped.unwrap().0, 101, "a report that breaks off");
    }

    #[test]
    fn what_was_taken_in_before_a_stop_counts_and_what_is_sent_again_does_not() {
        let mut bar = Bar::new(None);
        let answer = "{\"line\":2,\"refused\":{\"detail\":\"no\"}}\n{\"lines\":3,\"new\":2,\"unchanged\":0,\"refused\":1}\n\
                      {\"line\":5,\"refused\":{\"detail\":\"no\"}}\n";
        let taken = Totals { new: 2, unchanged: 0, refused: 1 };
        for (end, why) in [
            ("{\"resume_from_line\":4,\"stopped\":{\"detail\":\"away\"}}\n", "away"),
            ("", "the server's report breaks off"),
        ] {
            let answer = read(&format!("{answer}{end}"), 101, &mut bar).unwrap();
            assert_eq!(answer.taken, taken);
            assert_eq!(answer.stopped, Some((104, why.to_owned())));
        }
        let text = Bytes::from_static(b"1\n2\n\n4");
        for (lines, rest) in [(0, "1\n2\n\n4"), (1, "2\n\n4"), (3, "4"), (4, ""), (u64::MAX, "")] {
            assert_eq!(behind(text.clone(), lines), rest, "{lines}");
        }
    }

    #[test]
    fn a_piece_is_printed_up_to_its_last_cursor() {
        let (mut at, whole) = (None, "{\"type\":\"cursor\",\"cursor\":\"1:2:3\"}\n");
        let mut piece = format!("{whole}{{\"type\":\"del").into_bytes();
        print_whole(&mut piece, &mut at).unwrap();
        assert_eq!((at.as_deref(), &piece[..]), (Some("1:2:3"), &b"{\"type\":\"del"[..]));
    }
}
