// A fixed day of a small backend is lived through once undisturbed, and then once for each failpoint: there the server
// is killed and started again. A request that lost its answer is asked again with its idempotency key, as a backend
// does. In the end every log must hold the changes of the undisturbed day, every feed must be as a model of ten lines
// says, and every accepted post must be exactly one item.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Phone } from "../actors/phone.js";
import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";

const SOURCE = new URL("../../common/src/failpoint.rs", import.meta.url);
const NAMES = [...readFileSync(SOURCE, "utf8").match(/NAMES: .*?= &\[(.*?)\];/s)[1].matchAll(/"([a-z-]+)"/g)]
  .map(([, name]) => name)
  // This day has no webhook: a_notice_outlives_a_crash_at_any_named_point.test.js goes through these.
  .filter((name) => !name.startsWith("push-"));

/** The first passing of each point, and a later one. */
const PASSINGS = [1, 4];

const READERS = ["r1", "r2", "r3", "r4", "r5"];
const AUTHORS = ["a1", "a2", "a3"];
const GUEST = "guest";
const CONFIG = '[feeds.likes]\nkinds = ["like"]\n[notify]\nreaction = "like"\n[gateway]\nbatch = 5\n';

/** The server with someone who starts it again whenever its failpoint has killed it. */
class Survivor {
  deaths = 0;
  #starting = null; // the start that is under way

  static async start(t, failpoint) {
    const survivor = new Survivor();
    survivor.server = await Server.start(t, { failpoint, config: CONFIG });
    survivor.failpoint = failpoint;
    return survivor;
  }

  /** Asks until there is an answer: the server is started again if it has died. */
  async persist(ask) {
    for (;;) {
      try {
        if (!this.server.ended) return await ask(this.server);
      } catch (error) {
        // A refused connection, or one that broke before the answer; anything else is a finding.
        if (!(error instanceof TypeError)) throw error;
        await until("the server is known to be dead", () => this.server.ended);
      }
      // A phone and its app may both find the server dead.
      await (this.#starting ??= this.#startAgain().finally(() => (this.#starting = null)));
    }
  }

  async #startAgain() {
    assert.equal(this.server.ended.signal, "SIGKILL", this.server.log());
    assert.ok(this.failpoint, `the server died by itself:\n${this.server.log()}`);
    this.deaths += 1;
    await this.server.start();
  }

  drained() {
    return this.persist((server) => server.drained());
  }
}

/** The day, step by step; and beside it the model: who follows whom, and which posts live. */
class Day {
  follows = new Map([...READERS, GUEST].map((reader) => [reader, new Set()]));
  posts = new Map(); // name → {author, id, at, text, key, deleted}

  constructor(survivor) {
    this.survivor = survivor;
  }

  ask(method, path, body, headers) {
    return this.survivor.persist((server) => server.request(method, path, body, { headers }));
  }

  async follow(reader, author) {
    const { status } = await this.ask("PUT", `/v1/users/${reader}/following/${author}`);
    assert.equal(status, 204);
    this.follows.get(reader).add(author);
  }

  async unfollow(reader, author) {
    const { status } = await this.ask("DELETE", `/v1/users/${reader}/following/${author}`);
    assert.equal(status, 204);
    this.follows.get(reader).delete(author);
  }

  #payload(author, name) {
    return { author, body: { text: name }, published_at: 1_700_000_000_000 + this.posts.size };
  }

  /** Publishes an item to the followers, or to the readers `to` alone. */
  async publish(author, name, to) {
    const payload = { ...this.#payload(author, name), ...(to && { audience: { users: to } }) };
    const { status, body } = await this.ask("POST", "/v1/items", payload, { "idempotency-key": name });
    assert.ok(status === 201 || status === 200, `${status} ${JSON.stringify(body)}`);
    this.posts.set(name, { payload, author, id: body.id, at: payload.published_at, text: name, to });
  }

  async publishBatch(author, names) {
    const ops = names.map((name, i) => {
      const payload = this.#payload(author, name);
      return { ...payload, published_at: payload.published_at + i, idempotency_key: name };
    });
    const { status, body } = await this.ask("POST", "/v1/items/batch", { ops });
    assert.equal(status, 200);
    body.results.forEach((result, i) => {
      assert.ok(result.status === 201 || result.status === 200, JSON.stringify(result));
      const { idempotency_key, ...payload } = ops[i];
      this.posts.set(idempotency_key, { payload, author, id: result.id, at: payload.published_at, text: idempotency_key });
    });
  }

  async edit(name) {
    const post = this.posts.get(name);
    const { status } = await this.ask("PATCH", `/v1/items/${post.id}`, { body: { text: `${name}, edited` } }, { "if-match": '"1"' });
    // 412: the first try was done, only its answer was lost.
    assert.ok(status === 200 || status === 412, `${status}`);
    post.text = `${name}, edited`;
  }

  async delete(name) {
    const { status } = await this.ask("DELETE", `/v1/items/${this.posts.get(name).id}`);
    assert.ok(status < 300, `${status}`);
    this.posts.get(name).deleted = true;
  }

  async visit(reader) {
    await this.survivor.persist((server) => server.page(reader));
  }

  async live(t) {
    for (const reader of READERS) await this.follow(reader, "a1");
    for (const reader of ["r1", "r2", "r3"]) await this.follow(reader, "a2");
    await this.publish("a1", "before-anyone-looked");
    await this.survivor.drained();
    for (const reader of ["r1", "r2", "r3", "r4"]) await this.visit(reader);

    await this.publishBatch("a1", Array.from({ length: 30 }, (_, i) => `morning-${i}`));
    for (const author of AUTHORS) for (let i = 0; i < 5; i += 1) await this.publish(author, `${author}-noon-${i}`);
    await this.survivor.drained();

    for (const name of ["morning-3", "a2-noon-1", "a3-noon-2"]) await this.edit(name);
    for (const name of ["morning-4", "a2-noon-3", "a3-noon-0"]) await this.delete(name);
    await this.survivor.drained();

    await this.unfollow("r1", "a2");
    await this.unfollow("r2", "a1");
    await this.follow("r3", "a3");
    await this.survivor.drained();
    await this.follow("r2", "a1");
    await this.follow("r4", "a2");
    await this.survivor.drained();
    await this.visit("r5");

    for (const name of ["letter-1", "letter-2", "letter-3"]) {
      await this.publish("a3", name, ["r1", "r5"]);
      await this.survivor.drained();
    }

    await this.like();
    await this.comeAndBeErased(GUEST);
    await this.catchUp(t, "r1");
    for (const author of AUTHORS) await this.publish(author, `${author}-evening`);
    await this.delete("morning-5");
    await this.survivor.drained();
  }

  /** All readers like a post of a1, who looks; the first two take it back. */
  async like() {
    const reaction = (user) => `/v1/items/${this.posts.get("a1-noon-0").id}/reactions/heart/${user}`;
    const ask = async (method, user) => assert.equal((await this.ask(method, reaction(user))).status, 200);
    await this.told();
    for (const user of READERS) await ask("PUT", user);
    await this.survivor.drained();
    for (const user of READERS.slice(0, 2)) await ask("DELETE", user);
    await this.survivor.drained();
  }

  /** Who likes what, as a1 is told: so few are all named by their line. */
  async told() {
    const { items } = await this.survivor.persist((server) => server.page("a1", { name: "likes" }));
    return items.flatMap(({ body: { actors, count } }) => {
      assert.equal(actors.length, count);
      return actors;
    });
  }

  /** A user whom no reader follows leaves traces of several kinds, and is erased. */
  async comeAndBeErased(user) {
    await this.follow(user, "a1");
    await this.publish(user, `${user}-1`);
    const item = this.posts.get("a1-noon-0").id;
    const said = { author: user, body: "hello" };
    const { status } = await this.ask("POST", `/v1/items/${item}/comments`, said, { "idempotency-key": `${user}-says` });
    assert.ok(status === 201 || status === 200, `${status}`);
    assert.equal((await this.ask("PUT", `/v1/items/${item}/reactions/like/${user}`)).status, 200);
    const { body: receipt } = await this.ask("POST", `/v1/users/${user}/erase`);
    const isErased = async () => (await this.ask("GET", `/v1/erasures/${receipt.id}`)).body.finished_at !== null;
    await until("the user is erased", isErased, { seen: () => this.survivor.server.log() });
    await this.survivor.drained();
    this.follows.delete(user);
    this.posts.delete(`${user}-1`);
  }

  /** A phone reads the whole log over the WebSocket, in batches of five. */
  async catchUp(t, reader) {
    const page = await this.survivor.persist((server) => server.page(reader));
    const start = { items: [], next: null, bottom: null, position: { ...page.position, offset: 0 } };
    const getToken = () => this.survivor.persist((server) => server.token(reader));
    const phone = await Phone.open(t, this.survivor.server, reader, { stored: JSON.stringify(start), getToken });
    const there = async () => {
      await this.survivor.persist(() => undefined);
      return phone.position.offset >= page.position.offset;
    };
    await phone.waitFor(`${reader} has caught up`, there);
    assert.equal(phone.repeated + phone.reloads, 0);
    phone.close();
  }

  // --- what must hold in the end --------------------------------------------------------------

  /** Every log as {reader: {author: ["add name", ...]}}; its offsets are dense from 1. */
  async logs() {
    const names = new Map([...this.posts].map(([name, { id, author }]) => [id, { name, author }]));
    const logs = {};
    for (const reader of READERS) {
      const changes = await this.survivor.server.changes(reader);
      assert.deepEqual(changes.map(({ offset }) => offset), changes.map((_, i) => i + 1), `${reader}'s log is dense`);
      logs[reader] = Object.fromEntries(AUTHORS.map((author) => [author, []]));
      for (const { op, item, item_id, author } of changes) {
        if (op === "forget") logs[reader][author].push("forget");
        else {
          const known = names.get(item_id ?? item.id);
          assert.ok(known, `${reader} holds an item that was never accepted: ${item_id ?? item.id}`);
          logs[reader][known.author].push(`${op} ${known.name}`);
        }
      }
    }
    return logs;
  }

  async feedsAreRight() {
    for (const reader of READERS) {
      const wants = [...this.posts.values()]
        .filter(({ author, deleted, to }) => !deleted && (to?.includes(reader) ?? this.follows.get(reader).has(author)))
        .sort((a, b) => b.at - a.at)
        .map(({ text }) => text);
      const shown = (await this.survivor.server.feed(reader)).map(({ body }) => body.text);
      assert.deepEqual(shown, wants, `${reader}'s feed`);
    }
  }

  /** S5: each like that was not taken back is told once. The guest is erased, so nothing tells of the guest any more. */
  async likesAreTold() {
    assert.deepEqual((await this.told()).toSorted(), READERS.slice(2));
  }

  /** I6: the same key again is answered with the same item. */
  async acceptedOnce() {
    for (const [key, { payload, id }] of this.posts) {
      const { status, body } = await this.ask("POST", "/v1/items", payload, { "idempotency-key": key });
      assert.deepEqual([status, body.id], [200, id], key);
    }
  }
}

async function livedThrough(t, failpoint) {
  const survivor = await Survivor.start(t, failpoint);
  const day = new Day(survivor);
  await day.live(t);
  await day.feedsAreRight();
  await day.likesAreTold();
  const logs = await day.logs();
  await day.acceptedOnce();
  await survivor.drained();
  assert.deepEqual(await day.logs(), logs, "asking again has changed nothing");
  return { logs, deaths: survivor.deaths };
}

let undisturbed = null;
const theUndisturbed = (t) => (undisturbed ??= livedThrough(t, undefined));

test("an undisturbed day ends with the logs of every reader", async (t) => {
  const { logs } = await theUndisturbed(t);
  assert.ok(logs.r1.a1.length >= 30 && logs.r4.a2.length > 0 && logs.r5.a1.length > 0);
  assert.ok(logs.r1.a2.includes("forget"));
});

for (const name of NAMES) {
  for (const passing of PASSINGS) {
    test(`i14_killed_at_${name}_number_${passing}_the_logs_end_with_the_same_changes`, async (t) => {
      const { logs, deaths } = await livedThrough(t, `${name}:${passing}`);
      assert.equal(deaths, 1, "the failpoint was passed");
      assert.deepEqual(logs, (await theUndisturbed(t)).logs);
    });
  }
}
