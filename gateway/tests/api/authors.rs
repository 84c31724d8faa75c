//! Authors: their class and what is known of them.

use serde_json::json;

use crate::server::{Server, ids};

async fn classify(server: &Server, author: &str, class: &str) -> crate::server::Answer {
    server.call(&format!("PUT /v1/authors/{author}"), Some(&json!({ "class": class }).to_string())).await
}

#[tokio::test]
async fn an_author_has_a_class_followers_and_an_outbox() {
    let (server, _dir) = Server::start().await;
    let unseen = server.get("/v1/authors/nobody").await.expect(200).json;
    assert_eq!(unseen, json!({"author": "nobody", "class": "auto", "followers": 0, "outbox_seq": 0}));
    server.follow("bob", "ann").await;
    server.follow("eve", "ann").await;
    server.publish("ann", "one").await;
    for class in ["push", "pull", "auto"] {
        classify(&server, "ann", class).await.expect(204);
        let ann = server.get("/v1/authors/ann").await.expect(200).json;
        assert_eq!(ann, json!({"author": "ann", "class": class, "followers": 2, "outbox_seq": 1}));
    }
    server.call("PUT /v1/users/eve/muted/ann", None).await.expect(204);
    assert_eq!(server.get("/v1/authors/ann").await.json["followers"], 1);
    server.close().await;
}

#[tokio::test]
async fn an_author_whom_everyone_follows_stays_so() {
    let (server, _dir) = Server::start().await;
    classify(&server, "news", "everyone").await.expect(204);
    for class in ["auto", "push", "pull"] {
        let refused = classify(&server, "news", class).await.expect(409);
        assert_eq!(refused.json["type"], "/problems/conflict");
        assert!(refused.json["detail"].as_str().unwrap().contains("everyone follows news"), "{}", refused.text);
    }
    classify(&server, "news", "everyone").await.expect(204);
    assert_eq!(server.get("/v1/authors/news").await.json["class"], "everyone");
    server.close().await;
}

#[tokio::test]
async fn i13_the_feed_is_the_same_whichever_way_the_items_come() {
    let (server, _dir) = Server::start().await;
    server.follow("bob", "ann").await;
    server.get("/v1/users/bob/feed").await.expect(200);
    let mut posted = vec![];
    for class in ["push", "pull", "push", "pull", "auto"] {
        classify(&server, "ann", class).await.expect(204);
        posted.insert(0, server.publish("ann", class).await.parse::<u64>().unwrap());
    }
    server.settled().await;
    let here = async || ids(&server.get("/v1/users/bob/feed").await.expect(200).json);
    tokio::time::timeout(std::time::Duration::from_secs(300), async {
        while here().await != posted {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the feed comes to hold all of them");
    server.close().await;
}
