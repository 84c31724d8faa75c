// The receiver of push notifications: a real HTTP server that checks each call with the library of Standard Webhooks, and
// answers as a test tells it to.
//
//     const webhook = await Webhook.start(t);
//     const server = await Home.start(t, { config: webhook.config() });
//     await webhook.open(server);                        from now on it knows the key, and takes calls
//     await webhook.told("bob's phone", (told) => told.some(({ user }) => user === "bob"));

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";

import { TOOLS } from "./process.js";
import { until } from "./until.js";

const { Webhook: Verifier } = createRequire(join(TOOLS, "node", "package.json"))("standardwebhooks");

export class Webhook {
  /** All calls that came, as {id, notifications}; those that were not signed as they must be are in `forged`. */
  calls = [];
  forged = [];
  /** Answers a call: (request, response, call). */
  answer = (request, response) => response.writeHead(204).end();
  #server = null;
  #port = 0;
  #verifier = null;

  static async start(t) {
    const webhook = new Webhook();
    await webhook.up();
    t.after(() => webhook.down());
    return webhook;
  }

  get url() {
    return `http://127.0.0.1:${this.#port}/feedgate`;
  }

  /** The section of the settings: everything happens soon, unless `more` says otherwise. */
  config(more = {}) {
    const push = {
      webhook_url: this.url,
      allow_private: ["127.0.0.1"],
      debounce_secs: 0,
      min_interval_secs: 0,
      timeout_secs: 10, // a machine under load is slow to answer
      retry_first_secs: 1,
      retry_max_secs: 1,
      ...more,
    };
    return `[push]\n${Object.entries(push).map(([key, value]) => `${key} = ${JSON.stringify(value)}`).join("\n")}\n`;
  }

  /** Reads the key that the server has made. */
  async open(server) {
    const secrets = server.secrets ?? join(server.data, "secrets");
    this.#verifier = new Verifier((await readFile(join(secrets, "webhook_key"), "utf8")).trim());
  }

  /** Listens, again on the port of before. */
  async up() {
    this.#server = createServer((request, response) => this.#take(request, response));
    this.#server.listen(this.#port, "127.0.0.1");
    await once(this.#server, "listening");
    this.#port = this.#server.address().port;
  }

  async down() {
    const server = this.#server;
    if (server === null) return;
    this.#server = null;
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  }

  async #take(request, response) {
    let body = "";
    try {
      for await (const piece of request) body += piece;
    } catch {
      return; // the caller, or down(), has ended the call in the middle
    }
    try {
      const { notifications } = this.#verifier.verify(body, request.headers);
      const call = { id: request.headers["webhook-id"], notifications };
      this.calls.push(call);
      await this.answer(request, response, call);
    } catch (error) {
      this.forged.push(error);
      response.writeHead(401).end();
    }
  }

  /** All notifications of all calls. */
  get notifications() {
    return this.calls.flatMap(({ notifications }) => notifications);
  }

  /** Waits until the notifications are as `wanted` says. */
  told(what, wanted) {
    return until(what, () => wanted(this.notifications), { seen: () => [this.notifications, this.forged.map(String)] });
  }
}

/** Registers a device of the user. */
export function register(server, user, device, more = {}) {
  const body = { platform: "fcm", push_token: `token of ${device}`, ...more };
  return server.call("PUT", `/v1/users/${user}/devices/${device}`, body);
}
