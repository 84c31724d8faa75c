//! Reads a JSON request body, and checks its type, its size and its syntax.
//!
//! Memory is bounded: every body that is being read or worked on holds its bytes of a [`Memory`], and a request that
//! does not fit gets 503 before anything of it is read. Devices, which need not show credentials in the head of a
//! request, have a memory of their own. So they take no room from backends.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt, Limited};
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Api;
use super::deadline::{BODY_TIMEOUT, Whole};
use super::fields::{Fields, elements};
use super::problem::{Kind, Problem, short};

/// The most bytes of a request with one item: the largest body, the names of a thousand readers, and room for other
/// fields.
pub(crate) const ONE: usize = feedgate_common::Body::MAX_BYTES + 96 * 1024;

/// The KiB that all request bodies may hold together.
const MEMORY_KIB: usize = 128 * 1024;

/// The KiB that the bodies of devices may hold together.
const DEVICES_KIB: usize = 32 * 1024;

/// The memory that request bodies may take together. All clones count the same bytes.
#[derive(Clone)]
pub(crate) struct Memory(Arc<Semaphore>);

/// The memory that the bodies of devices may take together.
#[derive(Clone)]
pub(crate) struct DeviceMemory(pub(super) Memory);

impl DeviceMemory {
    pub(crate) fn new() -> Self {
        Self(Memory(Arc::new(Semaphore::new(DEVICES_KIB))))
    }
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MEMORY_KIB)))
    }

    /// Takes `kib` KiB for a request of which nothing has been read; 503 if fewer KiB are left.
    pub(super) fn hold(&self, kib: u32) -> Result<OwnedSemaphorePermit, Problem> {
        let busy = |_| Problem::new(Kind::Overloaded, "the server is busy with other requests; this one was not read");
        self.0.clone().try_acquire_many_owned(kib).map_err(busy)
    }
}

/// A request body of at most `MAX` bytes that is well-formed JSON.
#[derive(Debug)]
pub(crate) struct Payload<const MAX: usize> {
    json: Bytes,
    _held: OwnedSemaphorePermit,
}

impl<const MAX: usize> Payload<MAX> {
    /// The bytes of the body.
    pub(super) fn bytes(&self) -> &Bytes {
        &self.json
    }

    /// The fields of the body, which must be an object with only `known` names.
    pub(crate) fn fields(&self, known: &[&str]) -> Result<Fields<'_>, Problem> {
        let raw: &RawValue = serde_json::from_slice(&self.json).map_err(|error| malformed(&error))?;
        Fields::of(raw, "", known)
    }
}

impl<const MAX: usize> Payload<MAX> {
    /// The first `keep` elements of the body, as they are written in the request, and how many there are. The body must
    /// be a list.
    pub(super) fn list(&self, keep: usize) -> Result<(Vec<&RawValue>, usize), Problem> {
        let raw: &RawValue = serde_json::from_slice(&self.json).map_err(|error| malformed(&error))?;
        let not_a_list =
            || Problem::at_pointer(String::new(), format!("this must be a list, not {}", short(raw.get())));
        elements(raw, keep).ok_or_else(not_a_list)
    }
}

impl<const MAX: usize> FromRequest<Api> for Payload<MAX> {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Problem> {
        content_type(request.headers())?;
        read(request, MAX, &api.memory).await
    }
}

/// A body that may be left out: then the body is `{}`, and its content type does not matter.
#[derive(Debug)]
pub(crate) struct OptionalPayload(pub(crate) Payload<ONE>);

impl FromRequest<Api> for OptionalPayload {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Problem> {
        let typed = content_type(request.headers());
        let mut payload = read(request, ONE, &api.memory).await?;
        if payload.json.is_empty() {
            payload.json = Bytes::from_static(b"{}");
        } else {
            typed?;
        }
        Ok(Self(payload))
    }
}

/// Reads a body of at most `max` bytes, whatever its type.
pub(super) async fn read<const MAX: usize>(
    request: Request,
    max: usize,
    memory: &Memory,
) -> Result<Payload<MAX>, Problem> {
    let (head, body) = request.into_parts();
    let too_large = || Problem::new(Kind::TooLarge, format!("a request to this route holds at most {max} bytes"));
    let hint = axum::body::HttpBody::size_hint(&body);
    if hint.lower() > max as u64 {
        return Err(too_large());
    }
    let expected = hint.upper().map_or(max, |upper| usize::try_from(upper).unwrap_or(max).min(max));
    let kib = u32::try_from(expected.div_ceil(1024)).expect("a payload's bound fits into 32 bits");
    let held = memory.hold(kib)?;
    let arrived = tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, max).collect()).await;
    if let Some(whole) = head.extensions.get::<Whole>() {
        whole.tell();
    }
    match arrived {
        Ok(Ok(whole)) => Ok(Payload { json: whole.to_bytes(), _held: held }),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Problem::new(Kind::MalformedJson, "the request ended before its body did")),
        Err(_) => Err(Problem::new(
            Kind::TooSlow,
            format!("the request body did not arrive within {} s", BODY_TIMEOUT.as_secs()),
        )),
    }
}

/// 415 if the header says that the body is coded, such as by gzip: no route decodes one.
pub(super) fn not_coded(headers: &HeaderMap) -> Result<(), Problem> {
    let codings = headers.get_all(header::CONTENT_ENCODING).iter();
    match codings.into_iter().find(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        None => Ok(()),
        Some(coding) => {
            let coding = String::from_utf8_lossy(coding.as_bytes());
            let detail = format!("send the body as it is, without Content-Encoding: {}", short(&coding));
            Err(Problem::new(Kind::UnsupportedMediaType, detail))
        }
    }
}

/// 415 unless the body says that it is JSON, in UTF-8, and not coded.
pub(super) fn content_type(headers: &HeaderMap) -> Result<(), Problem> {
    not_coded(headers)?;
    let wrong = |what: String| {
        Err(Problem::new(Kind::UnsupportedMediaType, format!("send Content-Type: application/json, not {what}")))
    };
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return wrong("none".to_owned());
    };
    let text = value.to_str().unwrap_or("bytes").to_ascii_lowercase();
    let mut parts = text.split(';').map(str::trim);
    let json = parts.next() == Some("application/json");
    let utf8 = parts.all(|p| p.strip_prefix("charset=").is_none_or(|c| c.trim_matches('"') == "utf-8"));
    if json && utf8 { Ok(()) } else { wrong(short(&text).into_owned()) }
}

fn malformed(error: &serde_json::Error) -> Problem {
    Problem::new(Kind::MalformedJson, format!("the request body is not JSON: {error}"))
}
