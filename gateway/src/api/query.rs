//! Reads path segments and query parameters. Each parameter must be known to the route and be given only once.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{FromRequestParts, Query as Pairs, RawPathParams};
use axum::http::request::Parts;
use feedgate_common::ids::BadName;
use feedgate_common::named::NamedFeeds;
use feedgate_common::{DisplayKey, FeedId, ItemId};
use percent_encoding::percent_decode_str;

use super::problem::{Kind, Problem, short};
use crate::protocol::page_json;

macro_rules! segments {
    ($(#[$doc:meta])* $name:ident $($T:ident)*) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name<$($T),*>($(pub(crate) $T),*);

        impl<S: Send + Sync, $($T: FromStr<Err: Display>),*> FromRequestParts<S> for $name<$($T),*> {
            type Rejection = Problem;

            async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
                let open = open_segments(parts, state).await?;
                let mut open = open.iter();
                Ok(Self($(next::<$T>(&mut open)?),*))
            }
        }
    };
}

segments!(
    /// The one segment of the path that is variable, percent-decoded.
    Segment A
);
segments!(
    /// The two segments of the path that are variable, percent-decoded, in their order.
    Segments A B
);
segments!(
    /// The three segments of the path that are variable, percent-decoded, in their order.
    Segments3 A B C
);

async fn open_segments<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<RawPathParams, Problem> {
    RawPathParams::from_request_parts(parts, state).await.map_err(|refused| match refused {
        RawPathParamsRejection::InvalidUtf8InPathParam(_) => {
            Problem::new(Kind::BadParameter, "the path is not UTF-8 after percent-decoding")
        }
        other => Problem::new(Kind::BadParameter, other.to_string()),
    })
}

fn next<'a, T: FromStr<Err: Display>>(open: &mut impl Iterator<Item = (&'a str, &'a str)>) -> Result<T, Problem> {
    let (name, text) = open.next().expect("the route leaves as many segments open as its handler takes");
    text.parse().map_err(|why: T::Err| Problem::parameter(name.to_owned(), why.to_string()))
}

/// An item in a path: `{id}` or `foreign:{key}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ItemRef {
    /// An item by its id.
    Id(ItemId),
    /// An item by the backend's own key.
    Foreign(String),
}

impl FromStr for ItemRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("foreign:") {
            Some("") => Err("foreign: must be followed by the backend's own key".to_owned()),
            Some(key) => Ok(Self::Foreign(key.to_owned())),
            None => short(text).parse().map(Self::Id).map_err(|why: BadName| why.to_string()),
        }
    }
}

impl Display for ItemRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Foreign(key) => write!(f, "foreign:{}", short(key)),
        }
    }
}

/// The query parameters of a request, not checked yet.
#[derive(Debug)]
pub(crate) struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // The form decoder would put U+FFFD in place of a byte that is not UTF-8, and so read another text.
        if percent_decode_str(parts.uri.query().unwrap_or_default()).decode_utf8().is_err() {
            return Err(Problem::new(Kind::BadParameter, "the query is not UTF-8 after percent-decoding"));
        }
        let pairs = Pairs::from_request_parts(parts, state).await;
        pairs.map(|Pairs(all)| Self(all)).map_err(|why| Problem::new(Kind::BadParameter, why.to_string()))
    }
}

impl Query {
    /// 400 unless every parameter is one of `known` and is given only once.
    pub(crate) fn only(self, known: &[&str]) -> Result<Params, Problem> {
        for (i, (name, _)) in self.0.iter().enumerate() {
            if !known.contains(&&**name) {
                let right = if known.is_empty() {
                    "this route takes none".into()
                } else {
                    format!("known are {}", known.join(", "))
                };
                let detail = format!("unknown query parameter {:?}; {right}", short(name));
                return Err(Problem::parameter(short(name).into_owned(), detail));
            }
            if self.0[..i].iter().any(|(earlier, _)| earlier == name) {
                return Err(Problem::parameter(name.clone(), format!("parameter {name} stands twice; give it once")));
            }
        }
        Ok(Params(self.0))
    }
}

/// Checks that the request has no query parameter.
#[derive(Debug)]
pub(crate) struct NoQuery;

impl<S: Send + Sync> FromRequestParts<S> for NoQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Query::from_request_parts(parts, state).await?.only(&[]).map(|_| Self)
    }
}

/// Query parameters that are known to the route.
#[derive(Debug)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// The text of a parameter; `None` if the parameter is not given.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// A parameter read as a `T`; `None` if the parameter is not given.
    pub(crate) fn parse<T: FromStr<Err: Display>>(&self, name: &'static str) -> Result<Option<T>, Problem> {
        self.get(name)
            .map(|text| text.parse().map_err(|why| Problem::parameter(name, format!("{name}: {why}"))))
            .transpose()
    }

    /// The parameter `limit`: 1 to `max`, or `default` if it is not given.
    pub(crate) fn limit(&self, default: usize, max: usize) -> Result<usize, Problem> {
        let Some(text) = self.get("limit") else { return Ok(default) };
        match decimal(text) {
            Some(limit) if (1..=max as u64).contains(&limit) => Ok(limit as usize),
            _ => Err(Problem::parameter(
                "limit",
                format!("limit must be a number from 1 to {max}, not {:?}", short(text)),
            )),
        }
    }

    /// The parameter `cursor`: the `next` of an earlier page.
    pub(crate) fn cursor(&self) -> Result<Option<DisplayKey>, Problem> {
        let refuse = |why| Problem::parameter("cursor", why);
        self.get("cursor").map(|text| page_json::parse_cursor(text).map_err(refuse)).transpose()
    }

    /// The parameter `cursor` as `parse` reads it; `None` if the parameter is not given.
    pub(crate) fn cursor_of<T>(&self, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, Problem> {
        let wrong = || {
            Problem::parameter(
                "cursor",
                "cursor must be one that an earlier page of this list has given, such as its \"next\"",
            )
        };
        self.get("cursor").map(|text| parse(text).ok_or_else(wrong)).transpose()
    }

    /// The parameter `cursor` of a profile: the key below which the page begins, and what was pinned on the first page.
    pub(crate) fn profile_cursor(&self) -> Result<Option<(DisplayKey, Vec<ItemId>)>, Problem> {
        let refuse = |why| Problem::parameter("cursor", why);
        self.get("cursor").map(|text| page_json::parse_profile_cursor(text).map_err(refuse)).transpose()
    }

    /// The parameter `name`: one of the feeds, by default the main feed; 404 for a feed that is not configured.
    pub(crate) fn feed(&self, named: &NamedFeeds) -> Result<FeedId, Problem> {
        let name = self.get("name").unwrap_or(FeedId::MAIN_NAME);
        named.by_name(name).ok_or_else(|| {
            let there_are = named.names();
            Problem::new(Kind::NotFound, format!("there is no feed named {:?}; there is {there_are}", short(name)))
        })
    }
}

/// Reads a plain decimal number, without a sign or a space.
pub(crate) fn decimal(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}
