// An SDK of another language than JavaScript, behind the interface of the one of JavaScript: each client is a process
// of its own, one of the programs in tests/phones, and the journeys tell it what to do.
//
//     to the program     {do: "connect" | "disconnect"}   {do: "subscribe", channel, data, since, state}
//     (stdin)            {do: "rpc", id, method, data}    {do: "history", id, channel, since, limit}
//                        {do: "answer", id, value | error}
//     from the program   {event: "connecting" | "disconnected", code, reason}   {event: "connected"}
//     (stdout)           {event: "subscribed", channel, recovered, wasRecovering, data}
//                        {event: "publication", channel, offset, data}   {event: "unsubscribed", channel, code, reason}
//                        {event: "error", channel?, code, message}   {event: "reply", id, value | error: {code, message}}
//                        {event: "ask", id, channel?}             for a token, or for the position of a channel
//
// A line of JSON each way is one message. A program ends when its stdin does.

import { spawn } from "node:child_process";
import { EventEmitter } from "node:events";
import { createInterface } from "node:readline";

/** The code of the SDK of JavaScript for a call that its connection did not outlive; the server has none like it. */
const CONNECTION_CLOSED = 11;

/** The class for programs that this command starts. */
export function foreign([program, ...more]) {
  return class extends Client {
    constructor(url, { data = {}, token, getToken } = {}) {
      const address = Array.isArray(url) ? url[0].endpoint : url;
      const env = { ...process.env, CONNECT: JSON.stringify({ data, token }) };
      super(spawn(program, [...more, address], { env, stdio: ["pipe", "pipe", "inherit"] }), getToken);
    }
  };
}

class Client extends EventEmitter {
  state = "disconnected";
  #child;
  #getToken;
  #subscriptions = new Map();
  #calls = new Map();
  #count = 0;

  constructor(child, getToken) {
    super();
    this.#child = child;
    this.#getToken = getToken;
    child.once("error", (error) => this.emit("error", { error }));
    child.once("exit", (code, signal) => this.#gone(code ?? signal));
    child.stdin.on("error", () => undefined); // it has ended, which is told by its exit
    for (const handle of [child, child.stdin, child.stdout]) handle.unref();
    createInterface({ input: child.stdout }).on("line", (line) => this.#heard(JSON.parse(line)));
    this.on("error", () => undefined); // an error that nobody listens to is no end of the test
  }

  connect() {
    // The second phone over a connection asks for one that may be there: no event follows then.
    if (this.state === "disconnected") this.state = "connecting";
    this.tell({ do: "connect" });
  }

  disconnect() {
    this.tell({ do: "disconnect" });
  }

  /** The process of the app dies. */
  end() {
    this.#child.stdout.destroy();
    this.#child.kill("SIGKILL");
  }

  newSubscription(channel, options = {}) {
    const subscription = new Subscription(this, channel, options);
    this.#subscriptions.set(channel, subscription);
    return subscription;
  }

  rpc(method, data) {
    return this.call({ do: "rpc", method, data });
  }

  /** Asks the program for something, and answers its reply. */
  call(asked) {
    const id = (this.#count += 1);
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject });
      this.tell({ ...asked, id });
    });
  }

  tell(message) {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  #heard({ event, channel, id, value, error, ...context }) {
    const subscription = this.#subscriptions.get(channel);
    if (event === "ask") this.#answer(id, subscription);
    else if (event === "reply") this.#replied(id, value, error);
    else if (event === "error") (subscription ?? this).emit("error", { error: context });
    else if (subscription) subscription.heard(event, context);
    else this.#turned(event, context);
  }

  #turned(event, context) {
    this.state = event;
    if (event !== "connected") for (const subscription of this.#subscriptions.values()) subscription.interrupted();
    this.emit(event, { transport: "websocket", ...context });
  }

  #replied(id, value, error) {
    const { resolve, reject } = this.#calls.get(id);
    this.#calls.delete(id);
    if (error) reject(Object.assign(new Error(error.message), { code: error.code || CONNECTION_CLOSED }));
    else resolve(value);
  }

  /** The SDK asks the app for a token, or for the position of a channel. */
  async #answer(id, subscription) {
    try {
      this.tell({ do: "answer", id, value: await (subscription ? subscription.getState() : this.#getToken()) });
    } catch (error) {
      this.tell({ do: "answer", id, error: String(error) });
    }
  }

  #gone(how) {
    for (const { reject } of this.#calls.values()) reject(Object.assign(new Error(`the program has ended: ${how}`), { code: CONNECTION_CLOSED }));
    this.#calls.clear();
  }
}

class Subscription extends EventEmitter {
  state = "unsubscribed";

  /** `stored`: a position that the SDK does not take, so the server has to store it before. */
  constructor(client, channel, { data = {}, since, stored, getState }) {
    super();
    Object.assign(this, { client, channel, data, since, stored, getState });
    this.on("error", () => undefined);
  }

  subscribe() {
    this.state = "subscribing";
    if (this.stored) this.#storeAndSubscribe();
    else this.#tell({ since: this.since, data: this.data });
  }

  history({ since, limit }) {
    return this.client.call({ do: "history", channel: this.channel, since, limit });
  }

  heard(event, context) {
    if (event !== "publication") this.state = event;
    this.emit(event, event === "subscribed" ? this.#from(context) : context);
  }

  interrupted() {
    if (this.state === "subscribed") this.state = "subscribing";
  }

  #tell({ since, data }) {
    this.client.tell({ do: "subscribe", channel: this.channel, since, data, state: this.getState !== undefined });
  }

  /** The way of an SDK that takes no position: acknowledge it, and subscribe from what is stored. */
  async #storeAndSubscribe() {
    for (let stands = false; !stands; ) {
      if (this.client.state !== "connected") await new Promise((resolve) => this.client.once("connected", resolve));
      stands = await this.client.rpc("ack", { ...this.stored, channel: this.channel }).then(
        () => true,
        ({ code }) => code !== CONNECTION_CLOSED && code !== 100, // the server knows no such position: it will say so
      );
    }
    this.#tell({ data: { ...this.data, resume: "stored" } });
  }

  /** The reply's data says where the server goes on. If that is not where the list stands, changes are missing. */
  #from(context) {
    const { stored } = this;
    this.stored = undefined;
    if (!stored) return context;
    const { epoch, offset } = context.data;
    return { ...context, recovered: context.recovered && epoch === stored.epoch && offset === stored.offset };
  }
}
