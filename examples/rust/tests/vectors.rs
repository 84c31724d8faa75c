//! The reducer takes the steps of `feed-vectors.json`.

use feedgate_feed::{Change, Feed, Limits, Page, Stored, read};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Vector {
    name: String,
    #[serde(default)]
    limits: Limits,
    steps: Vec<Value>,
}

#[test]
fn a_body_of_128_levels_is_read_and_stored() {
    let body = "[".repeat(128) + &"]".repeat(128);
    let item = format!(r#"{{"id":"7","author":"ann","rank":1,"version":1,"published_at":1,"body":{body}}}"#);
    let page = format!(r#"{{"items":[{item}],"next":null,"position":{{"epoch":"1","offset":0}}}}"#);
    let change = format!(r#"{{"op":"update","item":{item}}}"#);
    let mut feed = Feed::new(Limits::default());
    feed.reset(read(page.as_bytes()).unwrap()).unwrap();
    feed.apply(read(change.as_bytes()).unwrap(), 1, None).unwrap();
    let text = serde_json::to_vec(&feed.stored()).unwrap();
    let feed = Feed::restored(Limits::default(), read::<Stored>(&text).unwrap());
    assert_eq!(feed.items(0)[0].body.to_string(), body);
}

#[test]
fn the_reducer_takes_every_step_of_the_vectors() {
    let vectors: Vec<Vector> = serde_json::from_str(include_str!("../../feed-vectors.json")).unwrap();
    for Vector { name, limits, steps } in vectors {
        let mut feed = Feed::new(limits);
        for step in steps {
            let answers = take(&mut feed, limits, &step);
            let seen = see(&feed, &answers, step["now"].as_i64().unwrap_or(0));
            for (what, is) in seen.as_object().unwrap() {
                assert!(step.get(what).is_none_or(|wanted| wanted == is), "{name}: {what} is {is} after {step}");
            }
        }
    }
}

/// Takes one step and answers what it answered.
fn take(feed: &mut Feed, limits: Limits, step: &Value) -> Value {
    let page = |name: &str| Page::deserialize(&step[name]).unwrap();
    if step.get("reset").is_some() {
        feed.reset(page("reset")).map_or(json!("gap"), Value::from)
    } else if step.get("append").is_some() {
        feed.append(page("append"), step["cursor"].as_str().unwrap()).into()
    } else if let Some(change) = step.get("apply") {
        apply(feed, change, &step["at"])
    } else if step.get("lost").is_some() {
        feed.lost();
        Value::Null
    } else {
        let text = serde_json::to_string(&feed.stored()).unwrap();
        *feed = Feed::restored(limits, serde_json::from_str(&text).unwrap());
        Value::Null
    }
}

fn apply(feed: &mut Feed, change: &Value, at: &Value) -> Value {
    let Ok(change) = Change::deserialize(change) else { return json!("unknown op") };
    feed.apply(change, at["offset"].as_u64().unwrap(), at["epoch"].as_str()).map_or(json!("gap"), Value::from)
}

fn see(feed: &Feed, answers: &Value, now: i64) -> Value {
    let items = feed.items(now);
    let ids: Vec<_> = items.iter().map(|item| item.id()).collect();
    let bodies: Vec<_> = items.iter().map(|item| &item.body).collect();
    let around: Vec<_> = items.iter().map(|item| &item.around).collect();
    let people = serde_json::to_value(feed.stored()).unwrap()["people"].take();
    json!({"answers": answers, "shows": ids, "bodies": bodies, "position": feed.position(), "next": feed.next(),
        "around": around, "people": people, "items": &items})
}
