//! Tests of the bodies that an item had before it was edited (S13).

use std::sync::Arc;

use feedgate_common::archive::{Archive, Publish, Write};
use feedgate_common::{BODIES_KEPT, ItemId, Millis};

use super::erasures::erase;
use super::{NOW, accept, body, delete, edit, move_to, number, post, write, write_at};

/// A version as these tests compare it: its number, its body, and by how many ms after [`NOW`] it was replaced.
type Version = (u32, String, Millis);

async fn versions(archive: &dyn Archive, item: ItemId) -> Vec<Version> {
    let found = archive.versions(item).await.unwrap();
    found.into_iter().map(|kept| (kept.version, kept.body.get().to_owned(), kept.at - NOW)).collect()
}

fn version(number: u32, text: &str, after: Millis) -> Version {
    (number, body(text).get().to_owned(), after)
}

pub(super) async fn s13_the_bodies_that_an_item_had_are_kept_until_it_is_deleted(
    open: impl AsyncFn(&str) -> Arc<dyn Archive>,
) {
    let archive = open("versions").await;
    let (item, _) = accept(&*archive, post("ann", "a"), NOW).await;
    let (other, _) = accept(&*archive, post("ann", "other"), NOW).await;
    assert_eq!(versions(&*archive, item).await, []);
    write_at(&*archive, edit(item, "b"), NOW + 1).await.unwrap();
    assert_eq!(versions(&*archive, item).await, [version(1, "a", 1)]);
    write_at(&*archive, move_to(item, 5), NOW + 2).await.unwrap();
    assert_eq!(versions(&*archive, item).await.len(), 1, "a new rank replaces no body");
    let refused = Write::Edit { item, body: Some(body("x")), rank: None, mentions: None, if_version: Some(1) };
    write_at(&*archive, refused, NOW + 3).await.unwrap_err();
    let both = Write::Edit { item, body: Some(body("c")), rank: Some(7), mentions: None, if_version: Some(3) };
    write_at(&*archive, both, NOW + 4).await.unwrap();
    let wants = [version(3, "b", 4), version(1, "a", 1)];
    assert_eq!(versions(&*archive, item).await, wants, "the newest comes first");
    assert_eq!(versions(&*archive, other).await, []);
    drop(archive);
    let archive = open("versions").await;
    assert_eq!(versions(&*archive, item).await, wants);
    write(&*archive, delete(item)).await.unwrap();
    assert_eq!(versions(&*archive, item).await, []);
    assert_eq!(versions(&*archive, ItemId(1)).await, []);
}

pub(super) async fn s13_one_call_keeps_each_body_that_it_replaces(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (earlier, _) = accept(archive, post("ann", "0"), NOW).await;
    let (gone, _) = accept(archive, post("ann", "0"), NOW).await;
    let publish = |id, text| Write::Publish(Publish { id: Some(ItemId(id)), ..post("ann", text) });
    let moved = move_to(earlier, 9);
    let writes = vec![publish(70, "a"), edit(ItemId(70), "b"), moved, edit(earlier, "1"), edit(ItemId(70), "c")];
    let more = vec![edit(earlier, "2"), edit(gone, "1"), delete(gone), publish(71, "a"), edit(ItemId(71), "b")];
    let all = [writes, more, vec![delete(ItemId(71))]].concat();
    assert!(archive.write(all, NOW + 1).await.unwrap().iter().all(Result::is_ok));
    assert_eq!(versions(archive, ItemId(70)).await, [version(2, "b", 1), version(1, "a", 1)]);
    assert_eq!(versions(archive, earlier).await, [version(3, "1", 1), version(2, "0", 1)]);
    for deleted in [gone, ItemId(71)] {
        assert_eq!(versions(archive, deleted).await, []);
    }
}

pub(super) async fn s13_of_many_bodies_the_newest_are_kept(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, _) = accept(archive, post("ann", "1"), NOW).await;
    let kept = u32::try_from(BODIES_KEPT).unwrap();
    let wants = |now: u32| (now - kept..now).rev().map(|nth| version(nth, &nth.to_string(), 0)).collect::<Vec<_>>();
    for nth in 2..kept + 5 {
        write(archive, edit(item, &nth.to_string())).await.unwrap();
    }
    assert_eq!(versions(archive, item).await, wants(kept + 4));
    let some = (kept + 5..kept + 8).map(|nth| edit(item, &nth.to_string())).collect();
    archive.write(some, NOW).await.unwrap();
    assert_eq!(versions(archive, item).await, wants(kept + 7), "one call keeps no more");
    let many = (kept + 8..2 * kept + 20).map(|nth| edit(item, &nth.to_string())).collect();
    archive.write(many, NOW).await.unwrap();
    assert_eq!(versions(archive, item).await, wants(2 * kept + 19), "nor if it replaces more than are kept");
}

pub(super) async fn s13_of_edits_that_race_each_leaves_a_version(archive: Arc<dyn Archive>) {
    let (item, _) = accept(&*archive, post("ann", "0"), NOW).await;
    let mut tasks = vec![];
    for task in 0..4 {
        let archive = archive.clone();
        tasks.push(tokio::spawn(async move {
            for nth in 0..4 {
                write(&*archive, edit(item, &format!("{task}-{nth}"))).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let found = versions(&*archive, item).await;
    assert_eq!(found.iter().map(|(number, ..)| *number).collect::<Vec<_>>(), (1..17).rev().collect::<Vec<_>>());
    let mut bodies: Vec<_> = found.into_iter().map(|(_, body, _)| body).collect();
    bodies.push(archive.items(&[item]).await.unwrap()[0].as_ref().unwrap().body.get().to_owned());
    bodies.sort_unstable();
    bodies.dedup();
    assert_eq!(bodies.len(), 17, "each body is a version, or the one of now");
}

pub(super) async fn s13_an_erasure_takes_versions_along(archive: Arc<dyn Archive>) {
    let (of_ann, _) = accept(&*archive, post("ann", "a"), NOW).await;
    let (of_bob, _) = accept(&*archive, post("bob", "a"), NOW).await;
    for item in [of_ann, of_bob] {
        write(&*archive, edit(item, "b")).await.unwrap();
    }
    let ann = number(&*archive, "ann").await;
    erase(&archive, ann).await;
    assert_eq!(versions(&*archive, of_ann).await, []);
    assert_eq!(versions(&*archive, of_bob).await, [version(1, "a", 0)]);
}
