//! Attacks by a reader with a good token, who asks for answers and never reads them.

use std::rc::Rc;
use std::time::Duration;

use feedgate_tests::load::frame;
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

use crate::attack::{Count, hands};
use crate::wire;
use crate::world::Target;

const GETS: usize = 300;
const SOCKETS: usize = 64;

/// Pages that each WebSocket asks for.
const PAGES: usize = 20;

/// It asks once more so often, which also tells it whether the server has ended the connection.
const AGAIN: Duration = Duration::from_secs(1);

/// `GET …/feed?limit=100`, pages of 6 MB.
pub(crate) async fn responses(target: Rc<Target>, count: Count) -> anyhow::Result<()> {
    hands(GETS, count, || {
        let target = target.clone();
        async move {
            let mut stream = wire::open(target.address).await?;
            let request = format!(
                "GET /v1/users/mallory/feed?limit=100 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n",
                target.token
            );
            loop {
                stream.write_all(request.as_bytes()).await?;
                sleep(AGAIN).await;
            }
        }
    })
    .await
}

/// Sockets that ask for pages of the largest items by `rpc page`, and read no answer.
pub(crate) async fn pages(target: Rc<Target>, count: Count) -> anyhow::Result<()> {
    hands(SOCKETS, count, || {
        let target = target.clone();
        async move {
            let mut stream = wire::open(target.address).await?;
            wire::upgrade(&mut stream).await?;
            stream.write_all(&wire::hello(&target.token)).await?;
            for id in 3..3 + PAGES {
                let page = format!(r#"{{"id":{id},"rpc":{{"method":"page","data":{{"limit":100}}}}}}"#);
                stream.write_all(&frame::text(page.as_bytes())).await?;
            }
            loop {
                sleep(AGAIN).await;
                stream.write_all(&frame::text(br#"{"id":2,"ping":{}}"#)).await?;
            }
        }
    })
    .await
}
