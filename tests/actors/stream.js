// A device where WebSocket is blocked, at the level of messages: what it is sent comes in an answer that does not end,
// and each of its own messages after the first is a request to /emulation.

import { request } from "node:http";

import { codec } from "./codec.js";
import { until } from "./until.js";

export class Stream {
  /** Replies and pushes that have come, but for pings and the last word. */
  lines = [];
  ended = false;
  /** The code that the server has ended the session with; null if it said none. */
  code = null;
  /** Whether something came after the last word. */
  spoke = false;
  #rest = Buffer.alloc(0);
  #id = 0;
  #request = null;

  /** With a token it connects; otherwise the first message that it tells begins the session. */
  static async open(t, server, { token } = {}) {
    const stream = new Stream();
    stream.server = server;
    t.after(() => stream.cut());
    if (token) await stream.connect(token);
    return stream;
  }

  async connect(token) {
    const reply = await this.ask("connect", { token });
    if (!reply.connect) throw new Error(JSON.stringify(reply));
    this.connected = reply.connect;
  }

  /** Sends a message; the status of its answer, or undefined for the first, whose answer goes on. */
  async tell(...commands) {
    if (this.#request !== null) return this.post({ data: codec.encode(...commands) });
    const { url } = this.server;
    this.#request = request(`${url}/connection/http_stream`, { method: "POST", agent: false, headers: { "content-type": codec.type } });
    this.#request.on("error", () => this.#end());
    this.#request.on("response", (answer) => {
      this.status = answer.statusCode;
      this.answer = answer.on("data", (bytes) => this.#take(bytes)).on("close", () => this.#end());
      answer.on("error", () => this.#end());
    });
    this.#request.end(codec.encode(...commands));
    return undefined;
  }

  /** The status of the answer to a message for this session; `more` replaces fields of it. */
  async post(more = {}) {
    const { session, node } = this.connected ?? {};
    const body = codec.emulation({ session, node, ...more });
    const answer = await fetch(`${this.server.url}/emulation`, { method: "POST", headers: { "content-type": codec.type }, body });
    await answer.arrayBuffer();
    return answer.status;
  }

  /** Asks, and answers the reply. */
  async ask(verb, params = {}) {
    const id = (this.#id += 1);
    await this.tell({ id, [verb]: params });
    return this.reply(id);
  }

  /** The reply with this id. */
  async reply(id) {
    const is = (line) => line.id === id;
    await this.until(`the reply to ${id}`, () => this.lines.some(is));
    return this.lines.splice(this.lines.findIndex(is), 1)[0];
  }

  /** Waits for it; fails if the session ends before. */
  async until(what, holds) {
    await until(what, () => holds() || this.ended);
    if (!holds()) throw new Error(`the session ended (${this.code}) before ${what}`);
  }

  /** Waits until the session has ended, and answers the code. */
  async closed() {
    await until("the end", () => this.ended);
    return this.code;
  }

  /** Whether the server's last word was the last that came. */
  get endedWell() {
    return this.code !== null && !this.spoke;
  }

  pause() {
    this.answer.pause();
  }

  resume() {
    this.answer.resume();
  }

  /** The device is gone without a word. */
  cut() {
    this.#request?.destroy();
  }

  #take(bytes) {
    const [replies, rest] = codec.cut(Buffer.concat([this.#rest, bytes]));
    this.#rest = rest;
    for (const reply of replies) {
      this.spoke ||= this.code !== null;
      if (reply.push?.disconnect) this.code = reply.push.disconnect.code;
      else this.lines.push(reply);
    }
  }

  #end() {
    this.ended = true;
  }
}
