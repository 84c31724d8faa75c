// Fills a server with a small world, by the HTTP API alone, from Node or from a page. Each step may be done twice: ids of
// items and comments are given by the world, and all else is a PUT or a set.
//
//     const world = new World(client(url, key));
//     await world.people({ ming: { name: "王小明" } });
//     await world.posts([{ id: "1", author: "ming", hours: 2, text: "hello" }]);
//     await world.settled();                                 every feed has all of it

import { json } from "./answer.js";
import { once } from "./random.js";

const HOUR_MS = 3_600_000;

/** Requests under way at a time. */
const AT_ONCE = 16;

/** How often the server is asked whether it has finished, in ms. */
const PAUSE_MS = 50;

/** Waits so many milliseconds. */
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Users who react in large numbers. */
export const fans = (count, first = 1) => Array.from({ length: count }, (_, n) => `fan-${first + n}`);

const FAMILIES = [..."赵钱孙李周吴郑王冯陈卫蒋沈韩杨朱秦许何吕"];
const GIVEN = ["晨", "子涵", "一鸣", "雨桐", "浩然", "思远", "佳宁", "嘉树", "若溪", "文博", "欣怡", "天佑", "梓萱", "小满", "知秋", "阿宝", "云舒"];

/** Names for users of `fans`, as World.people takes them. */
export const named = (fans) => Object.fromEntries(fans.map((user) => {
  const n = Number(user.split("-")[1]);
  return [user, { name: FAMILIES[n % FAMILIES.length] + GIVEN[n % GIVEN.length] }];
}));

/** What the body of a post says if it is for less than all friends: `narrowed` of an item does not tell these apart. */
const forSome = (audience) => (audience?.lists || audience?.except_lists ? { some: true } : {});

/** Requests with an API key. A refusal is a problem (RFC 9457) that says what was wrong. */
export const client = (url, key) => async (method, path, body, headers = {}) => {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body: body && JSON.stringify(body),
  });
  const value = await json(response);
  if (!response.ok) throw Object.assign(new Error(`${method} ${path}: ${value.title}: ${value.detail}`), { status: response.status });
  return value;
};

export class World {
  /** `call`: makes a request as `client` does. */
  constructor(call) {
    this.call = call;
  }

  /** Says who users are: {user: {name, avatar, attrs}}. The page draws the avatars. */
  people(people) {
    const ops = Object.entries(people).map(([user, about]) => ({ user, avatar: `/faces/${user}.svg`, ...about }));
    return this.#batch("/v1/people/batch", ops);
  }

  /** Who follows whom: {reader: [author, …]}. */
  follows(follows) {
    const ops = Object.entries(follows).flatMap(([user, authors]) => authors.map((author) => ({ op: "follow", user, author })));
    return this.#batch("/v1/follows/batch", ops);
  }

  /** Lists of users: {user: {list: [member, …]}}. */
  lists(lists) {
    const ops = Object.entries(lists).flatMap(([user, own]) =>
      Object.entries(own).flatMap(([list, members]) => members.map((member) => ({ op: "add", user, list, member }))));
    return this.#batch("/v1/lists/batch", ops);
  }

  /** Publishes what is not there yet: [{id, author, hours, text, pictures, ref, audience}], `hours` before now. */
  async posts(posts) {
    const { missing } = await this.call("GET", `/v1/items?ids=${posts.map(({ id }) => id).join()}`);
    const ops = posts.filter(({ id }) => missing.includes(id)).map(({ text, pictures, hours, ...post }) => ({
      ...post,
      body: { text, ...(pictures && { pictures }), ...forSome(post.audience) },
      published_at: Math.round(Date.now() - hours * HOUR_MS),
    }));
    if (ops.length > 0) await this.#batch("/v1/items/batch", ops);
  }

  /** Publishes one post now. `once` is a key of the caller: the same key is one post. */
  post({ author, text, ref, audience, once: key = once() }) {
    const body = { author, body: { text, ...forSome(audience) }, ...(ref && { ref }), ...(audience && { audience }) };
    return this.call("POST", "/v1/items", body, { "idempotency-key": key });
  }

  /** Writes comments, one after another: [[item, id, author, text, reply_to], …]. */
  async comments(comments) {
    for (const [item, id, author, text, reply_to] of comments) {
      await this.call("POST", `/v1/items/${item}/comments`, { id, author, body: { text }, ...(reply_to && { reply_to }) });
    }
  }

  /** Lets users like an item, the last of them last. */
  async likes(item, users) {
    const like = (user) => this.call("PUT", `/v1/items/${item}/reactions/like/${user}`);
    const [crowd, last] = [users.slice(0, -3), users.slice(-3)];
    for (let at = 0; at < crowd.length; at += AT_ONCE) await Promise.all(crowd.slice(at, at + AT_ONCE).map(like));
    for (const user of last) await like(user);
  }

  /** Waits until every accepted write has reached every feed. */
  async settled() {
    for (;;) {
      const { archive, jobs } = await this.call("GET", "/v1/stats");
      if (archive.events_outstanding === 0 && jobs.pending === 0) return;
      await pause(PAUSE_MS);
    }
  }

  /** Sends operations in one commit; throws the first refusal. */
  async #batch(path, ops) {
    const answer = await this.call("POST", path, { ops });
    const refused = answer?.results?.find(({ status }) => status >= 300);
    if (refused) throw new Error(`POST ${path}: ${refused.title}: ${refused.detail}`);
  }
}
