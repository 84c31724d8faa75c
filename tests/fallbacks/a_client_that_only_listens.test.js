// `GET /connection/uni_sse`: an EventSource sees a feed without any SDK, and misses nothing when it comes again.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Nginx } from "../actors/nginx.js";
import { EventSource } from "../actors/sdk.js";
import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";

/** An EventSource at a feed of the token's user. `events`: what came, in order; `status`: of a refusal. */
function listen(t, server, token, { query = {}, inHeader = false } = {}) {
  const own = inHeader ? {} : { cf_connect: JSON.stringify({ token }) };
  const authorized = (url, init) => fetch(url, { ...init, headers: { ...init.headers, authorization: `Bearer ${token}` } });
  const url = `${server.url}/connection/uni_sse?${new URLSearchParams({ ...own, ...query })}`;
  const source = new EventSource(url, inHeader ? { fetch: authorized } : {});
  const heard = { source, events: [], status: null };
  source.onmessage = ({ data, lastEventId }) => heard.events.push({ ...JSON.parse(data), id: lastEventId });
  source.onerror = ({ code }) => (heard.status = code ?? heard.status);
  heard.texts = () => heard.events.filter(({ pub }) => pub?.data.op === "add").map(({ pub }) => pub.data.item.body.text);
  t.after(() => source.close());
  return heard;
}

for (const inHeader of [true, false]) {
  test(`an EventSource sees a feed live, its token in the ${inHeader ? "header" : "query"}, behind a proxy`, async (t) => {
    const server = await Server.start(t);
    await server.follow("ann", "bob");
    const heard = listen(t, await Nginx.start(t, server), await server.token("ann"), { inHeader });
    await until("it listens", () => heard.events.length === 2);
    assert.equal(heard.events[0].connect.pong, false);
    assert.equal(heard.events[1].id, `${heard.events[1].subscribe.epoch}:${heard.events[1].subscribe.offset}`);
    await server.publish("bob", { text: "hello" });
    await until("the post", () => heard.texts().length === 1);
    assert.equal(heard.events[2].channel, "feed");
  });
}

test("an EventSource whose server dies comes again and gets exactly what it missed", async (t) => {
  const server = await Server.start(t);
  await server.follow("ann", "bob");
  const heard = listen(t, server, await server.token("ann"));
  await until("it listens", () => heard.events.length === 2);
  await server.publish("bob", { text: "post 0" });
  await until("the first", () => heard.texts().length === 1);
  await server.kill();
  await server.start();
  await server.publishMany("bob", 200);
  await until("all of them", () => heard.texts().length >= 201);
  assert.deepEqual(heard.texts(), Array.from({ length: 201 }, (_, i) => `post ${i}`));
  const begins = heard.events.filter(({ subscribe }) => subscribe);
  assert.ok(begins.slice(1).every(({ subscribe }) => subscribe.recovered), JSON.stringify(begins));
});

test("s4: an EventSource sees what happens around an item, and is told when its user may see it no more", async (t) => {
  const server = await Server.start(t);
  await server.follow("ann", "bob");
  const { id } = await server.publish("bob", { text: "watched" });
  await server.drained();
  const token = await server.token("ann");
  const heard = listen(t, server, token, { query: { item: id } });
  await until("it listens", () => heard.events.length === 2);
  assert.deepEqual(heard.events[1].subscribe.data, { id, version: 1, counts: {}, own: [] });
  await server.call("PUT", `/v1/items/${id}/reactions/like/cid`);
  await server.call("POST", `/v1/items/${id}/comments`, { author: "cid", body: { text: "hi" } });
  const told = () => heard.events.slice(2).filter(({ pub }) => pub).map(({ channel, pub }) => ({ channel, ...pub.data }));
  await until("the like and the comment", () => told().some(({ counts }) => counts?.like === 1 && counts?.comments === 1) && told().some(({ op }) => op === "comment"));
  assert.ok(told().every(({ channel }) => channel === `item:${id}`), JSON.stringify(told()));
  await server.unfollow("ann", "bob");
  await until("the end of it", () => heard.events.some(({ unsubscribe }) => unsubscribe?.code === 2001));

  const unseen = listen(t, server, token, { query: { item: id } });
  await until("there is no such item for ann", () => unseen.events.some(({ error }) => error?.code === 102));
  for (const query of [{ item: "x" }, { item: id, name: "feed" }, { item: id, offset: 1, epoch: 1 }]) {
    const bad = listen(t, server, token, { query });
    await until("it is refused", () => bad.status === 400);
  }
});

test("a token that has run out ends the session with 3005, and is then refused with 401, after which it stops", async (t) => {
  const server = await Server.start(t, { config: "[gateway]\nrefresh_grace_secs = 0\n" });
  const heard = listen(t, server, await server.token("ann", { ttl: 4 })); // seconds for a busy machine
  await until("the end", () => heard.events.some(({ disconnect }) => disconnect?.code === 3005));
  await until("the refusal", () => heard.source.readyState === EventSource.CLOSED);
  assert.equal(heard.status, 401);
});
