// A phone: the unmodified SDK of sdk.js, and the list that examples/feed.js keeps.
//
//     const phone = await Phone.open(t, server, "ann", { device: "ios-1" });
//     await phone.shows("the post", (items) => items.length === 1);
//     const likes = await Phone.open(t, server, "ann", { channel: "likes", over: phone });   another feed, the same connection
//     phone.close();                                    the app is gone; `phone.stored` is what it kept
//
// It counts what the protocol promises: in items mode every change once and none missing (a
// FeedGap fails the phone), whatever happened to the connection in between.

import assert from "node:assert/strict";

import { Feed, FeedGap } from "../../examples/feed.js";
import { tap } from "../history/recorder.js";
import { Centrifuge, WAYS, WebSocket } from "./sdk.js";
import { TRANSPORT, reach } from "./transport.js";
import { until } from "./until.js";

export { Centrifuge, WAYS, WebSocket };

const HISTORY_LIMIT = 100;

/** How long the SDK waits for an answer: a machine under load is slow. */
const PATIENT_MS = 60_000;

/** The SDK's own code for a call that its connection did not outlive. */
const CONNECTION_CLOSED = 11;

export class Phone {
  /** How often page one was loaded, a change came twice, the connection came up, a token was asked for. */
  reloads = 0;
  repeated = 0;
  connects = 0;
  tokens = 0;
  /** Over what it came up, each time. */
  carriers = [];
  /** Pushes seen; the ops of all changes taken in; what the SDK reported. */
  pushes = 0;
  ops = [];
  errors = [];
  /** Why the SDK connected, each time: 0 by the app, else a code of its own or of the server's close. */
  connecting = [];
  /** If it wants to know: how much is unread, and up to where the reader has seen the feed, as it was told last. */
  unread = null;
  seen = null;
  /** {code, reason} once the SDK has stopped for good. */
  stopped = null;
  /** {epoch, offset}: where the server's answer to the last subscribe began, or the last change pushed since. */
  #sent = null;
  #broken = null;
  #fetching = null;
  #asked = false; // whether the SDK has asked for a position before

  /**
   * `channel`: the feed's name. `unread`: whether it wants to know how much is unread. `over`: the phone whose connection it shares. `deliver`: "items" or "notify". `stored`: what an earlier run of the app kept. `way`: how the
   * subscription gets its position, one of WAYS. `ttl`: of its tokens, seconds.
   * `fetchBy`: how a notified phone fetches, by "history" or over HTTP by "changes". `transport`: "websocket",
   * "http_stream" or "sse". `emulation`: answers the server that takes the phone's messages over the latter two.
   */
  static async open(t, server, user, options = {}) {
    const phone = new Phone(server, user, options);
    t.after(() => phone.close());
    await phone.#start();
    return phone;
  }

  constructor(server, user, options = {}) {
    const { channel = "feed", over, device = over?.device, deliver = "items", unread = false, stored, way = WAYS[0], ttl, fetchBy = "history", onPush, getToken, transport = TRANSPORT, emulation } = options;
    Object.assign(this, { server, user, channel, over, device, deliver, way, ttl, fetchBy, onPush, transport, emulation });
    this.data = { deliver, ...(unread && { unread }) };
    this.getToken = getToken ?? (() => server.token(user, { device, ttl }));
    this.feed = stored ? Feed.from(JSON.parse(stored)) : new Feed();
  }

  async #start() {
    this.client = this.over?.client ?? this.#connection();
    this.client.on("connected", ({ transport }) => {
      this.connects += 1;
      this.carriers.push(transport);
    });
    this.client.on("connecting", ({ code }) => this.connecting.push(code));
    this.client.on("error", (context) => this.errors.push(context.error));
    this.client.on("disconnected", ({ code, reason }) => (this.stopped = { code, reason }));
    const position = this.way === "getState" ? { getState: () => this.#state() } : { [this.way]: await this.#since() };
    this.subscription = this.client.newSubscription(this.channel, {
      data: this.data,
      minResubscribeDelay: 20,
      maxResubscribeDelay: 200,
      ...position,
    });
    this.subscription.on("error", (context) => this.errors.push(context.error));
    this.subscription.on("subscribed", (context) => this.#guard(() => this.#subscribed(context)));
    this.subscription.on("publication", (context) => this.#guard(() => this.#published(context)));
    this.subscription.subscribe();
    this.client.connect();
  }

  #connection() {
    const { recorder } = this.server;
    const bare = this.server.socket ?? WebSocket;
    const socket = recorder ? tap(recorder, bare, { reader: this.user, device: this.device }) : bare;
    const [url, carrier] = reach(this.transport, () => this.server, { socket, emulation: this.emulation });
    return new Centrifuge(url, {
      ...carrier,
      data: this.device ? { device_id: this.device } : {},
      getToken: async () => {
        this.tokens += 1;
        return this.getToken();
      },
      minReconnectDelay: 20,
      maxReconnectDelay: 200,
      timeout: PATIENT_MS,
    });
  }

  /** What the app writes to its disk. */
  get stored() {
    return JSON.stringify(this.feed);
  }

  get position() {
    return this.feed.position;
  }

  /** The process of the app dies: no goodbye, and nothing is stored after this. */
  close() {
    if (this.client?.end) this.client.end();
    else this.client?.disconnect();
    this.closed = true;
  }

  /** The phone is put away, and taken up again: the process lives on, and so does the SDK's position. */
  async sleep() {
    this.client.disconnect();
    await this.waitFor("the goodbye", () => this.client.state === "disconnected");
  }

  async wake() {
    this.stopped = null;
    this.client.connect();
    await this.subscribed();
  }

  /** Waits until each fetch or reload that has begun is at its end. A later notification begins another. */
  async fetched() {
    for (let last; last !== this.#fetching; ) await (last = this.#fetching);
  }

  /** Acknowledges what the list has taken in. */
  acknowledge() {
    return this.client.rpc("ack", { ...this.position, channel: this.channel });
  }

  /** Says that the reader has seen what the list has taken in; gives what is unread then. */
  async see() {
    return (await this.client.rpc("seen", { ...this.position, channel: this.channel })).data;
  }

  /** Waits until the SDK has subscribed. A phone in notify mode fetches then; waits for the end of that too. */
  async subscribed() {
    await this.waitFor("the subscription", () => this.subscription.state === "subscribed");
    await this.fetched();
  }

  /** Waits until the list is as `condition` wants it. */
  shows(what, condition) {
    return this.waitFor(`the phone shows ${what}`, () => condition(this.feed.items()));
  }

  /** Waits for anything about this phone; fails at once when the phone is broken. */
  waitFor(what, condition, withinSecs) {
    const sound = () => {
      if (this.#broken) throw this.#broken;
      return condition();
    };
    return until(what, sound, { withinSecs, seen: () => this.#seen() });
  }

  /**
   * Waits until the phone has taken in the log's head, and scrolls up to the end. A phone in items mode has also been
   * sent each change then: a page that it loaded may be ahead of the pushes.
   */
  async catchesUp(withinSecs) {
    const { position } = await this.server.page(this.user, { name: this.channel, limit: 1 });
    const reached = (at) => at?.epoch === position.epoch && at.offset >= position.offset;
    const there = () => reached(this.position) && (this.deliver === "notify" || reached(this.#sent));
    await this.waitFor(`the phone is at ${JSON.stringify(position)}`, there, withinSecs);
    await this.loadAll();
  }

  /** Waits until all work is done and the phone has caught up; then compares its whole list with the feed. */
  async agrees() {
    await this.server.drained();
    await this.catchesUp();
    assert.deepEqual(this.feed.items(), await this.server.feed(this.user, this.channel));
    assert.equal(this.repeated, 0, "no change came twice");
  }

  /** Scrolls up to the end. */
  async loadAll() {
    for (let cursor; (cursor = this.feed.next) !== null; ) this.feed.append(await this.#page(cursor), cursor);
  }

  // --- functions that only this module uses -----------------------------------------------------

  /** A stored position, or that of a fresh page one. */
  async #since() {
    if (this.position === null) await this.#reload();
    return { ...this.position };
  }

  /** The SDK asks for a position: at first, and again when the server cannot recover the last. */
  async #state() {
    if (this.position === null || this.#asked) await this.#reload();
    this.#asked = true;
    return { ...this.position };
  }

  async #reload() {
    this.feed.lost();
    this.reloads += 1;
    this.feed.reset(await this.#page());
  }

  async #page(cursor) {
    const token = await this.server.token(this.user, { device: this.device });
    const query = new URLSearchParams({ name: this.channel, limit: 100, ...(cursor ? { cursor } : {}) });
    return this.server.call("GET", `/v1/users/${this.user}/feed?${query}`, undefined, { token });
  }

  async #subscribed({ wasRecovering, recovered, data }) {
    this.#told(data);
    this.#sent = { epoch: data.epoch, offset: data.offset };
    this.recovered = recovered;
    const lost = wasRecovering && !recovered;
    if (this.deliver === "notify") await this.#inTurn(() => (lost ? this.#reload() : this.#fetchAll()));
    else if (lost) await this.#reload();
  }

  async #published({ data, offset }) {
    this.#told(data);
    if (data.op === "seen") return;
    this.pushes += 1;
    if (this.#sent && offset) this.#sent.offset = offset;
    this.onPush?.(this.pushes, data);
    if (this.closed) return;
    if (data.op === "behind") await this.#inTurn(() => this.#fetchAll());
    else this.#take(data, offset);
  }

  /** Keeps what the server says of what is seen and unread. */
  #told({ unread = this.unread, seen = this.seen }) {
    Object.assign(this, { unread, seen });
  }

  #take(change, offset) {
    const known = this.position !== null;
    if (this.feed.apply(change, { offset })) this.ops.push(change.op);
    else if (known) this.repeated += 1;
  }

  /** One fetch or reload at a time; a notification meanwhile asks once more. */
  #inTurn(step) {
    this.#fetching = (this.#fetching ?? Promise.resolve()).then(step);
    return this.#fetching;
  }

  /** Fetches what is missing. */
  async #fetchAll() {
    for (;;) {
      const found = await (this.fetchBy === "history" ? this.#history() : this.#changes());
      if (found === null) await this.#reload();
      else for (const { change, offset } of found.changes) this.#take(change, offset);
      // An answer of large items may be shorter than asked and not the last: the head tells.
      if (found !== null && (found.changes.length === 0 || found.changes.at(-1).offset >= found.head)) return;
    }
  }

  async #history() {
    // Nobody can be asked between two connections: once the next one is there, it is fetched again.
    if (this.subscription.state !== "subscribed") return { changes: [] };
    try {
      const { publications, offset: head } = await this.subscription.history({ since: { ...this.position }, limit: HISTORY_LIMIT });
      return { changes: publications.map(({ data, offset }) => ({ change: data, offset })), head };
    } catch (error) {
      if (error.code === 112) return null;
      // The connection has ended meanwhile.
      if (error.code === CONNECTION_CLOSED) return { changes: [] };
      throw error;
    }
  }

  async #changes() {
    const token = await this.server.token(this.user, { device: this.device });
    const query = new URLSearchParams({ name: this.channel, ...this.position, limit: HISTORY_LIMIT });
    const { status, body } = await this.server.request("GET", `/v1/users/${this.user}/changes?${query}`, undefined, { token });
    if (status === 410) return null;
    assert.equal(status, 200, JSON.stringify(body));
    return { changes: body.changes.map(({ offset, ...change }) => ({ change, offset })), head: body.head };
  }

  /** A gap, or an unforeseen error, breaks the phone: every wait for it then fails. */
  async #guard(step) {
    try {
      await step();
    } catch (error) {
      if (!this.closed) this.#broken ??= error instanceof FeedGap ? new Error(`a gap: ${error.message}`, { cause: error }) : error;
    }
  }

  #seen() {
    const { position, reloads, connects, pushes, errors, stopped } = this;
    return { position, sent: this.#sent, reloads, connects, pushes, stopped, shown: this.feed.items().length, errors: errors.slice(-3) };
  }
}
