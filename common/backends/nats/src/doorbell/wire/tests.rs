//! The encoding against bytes that are kept, and against what nobody of us has written.

use super::*;

fn record(seq: u64, op: Op) -> Record {
    let key = DisplayKey { rank: -5, item: ItemId(0x0102_0304_0506_0708) };
    Record { seq, op, route: if op == Op::Add { Route::Push } else { Route::Pull }, feed: FeedId(2), key }
}

fn grown(reader: u32, appended: u32) -> Grown {
    let key = InboxKey { reader: UserNo(reader), feed: FeedId(2) };
    Grown { key, head: Position { epoch: Epoch(3), offset: 1 << 40 }, appended, generation: 6 }
}

fn touch(item: u64, comment: Option<(u64, Talked)>) -> Touch {
    Touch { item: ItemId(item), comment: comment.map(|(id, talked)| (ItemId(id), talked)) }
}

fn stir() -> Stir {
    let touches = vec![touch(1 << 40, None), touch(7, Some((9, Talked::Made))), touch(7, Some((9, Talked::Deleted)))];
    Stir { touches, readers: vec![UserNo(4), UserNo(u32::MAX)] }
}

fn samples() -> [(Told, Vec<u8>, &'static str); 10] {
    let all = Growth {
        author: UserNo(9),
        records: vec![record(7, Op::Add), record(8, Op::Update), record(9, Op::Delete)],
        inboxes: vec![grown(1, 3), grown(u32::MAX, 1)],
        traced: vec![],
    };
    let one = Growth::of_one(InboxKey::main(UserNo(4)), UserNo(9), Position { epoch: Epoch(1), offset: 2 });
    let mut encoded = [&all, &one].map(|g| growth(g.author, &g.records, &g.inboxes).remove(0)).into_iter();
    let closes = [(7, Closing::Replaced), (8, Closing::Kicked), (9, Closing::Displaced)].map(|(connection, why)| {
        let user = UserNo(3);
        (Told::Close { user, connection, why }, close(user, connection, why))
    });
    let [replaced, kicked, displaced] = closes;
    let users = [UserNo(3), UserNo(u32::MAX)];
    let head = PullHead { pull_seq: 0x0102_0304_0506_0708, author: UserNo(9) };
    [
        (Told::Growth(all), encoded.next().unwrap(), include_str!("growth.v1.hex")),
        (Told::Growth(one), encoded.next().unwrap(), include_str!("growth-untold.v1.hex")),
        (replaced.0, replaced.1, include_str!("close-replaced.v1.hex")),
        (kicked.0, kicked.1, include_str!("close-kicked.v1.hex")),
        (displaced.0, displaced.1, include_str!("close-displaced.v1.hex")),
        (Told::Hot(head), hot(head), include_str!("hot.v1.hex")),
        (
            Told::Message { session: 1 << 127, message: b"{}".into() },
            message(1 << 127, b"{}"),
            include_str!("message.v1.hex"),
        ),
        (
            Told::Seen { key: grown(4, 0).key, node: "a.1".into(), connection: 1 << 40 },
            seen(Onlooker { key: grown(4, 0).key, node: "a.1", connection: 1 << 40 }),
            include_str!("seen.v1.hex"),
        ),
        (Told::Stirred(stir()), stir_message(&stir().touches, &stir().readers), include_str!("stir.v1.hex")),
        (Told::Confirm(users.into()), confirm(&users).remove(0), include_str!("confirm.v1.hex")),
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.trim_end().as_bytes();
    digits.chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

/// The kept bytes are never edited: what version 1 has written is what a later one must read.
#[test]
fn version_1_is_read_and_written_as_it_always_was() {
    for (told, encoded, kept) in samples() {
        assert_eq!(hex(&encoded), kept.trim_end());
        assert_eq!(decode(&unhex(kept)), Ok(told));
    }
}

#[test]
fn another_version_and_everything_cut_or_longer_is_refused() {
    for (_, encoded, _) in samples() {
        let newer = [&[VERSION + 1], &encoded[1..]].concat();
        assert_eq!(decode(&newer), Err(Unreadable));
        assert_eq!(decode(&[&encoded[..], &[0]].concat()), Err(Unreadable));
        for cut in 0..encoded.len() {
            assert_eq!(decode(&encoded[..cut]), Err(Unreadable), "cut at {cut}");
        }
    }
}

#[test]
fn i18_a_long_growth_is_split_and_loses_no_inbox() {
    for records in [0, 1, RECORDS_MAX, RECORDS_MAX + 1] {
        let records: Vec<Record> = (1..=records as u64).map(|seq| record(seq, Op::Add)).collect();
        let inboxes: Vec<Grown> = (1..=5000).map(|reader| grown(reader, 1)).collect();
        let mut heard = vec![];
        for message in growth(UserNo(9), &records, &inboxes) {
            assert!(message.len() <= MESSAGE_MAX);
            let Ok(Told::Growth(part)) = decode(&message) else { panic!("it reads what it writes") };
            let told = if records.len() > RECORDS_MAX { &[][..] } else { &records };
            assert_eq!((part.author, &part.records[..]), (UserNo(9), told));
            heard.extend(part.inboxes);
        }
        assert_eq!(heard, inboxes);
    }
}

#[test]
fn i18_a_long_stir_is_split_and_loses_nothing() {
    let touches: Vec<Touch> = (1..=TOUCHES_MAX as u64 * 2 + 1).map(|n| touch(n, Some((n, Talked::Edited)))).collect();
    let stir = Stir { touches, readers: (0..USERS_MAX as u32 + 1).map(UserNo).collect() };
    let mut heard = Stir::default();
    for message in stirred(&stir) {
        assert!(message.len() <= MESSAGE_MAX);
        let Ok(Told::Stirred(part)) = decode(&message) else { panic!("it reads what it writes") };
        heard.touches.extend(part.touches);
        heard.readers.extend(part.readers);
    }
    assert_eq!(heard, stir);
    assert!(stirred(&Stir::default()).is_empty());
}

#[test]
fn i18_a_long_list_of_users_is_split_and_loses_nobody() {
    for count in [0, 1, USERS_MAX, USERS_MAX + 1, 100_000] {
        let users: Vec<UserNo> = (0..count as u32).map(UserNo).collect();
        let mut heard = vec![];
        for message in confirm(&users) {
            assert!(message.len() <= MESSAGE_MAX);
            let Ok(Told::Confirm(part)) = decode(&message) else { panic!("it reads what it writes") };
            heard.extend(part);
        }
        assert_eq!(heard, users);
    }
}
