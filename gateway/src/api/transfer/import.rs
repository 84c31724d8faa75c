//! Answers `POST /v1/import`: takes in lines, and sends a report while they come.
//!
//! ```text
//!   body ─▶ Lines (cut at newlines, numbered) ─▶ a group of lines ─▶ one commit ─▶ a line of the report
//!                                                      │ a line that is none            │ new, unchanged
//!                                                      └────────▶ refused, by number ◀──┘ what the Archive refuses
//! ```
//!
//! Invariants: lines are taken in in their order. A wrong line is reported and stops no other line. One group is in
//! memory at a time, counted in the budget of all request bodies. If a store is away for long, or no more lines come,
//! the report ends with the number of the line from which to go on.

use std::sync::Arc;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use feedgate_common::archive::{Audience, COMMIT_READERS_MAX, Publish, Refused, Write, Written};
use feedgate_common::audience::ListRefused;
use feedgate_common::import::Import;
use feedgate_common::named::NamedFeeds;
use feedgate_common::{Archive, error};
use futures_util::future::try_join;
use futures_util::{StreamExt, stream};
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::super::access::AdminKey;
use super::super::deadline::BODY_TIMEOUT;
use super::super::payload::{Memory, not_coded};
use super::super::problem::Problem;
use super::super::publish::names_of;
use super::super::query::NoQuery;
use super::super::writer::Writer;
use super::line::{self, Line};
use super::patience::patiently;
use super::people::take_in;
use super::reactions::give;
use super::{NDJSON, comments, lists, pins, rankings};

/// The most lines in one commit.
const LINES_MAX: usize = 500;

/// The most bytes of lines in one commit.
const BYTES_MAX: usize = 1024 * 1024;

/// The most bytes in one line: more than the largest item to the most readers takes.
const LINE_MAX: usize = 512 * 1024;

/// The KiB of the budget that an import holds: a group as it came, and twice as much for what is to be written.
const HELD_KIB: u32 = 4 * 1024;

/// One line of the report.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Report {
    Refused {
        line: u64,
        refused: Problem,
    },
    Progress(Totals),
    Stopped {
        resume_from_line: u64,
        stopped: Problem,
    },
    Done {
        done: bool,
        #[serde(flatten)]
        totals: Totals,
    },
}

/// The counts of all lines up to here.
#[derive(Debug, Default, Clone, Copy, Serialize)]
struct Totals {
    lines: u64,
    new: u64,
    unchanged: u64,
    refused: u64,
}

/// Answers `POST /v1/import` with a stream of report lines.
pub(in super::super) async fn import(
    _: AdminKey,
    State(memory): State<Memory>,
    State(writer): State<Writer>,
    State(archive): State<Arc<dyn Archive>>,
    State(named): State<Arc<NamedFeeds>>,
    _: NoQuery,
    request: Request,
) -> Result<Response, Problem> {
    not_coded(request.headers())?;
    let held = memory.hold(HELD_KIB)?;
    let (lines, totals) = (Lines::of(request.into_body()), Totals::default());
    let importer = Importer { writer, archive, named, lines, totals, over: false, _held: held };
    let reports = stream::unfold(importer, |mut importer| async move {
        let report = importer.next().await?;
        Some((Ok::<_, std::convert::Infallible>(Bytes::from(report)), importer))
    });
    Ok(([(header::CONTENT_TYPE, NDJSON)], Body::from_stream(reports)).into_response())
}

struct Importer {
    writer: Writer,
    archive: Arc<dyn Archive>,
    named: Arc<NamedFeeds>,
    lines: Lines,
    totals: Totals,
    over: bool,
    _held: OwnedSemaphorePermit,
}

impl Importer {
    /// Takes in the next group and gives the report on it; `None` after the end.
    async fn next(&mut self) -> Option<Vec<u8>> {
        if self.over {
            return None;
        }
        let mut report = Vec::new();
        let group = self.lines.group().await;
        if group.lines.is_empty() {
            self.over = true;
            match group.broken {
                Some(why) => self.stop(&mut report, self.totals.lines + 1, Problem::at_pointer(String::new(), why)),
                None => tell(&mut report, &Report::Done { done: true, totals: self.totals }),
            }
            return Some(report);
        }
        let (mut writes, mut numbers, mut people, mut listed, mut reactions, mut comments) =
            (vec![], vec![], vec![], vec![], vec![], vec![]);
        let (mut ranked, mut pinned) = (vec![], vec![]);
        for (number, text) in &group.lines {
            match text.as_deref().map_err(|why| Problem::at_pointer(String::new(), why.clone())).and_then(line::read) {
                Ok(Line::Import(import)) => {
                    writes.push(Write::Import(import));
                    numbers.push(*number);
                }
                Ok(Line::Person(user, person)) => people.push((user, person)),
                Ok(Line::Reaction { item, kind, user, since }) => reactions.push((*number, item, kind, user, since)),
                Ok(Line::Listed { user, list, member, since }) => listed.push((*number, user, list, member, since)),
                Ok(Line::Comment(author, new)) => comments.push((*number, author, new)),
                Ok(Line::Ranking { user, feed, ranking }) => ranked.push((*number, user, feed, ranking)),
                Ok(Line::Pins { user, items }) => pinned.push((*number, user, items)),
                Ok(Line::Cursor) => {}
                Err(problem) => self.refuse(&mut report, *number, problem),
            }
        }
        // Reactions, comments, rankings and pins may belong to items of this group, so they come behind all of its
        // writes.
        let written = async {
            let written = write(&self.writer, writes).await?;
            let given = give(&*self.archive, &reactions).await?;
            let said = comments::take_in(&*self.archive, &comments).await?;
            let put = rankings::put(&self.archive, &self.named, &self.writer, &ranked).await?;
            let pins = pins::put(&*self.archive, &pinned).await?;
            Ok((written, given, said, lists::put_on(&*self.archive, &listed).await?, put, pins))
        };
        match try_join(written, take_in(&*self.archive, &people)).await {
            Ok(((written, given, said, put_on, put, pins), new_people)) => {
                for ((number, ..), put_on) in listed.iter().zip(put_on) {
                    let list = |refused: ListRefused| Problem::at_pointer("/list".into(), refused.to_string());
                    self.count(&mut report, *number, put_on.map_err(list));
                }
                self.totals.new += new_people;
                self.totals.unchanged += people.len() as u64 - new_people;
                for (number, written) in numbers.into_iter().zip(written) {
                    self.count(&mut report, number, written.map(|written| written.is_fresh()));
                }
                for ((number, ..), given) in reactions.iter().zip(given) {
                    self.count(&mut report, *number, given);
                }
                let numbered = ranked.iter().map(|(number, ..)| number).zip(put);
                for (number, put) in numbered.chain(pinned.iter().map(|(number, ..)| number).zip(pins)) {
                    self.count(&mut report, *number, put);
                }
                for ((number, ..), said) in comments.iter().zip(said) {
                    self.count(&mut report, *number, said.map(|done| done.changed));
                }
                self.totals.lines = group.lines.last().map_or(self.totals.lines, |(number, _)| *number);
                tell(&mut report, &Report::Progress(self.totals));
            }
            Err(error) => {
                self.over = true;
                let from = group.lines.first().map_or(0, |(number, _)| *number);
                self.stop(&mut report, from, error.into());
            }
        }
        Some(report)
    }

    /// Counts what became of a line: whether it is new, or why it was refused.
    fn count(&mut self, report: &mut Vec<u8>, line: u64, new: Result<bool, impl Into<Problem>>) {
        match new {
            Ok(true) => self.totals.new += 1,
            Ok(false) => self.totals.unchanged += 1,
            Err(refused) => self.refuse(report, line, refused.into()),
        }
    }

    fn refuse(&mut self, report: &mut Vec<u8>, line: u64, refused: Problem) {
        self.totals.refused += 1;
        tell(report, &Report::Refused { line, refused });
    }

    fn stop(&self, report: &mut Vec<u8>, resume_from_line: u64, stopped: Problem) {
        tell(report, &Report::Stopped { resume_from_line, stopped });
    }
}

/// Writes in several commits. Each commit addresses its items to at most [`COMMIT_READERS_MAX`] readers, since each
/// reader gets a record. If it fails, some commits may have been made.
async fn write(writer: &Writer, writes: Vec<Write>) -> error::Result<Vec<Result<Written, Refused>>> {
    let mut written = Vec::with_capacity(writes.len());
    for commit in commits(writes) {
        written.extend(patiently(|| writer.write(commit.clone())).await?);
    }
    Ok(written)
}

fn commits(writes: Vec<Write>) -> Vec<Vec<Write>> {
    let (mut commits, mut named): (Vec<Vec<Write>>, _) = (vec![], 0);
    for write in writes {
        let names = match &write {
            Write::Import(Import::Item { publish: Publish { audience, .. }, .. }) => names_in(audience),
            _ => 0,
        };
        named += names;
        match commits.last_mut() {
            Some(commit) if named <= COMMIT_READERS_MAX => commit.push(write),
            _ => {
                named = names;
                commits.push(vec![write]);
            }
        }
    }
    commits
}

/// How many users a commit must look up for the audience of an item.
fn names_in(audience: &Audience) -> usize {
    match audience {
        Audience::Narrowed(narrowed) => narrowed.readers().len(),
        addressed => names_of(addressed),
    }
}

fn tell(report: &mut Vec<u8>, line: &Report) {
    serde_json::to_writer(&mut *report, line).expect("a report is JSON");
    report.push(b'\n');
}

/// A body that is cut into numbered lines. Empty lines are counted and skipped.
struct Lines {
    body: BodyDataStream,
    /// The bytes of a line that is not complete yet.
    rest: Vec<u8>,
    /// Whether the line in `rest` is too long: then the rest of this line is dropped.
    too_long: bool,
    /// The number of the last complete line.
    number: u64,
    ready: Vec<(u64, Result<String, String>)>,
    over: bool,
    broken: Option<String>,
}

/// Lines that are written together.
struct Group {
    lines: Vec<(u64, Result<String, String>)>,
    /// Why the body was cut off before its end.
    broken: Option<String>,
}

impl Lines {
    fn of(body: Body) -> Self {
        Self {
            body: body.into_data_stream(),
            rest: vec![],
            too_long: false,
            number: 0,
            ready: vec![],
            over: false,
            broken: None,
        }
    }

    /// Reads the next lines; no lines at the end.
    async fn group(&mut self) -> Group {
        while !self.over && !self.is_full() {
            match timeout(BODY_TIMEOUT, self.body.next()).await {
                Ok(Some(Ok(bytes))) => self.cut(&bytes),
                Ok(Some(Err(why))) => {
                    self.over = true;
                    self.broken = Some(format!("the request ended in the middle: {why}"));
                }
                Err(_) => {
                    self.over = true;
                    self.broken = Some(format!("no more of the request came within {} s", BODY_TIMEOUT.as_secs()));
                }
                Ok(None) => {
                    self.over = true;
                    if !self.rest.is_empty() || self.too_long {
                        self.end_line();
                    }
                }
            }
        }
        let all = std::mem::take(&mut self.ready);
        let mut bytes = 0;
        let fits = all.iter().take(LINES_MAX).take_while(|(_, text)| {
            bytes += text.as_ref().map_or(0, String::len);
            bytes <= BYTES_MAX.max(LINE_MAX)
        });
        let count = fits.count();
        let mut lines = all;
        self.ready = lines.split_off(count);
        let broken = if lines.is_empty() { self.broken.take() } else { None };
        Group { lines, broken }
    }

    fn is_full(&self) -> bool {
        let bytes = || self.ready.iter().map(|(_, text)| text.as_ref().map_or(0, String::len)).sum::<usize>();
        self.ready.len() >= LINES_MAX || bytes() >= BYTES_MAX
    }

    fn cut(&mut self, mut bytes: &[u8]) {
        while let Some(at) = bytes.iter().position(|&byte| byte == b'\n') {
            self.keep(&bytes[..at]);
            self.end_line();
            bytes = &bytes[at + 1..];
        }
        self.keep(bytes);
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.too_long || self.rest.len() + bytes.len() > LINE_MAX {
            self.too_long = true;
            self.rest.clear();
        } else {
            self.rest.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self) {
        self.number += 1;
        let bytes = std::mem::take(&mut self.rest);
        if std::mem::take(&mut self.too_long) {
            self.ready.push((self.number, Err(format!("a line has at most {LINE_MAX} bytes, this one has more"))));
        } else if !bytes.trim_ascii().is_empty() {
            let text = String::from_utf8(bytes).map_err(|_| "a line must be UTF-8".to_owned());
            self.ready.push((self.number, text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn numbered(parts: &'static [&'static str]) -> Vec<(u64, Result<String, String>)> {
        let body = stream::iter(parts.iter().map(|part| Ok::<_, std::convert::Infallible>(Bytes::from(*part))));
        let mut lines = Lines::of(Body::from_stream(body));
        let mut all = vec![];
        loop {
            let group = lines.group().await;
            if group.lines.is_empty() {
                return all;
            }
            all.extend(group.lines);
        }
    }

    #[tokio::test]
    async fn lines_are_numbered_as_an_editor_does_however_the_body_was_cut() {
        let lines = numbered(&["{\"a\":1}\n\n{\"b\"", ":2}", "\n", "  \r\n{\"c\":3}"]).await;
        let wanted = [(1, "{\"a\":1}"), (3, "{\"b\":2}"), (5, "{\"c\":3}")];
        assert_eq!(lines, wanted.map(|(number, text)| (number, Ok(text.to_owned()))));
    }

    #[test]
    fn a_commit_addresses_items_to_as_many_readers_as_a_batch_may() {
        let line = |id: usize, readers: usize| {
            let to: Vec<String> = (0..readers).map(|n| format!("reader{n}")).collect();
            let line = serde_json::json!({"type": "item", "id": id.to_string(), "author": "ann", "published_at": 1, "body": 1, "to": to});
            let Ok(Line::Import(import)) = line::read(&line.to_string()) else { panic!("{line} is none") };
            Write::Import(import)
        };
        let writes: Vec<Write> = (1..=23).map(|id| line(id, if id == 22 { 1 } else { 1000 })).collect();
        let commits = commits(writes.clone());
        assert_eq!(commits.iter().map(Vec::len).collect::<Vec<_>>(), [10, 10, 3]);
        assert_eq!(commits.concat(), writes, "in their order");
    }

    #[tokio::test(start_paused = true)]
    async fn what_came_before_a_silence_is_taken_in_and_then_it_is_over() {
        let first = stream::once(async { Ok::<_, std::convert::Infallible>(Bytes::from("1\n2")) });
        let mut lines = Lines::of(Body::from_stream(first.chain(stream::pending())));
        assert_eq!(lines.group().await.lines, [(1, Ok("1".to_owned()))]);
        let end = lines.group().await;
        assert_eq!((end.lines.len(), end.broken.unwrap()), (0, "no more of the request came within 30 s".to_owned()));
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_thrown_away_and_the_next_one_read() {
        let long: &'static str = Box::leak("x".repeat(LINE_MAX + 1).into_boxed_str());
        let parts: &'static [&'static str] = Box::leak(vec!["1\n", long, long, "\n2\n"].into_boxed_slice());
        let lines = numbered(parts).await;
        assert_eq!((lines.len(), lines[1].0, lines[2].clone()), (3, 2, (3, Ok("2".to_owned()))));
        assert!(lines[1].1.as_ref().unwrap_err().contains("at most 524288 bytes"));
    }
}
