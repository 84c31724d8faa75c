//! What stands in the URL: path segments and query parameters. All of it must be known to the route
//! and stand once.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, Query as Pairs};
use axum::http::request::Parts;
use feedgate_common::{DisplayKey, FeedId, ItemId};
use serde::de::{Deserialize, DeserializeOwned, Deserializer};

use super::problem::{Kind, Problem, short};
use crate::page_json;

/// The segments that the route leaves open, percent-decoded.
#[derive(Debug)]
pub(crate) struct Segments<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Segments<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(segments)) => Ok(Self(segments)),
            Err(PathRejection::FailedToDeserializePathParams(failed)) => Err(match failed.into_kind() {
                ErrorKind::DeserializeError { key, message, .. } => Problem::parameter(key, message),
                ErrorKind::InvalidUtf8InPathParam { key } => {
                    Problem::parameter(key, "this part of the path is not UTF-8 after percent-decoding")
                }
                other => Problem::new(Kind::BadParameter, other.to_string()),
            }),
            Err(other) => Err(Problem::new(Kind::BadParameter, other.to_string())),
        }
    }
}

/// `{id}` or `foreign:{key}` in a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ItemRef {
    /// By the item's id.
    Id(ItemId),
    /// By the backend's own key.
    Foreign(String),
}

impl<'de> Deserialize<'de> for ItemRef {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        match text.strip_prefix("foreign:") {
            Some("") => Err(serde::de::Error::custom("foreign: must be followed by the backend's own key")),
            Some(key) => Ok(Self::Foreign(key.to_owned())),
            None => text.parse().map(Self::Id).map_err(serde::de::Error::custom),
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

/// The parameters of a request, in no way looked at yet.
#[derive(Debug)]
pub(crate) struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let pairs = Pairs::from_request_parts(parts, state).await;
        pairs.map(|Pairs(all)| Self(all)).map_err(|why| Problem::new(Kind::BadParameter, why.to_string()))
    }
}

impl Query {
    /// 400 unless every parameter is one of `known` and stands once.
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

/// For routes that take no query parameter.
#[derive(Debug)]
pub(crate) struct NoQuery;

impl<S: Send + Sync> FromRequestParts<S> for NoQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Query::from_request_parts(parts, state).await?.only(&[]).map(|_| Self)
    }
}

/// Parameters that are known to the route.
#[derive(Debug)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// The text of a parameter, if it is there.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// A parameter that reads as a `T`, if it is there.
    pub(crate) fn parse<T: FromStr<Err: Display>>(&self, name: &'static str) -> Result<Option<T>, Problem> {
        self.get(name)
            .map(|text| text.parse().map_err(|why| Problem::parameter(name, format!("{name}: {why}"))))
            .transpose()
    }

    /// `limit`: 1 to `max`, or `default`.
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

    /// `cursor`: the `next` of an earlier page.
    pub(crate) fn cursor(&self) -> Result<Option<DisplayKey>, Problem> {
        let refuse = |why| Problem::parameter("cursor", why);
        self.get("cursor").map(|text| page_json::parse_cursor(text).map_err(refuse)).transpose()
    }

    /// `name`: which of a reader's feeds; 404 for one that is not configured.
    pub(crate) fn feed(&self) -> Result<FeedId, Problem> {
        match self.get("name") {
            None | Some(FeedId::MAIN_NAME) => Ok(FeedId::MAIN),
            Some(other) => Err(Problem::new(
                Kind::NotFound,
                format!("there is no feed named {:?}; there is {:?}", short(other), FeedId::MAIN_NAME),
            )),
        }
    }
}

/// A plain decimal number: no sign, no blank.
pub(crate) fn decimal(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}
