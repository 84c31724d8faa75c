//! Tests of the index of search (S14): what is found is what a naive scan finds, after any writes, builds and restarts.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use feedgate_common::archive::{Archive, Audience, Known, Publish, Write};
use feedgate_common::around::Viewer;
use feedgate_common::audience::Narrowed;
use feedgate_common::error::Result;
use feedgate_common::feed::{Limit, Seeing, find_items};
use feedgate_common::graph::Shield;
use feedgate_common::import::Import;
use feedgate_common::people::{Card, Person};
use feedgate_common::search::{ItemQuery, TextFields, Word, look_for_users, phrases, takes_user};
use feedgate_common::{Body, Item, ItemId, Millis, UserNo};

use super::{NOW, accept, change, delete, edit, follow, number, post, shield, unfollow, user, write, write_at};

/// Runs all tests of search. `open(name)` opens the Archive of that name, which is empty at first; to open it again
/// after every handle was dropped is a restart.
pub async fn search(open: impl AsyncFn(&str) -> Arc<dyn Archive>) {
    s14_an_item_is_found_by_all_of_its_words_newest_first(open("search").await).await;
    s14_author_and_kind_narrow_a_search(open("narrow").await).await;
    s14_an_edit_and_a_delete_are_in_effect_at_once(open("edit").await).await;
    s14_one_call_may_make_change_and_end_an_item(open("call").await).await;
    s14_users_are_found_by_name_and_id(open("users").await).await;
    s14_an_index_of_other_fields_is_built_anew(open("anew").await).await;
    s14_the_index_outlives_a_restart(&open).await;
    s14_a_search_that_meets_too_much_that_does_not_match_goes_on(open("flood").await).await;
    s14_an_erasure_leaves_nothing_that_is_found(open("erased").await).await;
    s14_what_is_found_is_what_a_scan_finds(&open, 10_000, 14).await;
}

fn fields(names: &[&str]) -> TextFields {
    TextFields::new(names.iter().map(|name| (*name).into()).collect()).unwrap()
}

fn text() -> TextFields {
    fields(&["text"])
}

/// Makes the index one of these fields, and takes all steps that are outstanding.
async fn index(archive: &dyn Archive, of: Option<&TextFields>) {
    archive.index_of(of).await.unwrap();
    settle(archive, of).await;
}

async fn settle(archive: &dyn Archive, of: Option<&TextFields>) {
    while archive.index(of).await.unwrap() {}
}

fn query(text: &str) -> ItemQuery {
    ItemQuery { phrases: phrases(text), author: None, kind: None, published: (Millis::MIN, Millis::MAX) }
}

/// Items as a viewer may see them.
struct As<'a>(&'a dyn Archive, Viewer);

#[async_trait]
impl Seeing for As<'_> {
    async fn of(&self, ids: &[ItemId]) -> Result<Vec<Option<Arc<Item>>>> {
        self.0.originals(ids, self.1).await
    }
}

/// All that is found, by pages of `limit`, which go on until there is no next one.
async fn found(archive: &dyn Archive, of: &TextFields, query: &ItemQuery, viewer: Viewer, limit: usize) -> Vec<ItemId> {
    let (mut all, mut behind) = (vec![], None);
    loop {
        let page = find_items(archive, of, query, &As(archive, viewer), behind, limit.into()).await.unwrap();
        assert!(!page.building && page.items.len() <= limit);
        all.extend(page.items.iter().map(|item| item.id));
        assert!(page.next.is_none_or(|next| behind.is_none_or(|behind| next < behind)), "a page goes on behind itself");
        behind = page.next;
        if behind.is_none() {
            return all;
        }
    }
}

async fn finds(archive: &dyn Archive, text: &str) -> Vec<ItemId> {
    found(archive, &self::text(), &query(text), Viewer::Backend, 100).await
}

/// The users whose name or id holds the words.
async fn finds_users(archive: &dyn Archive, text: &str) -> Vec<u64> {
    let phrases = phrases(text);
    let look = look_for_users(&phrases, None, 100);
    let hits = archive.find(&self::text(), &look).await.unwrap();
    assert_eq!((hits.next, hits.building), (None, false));
    hits.places.iter().map(|place| place.id).collect()
}

fn named(name: &str) -> Person {
    Person { card: Card { name: Some(name.into()), avatar: None }, attrs: None }
}

async fn s14_an_item_is_found_by_all_of_its_words_newest_first(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    index(archive, Some(&text())).await;
    let mut ids = vec![];
    for (nth, words) in
        ["Hello big world", "王小明 says hello", "hello 小明", "小 明 hello", "world"].iter().enumerate()
    {
        let at = NOW + 10 * (nth as Millis % 3);
        ids.push(accept(archive, Publish { published_at: Some(at), ..post("ann", words) }, NOW).await.0);
    }
    settle(archive, Some(&text())).await;
    let of = |numbers: &[usize]| numbers.iter().map(|nth| ids[*nth]).collect::<Vec<_>>();
    assert_eq!(finds(archive, "HELLO").await, of(&[2, 1, 3, 0]), "by time, then by id");
    assert_eq!(finds(archive, "小明").await, of(&[2, 1]), "joined characters only");
    assert_eq!(finds(archive, "王小明 hello").await, of(&[1]));
    assert_eq!(finds(archive, "big hello").await, of(&[0]));
    assert_eq!(finds(archive, "hell").await, of(&[]));
    let mut within = query("hello");
    within.published = (NOW + 10, NOW + 19);
    assert_eq!(found(archive, &text(), &within, Viewer::Backend, 100).await, of(&[1]));
    for limit in 1..=5 {
        let pages = found(archive, &text(), &query("hello"), Viewer::Backend, limit).await;
        assert_eq!(pages, of(&[2, 1, 3, 0]), "by pages of {limit}");
    }
}

async fn s14_author_and_kind_narrow_a_search(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    index(archive, Some(&text())).await;
    let kinds = [Some("post"), Some("Post"), None];
    let mut ids = vec![];
    for author in ["ann", "bob"] {
        for kind in kinds {
            let item = Publish { kind: kind.map(Into::into), ..post(author, "same words") };
            ids.push(accept(archive, item, NOW).await.0);
        }
    }
    settle(archive, Some(&text())).await;
    let (ann, bob) = (number(archive, "ann").await, number(archive, "bob").await);
    let narrowed = async |author: Option<UserNo>, kind: Option<&str>| {
        let query = ItemQuery { author, kind: kind.map(Into::into), ..query("words") };
        let mut found = found(archive, &text(), &query, Viewer::Backend, 10).await;
        found.sort_unstable();
        found
    };
    let of = |numbers: &[usize]| {
        let mut all: Vec<ItemId> = numbers.iter().map(|nth| ids[*nth]).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(narrowed(Some(ann), None).await, of(&[0, 1, 2]));
    assert_eq!(narrowed(None, Some("post")).await, of(&[0, 3]));
    assert_eq!(narrowed(Some(bob), Some("Post")).await, of(&[4]));
    assert_eq!(narrowed(Some(bob), Some("ann")).await, of(&[]));
}

async fn s14_an_edit_and_a_delete_are_in_effect_at_once(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    index(archive, Some(&text())).await;
    let (edited, _) = accept(archive, post("ann", "old words"), NOW).await;
    let (gone, _) = accept(archive, post("ann", "old words too"), NOW).await;
    settle(archive, Some(&text())).await;
    assert_eq!(finds(archive, "old words").await.len(), 2);
    write(archive, edit(edited, "new words")).await.unwrap();
    write(archive, delete(gone)).await.unwrap();
    // Nothing was indexed since: what is found is read as it is now.
    assert_eq!(finds(archive, "old").await, vec![]);
    settle(archive, Some(&text())).await;
    assert_eq!((finds(archive, "new words").await, finds(archive, "old").await), (vec![edited], vec![]));
    for old in ["old", "words"] {
        let left = archive.find(&text(), &query(old).look(None, 10)).await.unwrap().places;
        assert_eq!(left.len(), usize::from(old == "words"), "no row of {old:?} is left of what is not there");
    }
}

async fn s14_one_call_may_make_change_and_end_an_item(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    index(archive, Some(&text())).await;
    let make = |id| Write::Publish(Publish { id: Some(ItemId(id)), ..post("ann", "first") });
    let (edit, end) = (|id| edit(ItemId(id), "second"), |id| delete(ItemId(id)));
    let writes = vec![make(1), edit(1), make(2), edit(2), end(2), make(3)];
    assert!(archive.write(writes, NOW).await.unwrap().iter().all(std::result::Result::is_ok));
    settle(archive, Some(&text())).await;
    assert_eq!((finds(archive, "second").await, finds(archive, "first").await), (vec![ItemId(1)], vec![ItemId(3)]));
}

async fn s14_users_are_found_by_name_and_id(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    index(archive, Some(&text())).await;
    let [ann, bob, cid] =
        [number(archive, "ann.smith@x").await, number(archive, "bob").await, number(archive, "cid").await];
    let put = async |user, name: &str, known| archive.put_people(vec![(user, named(name))], known).await.unwrap();
    put(ann, "王小明 Smith", Known::Replaced).await;
    put(bob, "Bob 小明", Known::Replaced).await;
    put(bob, "not taken", Known::Kept).await;
    settle(archive, Some(&text())).await;
    let of = |users: &[UserNo]| users.iter().map(|user| u64::from(user.0)).collect::<Vec<_>>();
    assert_eq!(finds_users(archive, "小明").await, of(&[bob, ann]), "who was named last comes first");
    assert_eq!(finds_users(archive, "smith").await, of(&[ann]));
    assert_eq!(finds_users(archive, "ann.smith@x").await, of(&[ann]));
    assert_eq!(finds_users(archive, "cid").await, of(&[]), "nothing is said of cid");
    put(cid, "Cid", Known::Replaced).await;
    put(bob, "Robert", Known::Replaced).await;
    archive.remove_person(ann).await.unwrap();
    settle(archive, Some(&text())).await;
    assert_eq!(finds_users(archive, "cid").await, of(&[cid]));
    assert_eq!((finds_users(archive, "小明").await, finds_users(archive, "smith").await), (vec![], vec![]));
    assert_eq!(finds_users(archive, "bob robert").await, of(&[bob]), "the id, and the name of now");
}

async fn s14_an_index_of_other_fields_is_built_anew(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let body = |n: usize| format!(r#"{{"text": "word {n}", "title": "heading"}}"#);
    let posts = (0..450).map(|n| Write::Publish(Publish::new(user("ann"), Body::parse(body(n)).unwrap())));
    archive.write(posts.collect(), NOW).await.unwrap();
    let ann = number(archive, "ann").await;
    archive.put_people(vec![(ann, named("Ann"))], Known::Replaced).await.unwrap();
    let building = async |of: &TextFields| archive.find(of, &query("word").look(None, 10)).await.unwrap().building;
    assert!(building(&text()).await, "nothing is indexed before it is asked for");
    archive.index_of(Some(&text())).await.unwrap();
    assert!(!archive.index(Some(&fields(&["title"]))).await.unwrap(), "a step of another index does nothing");
    assert!(archive.index(Some(&text())).await.unwrap());
    assert!(building(&text()).await);
    // What is written while the index is built is found once it is.
    let (fresh, _) = accept(archive, post("ann", "word fresh"), NOW).await;
    settle(archive, Some(&text())).await;
    assert_eq!(finds(archive, "word").await.len(), 451);
    assert_eq!((finds(archive, "fresh").await, finds(archive, "heading").await), (vec![fresh], vec![]));
    assert_eq!(finds_users(archive, "ann").await, vec![u64::from(ann.0)]);
    archive.index_of(Some(&text())).await.unwrap();
    assert!(!archive.index(Some(&text())).await.unwrap(), "to ask again for the same changes nothing");
    let both = fields(&["text", "title"]);
    index(archive, Some(&both)).await;
    assert!(building(&text()).await);
    assert_eq!(found(archive, &both, &query("heading 7"), Viewer::Backend, 10).await.len(), 1);
    index(archive, None).await;
    assert!(building(&both).await);
    // What was written while search was off is found again too.
    write(archive, delete(fresh)).await.unwrap();
    let (late, _) = accept(archive, post("ann", "word late"), NOW).await;
    index(archive, Some(&text())).await;
    assert_eq!((finds(archive, "late").await, finds(archive, "fresh").await), (vec![late], vec![]));
    assert_eq!(finds(archive, "word").await.len(), 451);
}

async fn s14_the_index_outlives_a_restart(open: &impl AsyncFn(&str) -> Arc<dyn Archive>) {
    let archive = open("restart").await;
    index(&*archive, Some(&text())).await;
    let (before, _) = accept(&*archive, post("ann", "a word"), NOW).await;
    drop(archive);
    let archive = open("restart").await;
    let (after, _) = accept(&*archive, post("ann", "a word"), NOW + 1).await;
    settle(&*archive, Some(&text())).await;
    assert_eq!(finds(&*archive, "word").await, vec![after, before]);
}

async fn s14_a_search_that_meets_too_much_that_does_not_match_goes_on(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    index(archive, Some(&text())).await;
    let item = |n: i64, text: &str| Write::Publish(Publish { published_at: Some(NOW + n), ..post("ann", text) });
    // All of these have both characters, and only the oldest has them joined.
    archive.write(vec![item(0, "小明")], NOW).await.unwrap();
    for some in 0..2 {
        archive.write((1..900).map(|n| item(some * 900 + n, "小 明")).collect(), NOW).await.unwrap();
    }
    settle(archive, Some(&text())).await;
    let first = find_items(archive, &text(), &query("小明"), &As(archive, Viewer::Backend), None, Limit::from(10))
        .await
        .unwrap();
    assert!(first.items.is_empty() && first.next.is_some(), "one page looks at a bounded number of candidates");
    assert_eq!(found(archive, &text(), &query("小明"), Viewer::Backend, 10).await.len(), 1);
}

/// Numbers that look like chance and are the same for the same seed (xorshift).
pub struct Chance(u64);

impl Chance {
    /// The numbers of a seed.
    pub fn of_seed(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        // The first words are common, as in any language.
        let (a, b) = (self.below(words.len()), self.below(words.len()));
        words[a.min(b)]
    }

    /// Some words of several languages, with and without spaces: about 50 bytes.
    pub fn text(&mut self) -> String {
        const ENGLISH: [&str; 12] =
            ["the", "Hello", "world", "feed", "GATEWAY", "don't", "naïve", "e-mail", "3.14", "rust", "zebra", "Quark"];
        const CHINESE: [&str; 12] =
            ["我", "的", "北京", "小明", "王小明", "明天", "天气", "中国", "人民", "手机", "电影", "龘"];
        const JAPANESE: [&str; 8] = ["東京", "タワー", "こんにちは", "ﾃｽﾄ", "日本語", "です", "ラーメン", "々"];
        const OTHER: [&str; 8] = ["👍", "🎉🎉", "👩‍👩‍👧", "안녕하세요", "Привет", "，", "!", "Ｆｕｌｌ"];
        let mut text = String::new();
        for _ in 0..1 + self.below(12) {
            match self.below(8) {
                0..3 => text += self.of(&ENGLISH),
                3..6 => text += self.of(&CHINESE),
                6 => text += self.of(&JAPANESE),
                _ => text += self.of(&OTHER),
            }
            text += ["", "", " ", " ", "。"][self.below(5)];
        }
        text
    }
}

/// The items of a corpus as they are now, each with its words. A scan of all of them says what is right.
type Corpus = Vec<(Arc<Item>, Vec<Word>)>;

/// The items of a corpus that a query is to find, newest first, by a look at each of them.
fn scan(corpus: &Corpus, query: &ItemQuery) -> Vec<ItemId> {
    let right = |(item, words): &&(Arc<Item>, Vec<Word>)| {
        query.phrases.iter().all(|phrase| phrase.is_in(words)) && is_wanted(item, query)
    };
    let mut right: Vec<_> = corpus.iter().filter(right).map(|(item, _)| (item.published_at, item.id)).collect();
    right.sort_unstable();
    right.into_iter().rev().map(|(_, id)| id).collect()
}

/// Publishes `size` items of several languages by some authors, edits, deletes and imports some, and compares what is
/// found with a scan of all: as a backend, and as a viewer before whom shields, audiences and a private author stand.
/// It does so again after some of that has changed and a restart, and after the index was built anew.
async fn s14_what_is_found_is_what_a_scan_finds(open: &impl AsyncFn(&str) -> Arc<dyn Archive>, size: usize, seed: u64) {
    const AUTHORS: [&str; 5] = ["ann", "bob", "cid", "dan", "eve"];
    let (mut chance, fields) = (Chance::of_seed(seed), fields(&["text", "post.title"]));
    let archive = open("corpus").await;
    index(&*archive, Some(&fields)).await;
    let body = |chance: &mut Chance| {
        let (text, title) = (chance.text(), chance.text());
        Body::parse(serde_json::json!({ "text": text, "post": { "title": title }, "x": "unsaid" }).to_string()).unwrap()
    };
    for reader in ["fay", "gus"] {
        for author in AUTHORS {
            change(&*archive, follow(reader, author)).await;
        }
    }
    let mut made = 0;
    while made < size {
        let writes = (made..size.min(made + 500)).map(|nth| {
            let publish = Publish {
                id: Some(ItemId(nth as u64 + 1)),
                kind: [None, Some("post"), Some("story")][chance.below(3)].map(Into::into),
                published_at: Some(NOW + chance.below(size) as Millis),
                audience: match chance.below(20) {
                    0 => Audience::Users(vec![user("fay")]),
                    1 => Audience::Narrowed(Narrowed::to(vec![user("fay")])),
                    2 => Audience::Narrowed(Narrowed::to(vec![user("gus")])),
                    _ => Audience::Followers,
                },
                ..Publish::new(user(AUTHORS[chance.below(AUTHORS.len())]), body(&mut chance))
            };
            match chance.below(10) {
                0 => Write::Import(Import::Item { publish, version: 1, deleted: chance.below(10) == 0 }),
                _ => Write::Publish(publish),
            }
        });
        let writes = Vec::from_iter(writes);
        made += writes.len();
        assert!(archive.write(writes, NOW).await.unwrap().iter().all(std::result::Result::is_ok));
    }
    for _ in 0..4 {
        let mut changes = BTreeMap::new();
        for _ in 0..size / 40 {
            let item = ItemId(1 + chance.below(size) as u64);
            let change = match chance.below(2) {
                0 => Write::Delete { item, if_version: None },
                _ => Write::Edit { item, body: Some(body(&mut chance)), rank: None, mentions: None, if_version: None },
            };
            changes.insert(item, change);
        }
        // What was deleted in an earlier round takes no edit.
        _ = archive.write(changes.into_values().collect(), NOW).await.unwrap();
    }
    for (who, kind, other) in
        [("fay", Shield::Block, "ann"), ("bob", Shield::Block, "fay"), ("fay", Shield::Mute, "cid")]
    {
        write(&*archive, shield(who, kind, other, true)).await.unwrap();
    }
    settle(&*archive, Some(&fields)).await;
    compare(&*archive, &fields, size, &mut chance).await;
    // What closes after it was indexed is found no more, and an index that is built anew finds the same.
    for closing in [
        shield("dan", Shield::Hide, "fay", true),
        unfollow("fay", "eve"),
        Write::Private { author: user("eve"), private: true },
    ] {
        write(&*archive, closing).await.unwrap();
    }
    drop(archive);
    let archive = open("corpus").await;
    settle(&*archive, Some(&fields)).await;
    compare(&*archive, &fields, size, &mut chance).await;
    index(&*archive, None).await;
    index(&*archive, Some(&fields)).await;
    compare(&*archive, &fields, size, &mut chance).await;
}

/// Whether a query wants this item, whatever words it has.
fn is_wanted(item: &Item, query: &ItemQuery) -> bool {
    let (since, until) = query.published;
    query.author.is_none_or(|author| item.author_no == author)
        && query.kind.as_ref().is_none_or(|kind| item.kind.as_ref() == Some(kind))
        && item.published_at >= since
        && item.published_at <= until
}

/// Whether a field that is searched holds these characters side by side. Of Chinese, that is what is found.
fn holds(item: &Item, characters: &str) -> bool {
    let body: serde_json::Value = serde_json::from_str(item.body.get()).unwrap();
    let fields = [&body["text"], &body["post"]["title"]];
    fields.iter().any(|field| field.as_str().is_some_and(|text| text.contains(characters)))
}

/// Compares what some queries find with a scan of all items.
async fn compare(archive: &dyn Archive, fields: &TextFields, size: usize, chance: &mut Chance) {
    let fay = Viewer::User(Some(number(archive, "fay").await));
    let ids: Vec<ItemId> = (1..=size as u64).map(ItemId).collect();
    let mut seen: [Corpus; 2] = Default::default();
    for (viewer, corpus) in [Viewer::Backend, fay].into_iter().zip(&mut seen) {
        for some in ids.chunks(500) {
            let items = archive.originals(some, viewer).await.unwrap();
            let with_words = |item: Arc<Item>| {
                let words = fields.words_of(&item.body);
                (item, words)
            };
            corpus.extend(items.into_iter().flatten().map(with_words));
        }
    }
    let [all, fays] = &seen;
    assert!(all.len() < size && fays.len() < all.len(), "some are deleted, and some more are not for the viewer");
    let numbers = archive.intern(&[user("ann"), user("eve")]).await.unwrap();
    let mut hits = 0;
    for nth in 0..16 {
        let wanted = match nth {
            0 => "的".to_owned(),
            1 => "小明".to_owned(),
            2 => "the hello".to_owned(),
            _ => {
                let text: Vec<char> = chance.text().chars().collect();
                let from = chance.below(text.len());
                text[from..text.len().min(from + 1 + chance.below(8))].iter().collect()
            }
        };
        let mut query = query(&wanted);
        if query.phrases.is_empty() {
            continue;
        }
        if nth % 3 == 1 {
            query.author = Some(numbers[nth % 2]);
            query.kind = [None, Some("story".into())][chance.below(2)].clone();
        }
        if nth % 4 == 1 {
            query.published = (NOW + (size / 4) as Millis, NOW + (size / 2) as Millis);
        }
        for (viewer, corpus) in [(Viewer::Backend, all), (fay, fays)] {
            let right = scan(corpus, &query);
            let found = found(archive, fields, &query, viewer, 40 + chance.below(61)).await;
            if nth < 2 {
                let holds = corpus.iter().filter(|(item, _)| is_wanted(item, &query) && holds(item, &wanted)).count();
                assert_eq!(found.len(), holds, "{wanted:?}: a scan that knows nothing of words");
            }
            assert!(found == right, "{wanted:?} as {viewer:?}: {} found, {} right", found.len(), right.len());
            hits += right.len();
        }
    }
    assert!(hits > 100, "the queries find something: {hits}");
    let unsaid = found(archive, fields, &self::query("unsaid"), Viewer::Backend, 10).await;
    assert_eq!(unsaid, vec![], "a field that is not named is not searched");
}

async fn s14_an_erasure_leaves_nothing_that_is_found(archive: Arc<dyn Archive>) {
    use feedgate_common::archive::Remains;
    let archive = &*archive;
    index(archive, Some(&text())).await;
    let ann = number(archive, "ann").await;
    let (item, _) = accept(archive, post("ann", "secret"), NOW).await;
    archive.put_people(vec![(ann, named("Secret Ann"))], Known::Replaced).await.unwrap();
    settle(archive, Some(&text())).await;
    assert_eq!((finds(archive, "secret").await, finds_users(archive, "secret").await.len()), (vec![item], 1));
    // The steps of an erasure: items go by ordinary writes, the person with the rest.
    write_at(archive, Write::Delete { item, if_version: None }, NOW + 1).await.unwrap();
    archive.scrub(ann, &Remains { items: vec![item], ..Remains::default() }).await.unwrap();
    while archive.forget_rest(ann, 10).await.unwrap() {}
    settle(archive, Some(&text())).await;
    for look in [
        query("secret").look(None, 10),
        look_for_users(&phrases("secret"), None, 10),
        look_for_users(&phrases("ann"), None, 10),
    ] {
        assert_eq!(archive.find(&text(), &look).await.unwrap().places, vec![], "no row is left: {look:?}");
    }
    assert!(!takes_user(&phrases("secret"), &user("ann"), None));
}
