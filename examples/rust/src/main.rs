//! An app in Rust: it shows a feed, scrolls up, and goes on where it was after it was killed.
//!
//! ```text
//!   cd examples/rust
//!   FEEDGATE_KEY=$(cat ../../data/secrets/api_key) cargo run bob bob.json
//! ```
//!
//! FILE holds the list and its position between two runs. The line `older` on stdin loads an older page.

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use std::{env, fs, io};

use centrifuge::{Client, PublicationEvent, StreamPosition, TokenError};
use feedgate_feed::{Change, Feed, Gap, Limits, Page, Position, Stored, read};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{interval, sleep};

type Failed = Box<dyn Error + Send + Sync>;

/// The time between two writes of the file, and between two attempts.
const TICK: Duration = Duration::from_secs(1);

/// How long the backend may take to answer with a token.
const TOKEN_WITHIN: Duration = Duration::from_secs(10);

/// What the file holds: a list, and the user whose it is.
#[derive(Serialize, Deserialize)]
struct Kept {
    user: String,
    feed: Stored,
}

/// One reader's feed on this device.
struct App {
    url: String,
    user: String,
    file: PathBuf,
    /// The list; nothing waits while it is locked.
    feed: Mutex<Feed>,
    /// Whether the SDK was given a position before.
    offered: AtomicBool,
}

/// What the handlers of the SDK tell the loop of `main`.
enum Told {
    /// A change is missing.
    Gap,
    /// The SDK has stopped for good; the text says why.
    Stopped(String),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let mut words = env::args().skip(1);
    let (Some(user), Some(file), None) = (words.next(), words.next(), words.next()) else {
        return Err("usage: app USER FILE".into());
    };
    let (tell, told) = unbounded_channel();
    let app = Arc::new(App::restored(user, file.into()));
    let client = app.clone().connect(tell)?;
    client.connect()?;
    app.run(&client, told).await
}

impl App {
    /// The app as the last run left it for this user, or a new one. A file that cannot be used counts as none.
    fn restored(user: String, file: PathBuf) -> Self {
        let kept = kept(&file).unwrap_or_else(|error| {
            eprintln!("{} cannot be used: {error}", file.display());
            None
        });
        let kept = kept.filter(|kept| kept.user == user);
        let feed = kept.map_or_else(Feed::default, |kept| Feed::restored(Limits::default(), kept.feed));
        let url = env::var("FEEDGATE_URL").unwrap_or_else(|_| "http://127.0.0.1:8080".into());
        Self { url, user, file, feed: Mutex::new(feed), offered: AtomicBool::new(false) }
    }

    /// Makes the client and its subscription; `tell` takes what their handlers have to say.
    fn connect(self: Arc<Self>, tell: UnboundedSender<Told>) -> Result<Client, Failed> {
        let (gap, app) = (tell.clone(), self.clone());
        let client = Client::builder(self.url.replacen("http", "ws", 1) + "/connection/websocket")
            .get_token(move |_| {
                let app = app.clone();
                async move { Ok(Some(tokio::task::spawn_blocking(move || app.token()).await??)) }
            })
            .on_error(|_, event| eprintln!("{}", event.error))
            .on_disconnected(move |_, end| drop(tell.send(Told::Stopped(format!("{} ({})", end.reason, end.code)))))
            .build()?;
        let (app, weak) = (self.clone(), client.downgrade());
        let subscription = client
            .new_subscription("feed")
            .data(r#"{"deliver":"items"}"#)
            .get_state(move |_| {
                let (app, client) = (app.clone(), weak.upgrade());
                async move { app.state(&client.ok_or("the client is gone")?).await }
            })
            .on_publication(move |_, one| {
                if self.published(&one).is_err() {
                    let _ = gap.send(Told::Gap);
                }
            })
            .on_error(|_, event| eprintln!("{}", event.error))
            .build()?;
        subscription.subscribe();
        Ok(client)
    }

    /// Saves now and then, and does what stdin and the handlers say, until the SDK has stopped for good.
    async fn run(&self, client: &Client, mut told: UnboundedReceiver<Told>) -> Result<(), Failed> {
        let (mut lines, mut ticks) = (BufReader::new(tokio::io::stdin()).lines(), interval(TICK));
        let (mut saved, mut reading) = (String::new(), true);
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    if let Err(error) = self.save(client, &mut saved).await {
                        eprintln!("not saved: {error}"); // the next tick tries again
                    }
                }
                Some(told) = told.recv() => match told {
                    Told::Gap => self.repair(client).await,
                    Told::Stopped(why) => {
                        eprintln!("stopped for good: {why}");
                        exit(1); // the end of `main` would wait for the thread that waits for a line
                    }
                },
                line = lines.next_line(), if reading => match line? {
                    Some(line) if line == "older" => self.older(client).await,
                    Some(_) => {}
                    None => reading = false,
                },
            }
        }
    }

    fn feed(&self) -> MutexGuard<'_, Feed> {
        self.feed.lock().expect("no thread has panicked with the feed")
    }

    /// The SDK asks for a position at first, and again when the server cannot go on from that one.
    async fn state(&self, client: &Client) -> Result<StreamPosition, Failed> {
        let offered = self.offered.swap(true, Ordering::Relaxed);
        let position = self.feed().position().filter(|_| !offered).cloned();
        let Position { epoch, offset } = match position {
            Some(position) => {
                println!("going on from {}", position.offset);
                position
            }
            None => self.load(client).await?,
        };
        Ok(StreamPosition::new(offset, epoch))
    }

    fn published(&self, one: &PublicationEvent) -> Result<(), Failed> {
        let change: Change = read(&one.data)?;
        if self.feed().apply(change, one.offset, None).map_err(missing)? {
            println!("change {}", one.offset);
        }
        Ok(())
    }

    /// Loads page one again. Changes that come meanwhile are held by the feed.
    async fn load(&self, client: &Client) -> Result<Position, Failed> {
        self.feed().lost();
        let page = page(client, None).await?;
        let mut feed = self.feed();
        feed.reset(page).map_err(missing)?;
        println!("loaded page one");
        Ok(feed.position().cloned().expect("a page has a position"))
    }

    /// Repairs a gap by page one, as soon as the connection lets it through.
    async fn repair(&self, client: &Client) {
        while let Err(error) = self.load(client).await {
            eprintln!("{error}");
            sleep(TICK).await;
        }
    }

    async fn older(&self, client: &Client) {
        let Some(cursor) = self.feed().next().map(str::to_owned) else { return };
        match page(client, Some(&cursor)).await.map(|page| self.feed().append(page, &cursor)) {
            Ok(true) => {}
            Ok(false) => println!("the feed has changed meanwhile: ask again"),
            Err(error) => eprintln!("{error}"),
        }
    }

    /// Stores the list together with its position, and only then acknowledges.
    async fn save(&self, client: &Client, saved: &mut String) -> Result<(), Failed> {
        let (text, position) = {
            let feed = self.feed();
            let kept = Kept { user: self.user.clone(), feed: feed.stored() };
            (serde_json::to_string(&kept)?, feed.position().cloned())
        };
        let Some(position) = position.filter(|_| text != *saved) else { return Ok(()) };
        self.write(&text)?;
        *saved = text;
        if let Err(error) = client.rpc("ack", serde_json::to_vec(&position)?).await {
            eprintln!("{error}"); // the next acknowledgement says as much
        }
        Ok(())
    }

    /// Puts a text into the file. A crash leaves the old text there, or the new one, and never a part.
    fn write(&self, text: &str) -> io::Result<()> {
        let mut new = self.file.clone().into_os_string();
        new.push(".new");
        let mut out = File::create(&new)?;
        out.write_all(text.as_bytes())?;
        out.sync_all()?;
        fs::rename(new, &self.file)
    }

    /// A real app asks its own backend for a token: only backends hold the key. If the token is refused, the SDK stops.
    fn token(&self) -> Result<String, TokenError> {
        let key = env::var("FEEDGATE_KEY")?;
        let answer = ureq::post(format!("{}/v1/users/{}/token", self.url, self.user))
            .config()
            .timeout_global(Some(TOKEN_WITHIN))
            .build()
            .header("Authorization", format!("Bearer {key}"))
            .send_json(json!({"device_id": "app-rust"}))
            .and_then(|mut answer| answer.body_mut().read_json::<Value>());
        let answer = match answer {
            Err(ureq::Error::StatusCode(401 | 403)) => return Err(TokenError::Unauthorized),
            answer => answer?,
        };
        Ok(answer["token"].as_str().map(str::to_owned).ok_or_else(|| io::Error::other(answer.to_string()))?)
    }
}

/// What the last run left in the file, if there is one.
fn kept(file: &Path) -> Result<Option<Kept>, Failed> {
    match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        text => Ok(Some(read(&text?)?)),
    }
}

/// A page of the feed: the first, or the one that `cursor` names.
async fn page(client: &Client, cursor: Option<&str>) -> Result<Page, Failed> {
    let asked = match cursor {
        Some(cursor) => json!({"limit": 20, "cursor": cursor}),
        None => json!({"limit": 20}),
    };
    Ok(read(&client.rpc("page", asked.to_string()).await?.data)?)
}

fn missing(Gap { at, came }: Gap) -> Failed {
    format!("changes are missing between {} and {came}", at.offset).into()
}
