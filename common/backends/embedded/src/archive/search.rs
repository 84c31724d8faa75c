//! The index of search: a row for each mark of each item that lives and of each user of whom something is said.
//!
//! ```text
//!   write of an item or person ─▶ rows of its marks, in the same transaction
//!   other fields, or none      ─▶ another build: Sweep ─▶ Items ─▶ Users ─▶ Built, some rows in each step
//! ```
//!
//! Invariants:
//! - Once built, the rows of the build are exactly the marks of what lives. While it is being built, a write keeps the
//!   rows of what it changes right, and the steps add the others, so it does not matter which of them comes first.
//! - A store that was never told to index anything spends nothing on the index.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};

use async_trait::async_trait;
use feedgate_common::accept::Ask;
use feedgate_common::archive::{Search, Write};
use feedgate_common::error::Result;
use feedgate_common::search::{
    Hits, Look, Mark, SearchPlace, Subject, TextFields, marks_of_item, marks_of_kind, marks_of_text, marks_of_user,
};
use feedgate_common::{Body, ItemId, Millis, StoreError, UserId, UserNo};

use super::EmbeddedArchive;
use super::any::Any;
use super::tables::{Build, ItemRow, Items, Life, People, PersonRow, Postings, SearchRow, SearchState, Stage, Users};
use crate::request::Durability;
use crate::view::{Read, Rows, Tx, View};

/// How many rows of earlier builds one step removes.
const SWEEP_MAX: usize = 2000;

/// How many items or users one step takes in, and how many bytes of bodies. Writes wait for a step.
const STEP_MAX: usize = 64;
const STEP_BYTES: usize = 128 << 10;

/// How many items, deleted ones among them, one step looks at.
const LOOKED_AT: usize = 1000;

/// The place of the first row of a mark.
const NEWEST: SearchPlace = SearchPlace { at: Millis::MAX, id: u64::MAX };

/// How many rows one look may read.
const ROWS_MAX: usize = 10_000;

/// How many rows are read one after another before a new scan is begun further on. A new scan costs about as much.
const NEAR: usize = 16;

#[async_trait]
impl Search for EmbeddedArchive {
    async fn index_of(&self, fields: Option<&TextFields>) -> Result<()> {
        let recipe = recipe(fields);
        let held = self.db.view()?.get::<SearchState>(&())?;
        if held.map_or_else(String::new, |row| row.recipe.into()) == recipe {
            return Ok(());
        }
        self.any_search.set();
        let begin = move |tx: &mut Tx<'_>| {
            let (build, swept) = match tx.get::<SearchState>(&())? {
                Some(SearchRow { build, stage: Stage::Sweep, swept, .. }) => (build, swept),
                Some(SearchRow { build, .. }) => (build, build),
                None => (0, 0),
            };
            let row = SearchRow { build: build + 1, stage: Stage::Sweep, at: 0, swept, recipe: recipe.into() };
            tx.put::<SearchState>(&(), &row);
            Ok(())
        };
        self.db.write(Durability::Synced, begin).await
    }

    /// A step survives a crash of the process. After a crash of the machine, the step is taken again.
    async fn index(&self, fields: Option<&TextFields>) -> Result<bool> {
        let recipe = recipe(fields);
        let outstanding = |row: &SearchRow| row.recipe == recipe && row.stage != Stage::Built;
        if !self.db.view()?.get::<SearchState>(&())?.as_ref().is_some_and(outstanding) {
            return Ok(false);
        }
        self.db.write(Durability::Buffered, step).await
    }

    async fn find(&self, fields: &TextFields, look: &Look) -> Result<Hits> {
        let (recipe, look) = (fields.recipe(), look.clone());
        self.db.read(move |view| find(view, &recipe, &look)).await
    }
}

fn recipe(fields: Option<&TextFields>) -> String {
    fields.map(TextFields::recipe).unwrap_or_default()
}

/// What writes have to index.
#[derive(Debug)]
pub(super) struct Indexing {
    build: Build,
    fields: TextFields,
}

impl Indexing {
    /// What the store is to index; `None` for nothing.
    pub(super) fn of(from: &impl Read) -> Result<Option<Self>> {
        Ok(from.get::<SearchState>(&())?.and_then(|row| {
            let fields = TextFields::of_recipe(&row.recipe)?;
            Some(Self { build: row.build, fields })
        }))
    }

    /// What the store is to index, without a look into one that was never told.
    pub(super) fn if_any(from: &impl Read, any: &Any) -> Result<Option<Self>> {
        if any.is_set() { Self::of(from) } else { Ok(None) }
    }

    fn put(&self, tx: &mut Tx<'_>, subject: Subject, place: SearchPlace, marks: impl IntoIterator<Item = Mark>) {
        for mark in marks {
            tx.put::<Postings>(&(self.build, subject, mark, place), &());
        }
    }

    fn remove(&self, tx: &mut Tx<'_>, subject: Subject, place: SearchPlace, marks: impl IntoIterator<Item = Mark>) {
        for mark in marks {
            tx.remove::<Postings>(&(self.build, subject, mark, place));
        }
    }

    /// The marks of a text: those that were prepared, if there are any.
    fn of_text(&self, body: &Body, prepared: Option<BTreeSet<Mark>>) -> BTreeSet<Mark> {
        prepared.unwrap_or_else(|| marks_of_text(&self.fields, body))
    }

    /// Takes in a new item.
    pub(super) fn make(
        &self,
        tx: &mut Tx<'_>,
        (id, at): (ItemId, Millis),
        (author, kind, body): (UserNo, Option<&str>, &Body),
        prepared: Option<BTreeSet<Mark>>,
    ) {
        let marks = self.of_text(body, prepared).into_iter().chain(marks_of_kind(author, kind));
        self.put(tx, Subject::Items, SearchPlace::of_item(at, id), marks);
    }

    /// Takes in a new text of an item in place of the old one.
    pub(super) fn edit(
        &self,
        tx: &mut Tx<'_>,
        (id, at): (ItemId, Millis),
        (old, new): (&str, &Body),
        prepared: Option<BTreeSet<Mark>>,
    ) -> Result<()> {
        let (before, now) = (marks_of_text(&self.fields, &stored(id, old)?), self.of_text(new, prepared));
        let place = SearchPlace::of_item(at, id);
        self.remove(tx, Subject::Items, place, before.difference(&now).copied());
        self.put(tx, Subject::Items, place, now.difference(&before).copied());
        Ok(())
    }

    /// Removes the rows of an item that is deleted.
    pub(super) fn end(
        &self,
        tx: &mut Tx<'_>,
        (id, at): (ItemId, Millis),
        (author, kind, body): (UserNo, Option<&str>, &str),
    ) -> Result<()> {
        let marks = marks_of_item(&self.fields, author, kind, &stored(id, body)?);
        self.remove(tx, Subject::Items, SearchPlace::of_item(at, id), marks);
        Ok(())
    }

    /// Takes in what is said of a user in place of what was said before.
    pub(super) fn person(
        &self,
        tx: &mut Tx<'_>,
        user: UserNo,
        (before, now): (Option<&PersonRow>, Option<&PersonRow>),
    ) -> Result<()> {
        let id = id_of(tx, user)?;
        let marks = |row: Option<&PersonRow>| row.map_or_else(BTreeSet::new, |row| marks_of_person(&id, row));
        let (before, now) = (marks(before), marks(now));
        let place = SearchPlace::of_user(user);
        self.remove(tx, Subject::Users, place, before.difference(&now).copied());
        self.put(tx, Subject::Users, place, now);
        Ok(())
    }
}

/// The marks of the texts that a call brings, made before the call waits for the writer, on which all others wait.
pub(super) struct Prepared {
    build: Build,
    /// For each write of the call, if it brings a text.
    marks: Vec<Option<BTreeSet<Mark>>>,
}

impl Prepared {
    pub(super) fn of(from: &impl Read, any: &Any, asks: &[Ask]) -> Result<Self> {
        let (mut build, mut marks) = (0, vec![]);
        if let Some(indexing) = Indexing::if_any(from, any)? {
            let text = |ask: &Ask| match ask.write() {
                Write::Edit { body, .. } => body.as_ref().map(|body| marks_of_text(&indexing.fields, body)),
                _ => ask.published().map(|publish| marks_of_text(&indexing.fields, &publish.body)),
            };
            (build, marks) = (indexing.build, asks.iter().map(text).collect());
        }
        Ok(Self { build, marks })
    }

    /// The marks that were prepared for the write with this number, unless the index has another recipe by now.
    pub(super) fn take(&mut self, nth: usize, indexing: Option<&Indexing>) -> Option<BTreeSet<Mark>> {
        let same = indexing.is_some_and(|indexing| indexing.build == self.build);
        self.marks.get_mut(nth).and_then(Option::take).filter(|_| same)
    }
}

fn stored(id: ItemId, body: &str) -> Result<Body> {
    Body::stored(body.to_owned()).map_err(|why| StoreError::corrupt(format_args!("item {id}: {why}")))
}

/// The name of a user as backends know the user.
fn id_of(from: &impl Read, user: UserNo) -> Result<UserId> {
    let id = from.get::<Users>(&user)?.and_then(|name| name.parse().ok());
    id.ok_or_else(|| StoreError::corrupt(format_args!("something is said of user {}, who has no name", user.0)))
}

fn marks_of_person(id: &UserId, row: &PersonRow) -> BTreeSet<Mark> {
    marks_of_user(id, row.name.as_ref().map(|name| name.0.as_str()))
}

/// Takes the next step of building the index. Answers whether there are more steps.
fn step(tx: &mut Tx<'_>) -> Result<bool> {
    let Some(mut row) = tx.get::<SearchState>(&())? else { return Ok(false) };
    match row.stage {
        Stage::Built => return Ok(false),
        Stage::Sweep => sweep(tx, &mut row)?,
        Stage::Items => take_in_items(tx, &mut row)?,
        Stage::Users => take_in_users(tx, &mut row)?,
    }
    if row.stage == Stage::Built && !row.recipe.is_empty() {
        tracing::info!("the index of search is built");
    }
    tx.put::<SearchState>(&(), &row);
    Ok(row.stage != Stage::Built)
}

/// Removes rows of the first earlier build that may have rows. A step begins at the mark where the last one ended, so
/// that it does not walk over removed rows.
fn sweep(tx: &mut Tx<'_>, row: &mut SearchRow) -> Result<()> {
    if row.swept == row.build {
        (row.stage, row.at) = if row.recipe.is_empty() { (Stage::Built, 0) } else { (Stage::Items, u64::MAX) };
        return Ok(());
    }
    let subject = if row.at >> 32 == 0 { Subject::Items } else { Subject::Users };
    let from = (row.swept, subject, row.at as Mark, NEWEST);
    let earlier = tx.scan::<Postings>(from..(row.swept + 1, Subject::Items, 0, NEWEST)).take(SWEEP_MAX);
    let earlier: Vec<_> = earlier.collect::<Result<_>>()?;
    for (key, ()) in &earlier {
        tx.remove::<Postings>(key);
        row.at = ((key.1 as u64) << 32) | u64::from(key.2);
    }
    if earlier.len() < SWEEP_MAX {
        (row.swept, row.at) = (row.swept + 1, 0);
    }
    Ok(())
}

/// Takes in items from `row.at` downwards, so that the newest are found first.
fn take_in_items(tx: &mut Tx<'_>, row: &mut SearchRow) -> Result<()> {
    let Some(indexing) = Indexing::of(tx)? else { return Err(unknown(&row.recipe)) };
    let (mut some, mut bytes, mut looked, mut whole) = (vec![], 0, 0, true);
    let mut items = tx.scan::<Items>(..=ItemId(row.at));
    while let Some(item) = items.next_back() {
        let (id, item) = item?;
        (row.at, looked) = (id.0, looked + 1);
        if let Life::Living { kind, body, .. } = item.life {
            bytes += body.len();
            let marks = marks_of_item(&indexing.fields, item.author, kind.as_deref(), &stored(id, &body)?);
            some.push((SearchPlace::of_item(item.published_at, id), marks));
        }
        if some.len() == STEP_MAX || bytes >= STEP_BYTES || looked == LOOKED_AT {
            whole = false;
            break;
        }
    }
    drop(items);
    for (place, marks) in some {
        indexing.put(tx, Subject::Items, place, marks);
    }
    match row.at.checked_sub(1) {
        Some(below) if !whole => row.at = below,
        _ => (row.stage, row.at) = (Stage::Users, 0),
    }
    Ok(())
}

/// Takes in users behind the number `row.at`.
fn take_in_users(tx: &mut Tx<'_>, row: &mut SearchRow) -> Result<()> {
    let Some(indexing) = Indexing::of(tx)? else { return Err(unknown(&row.recipe)) };
    let after = UserNo(u32::try_from(row.at).unwrap_or(u32::MAX));
    let some: Vec<_> = tx.scan::<People>((Excluded(after), Unbounded)).take(STEP_MAX).collect::<Result<_>>()?;
    for (user, person) in &some {
        indexing.person(tx, *user, (None, Some(person)))?;
        row.at = user.0.into();
    }
    if some.len() < STEP_MAX {
        (row.stage, row.at) = (Stage::Built, 0);
    }
    Ok(())
}

fn unknown(recipe: &str) -> StoreError {
    StoreError::corrupt(format_args!("the index of search is to be of {recipe:?}, which this version does not know"))
}

/// The candidates of a look. Nothing, and `building`, if the index is of another recipe.
fn find(view: &View, recipe: &str, look: &Look) -> Result<Hits> {
    let Some(row) = view.get::<SearchState>(&())?.filter(|row| row.recipe == recipe) else {
        return Ok(Hits { building: true, ..Hits::default() });
    };
    let mut hits = Hits { building: row.stage != Stage::Built, ..Hits::default() };
    let run = |mark: &Mark| Run { view, of: (row.build, look.subject, *mark), since: look.since, rows: None, at: None };
    let mut runs: Vec<Run<'_>> = look.marks.iter().map(run).collect();
    let (mut place, mut read) = (look.first(), 0);
    // Every run is brought to the place. The run that has come furthest then gives the next place, until all runs
    // agree.
    loop {
        let mut agreed = true;
        for run in &mut runs {
            match run.seek(place, &mut read)? {
                None => return Ok(hits),
                Some(found) if found == place => {}
                Some(found) => (place, agreed) = (found, false),
            }
        }
        if agreed {
            if hits.places.len() == look.limit {
                hits.next = hits.places.last().copied();
                return Ok(hits);
            }
            hits.places.push(place);
            place = place.behind();
        }
        if read >= ROWS_MAX {
            hits.next = Some(place.before());
            return Ok(hits);
        }
    }
}

/// The rows of one mark, newest first.
struct Run<'a> {
    view: &'a View,
    of: (Build, Subject, Mark),
    since: Millis,
    rows: Option<Rows<Postings>>,
    at: Option<SearchPlace>,
}

impl Run<'_> {
    /// Goes on to the first row that stands at `place` or behind it. Adds to `read` how many rows this has read.
    fn seek(&mut self, place: SearchPlace, read: &mut usize) -> Result<Option<SearchPlace>> {
        let mut near = NEAR;
        loop {
            if let Some(at) = self.at.filter(|at| *at <= place) {
                return Ok(Some(at));
            }
            let rows = match &mut self.rows {
                Some(rows) if near > 0 => rows,
                rows => {
                    near = NEAR;
                    let (build, subject, mark) = self.of;
                    let last = SearchPlace { at: self.since, id: 0 };
                    rows.insert(self.view.scan((build, subject, mark, place)..=(build, subject, mark, last)))
                }
            };
            near -= 1;
            *read += 1;
            let Some(row) = rows.next() else {
                self.at = None;
                return Ok(None);
            };
            let ((_, _, _, at), ()) = row?;
            self.at = Some(at);
        }
    }
}

/// The index as the doctor looks at it.
pub(crate) struct Audit {
    indexing: Indexing,
    stage: Stage,
    at: u64,
}

impl Audit {
    /// The audit of the index of the store; `None` if the store indexes nothing.
    pub(crate) fn of(from: &impl Read) -> Result<Option<Self>> {
        let Some(row) = from.get::<SearchState>(&())? else { return Ok(None) };
        Ok(Indexing::of(from)?.map(|indexing| Self { indexing, stage: row.stage, at: row.at }))
    }

    /// Whether all is indexed, so that there is exactly one row for each mark.
    pub(crate) fn is_built(&self) -> bool {
        self.stage == Stage::Built
    }

    /// How many rows the index has.
    pub(crate) fn rows(&self, view: &View) -> Result<u64> {
        let build = self.indexing.build;
        let rows = view.scan::<Postings>((build, Subject::Items, 0, NEWEST)..(build + 1, Subject::Items, 0, NEWEST));
        rows.map(|row| row.map(|_| 1)).sum()
    }

    /// How many marks an item is to have, and how many of them have no row. No marks if the index has not taken it in.
    pub(crate) fn item(&self, view: &View, id: ItemId, row: &ItemRow) -> Result<(u64, u64)> {
        let taken_in = match self.stage {
            Stage::Built | Stage::Users => true,
            Stage::Items => id.0 > self.at,
            Stage::Sweep => false,
        };
        let Life::Living { kind, body, .. } = &row.life else { return Ok((0, 0)) };
        if !taken_in {
            return Ok((0, 0));
        }
        let marks = marks_of_item(&self.indexing.fields, row.author, kind.as_deref(), &stored(id, body)?);
        self.missing(view, Subject::Items, SearchPlace::of_item(row.published_at, id), &marks)
    }

    /// How many marks a user of whom something is said is to have, and how many of them have no row.
    pub(crate) fn user(&self, view: &View, user: UserNo, row: &PersonRow) -> Result<(u64, u64)> {
        let taken_in = match self.stage {
            Stage::Built => true,
            Stage::Users => u64::from(user.0) <= self.at,
            Stage::Items | Stage::Sweep => false,
        };
        if !taken_in {
            return Ok((0, 0));
        }
        let marks = marks_of_person(&id_of(view, user)?, row);
        self.missing(view, Subject::Users, SearchPlace::of_user(user), &marks)
    }

    fn missing(&self, view: &View, subject: Subject, place: SearchPlace, marks: &BTreeSet<Mark>) -> Result<(u64, u64)> {
        let mut missing = 0;
        for mark in marks {
            missing += u64::from(!view.has::<Postings>(&(self.indexing.build, subject, *mark, place))?);
        }
        Ok((marks.len() as u64, missing))
    }
}

#[cfg(test)]
mod tests {
    use feedgate_common::FeedId;
    use feedgate_common::archive::{Known, Names, Notifications as _, People as _, Publish, Writes};
    use feedgate_common::around::Reaction;
    use feedgate_common::notify::{Rules, Way};
    use feedgate_common::people::{Card, Person};

    use super::*;
    use crate::archive::fixture::open;

    fn fields(name: &str) -> TextFields {
        TextFields::new(vec![name.into()]).unwrap()
    }

    fn body(text: &str) -> Body {
        Body::parse(format!(r#"{{"text":"{text}","title":"x"}}"#)).unwrap()
    }

    async fn write(archive: &EmbeddedArchive, writes: Vec<Write>) {
        assert!(archive.write(writes, 1).await.unwrap().iter().all(std::result::Result::is_ok));
    }

    fn item(id: u64, text: &str) -> Write {
        Write::Publish(Publish { id: Some(ItemId(id)), ..Publish::new("ann".parse().unwrap(), body(text)) })
    }

    /// How many rows the index has, of whatever build.
    fn rows(archive: &EmbeddedArchive) -> usize {
        archive.db.view().unwrap().scan::<Postings>(..).count()
    }

    /// Takes all steps. Answers how many there were.
    async fn built(archive: &EmbeddedArchive, of: Option<&TextFields>) -> usize {
        archive.index_of(of).await.unwrap();
        let mut steps = 0;
        while archive.index(of).await.unwrap() {
            steps += 1;
        }
        steps
    }

    #[tokio::test]
    async fn s14_the_index_has_a_row_for_each_mark_of_what_lives_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let archive = open(dir.path()).await;
        write(&archive, vec![item(1, "not indexed")]).await;
        assert_eq!(rows(&archive), 0, "search is off");
        built(&archive, Some(&fields("text"))).await;
        assert_eq!(rows(&archive), 3, "two words and the author");
        write(&archive, vec![item(2, "a a b"), item(3, "小明")]).await;
        assert_eq!(rows(&archive), 3 + 3 + 3);
        write(
            &archive,
            vec![Write::Edit {
                item: ItemId(2),
                body: Some(body("b c d")),
                rank: None,
                mentions: None,
                if_version: None,
            }],
        )
        .await;
        assert_eq!(rows(&archive), 3 + 4 + 3);
        write(&archive, vec![Write::Delete { item: ItemId(3), if_version: None }]).await;
        assert_eq!(rows(&archive), 3 + 4);
        let ann = archive.intern(&["ann".parse().unwrap()]).await.unwrap()[0];
        for (name, more) in [("Ann B", 2), ("Ann", 1)] {
            let person = Person { card: Card { name: Some(name.into()), avatar: None }, attrs: None };
            archive.put_people(vec![(ann, person)], Known::Replaced).await.unwrap();
            assert_eq!(rows(&archive), 7 + more, "the id is a word of the name");
        }
        archive.remove_person(ann).await.unwrap();
        assert_eq!(rows(&archive), 7);
        let like = Way { kind: "like".into(), feed: FeedId::MAIN, grouped: false };
        archive.notify_by(Rules { reaction: Some(like), ..Rules::default() });
        let bob = archive.intern(&["bob".parse().unwrap()]).await.unwrap()[0];
        let heart = [Reaction { item: ItemId(1), kind: "heart".parse().unwrap(), user: bob, at: 2 }];
        for (on, more) in [(true, 2), (false, 0)] {
            archive.react_and_notify(&heart, on).await.unwrap();
            assert_eq!(rows(&archive), 7 + more, "a notification has an author and a kind");
        }
        built(&archive, Some(&fields("title"))).await;
        assert_eq!(rows(&archive), 4, "one word and the author of each of two items");
        built(&archive, None).await;
        assert_eq!(rows(&archive), 0);
    }

    #[tokio::test]
    async fn s14_rows_of_an_earlier_build_go_some_with_each_step_whatever_is_asked_for_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let archive = open(dir.path()).await;
        let words = (0..100).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ");
        write(&archive, (1..=50).map(|id| item(id, &words)).collect()).await;
        built(&archive, Some(&fields("text"))).await;
        assert_eq!(rows(&archive), 50 * 101);
        archive.index_of(Some(&fields("title"))).await.unwrap();
        assert!(archive.index(Some(&fields("title"))).await.unwrap());
        assert_eq!(rows(&archive), 50 * 101 - SWEEP_MAX);
        // Another change, before the sweep has come to its end.
        write(&archive, vec![item(51, "one")]).await;
        assert!(built(&archive, Some(&fields("text"))).await > 3);
        assert_eq!(rows(&archive), 50 * 101 + 2);
    }

    #[tokio::test]
    async fn s14_two_marks_that_hardly_meet_are_found_by_few_rows() {
        let dir = tempfile::tempdir().unwrap();
        let archive = open(dir.path()).await;
        built(&archive, Some(&fields("text"))).await;
        let text = |id: u64| if id.is_multiple_of(500) { "common rare" } else { "common" };
        write(&archive, (1..=3000).map(|id| item(id, text(id))).collect()).await;
        let view = archive.db.view().unwrap();
        let row = view.get::<SearchState>(&()).unwrap().unwrap();
        let marks = marks_of_text(&fields("text"), &body("common rare"));
        let run =
            |mark: &Mark| Run { view: &view, of: (row.build, Subject::Items, *mark), since: 0, rows: None, at: None };
        let (mut read, mut place, mut found) = (0, NEWEST, 0);
        let mut runs: Vec<Run<'_>> = marks.iter().map(run).collect();
        'all: loop {
            let mut agreed = true;
            for run in &mut runs {
                match run.seek(place, &mut read).unwrap() {
                    Some(at) => (agreed, place) = (agreed && at == place, at),
                    None => break 'all,
                }
            }
            if agreed {
                (found, place) = (found + 1, place.behind());
            }
        }
        assert_eq!(found, 6);
        assert!(read < 6 * 4 * NEAR, "it passes by what is between: {read} rows were read");
    }
}
