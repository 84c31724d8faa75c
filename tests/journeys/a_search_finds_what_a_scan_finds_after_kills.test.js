// Ten thousand posts in Chinese, Japanese and English, published, edited and deleted while the gateways are killed again
// and again, also in the middle of building the index anew. In the end each search finds what a look at every post finds.
//
// The oracle knows nothing of an index: it reads every post by its id. A word of Chinese or Japanese is in a post if its
// characters stand there side by side, and an English one if it stands there between spaces.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Home } from "../actors/home.js";
import { until } from "../actors/until.js";
import { Random } from "../faults/random.js";

const POSTS = 10_000;
const BATCH = 500;
/** Each so many batches the gateways are killed while one is under way. */
const KILLED_EACH = 4;
/** A kill comes so many ms after a request was begun, or earlier. */
const KILL_MS = 40;

const SEARCHED = '[search]\nfields = ["text"]\n';
const AUTHORS = ["ann", "bob", "cid", "dan", "eve"];
const WORDS = {
  chinese: ["我", "的", "北京", "小明", "王小明", "明天", "天气", "中国", "人民", "手机", "电影", "龘"],
  japanese: ["東京", "タワー", "こんにちは", "日本語", "ラーメン"],
  english: ["the", "hello", "world", "feed", "Rust", "gateway", "news"],
  other: ["👍", "🎉🎉", "안녕하세요", "。", "!"],
};

/** What is searched for: words, and characters that meet where two words do. */
const QUERIES = ["的", "小明", "王小明", "明天", "京我", "国人", "東京タワー", "ラーメン", "hello", "rust", "hello 北京", "the 的 news", "龘"];

function text(random) {
  const parts = Array.from({ length: 1 + random.between(0, 10) }, () => {
    const kind = random.pick(["chinese", "chinese", "chinese", "japanese", "english", "english", "other"]);
    const word = random.pick(WORDS[kind]);
    return kind === "english" ? ` ${word} ` : word;
  });
  return parts.join("").trim();
}

const isEnglish = (word) => /^[a-z]+$/i.test(word);
const has = (text, query) => query.split(" ").every((word) =>
  isEnglish(word) ? text.toLowerCase().split(/[^a-z]+/).includes(word.toLowerCase()) : text.includes(word));

class Corpus {
  /** The posts that are for one user alone, by id. */
  secrets = new Set();

  constructor(server, random) {
    Object.assign(this, { server, random });
  }

  /** Makes a request until it is answered: the gateways are killed while it is under way, and start again. */
  async killed(ask) {
    const { gateways } = this.server;
    const asked = ask().catch((error) => error);
    await sleep(this.random.between(0, KILL_MS));
    await Promise.all(gateways.map((gateway) => gateway.kill()));
    const answered = await asked;
    await Promise.all(gateways.map((gateway) => gateway.start()));
    // A connection that broke, or was refused. Anything else is a finding.
    if (answered instanceof Error && !(answered instanceof TypeError)) throw answered;
    if (answered instanceof Error) await ask();
  }

  /** Publishes posts that are not there yet, in one commit. */
  async publish(posts) {
    const ids = posts.map(({ id }) => id);
    const missing = new Set();
    for (let at = 0; at < ids.length; at += 100) {
      const answer = await this.server.call("GET", `/v1/items?ids=${ids.slice(at, at + 100)}`);
      answer.missing.forEach((id) => missing.add(id));
    }
    if (missing.size > 0) await this.#batch(posts.filter(({ id }) => missing.has(id)));
  }

  async #batch(ops) {
    const { results } = await this.server.call("POST", "/v1/items/batch", { ops });
    const refused = results.find(({ status }) => status >= 300);
    assert.equal(refused, undefined);
  }

  /** Edits a post, or deletes it. Both may be done twice; what is deleted stays so. */
  async change(id) {
    const [method, body] = this.random.chance(50) ? ["PATCH", { body: { text: text(this.random) } }] : ["DELETE"];
    const { status } = await this.server.request(method, `/v1/items/${id}`, body);
    assert.ok(status < 300 || status === 404, `${method} ${id}: ${status}`);
  }

  /** Every post that there is, newest first. */
  async scan() {
    const items = [];
    for (let first = 1; first <= POSTS; first += 100) {
      const ids = Array.from({ length: 100 }, (_, nth) => first + nth).join();
      items.push(...(await this.server.call("GET", `/v1/items?ids=${ids}`)).items);
    }
    return items.sort((one, other) => other.published_at - one.published_at);
  }

  async search(q, viewer) {
    const found = [];
    for (let cursor = null; ; ) {
      const query = new URLSearchParams({ q, limit: 100, ...(viewer && { viewer }), ...(cursor && { cursor }) });
      const { items, next } = await this.server.call("GET", `/v1/search/items?${query}`);
      found.push(...items.map(({ id }) => id));
      if (next === null) return found;
      cursor = next;
    }
  }

  /** Waits until all is in the index. */
  async indexed(newest) {
    await until("all is indexed", async () => {
      const { items, building } = await this.server.call("GET", `/v1/search/items?q=${newest}`);
      return !building && items.length === 1;
    });
  }

  /** Compares all searches with a look at every post, as a backend and as somebody before whom a block stands. */
  async compare() {
    const posts = await this.scan();
    const texts = new Map(posts.map(({ id, body }) => [id, body.text]));
    for (const q of QUERIES) {
      const right = posts.filter(({ body }) => has(body.text, q));
      assert.ok(right.length > 0, `${q} is in no post`);
      const seen = right.filter(({ id, author }) => author !== "ann" && !this.secrets.has(id));
      for (const [viewer, wanted] of [[undefined, right], ["fay", seen]]) {
        const found = await this.search(q, viewer);
        const ids = wanted.map(({ id }) => id);
        const wrong = [...found.filter((id) => !ids.includes(id)), ...ids.filter((id) => !found.includes(id))];
        assert.deepEqual(wrong.map((id) => `${id}: ${texts.get(id)}`), [], `${q} as ${viewer}`);
        assert.deepEqual(found, ids, `the order of ${q} as ${viewer}`);
      }
    }
    return posts.length;
  }
}

test("s14: of ten thousand posts a search finds what a scan finds, after kills, edits, deletes, a block and a new index", async (t) => {
  const server = await Home.start(t, { config: SEARCHED });
  const random = new Random(14);
  const corpus = new Corpus(server, random);
  const start = Date.now() - POSTS;
  let id = 0;
  for (let batch = 0; batch < POSTS / BATCH; batch += 1) {
    const posts = Array.from({ length: BATCH }, () => {
      id += 1;
      const post = { id: String(id), author: random.pick(AUTHORS), published_at: start + id, body: { text: text(random) } };
      if (!random.chance(5)) return post;
      corpus.secrets.add(post.id);
      return { ...post, audience: { users: ["gus"] } };
    });
    const publish = () => corpus.publish(posts);
    await (batch % KILLED_EACH === 0 ? corpus.killed(publish) : publish());
  }
  const change = () => corpus.change(random.between(1, POSTS));
  for (let n = 0; n < 200; n += 1) await (n % 50 === 25 ? corpus.killed(change) : change());
  await server.call("PUT", "/v1/users/fay/blocked/ann");
  await server.publish("eve", { text: "sentinel1" }, { published_at: 1 });
  await corpus.indexed("sentinel1");
  const left = await corpus.compare();
  assert.ok(left < POSTS && left > POSTS / 2, `${left} are left`);

  // Without search, posts change too. Then the index is built anew, and the gateways are killed meanwhile.
  const restart = async (config) => {
    for (const gateway of server.gateways) {
      await gateway.stop();
      await gateway.configure(config);
      await gateway.start();
    }
  };
  await restart("");
  for (let n = 0; n < 50; n += 1) await change();
  await restart(SEARCHED);
  for (let n = 0; n < 3; n += 1) await corpus.killed(change);
  await server.publish("eve", { text: "sentinel2" }, { published_at: 2 });
  await corpus.indexed("sentinel2");
  await corpus.compare();
});
