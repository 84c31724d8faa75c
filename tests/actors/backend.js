// How a backend talks to Feedgate: by HTTP, with the API key. A class that extends this one has a `url` and a `key`.
//
// With a `recorder` (tests/history/recorder.js) every call is recorded.

import { until } from "./until.js";

export class Backend {
  recorder = null;
  /** How long an answer may take, in ms; undefined: as long as it takes. */
  timeoutMs = undefined;

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  get websocket() {
    return `${this.url.replace("http", "ws")}/connection/websocket`;
  }

  /** One request with the API key, or with a reader's token. Answers {status, body}. */
  request(method, path, body, { token, headers = {} } = {}) {
    const { url } = this;
    const ask = () => this.#fetch(method, url + path, body, { token, headers });
    if (this.recorder === null) return ask();
    const key = headers["idempotency-key"];
    return this.recorder.call({ gateway: new URL(url).host, method, path, body, key }, ask);
  }

  async #fetch(method, url, body, { token, headers }) {
    const response = await fetch(url, {
      method,
      headers: {
        authorization: `Bearer ${token ?? this.key}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: this.timeoutMs && AbortSignal.timeout(this.timeoutMs),
    });
    const text = await response.text();
    return { status: response.status, body: text === "" ? null : JSON.parse(text) };
  }

  /** Sends a request that must succeed, and gives the body of its answer. */
  async call(method, path, body, options) {
    const answer = await this.request(method, path, body, options);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  publish(author, body, more = {}) {
    return this.call("POST", "/v1/items", { author, body, ...more });
  }

  /** Publishes `count` posts, numbered from `first`, in batches. */
  async publishMany(author, count, first = 1) {
    for (let done = 0; done < count; done += 1000) {
      const size = Math.min(1000, count - done);
      const ops = Array.from({ length: size }, (_, i) => ({ author, body: { text: `post ${first + done + i}` } }));
      const { results } = await this.call("POST", "/v1/items/batch", { ops });
      const refused = results.find((result) => result.status >= 300);
      if (refused) throw new Error(`a post was refused: ${JSON.stringify(refused)}`);
    }
  }

  follow(reader, author) {
    return this.call("PUT", `/v1/users/${reader}/following/${author}`);
  }

  unfollow(reader, author) {
    return this.call("DELETE", `/v1/users/${reader}/following/${author}`);
  }

  async token(user, { device, ttl } = {}) {
    return (await this.call("POST", `/v1/users/${user}/token`, { device_id: device, ttl })).token;
  }

  page(user, { name = "feed", cursor, limit = 100 } = {}) {
    const query = new URLSearchParams({ name, limit, ...(cursor ? { cursor } : {}) });
    return this.call("GET", `/v1/users/${user}/feed?${query}`);
  }

  /** The whole feed of that name, all pages walked. */
  async feed(user, name = "feed") {
    const items = [];
    let cursor = null;
    do {
      const page = await this.page(user, { name, cursor });
      items.push(...page.items);
      cursor = page.next;
    } while (cursor !== null);
    return items;
  }

  /** The whole log that is kept: [{offset, op, ...}]. Reading it makes the inbox if there is none. */
  async changes(user) {
    const { position } = await this.page(user, { limit: 1 });
    const all = [];
    for (let after = { offset: 0, epoch: position.epoch }; ; ) {
      const query = new URLSearchParams({ ...after, limit: 1000 });
      const { changes, position: reached, head } = await this.call("GET", `/v1/users/${user}/changes?${query}`);
      all.push(...changes);
      after = reached;
      if (reached.offset >= head) return all;
    }
  }

  /** Waits until every accepted write has reached every inbox. */
  async drained() {
    const stats = () => this.call("GET", "/v1/stats");
    const idle = async () => {
      const { archive, jobs } = await stats();
      return archive.events_outstanding === 0 && jobs.pending === 0;
    };
    await until("all work is done", idle, { seen: stats });
  }

  /** Whether it says that it is ready. */
  async isReady() {
    try {
      return (await fetch(`${this.url}/readyz`)).ok;
    } catch {
      return false;
    }
  }
}
