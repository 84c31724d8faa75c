//! Carries out the commands. All commands except `serve`, `restore`, `doctor`, `secrets`, `api-key` and the two for the
//! configuration are clients of the running server, as any backend is.

use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow, ensure};
use feedgate_common::{Body, UserId};
use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cli::{Cli, Command, Edge, Publish, Server, Start};
use crate::client::{Client, query, strange};
use crate::effective::{self, server_settings};
use crate::serve::{self, Role};
use crate::settings::Settings;
use crate::stdout::print;
use crate::{DEFAULT_CONFIG, against, backup, doctor, restore, secrets, tail, tls, top, transfer};

/// Carries out a command line. Blocks until the command is done.
pub(crate) fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command.unwrap_or(Command::Serve(cli.start)) {
        Command::CheckConfig { serve, against: Some(url), key } => {
            client(against::compare(server_settings(&serve)?, url, key))
        }
        command => carry_out(command),
    }
}

fn carry_out(command: Command) -> anyhow::Result<ExitCode> {
    let done = match command {
        Command::Serve(Start { serve, accept_loss }) => {
            serve::run(Role::FEEDGATE, Arc::new(move || server_settings(&serve)), accept_loss)
        }
        Command::CheckConfig { serve, .. } => show(&server_settings(&serve)?, Role::FEEDGATE),
        Command::DefaultConfig => print(DEFAULT_CONFIG.trim_end()),
        Command::Ready { url } => client(async move {
            Client::anonymous(&url)?.call(Method::GET, "/readyz", None).await?;
            print("ready")
        }),
        Command::Secrets { directory } => {
            secrets::open_or_make(&directory)?;
            secrets::webhook_keys_or_make(&directory)?;
            print(&format!("the secrets are in {}", directory.display()))
        }
        Command::ApiKey { name, roles, place } => {
            let directory = effective::settings(&place)?.secrets_dir();
            print(&secrets::api_keys::make(&directory, &name, roles.into_iter().collect())?)
        }
        Command::Token { user, device, ttl, server } => {
            client(async move { print(&Client::find(server)?.token(&user, device.as_ref(), ttl).await?) })
        }
        Command::Publish(publish) => client(self::publish(publish)),
        Command::Follow(edge) => client(set(Method::PUT, edge)),
        Command::Unfollow(edge) => client(set(Method::DELETE, edge)),
        Command::Class { author, class, server } => client(async move {
            let body = json!({ "class": class }).to_string();
            Client::find(server)?.call(Method::PUT, &format!("/v1/authors/{author}"), Some(body.into())).await?;
            print(&format!("{author} is of class {class}"))
        }),
        Command::Feed { user, name, limit, cursor, server } => client(async move {
            let cursor = cursor.map(|cursor| format!("&cursor={}", query(&cursor))).unwrap_or_default();
            let path = format!("/v1/users/{user}/feed?name={}&limit={limit}{cursor}", query(&name));
            print(&Client::find(server)?.call(Method::GET, &path, None).await?)
        }),
        Command::Import { file, from_line, server } => {
            client(async move { transfer::import(&file, from_line, server).await })
        }
        Command::Export { cursor, server } => client(transfer::export(cursor, server)),
        Command::Backup { directory, place } => client(backup::make(directory, place)),
        Command::Restore { backup, place } => restore::run(&backup, &place),
        Command::Doctor { backup, scratch, inboxes, place } => {
            return Ok(doctor::run(backup, scratch, inboxes, &place));
        }
        Command::Console { server } => client(console(server)),
        Command::Tail(tail) => tail::run(tail),
        Command::Top(top) => client(top::run(top)),
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// Prints the settings of a process of this role as a file that would give them; passwords are not shown. Fails if a
/// file of TLS that they name cannot be used.
pub(crate) fn show(settings: &Settings, role: Role) -> anyhow::Result<()> {
    tls::check(settings, role.gateway).map_err(|problems| effective::wrong(&problems))?;
    if let Some(unused) = settings.unused().filter(|_| role.gateway) {
        eprintln!("note: {unused}");
    }
    print(toml::to_string(settings)?.trim_end())
}

fn client<T>(command: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(command)
}

/// The request body of a publish. The server fills in the fields that are left out.
#[derive(Serialize)]
struct Item<'a> {
    author: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<feedgate_common::ItemId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    foreign_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audience: Option<Audience<'a>>,
    body: &'a Body,
}

/// The named readers of an item.
#[derive(Serialize)]
struct Audience<'a> {
    users: &'a [UserId],
}

async fn publish(args: Publish) -> anyhow::Result<()> {
    let body = match args.body.as_str() {
        "-" => read_body(std::io::stdin().lock())?,
        text => text.to_owned(),
    };
    let body = json_body(body)?;
    let item = Item {
        author: args.author.as_str(),
        kind: args.kind.as_deref(),
        id: args.id,
        foreign_id: args.foreign_id.as_deref(),
        rank: args.rank,
        published_at: args.published_at,
        audience: (!args.to.is_empty()).then_some(Audience { users: &args.to }),
        body: &body,
    };
    let answer =
        Client::find(args.server)?.call(Method::POST, "/v1/items", Some(serde_json::to_vec(&item)?.into())).await?;
    print(&answer)
}

async fn console(server: Server) -> anyhow::Result<()> {
    #[derive(Deserialize)]
    struct Made {
        ticket: String,
    }
    let client = Client::find(server)?;
    let answer = client.call(Method::POST, "/v1/console/ticket", None).await?;
    let Made { ticket } = serde_json::from_str(&answer).map_err(|error| strange(&error))?;
    print(&format!("{}/#ticket={ticket}", client.reach().url()))
}

/// Reads as much as may be published, and one byte more to detect that there is more.
fn read_body(stdin: impl Read) -> anyhow::Result<String> {
    let mut bytes = vec![];
    stdin.take(Body::MAX_BYTES as u64 + 1).read_to_end(&mut bytes).context("the body cannot be read from stdin")?;
    // The last character may be cut.
    ensure!(bytes.len() <= Body::MAX_BYTES, "the body on stdin is too long: it may have {} bytes", Body::MAX_BYTES);
    String::from_utf8(bytes).context("the body on stdin is not UTF-8")
}

fn json_body(text: String) -> anyhow::Result<Body> {
    let example = match text.trim() {
        "" => json!({"text": "hello"}),
        plain => json!({"text": plain.chars().take(40).collect::<String>()}),
    };
    let hint = || anyhow!("a body is JSON of at most {} bytes, for example '{example}'", Body::MAX_BYTES);
    Body::parse(text).map_err(|why| hint().context(why))
}

async fn set(method: Method, edge: Edge) -> anyhow::Result<()> {
    let follows = if method == Method::PUT { "follows" } else { "does not follow" };
    let path = format!("/v1/users/{}/following/{}", edge.reader, edge.author);
    let answer = Client::find(edge.server)?.call(method, &path, None).await?;
    // Only the answer to a follow that waits for the author's consent has a body.
    let follows = if answer.is_empty() { follows } else { "has asked to follow" };
    print(&format!("{} {follows} {}", edge.reader, edge.author))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_is_no_json_is_shown_as_one_that_is() {
        assert_eq!(json_body(" {\"b\":1, \"a\":2} ".to_owned()).unwrap().get(), "{\"b\":1, \"a\":2}");
        let error = format!("{:#}", json_body("hello \"world\"".to_owned()).unwrap_err());
        assert!(error.contains(r#"'{"text":"hello \"world\""}'"#), "{error}");
        assert!(json_body(String::new()).is_err());
        let long = format!("\"{}\"", "x".repeat(Body::MAX_BYTES));
        assert!(json_body(long).unwrap_err().to_string().contains("at most 65536 bytes"));
    }
}
