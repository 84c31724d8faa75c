// Each test tells a story in which one thing goes wrong (`breaks.js`). The last ones are the bugs that a checker of
// this kind has to catch; what comes by another door than push stands in `bad_doors.test.js`.

import { breaks } from "./breaks.js";

const skipOne = (story) => (story.log("ann").next += 1);

breaks("I1", "a push leaves an offset out", ({ story }) => {
  skipOne(story);
  story.publish("bob", "three");
});
breaks("I1", "changes begin one too late", ({ story }) => {
  story.changes("ann", { change: (answer) => ({ ...answer, changes: answer.changes.slice(1) }) });
});
breaks("I1", "a push comes twice", ({ story, phone }) => {
  story.push(phone, story.log("ann").changes.at(-1));
});

breaks("I1", "a notified phone is told an offset twice", ({ story }) => {
  const notified = story.connect("ann", "web", { deliver: "notify" });
  story.publish("bob", "three");
  story.push(notified, story.log("ann").changes.at(-1));
});
breaks("I1", "a history leaves an offset out", ({ story }) => {
  const notified = story.connect("ann", "web", { deliver: "notify" });
  story.publish("bob", "three");
  story.publish("bob", "four");
  story.history(notified, 0, { change: (publications) => publications.toSpliced(1, 1) });
});

breaks("I2", "an item published after a head was served stands below it", ({ story }) => {
  const log = story.log("ann");
  log.next += 1;
  story.publish("bob", "three");
  story.page("ann");
  story.publish("bob", "four", { to: [] });
  log.changes.splice(2, 0, { offset: 3, op: "add", id: "1003" });
});
breaks("I2", "an outbox_seq is below one accepted earlier", ({ story }) => {
  const answer = { id: "2000", author: "bob", outbox_seq: 0, published_at: 1 };
  story.call("POST", "/v1/items", { body: { author: "bob", body: { text: "late" } } }, () => [201, answer]);
});

breaks("I3", "an item is added twice", ({ story, first }) => {
  story.append("ann", { op: "add", id: first });
});

breaks("I4", "a followed author's item is missing in the end", ({ story }) => {
  story.publish("bob", "lost", { to: [] });
});
breaks("I4", "a phone stands still behind the head", ({ story, phone }) => {
  phone.at = undefined;
  story.publish("bob", "not pushed");
});
breaks("I4", "a phone shows a deleted item", ({ story, phone, first }) => {
  story.delete(first);
  phone.feed.append({ items: [{ ...story.hydrate({ op: "add", id: "1001" }).item, id: first }], next: null, position: phone.feed.position }, phone.feed.next);
});
breaks("I4", "an edit has not arrived", ({ story, first }) => {
  story.call("PATCH", `/v1/items/${first}`, { body: { body: {} } }, () => [200, {}]);
});
breaks("I4", "a follow brings more than the backfill", ({ story }) => {
  for (let i = 0; i < 5; i += 1) story.publish("cyd", `post ${i}`);
  story.call("PUT", "/v1/users/ann/following/cyd", {}, () => {
    story.edges.set("ann cyd", { on: true, from: 5 });
    for (const item of story.items.values()) if (item.author === "cyd") story.append("ann", { op: "add", id: item.id });
    return [204, null];
  });
}, { backfill: 3 });

breaks("I4", "to follow again leaves only the newest items", ({ story, first }) => {
  story.publish("bob", "three");
  story.call("PUT", "/v1/users/ann/following/bob", {}, () => [204, null]);
  story.append("ann", { op: "delete", id: first });
}, { backfill: 2 });

breaks("I5", "an item of a stranger is pushed", ({ story }) => {
  story.publish("eve", "spam", { to: ["ann"] });
});
breaks("I5", "a page shows an author unfollowed before the post", ({ story }) => {
  story.unfollow("ann", "bob", { forget: false });
  story.publish("bob", "later", { to: ["ann"] });
  story.page("ann");
  story.append("ann", { op: "forget", author: "bob" });
});

breaks("I6", "an edge that was answered is not there", ({ story }) => {
  story.call("DELETE", "/v1/users/ann/following/bob", {}, () => [204, null]);
});
breaks("I6", "a retry gets another item", ({ story }) => {
  story.publish("bob", "three", { key: "k" });
  story.items.get("1002").key = undefined;
  story.publish("bob", "three", { key: "k" });
});
breaks("I6", "a deleted item is still on the profile", ({ story, first }) => {
  story.call("DELETE", `/v1/items/${first}`, {}, () => [204, null]);
});
breaks("I6", "an item is shown that nobody published", ({ story }) => {
  story.items.set("7", { id: "7", author: "bob", seq: 9, body: {}, rank: 7, version: 1, gone: false });
  story.append("ann", { op: "add", id: "7" });
});
breaks("I6", "an outbox has a hole", ({ story }) => {
  story.call("POST", "/v1/items", { body: { author: "bob", body: {} } }, () => [201, { id: "3000", author: "bob", outbox_seq: 40, published_at: 1 }]);
});
breaks("I6", "two items share an outbox_seq", ({ story }) => {
  story.call("POST", "/v1/items", { body: { author: "bob", body: {} } }, () => [201, { id: "3000", author: "bob", outbox_seq: 2, published_at: 1 }]);
});

breaks("I7", "a page is not in order", ({ story }) => {
  story.page("ann", { change: (page) => ({ ...page, items: page.items.toReversed() }) });
});
breaks("I7", "an item comes again on the next page", ({ story }) => {
  const { next, items } = story.page("ann", { limit: 1 });
  story.page("ann", { limit: 1, cursor: next, change: (page) => ({ ...page, items }) });
});
breaks("I7", "a page leaves out what its position covers", ({ story }) => {
  story.page("ann", { change: (page) => ({ ...page, items: page.items.slice(1) }) });
});

breaks("I8", "a page is longer than asked", ({ story }) => {
  story.page("ann", { limit: 1, change: (page) => ({ ...page, items: [...page.items, { ...page.items[0], rank: 0 }] }) });
});
breaks("I8", "a short page has a next", ({ story }) => {
  story.page("ann", { limit: 10, change: (page) => ({ ...page, next: "5" }) });
});
breaks("I8", "a page whose bodies do not fill it has fewer items than asked and goes on", ({ story }) => {
  const body = "x".repeat(1000 * 1000);
  story.page("ann", { limit: 10, change: (page) => ({ ...page, items: page.items.map((item) => ({ ...item, body })).slice(0, 1), next: "5" }) });
});
breaks("I8", "an empty answer of changes is not at the head", ({ story }) => {
  story.changes("ann", { change: (answer) => ({ ...answer, changes: [], position: { ...answer.position, offset: 0 } }) });
});

const comesBack = (story, phone) => {
  story.close(phone, 1006);
  story.publish("bob", "while away");
  return story.connect("ann", "ios", { subscribe: false, position: phone.feed.position });
};
breaks("I9", "recovered at the head, not at the position asked for", ({ story, phone }) => {
  story.subscribe(comesBack(story, phone), { reply: (reply) => ({ ...reply, offset: reply.offset + 1 }) });
});
breaks("I9", "recovered in an epoch that was left behind", ({ story, phone }) => {
  story.close(phone, 1006);
  const position = { ...phone.feed.position };
  story.lose("ann");
  story.page("ann");
  const again = story.connect("ann", "ios", { subscribe: false, position });
  story.subscribe(again, { reply: (reply) => ({ ...reply, ...position, recovered: true }) });
});
breaks("I9", "a reset that carries publications", ({ story, phone }) => {
  const publications = [{ offset: 1, data: { op: "delete", item_id: "1000" } }];
  story.subscribe(comesBack(story, phone), { reply: (reply) => ({ ...reply, recovered: false, publications }) });
});
breaks("I9", "a reset that is followed by what was missed", ({ story, phone }) => {
  const again = comesBack(story, phone);
  story.subscribe(again, { reply: (reply) => ({ ...reply, offset: reply.offset + 1, recovered: false }) });
});
breaks("I9", "recovered beyond all that the log has ever been", ({ story, phone }) => {
  const again = comesBack(story, phone);
  again.position = { ...again.position, offset: 99 };
  story.subscribe(again, { reply: (reply) => ({ ...reply, offset: 99, recovered: true }) });
});
breaks("I9", "a subscription that was not told whether it recovered", ({ story, phone }) => {
  story.subscribe(comesBack(story, phone), { reply: ({ recovered: _, was_recovering: __, ...reply }) => reply });
});
breaks("I9", "recovered, and then nothing of what was missed comes", ({ story, phone }) => {
  const { push } = story;
  story.push = () => {};
  story.subscribe(comesBack(story, phone));
  story.push = push;
});

breaks("I10", "an item is passed over", ({ story }) => {
  story.publish("bob", "passed over", { to: [] });
  story.publish("bob", "next");
});
breaks("I10", "a stored position goes back", ({ story, phone }) => {
  story.ack(phone);
  story.sessions("ann");
  story.ack(phone, { ...phone.feed.position, offset: 1 });
  story.sessions("ann");
});

breaks("I11", "a deleted item is shown again", ({ story, first }) => {
  const item = story.hydrate({ op: "add", id: first }).item;
  story.delete(first);
  story.page("ann", { change: (page) => ({ ...page, items: [...page.items, item] }) });
});
breaks("I11", "a delete overtakes its add", ({ story }) => {
  story.items.set("1002", { id: "1002", author: "bob", seq: 3, body: { text: "x" }, rank: 3, version: 1, gone: false });
  story.append("ann", { op: "delete", id: "1002" });
  story.items.delete("1002");
  story.publish("bob", "x", { id: "1002" });
});

breaks("I12", "a position is stored that nobody named", ({ story, phone }) => {
  story.ack(phone);
  story.stored.get("ann ios").position.offset += 5;
  story.sessions("ann");
});
breaks("I12", "one device's ack moves another's position", ({ story, phone }) => {
  story.connect("ann", "web");
  story.publish("bob", "three");
  story.ack(phone);
  story.stored.get("ann web").position = { ...phone.feed.position };
  story.sessions("ann");
});
breaks("I12", "an ack beyond the head is accepted", ({ story, phone }) => {
  story.ack(phone, { ...phone.feed.position, offset: 99 });
});

breaks("I14", "an author's items stand in another order", ({ story }) => {
  story.publish("bob", "three", { to: [] });
  story.publish("bob", "four");
  story.append("ann", { op: "add", id: "1002" });
});
breaks("I14", "an edit arrives twice", ({ story, first }) => {
  story.edit(first);
  story.append("ann", { op: "update", id: first });
});

breaks("I15", "of follow, unfollow, follow only the first has reached the log", ({ story }) => {
  story.unfollow("ann", "bob");
  story.call("PUT", "/v1/users/ann/following/bob", {}, () => {
    story.edges.set("ann bob", { on: true, from: 2 });
    return [204, null];
  });
});
breaks("I15", "an unfollow is forgotten twice", ({ story }) => {
  story.unfollow("ann", "bob");
  story.append("ann", { op: "forget", author: "bob" });
  story.append("ann", { op: "forget", author: "bob" });
});

breaks("I16", "an offset holds another change than before", ({ story }) => {
  story.page("ann");
  story.log("ann").changes[1].id = "1000";
  story.changes("ann");
});
breaks("I16", "a head goes back", ({ story }) => {
  story.page("ann");
  story.log("ann").changes.pop();
  story.log("ann").next -= 1;
  story.page("ann");
});
breaks("I16", "an epoch comes again", ({ story }) => {
  const { epoch } = story.log("ann");
  story.lose("ann");
  story.page("ann");
  story.log("ann").epoch = epoch;
  story.page("ann");
});

const graceless = { grace_ms: 2 };
breaks("I17", "the older connection stays", ({ story }) => {
  story.connect("ann", "ios", { node: "n2", replaces: false });
}, graceless);
breaks("I17", "the older connection stays until its app closes it", ({ story, phone }) => {
  story.connect("ann", "ios", { node: "n2", replaces: false });
  story.publish("bob", "three");
  story.close(phone, 1000, "client");
}, graceless);
breaks("I17", "closed with 4500 for nobody", ({ story, phone }) => {
  story.close(phone, 4500);
});
breaks("I17", "the list names the node of before", ({ story }) => {
  story.connect("ann", "ios", { node: "n2" }).node = "n1";
});
breaks("I17", "a connected device is not listed", ({ story }) => {
  story.stored.delete("ann ios");
});
breaks("I17", "a device is twice in a list", ({ story }) => {
  const session = { device: "ios", node: "n1", position: null, since: 0 };
  story.call("GET", "/v1/users/ann/sessions", {}, () => [200, { sessions: [session, session] }]);
});
breaks("I17", "more than a batch after the lease has lapsed", ({ story, phone }) => {
  story.connect("ann", "ios", { node: "n2", replaces: false });
  for (let i = 0; i < 9; i += 1) story.publish("bob", `post ${i}`);
  story.close(phone, 4500);
}, { grace_ms: 2, batch: 3 });

breaks("I18", "a process holds more than its bound", ({ story }) => {
  story.line({ kind: "memory", who: "gateway-1", bytes: 2 * 1024 ** 3 });
});

breaks("I18", "a process holds more than the sample's bound", ({ story }) => {
  story.line({ kind: "memory", who: "gateway-1", bytes: 101, most: 100 });
});

// --- the bugs that a checker has to catch ---------------------------------------------------------

breaks("I1", "seeded: one sequence id is skipped, and only the end's reading shows it", ({ story, phone }) => {
  story.close(phone, 1006);
  skipOne(story);
  story.publish("bob", "three");
});
breaks("I3", "seeded: a step is appended twice", ({ story }) => {
  story.publish("bob", "three", { to: ["ann", "ann"] });
});
breaks("I6", "seeded: accepted before the commit, which then never comes", ({ story }) => {
  story.publish("bob", "three", { effect: false });
});
breaks("I16", "seeded: the store is rolled back, and the epoch stays", ({ story, phone }) => {
  story.close(phone, 1006);
  story.log("ann").changes.pop();
  story.log("ann").next -= 1;
  story.publish("bob", "three");
});
breaks("I17", "seeded: no fence, the replaced connection's ack is stored", ({ story, phone }) => {
  story.connect("ann", "ios", { node: "n2", replaces: false });
  story.publish("bob", "three");
  story.ack(phone, phone.feed.position, { fenced: false });
  story.close(phone, 4500);
  story.sessions("ann");
});
breaks("I5", "seeded: a ghost after an unfollow", ({ story, first }) => {
  story.unfollow("ann", "bob");
  story.append("ann", { op: "add", id: first });
});
