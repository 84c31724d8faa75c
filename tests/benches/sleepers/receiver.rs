//! The receiver of the webhook: counts who was told, and takes everything.

use std::cell::RefCell;
use std::collections::HashSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;

use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpListener;

/// The readers that were told, and how.
#[derive(Default)]
struct Told {
    readers: HashSet<String>,
    repeated: u64,
    calls: u64,
}

/// A server at a port of its own, until the program ends.
pub(crate) struct Receiver {
    address: SocketAddr,
    told: Rc<RefCell<Told>>,
}

#[derive(Deserialize)]
struct Call {
    notifications: Vec<Notification>,
}

#[derive(Deserialize)]
struct Notification {
    user: String,
}

impl Receiver {
    /// Listens from now on. Needs a `LocalSet`.
    pub(crate) async fn listen() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, told) = (listener.local_addr()?, Rc::<RefCell<Told>>::default());
        let all = told.clone();
        tokio::task::spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let told = all.clone();
                let service = service_fn(move |request| answer(request, told.clone()));
                let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                tokio::task::spawn_local(async move { connection.await.ok() });
            }
        });
        Ok(Self { address, told })
    }

    /// The URL for the setting `push.webhook_url`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// How many readers were told.
    pub(crate) fn told(&self) -> usize {
        self.told.borrow().readers.len()
    }

    /// How many readers were told once more.
    pub(crate) fn repeated(&self) -> u64 {
        self.told.borrow().repeated
    }

    /// How many calls came.
    pub(crate) fn calls(&self) -> u64 {
        self.told.borrow().calls
    }
}

/// Answers 200 to a call that can be read, and else 400.
async fn answer(request: Request<Incoming>, told: Rc<RefCell<Told>>) -> Result<Response<Empty<Bytes>>, Infallible> {
    let mut response = Response::new(Empty::new());
    let body = request.into_body().collect().await.map(|body| body.to_bytes());
    match body.ok().and_then(|bytes| serde_json::from_slice::<Call>(&bytes).ok()) {
        Some(call) => {
            let mut told = told.borrow_mut();
            told.calls += 1;
            for notification in call.notifications {
                let first = told.readers.insert(notification.user);
                told.repeated += u64::from(!first);
            }
        }
        None => *response.status_mut() = hyper::StatusCode::BAD_REQUEST,
    }
    Ok(response)
}
