// A backend that speaks NATS: the unmodified `nats` client from npm.
//
//     const bus = await Bus.open(t, cluster);
//     await bus.put("publish", { author: "ann", body: 1 }, { key: "post-1" });       kept in FEED_IN until it is carried out
//     const { status, body, headers } = await bus.call("publish", {...});            answered, and not kept
//     const events = await bus.events();                                             what lies on FEED
//     const refused = await bus.refused();                                           what lies in FEED_REFUSED

import { createRequire } from "node:module";
import { join } from "node:path";

import { TOOLS } from "./process.js";
import { until } from "./until.js";

const require = createRequire(join(TOOLS, "node", "package.json"));
const { connect, headers: makeHeaders } = require("nats");

/** How long a call may take. */
const WITHIN_MS = 60_000;

/** How long NATS has for an answer about its streams; a question that is lost with a connection is asked again. */
const ANSWERED_WITHIN_MS = 5000;

const text = (data) => new TextDecoder().decode(data);
const bytes = (body) => (body instanceof Uint8Array ? body : typeof body === "string" ? body : JSON.stringify(body));

export class Bus {
  /** `options`: further ones of the client, such as {user, pass}. */
  static async open(t, { nats: { port } }, options = {}) {
    const bus = new Bus();
    bus.connection = await connect({ servers: `127.0.0.1:${port}`, maxReconnectAttempts: -1, reconnectTimeWait: 50, ...options });
    t.after(() => bus.connection.close());
    bus.stream = bus.connection.jetstream({ timeout: WITHIN_MS });
    bus.streams = await bus.connection.jetstreamManager({ timeout: ANSWERED_WITHIN_MS, checkAPI: false });
    return bus;
  }

  /** Puts a call into FEED_IN, and answers what NATS says: {seq, duplicate}. */
  put(subject, body = "", { key, headers } = {}) {
    return this.stream.publish(`feed.in.${subject}`, bytes(body), { msgID: key, headers: made(headers) });
  }

  /** Sends a call and waits for its answer. */
  async call(subject, body = "", { key, headers } = {}) {
    const all = { ...headers, ...(key ? { "Nats-Msg-Id": key } : {}) };
    const answer = await this.connection.request(`feed.call.${subject}`, bytes(body), { timeout: WITHIN_MS, headers: made(all) });
    const data = text(answer.data);
    const header = (name) => answer.headers.get(name);
    return { status: Number(header("Feed-Status")), body: data === "" ? null : JSON.parse(data), header };
  }

  /** How many calls wait or are under way. */
  async waiting() {
    return (await this.streams.streams.info("FEED_IN")).state.messages;
  }

  /** Waits until every call was carried out or refused. While NATS is away nobody knows. */
  settled() {
    const waiting = () => this.waiting().catch(() => "not known");
    return until("every call was carried out", async () => (await waiting()) === 0, { seen: waiting });
  }

  /** How many events lie on FEED; null while nobody knows. */
  kept() {
    return this.streams.streams.info("FEED").then(({ state }) => state.messages, () => null);
  }

  /** Everything on FEED: [{subject, event}]. */
  async events() {
    const { state } = await this.streams.streams.info("FEED");
    const all = [];
    for (let seq = state.first_seq; seq <= state.last_seq && state.messages > 0; seq += 1) {
      const { subject, data } = await this.streams.streams.getMessage("FEED", { seq });
      all.push({ subject, event: JSON.parse(text(data)) });
    }
    return all;
  }

  /** Everything in FEED_REFUSED: [{subject, problem, header, body}]. */
  async refused() {
    const { state } = await this.streams.streams.info("FEED_REFUSED");
    const all = [];
    for (let seq = state.first_seq; seq <= state.last_seq && state.messages > 0; seq += 1) {
      const { subject, header, data } = await this.streams.streams.getMessage("FEED_REFUSED", { seq });
      all.push({ subject, problem: JSON.parse(header.get("Feed-Problem")), header: (name) => header.get(name), body: text(data) });
    }
    return all;
  }
}

function made(headers = {}) {
  const all = makeHeaders();
  for (const [name, value] of Object.entries(headers)) all.append(name, value);
  return all;
}
