// With own_posts = true an author's items stand in the author's own feed, on every device and by every door. What is
// sent to readers by name is not in it, but in a list of its own.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";
import { until } from "../actors/until.js";
import { Webhook, register } from "../actors/webhook.js";

const OWN = "own_posts = true\n";

const ids = (items) => items.map(({ id }) => id);

const classify = (server, author, name) => server.call("PUT", `/v1/authors/${author}`, { class: name });

for (const name of ["auto", "pull", "everyone"]) {
  test(`s10: an author of class ${name} sees its own posts live on all devices, after being away, and as bob's`, async (t) => {
    const server = await Home.start(t, { config: OWN });
    await classify(server, "ann", name);
    await server.follow("ann", "bob");
    const [phone, tablet] = [await Phone.open(t, server, "ann", { device: "phone", unread: true }), await Phone.open(t, server, "ann", { device: "tablet" })];
    await Promise.all([phone.subscribed(), tablet.subscribed()]);
    const posted = [];
    for (const author of ["ann", "bob", "ann"]) posted.unshift((await server.publish(author, { text: `of ${author}` })).id);
    for (const device of [phone, tablet]) await device.shows("all three", (items) => ids(items).join() === posted.join());

    await server.call("PATCH", `/v1/items/${posted[0]}`, { body: { text: "edited" } });
    for (const device of [phone, tablet]) await device.shows("the edit", ([newest]) => newest.body.text === "edited");
    await server.call("DELETE", `/v1/items/${posted[2]}`);
    for (const device of [phone, tablet]) await device.shows("the delete", (items) => items.length === 2);

    await tablet.sleep();
    await server.publishMany("ann", 120);
    await server.drained();
    await tablet.wake();
    for (const device of [phone, tablet]) await device.shows("what was posted meanwhile", (items) => items.length === 122);
    assert.equal(tablet.recovered, true);
    for (const device of [phone, tablet]) await device.agrees();
    assert.deepEqual([phone.reloads, tablet.reloads], [1, 1], "nothing was loaded again");
    assert.equal((await server.page("ann", { limit: 1 })).unread, 1, "bob's alone is unread");

    for (const list of ["followers", "mutual"]) assert.deepEqual((await server.call("GET", `/v1/users/ann/${list}`)).users, [], list);
    assert.deepEqual((await server.call("GET", "/v1/users/ann/following")).users.map(({ user }) => user), ["bob"]);
    assert.equal((await server.call("GET", "/v1/authors/ann")).followers, 0);
    const itself = await server.request("PUT", "/v1/users/ann/following/ann");
    assert.equal(itself.status, 422);
    assert.match(itself.body.detail, /ann cannot follow itself.*own_posts = true/);
  });
}

test("s10: a post for some friends is in its author's feed, and a letter is in the list of what was sent", async (t) => {
  const server = await Home.start(t, { config: OWN });
  await server.follow("bob", "ann");
  await server.call("PUT", "/v1/users/ann/lists/close/bob");
  const phones = { ann: await Phone.open(t, server, "ann"), bob: await Phone.open(t, server, "bob") };
  await Promise.all(Object.values(phones).map((phone) => phone.subscribed()));
  const narrowed = await server.publish("ann", { text: "for close friends" }, { audience: { lists: ["close"] } });
  const letter = await server.publish("ann", { text: "for bob alone" }, { audience: { users: ["bob"] } });
  const gone = await server.publish("ann", { text: "a mistake" }, { audience: { users: ["bob"] } });
  await server.call("DELETE", `/v1/items/${gone.id}`);
  await phones.bob.shows("both", (items) => ids(items).join() === [letter.id, narrowed.id].join());
  await phones.ann.shows("the post for some", (items) => ids(items).join() === narrowed.id);
  await server.drained();
  await phones.ann.agrees();

  const token = await server.token("ann");
  for (const as of [{}, { token }]) {
    const sent = await server.call("GET", "/v1/users/ann/sent", undefined, as);
    assert.deepEqual([ids(sent.items), sent.next, sent.items[0].direct], [[letter.id], null, true]);
  }
  const others = await server.request("GET", "/v1/users/ann/sent", undefined, { token: await server.token("bob") });
  assert.equal(others.status, 403);
  const pages = [];
  for (let n = 0; n < 5; n++) await server.publish("ann", { n }, { audience: { users: ["bob", "cid"] } });
  for (let next = ""; next !== null; ) {
    const page = await server.call("GET", `/v1/users/ann/sent?limit=2${next && `&cursor=${next}`}`, undefined, { token });
    pages.push(page.items.length);
    next = page.next;
  }
  assert.deepEqual(pages, [2, 2, 2]);
});

test("s10: who has posted before the setting sees all of it, and nothing once it is taken back", async (t) => {
  const server = await Home.start(t);
  await server.publishMany("ann", 230);
  await server.drained();
  const phone = await Phone.open(t, server, "ann");
  await phone.shows("nothing of one's own", (items) => items.length === 0);
  // The setting is the worker's, which in a cluster is a process of its own.
  const restart = async (config) => {
    const workers = server.workers ?? [server];
    for (const worker of workers) {
      await worker.kill();
      await worker.configure(config);
    }
    for (const worker of workers) await worker.start();
  };
  await restart(OWN);
  const whole = async () => (await server.feed("ann")).length;
  await until("the worker has brought all of them", async () => (await whole()) === 230);
  await phone.shows("what the log has of them", (items) => items.length > 0);
  await restart("own_posts = false\n");
  await until("the worker has taken them away", async () => (await whole()) === 0);
  await phone.shows("nothing again", (items) => items.length === 0);
});

test("s10: nobody is pushed a notification of a post of one's own", async (t) => {
  const webhook = await Webhook.start(t);
  const server = await Home.start(t, { config: `${OWN}${webhook.config()}` });
  await webhook.open(server);
  for (const user of ["ann", "bob"]) await register(server, user, "phone");
  await server.follow("bob", "ann");
  await server.publish("ann", { text: "the first" });
  await server.drained();
  await server.publish("ann", { text: "mine" });
  await server.publish("ann", { text: "to myself" }, { audience: { users: ["ann"] } });
  await webhook.told("bob", (all) => all.some(({ user }) => user === "bob"));
  const { id } = await server.publish("bob", { text: "to ann" }, { audience: { users: ["ann"] } });
  const told = await webhook.told("ann", (all) => all.some(({ user, newest }) => user === "ann" && newest.id === id) && all);
  const ofAnn = told.filter(({ user }) => user === "ann");
  assert.deepEqual(ofAnn.map(({ unread, newest }) => [unread, newest.author]), [[1, "bob"]], "of bob's letter alone, which is all that is unread");
});
