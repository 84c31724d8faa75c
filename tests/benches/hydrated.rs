//! What a page costs whose items have everything around them, beside a page whose items have nothing.
//!
//! ```text
//!   the plain reader's feed   20 items by 4 authors of whom nothing is known
//!   the full reader's feed    the same, and each item has 3 kinds of reactions by 12 users, the reader among them,
//!                             3 comments and 2 mentions; each fourth is a repost of an item with as much; 8 people
//! ```
//!
//! Run it: `cargo bench -p feedgate-tests --bench hydrated [-- --json FILE]`, some seconds. Both pages are read by HTTP
//! from the release binary, in turns, so that what else the machine does meets both. With `--cluster` a gateway and a
//! worker over PostgreSQL, Redis and NATS take the place of the one process, and the engines' processor time counts.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Parser;
use feedgate_tests::load::{self, Backend, Home, Installation, Report, milliseconds, quantile};
use feedgate_tests::process::load_average;
use hyper::Method;
use serde_json::{Value, json};

/// How many items a page has.
const PAGE: usize = 20;
/// The authors of each reader.
const AUTHORS: usize = 4;
/// The users who react to each item.
const REACTING: usize = 12;
const KINDS: [&str; 3] = ["like", "wow", "sad"];
/// How many reads of one page are measured before it is the other one's turn.
const TURN: usize = 200;

/// What the command line may change.
#[derive(Parser)]
#[command(about = "What a page costs whose items have everything around them")]
struct Options {
    /// How often each page has its turn of 200 reads
    #[arg(long, default_value_t = 20)]
    turns: usize,
    /// Measures a gateway and a worker over PostgreSQL, Redis and NATS
    #[arg(long)]
    cluster: bool,
    /// The directory of the programs to measure; else the release build, made first
    #[arg(long)]
    binaries: Option<PathBuf>,
    /// Where to write the figures as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// Cargo says this to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    load::run_with(Installation::programs(options.cluster), options.binaries.clone(), async |binaries| {
        let home = Home::make(binaries)?;
        measure(&options, &Installation::start(&home, options.cluster).await?).await
    })
}

async fn measure(options: &Options, server: &Installation) -> anyhow::Result<()> {
    let (started, load, mut report) = (Instant::now(), load_average()?, Report::default());
    let backend = &server.gateway.backend;
    plain(backend).await?;
    full(backend).await?;
    backend.quiet().await?;
    let pages = ["plain", "full"].map(|reader| (reader, format!("/v1/users/{reader}/feed?limit={PAGE}")));
    check(&backend.get(&pages[0].1).await?, &backend.get(&pages[1].1).await?)?;
    let (mut times, mut spent) = ([vec![], vec![]], [0.0; 2]);
    for turn in 0..=options.turns {
        for (of, (_, path)) in pages.iter().enumerate() {
            let before = server.cpu_seconds()?;
            for _ in 0..TURN {
                let began = Instant::now();
                backend.read(path).await?;
                // The first turn finds cold caches.
                if turn > 0 {
                    times[of].push(began.elapsed());
                }
            }
            spent[of] += if turn > 0 { server.cpu_seconds()? - before } else { 0.0 };
        }
    }
    let reads = (TURN * options.turns) as f64;
    let p50 = times.each_ref().map(|times| milliseconds(quantile(times.clone(), 0.5)));
    for (of, (name, _)) in pages.iter().enumerate() {
        report.figure(&format!("{name} page of {PAGE}: p50"), p50[of], "ms");
        report.figure(&format!("{name} page of {PAGE}: p99"), milliseconds(quantile(times[of].clone(), 0.99)), "ms");
        report.figure(&format!("{name} page of {PAGE}: server"), spent[of] * 1e6 / reads, "CPU-us/page");
    }
    report.figure("full beside plain: p50", p50[1] / p50[0], "");
    report.figure("full beside plain: processor time of the server", spent[1] / spent[0], "");
    report.finish("hydrated", (started, &load), options.binaries.as_deref(), options.json.as_deref())
}

/// Publishes an item whose body is about 200 bytes, and gives its id.
async fn publish(backend: &Backend, author: &str, more: Value) -> anyhow::Result<String> {
    let mut item = json!({"author": author, "body": {"text": "x".repeat(190)}});
    item.as_object_mut().context("an object")?.extend(more.as_object().cloned().unwrap_or_default());
    let answer = backend.request(Method::POST, "/v1/items", Some(item)).await?;
    Ok(answer["id"].as_str().context("an item has an id")?.to_owned())
}

async fn plain(backend: &Backend) -> anyhow::Result<()> {
    for author in 0..AUTHORS {
        backend.follow(&["plain".to_owned()], &format!("plain-{author}")).await?;
    }
    for nth in 0..PAGE {
        publish(backend, &format!("plain-{}", nth % AUTHORS), json!({})).await?;
    }
    Ok(())
}

async fn full(backend: &Backend) -> anyhow::Result<()> {
    let authors = (0..AUTHORS).map(|nth| format!("full-{nth}"));
    let others = (0..AUTHORS).map(|nth| format!("other-{nth}"));
    for user in authors.clone().chain(others) {
        let person = json!({"name": format!("The name of {user}"), "avatar": format!("https://a.example/{user}.webp")});
        backend.request(Method::PUT, &format!("/v1/users/{user}"), Some(person)).await?;
    }
    for author in authors {
        backend.follow(&["full".to_owned()], &author).await?;
    }
    for nth in 0..PAGE {
        let by = nth % AUTHORS;
        let mut more = json!({"mentions": [format!("other-{by}"), "full"]});
        if nth % 4 == 0 {
            let original = publish(backend, &format!("other-{}", nth / 4 % AUTHORS), json!({})).await?;
            around(backend, &original).await?;
            more["ref"] = json!(original);
        }
        let item = publish(backend, &format!("full-{by}"), more).await?;
        around(backend, &item).await?;
    }
    Ok(())
}

/// Lets users react to the item and comment on it.
async fn around(backend: &Backend, item: &str) -> anyhow::Result<()> {
    let user = |nth: usize| if nth == 0 { "full".to_owned() } else { format!("user-{nth}") };
    let add = |nth: usize| json!({"op": "add", "item": item, "kind": KINDS[nth % KINDS.len()], "user": user(nth)});
    let ops: Vec<Value> = (0..REACTING).map(add).collect();
    backend.request(Method::POST, "/v1/reactions/batch", Some(json!({ "ops": ops }))).await?;
    for nth in 1..=3 {
        let comment = json!({"author": user(nth), "body": {"text": "a comment"}});
        backend.request(Method::POST, &format!("/v1/items/{item}/comments"), Some(comment)).await?;
    }
    Ok(())
}

/// Fails if the pages do not show what is measured.
fn check(plain: &Value, full: &Value) -> anyhow::Result<()> {
    let items = |page: &Value| page["items"].as_array().cloned().context("a page has items");
    let (plain, shown) = (items(plain)?, items(full)?);
    ensure!(plain.len() == PAGE && shown.len() == PAGE, "pages of {} and {} items", plain.len(), shown.len());
    ensure!(plain.iter().all(|item| item["counts"].is_null()), "a plain item has nothing around it");
    let counts = json!({"like": 4, "wow": 4, "sad": 4, "comments": 3});
    let is_whole =
        |item: &Value| item["own"] == json!(["like"]) && item["mentions"].as_array().map(Vec::len) == Some(2);
    ensure!(shown.iter().all(|item| item["counts"] == counts && is_whole(item)), "not everything is shown: {shown:?}");
    let originals = shown.iter().filter(|item| item["ref_item"]["counts"]["like"] == 4).count();
    ensure!(originals == PAGE / 4, "{originals} originals");
    ensure!(full["people"].as_object().map(serde_json::Map::len) == Some(2 * AUTHORS), "people: {}", full["people"]);
    Ok(())
}
