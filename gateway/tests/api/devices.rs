//! Devices that push services reach, and the notices that nobody took.

use feedgate_common::archive::{Note, Outcome, Settled};
use feedgate_common::{InboxKey, ItemId};
use serde_json::{Value, json};

use crate::server::Server;

const PHONE: &str = "/v1/users/bob/devices/phone";

#[tokio::test]
async fn a_device_is_registered_given_another_token_and_taken_away() {
    let (server, _dir) = Server::start().await;
    assert_eq!(server.get("/v1/users/bob/devices").await.expect(200).json, json!({"devices": []}));
    for (token, feeds) in [("t1", None), ("t2", Some(json!(["feed", "feed"])))] {
        let mut body = json!({"platform": "apns", "push_token": token});
        if let Some(feeds) = feeds {
            body["feeds"] = feeds;
        }
        server.call(&format!("PUT {PHONE}"), Some(&body.to_string())).await.expect(204);
        let listed = server.get("/v1/users/bob/devices").await.expect(200).json;
        let mut device = listed["devices"][0].clone();
        assert!(device["since"].take().as_i64().unwrap() > 0);
        let wanted =
            json!({"device": "phone", "platform": "apns", "push_token": token, "feeds": ["feed"], "since": null});
        assert_eq!((device, listed["devices"].as_array().unwrap().len()), (wanted, 1));
    }
    for _ in 0..2 {
        server.call(&format!("DELETE {PHONE}"), None).await.expect(204);
    }
    server.call("DELETE /v1/users/nobody/devices/phone", None).await.expect(204);
    assert_eq!(server.get("/v1/users/bob/devices").await.expect(200).json, json!({"devices": []}));
    server.close().await;
}

#[tokio::test]
async fn a_bad_device_is_refused_with_what_would_be_right() {
    let (server, _dir) = Server::start().await;
    let long = "t".repeat(2049);
    let cases = [
        (json!({}), "/platform", "missing"),
        (json!({"platform": "APNs", "push_token": "t"}), "/platform", "1 to 32 of a-z0-9_-"),
        (json!({"platform": "", "push_token": "t"}), "/platform", "1 to 32"),
        (json!({"platform": "fcm"}), "/push_token", "missing"),
        (json!({"platform": "fcm", "push_token": ""}), "/push_token", "1 to 2048 bytes"),
        (json!({"platform": "fcm", "push_token": long}), "/push_token", "1 to 2048 bytes"),
        (json!({"platform": "fcm", "push_token": "a\nb"}), "/push_token", "printable"),
        (json!({"platform": "fcm", "push_token": "t", "feeds": []}), "/feeds", "1 to 17 entries"),
        (
            json!({"platform": "fcm", "push_token": "t", "feeds": ["feed", "likes"]}),
            "/feeds/1",
            "no feed named \"likes\"",
        ),
        (json!({"platform": "fcm", "push_token": "t", "token": "t"}), "/token", "unknown field"),
    ];
    for (body, pointer, words) in cases {
        let refused = server.call(&format!("PUT {PHONE}"), Some(&body.to_string())).await.expect(422);
        assert_eq!(refused.json["pointer"], pointer, "{}", refused.text);
        assert!(refused.json["detail"].as_str().unwrap().contains(words), "{}", refused.text);
    }
    let body = json!({"platform": "fcm", "push_token": "t"}).to_string();
    for n in 0..32 {
        server.call(&format!("PUT /v1/users/bob/devices/d{n}"), Some(&body)).await.expect(204);
    }
    let full = server.call("PUT /v1/users/bob/devices/d32", Some(&body)).await.expect(409);
    assert!(full.json["detail"].as_str().unwrap().contains("32 devices already"), "{}", full.text);
    server.close().await;
}

/// Notices of these users that were given up.
async fn give_up(server: &Server, users: &[&str]) {
    let body = json!({"platform": "fcm", "push_token": "t"}).to_string();
    for user in users {
        server.call(&format!("PUT /v1/users/{user}/devices/d"), Some(&body)).await.expect(204);
    }
    let names: Vec<_> = users.iter().map(|user| user.parse().unwrap()).collect();
    let numbers = server.archive().intern(&names).await.unwrap();
    let note = |reader| Note { key: InboxKey::main(reader), item: ItemId(7), count: 1 };
    let notes: Vec<Note> = numbers.into_iter().map(note).collect();
    server.archive().note(&notes, 0, None).await.unwrap();
    let taken = server.archive().take_due(0, 1, 10).await.unwrap();
    let settled = taken
        .into_iter()
        .map(|notice| Settled { notice, outcome: Outcome::Dead { why: "the answer is 500".to_owned(), at: 5 } });
    server.archive().settle(&settled.collect::<Vec<_>>(), 6).await.unwrap();
}

fn users(page: &Value) -> Vec<&str> {
    page["notices"].as_array().unwrap().iter().map(|notice| notice["user"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn notices_that_nobody_took_are_listed_tried_again_or_forgotten() {
    let (server, _dir) = Server::start().await;
    assert_eq!(server.get("/v1/push/dead").await.expect(200).json, json!({"notices": [], "next": null}));
    give_up(&server, &["ann", "bob", "eve"]).await;
    let first = server.get("/v1/push/dead?limit=2").await.expect(200).json;
    assert_eq!(users(&first), ["ann", "bob"]);
    let notice = &first["notices"][0];
    assert!(notice["id"].as_str().unwrap().starts_with("msg_"));
    assert_eq!((&notice["feed"], &notice["item_id"], &notice["tries"]), (&json!("feed"), &json!("7"), &json!(1)));
    assert_eq!((&notice["error"], &notice["failed_at"]), (&json!("the answer is 500"), &json!(5)));
    let next = first["next"].as_str().unwrap();
    let second = server.get(&format!("/v1/push/dead?limit=2&cursor={next}")).await.expect(200).json;
    assert_eq!((users(&second), &second["next"]), (vec!["eve"], &Value::Null));

    let count = async |what: &str| server.call(what, None).await.expect(200).json["count"].as_u64().unwrap();
    assert_eq!(count("POST /v1/push/dead/retry?user=bob").await, 1);
    assert_eq!(server.archive().take_due(i64::MAX - 1, i64::MAX, 10).await.unwrap().len(), 1);
    assert_eq!(count("DELETE /v1/push/dead?user=nobody").await, 0);
    assert_eq!(count("DELETE /v1/push/dead?user=ann").await, 1);
    assert_eq!(users(&server.get("/v1/push/dead").await.expect(200).json), ["eve"]);
    assert_eq!(count("POST /v1/push/dead/retry").await, 1);
    assert_eq!(count("DELETE /v1/push/dead").await, 0);
    for cursor in ["1", "1-", "-1", "x-0", "1-99999"] {
        let refused = server.get(&format!("/v1/push/dead?cursor={cursor}")).await.expect(400);
        assert_eq!(refused.json["field"], "cursor");
    }
    server.close().await;
}
