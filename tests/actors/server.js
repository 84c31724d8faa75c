// The real server: a child process on a free port, its data in a directory of its own, and a
// backend's way to talk to it.
//
//     const server = await Server.start(t);          stopped and swept up when the test `t` ends
//     await server.kill();                           SIGKILL
//     await server.start({ failpoint: "job-taken" }) the same data, port and clients

import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { until } from "./until.js";

/** Where tests/run puts what it builds and brings. */
export const TOOLS = process.env.FEEDGATE_TOOLS ?? fileURLToPath(new URL("../../target/tools", import.meta.url));

const LOG_LINES_SHOWN = 30;

export class Server {
  #child = null;
  #exited = null; // resolves to {code, signal}
  #log = [];

  /** `config`: the text of a TOML file; `failpoints`: the build that has them; `under`: a tracer's command line. */
  static async start(t, { config = "", failpoints = false, failpoint, under = () => [] } = {}) {
    const server = new Server();
    server.directory = await mkdtemp(join(tmpdir(), "feedgate-"));
    t.after(() => server.#sweep());
    await writeFile(join(server.directory, "feedgate.toml"), config);
    server.port = await freePort();
    server.binary = join(TOOLS, "bin", failpoints || failpoint ? "feedgate-failpoints" : "feedgate");
    server.under = under(server.directory);
    await server.start({ failpoint });
    return server;
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  get websocket() {
    return `ws://127.0.0.1:${this.port}/connection/websocket`;
  }

  get data() {
    return join(this.directory, "data");
  }

  /** Starts the process, again after it ended, and waits until it answers (or has died of its failpoint). */
  async start({ failpoint } = {}) {
    const serve = ["serve", "--listen", `127.0.0.1:${this.port}`, "--data", this.data];
    const [program, ...args] = [...this.under, this.binary, ...serve, "--config", join(this.directory, "feedgate.toml")];
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("FEEDGATE_")));
    if (failpoint) env.FEEDGATE_FAILPOINT = failpoint;
    const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => this.#log.push(text));
    this.#child = child;
    this.#exited = new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code, signal) => resolve((this.ended = { code, signal })));
    });
    this.ended = null;
    await until("the server answers", () => this.ended || this.#ready(), { seen: () => this.log() });
    if (this.ended && !failpoint) throw new Error(`the server ended with ${JSON.stringify(this.ended)}:\n${this.log()}`);
    if (!this.ended) this.key = (await readFile(join(this.data, "secrets", "api_key"), "utf8")).trim();
  }

  /** SIGKILL: nothing is flushed, nobody is told. */
  async kill() {
    return this.stop("SIGKILL");
  }

  /** Ends the process and answers {code, signal}. */
  async stop(signal = "SIGTERM") {
    if (!this.ended) this.#child.kill(signal);
    return this.#exited;
  }

  /** The last lines the process wrote. */
  log() {
    return this.#log.join("").split("\n").slice(-LOG_LINES_SHOWN).join("\n");
  }

  /** One request with the API key, or with a reader's token. Answers {status, body}. */
  async request(method, path, body, { token, headers = {} } = {}) {
    const response = await fetch(this.url + path, {
      method,
      headers: {
        authorization: `Bearer ${token ?? this.key}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    return { status: response.status, body: text === "" ? null : JSON.parse(text) };
  }

  /** The same, which must succeed; answers the body. */
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

  page(user, { cursor, limit = 100 } = {}) {
    const query = new URLSearchParams({ limit, ...(cursor ? { cursor } : {}) });
    return this.call("GET", `/v1/users/${user}/feed?${query}`);
  }

  /** The whole feed, all pages walked. */
  async feed(user) {
    const items = [];
    let cursor = null;
    do {
      const page = await this.page(user, { cursor });
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
    await until("all work is done", idle, { withinSecs: 120, seen: stats });
  }

  async #ready() {
    try {
      return (await fetch(`${this.url}/readyz`)).ok;
    } catch {
      return false;
    }
  }

  async #sweep() {
    if (this.#child) await this.stop("SIGKILL");
    await rm(this.directory, { recursive: true, force: true });
  }
}

async function freePort() {
  const listener = createServer();
  await new Promise((resolve, reject) => listener.once("error", reject).listen(0, "127.0.0.1", resolve));
  const { port } = listener.address();
  await new Promise((resolve) => listener.close(resolve));
  return port;
}
