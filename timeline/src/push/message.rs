//! The calls to the webhook, as JSON, and their ids, by which a receiver knows what it was told before.

use std::fmt::Write;
use std::sync::Arc;

use compact_str::CompactString;
use feedgate_common::archive::{Notice, PushDevice};
use feedgate_common::{DeviceId, Item, UserId};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::Call;

/// What the devices of one reader are told of one feed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Notification {
    id: String,
    pub(super) user: UserId,
    pub(super) devices: Vec<Device>,
    feed: String,
    unread: u32,
    newest: Arc<Item>,
}

/// A device that is to show a notification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Device {
    pub(super) device: DeviceId,
    platform: CompactString,
    pub(super) push_token: CompactString,
}

impl Notification {
    pub(super) fn new(
        notice: &Notice,
        user: UserId,
        devices: Vec<PushDevice>,
        feed: &str,
        (unread, newest): (u32, Arc<Item>),
    ) -> Self {
        let device = |PushDevice { device, platform, token, .. }| Device { device, platform, push_token: token };
        let devices = devices.into_iter().map(device).collect();
        Self { id: format!("msg_{}", notice.number), user, devices, feed: feed.to_owned(), unread, newest }
    }
}

/// One call to the webhook with all of these notifications.
pub(super) fn call<'a>(notifications: impl Iterator<Item = &'a Notification>) -> Call {
    #[derive(Serialize)]
    struct Body<'a> {
        notifications: Vec<&'a Notification>,
    }
    let notifications: Vec<&Notification> = notifications.collect();
    let id = match &notifications[..] {
        [one] => one.id.clone(),
        many => batch_id(many.iter().map(|one| &*one.id)),
    };
    let body = serde_json::to_string(&Body { notifications }).expect("our own values serialize");
    Call { id, body }
}

/// The id of a call for several notifications. Two calls have the same id only if they have the same notifications in
/// the same order.
fn batch_id<'a>(ids: impl Iterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for id in ids {
        hash.update(id);
        hash.update([0]);
    }
    hash.finalize()[..16].iter().fold("batch_".to_owned(), |mut id, byte| {
        _ = write!(id, "{byte:02x}");
        id
    })
}

#[cfg(test)]
mod tests {
    use feedgate_common::{Body, InboxKey, ItemId, UserNo};

    use super::*;

    fn notification(number: u64) -> Notification {
        let notice = Notice { key: InboxKey::main(UserNo(1)), item: ItemId(7), count: 1, number, tries: 0 };
        let item = Item {
            id: ItemId(7),
            author: "ann".parse().unwrap(),
            author_no: UserNo(2),
            kind: None,
            foreign_id: None,
            repost_of: None,
            mentions: vec![],
            body: Body::parse("{\"text\":\"hi\"}".to_owned()).unwrap(),
            published_at: 5,
            rank: 5,
            direct: false,
            narrowed: false,
            version: 1,
            outbox_seq: 1,
        };
        let device = PushDevice {
            device: "phone".parse().unwrap(),
            platform: "fcm".into(),
            token: "t".into(),
            feeds: vec![],
            since: 0,
        };
        Notification::new(&notice, "bob".parse().unwrap(), vec![device], "feed", (3, Arc::new(item)))
    }

    #[test]
    fn a_call_holds_what_the_document_says() {
        let (one, two) = (notification(1), notification(2));
        let call = call([&one, &two].into_iter());
        let told = |id| {
            format!(
                r#"{{"id":"msg_{id}","user":"bob","devices":[{{"device":"phone","platform":"fcm","push_token":"t"}}],"feed":"feed","unread":3,"newest":{{"id":"7","author":"ann","body":{{"text":"hi"}},"published_at":5,"rank":5,"version":1}}}}"#
            )
        };
        assert_eq!(call.body, format!(r#"{{"notifications":[{},{}]}}"#, told(1), told(2)));
    }

    #[test]
    fn an_id_is_that_of_exactly_what_is_told() {
        let [one, two, three] = [1, 2, 3].map(notification);
        let id = |told: &[&Notification]| call(told.iter().copied()).id;
        assert_eq!(id(&[&one]), "msg_1");
        assert_eq!(id(&[&one, &two]), id(&[&one, &two]));
        assert_ne!(id(&[&one, &two]), id(&[&one, &three]));
        assert!(id(&[&one, &two]).starts_with("batch_"));
    }
}
