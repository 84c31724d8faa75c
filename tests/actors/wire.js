// A device at the byte level: a TCP socket that has been upgraded to a WebSocket, and any frame, legal or not.
//
//     const wire = await Wire.open(t, server);
//     wire.send(frame(TEXT, "hello"), frame(PING, "", { fin: false }));
//     await wire.closed();                              the close code; null if it was cut without one

import assert from "node:assert/strict";
import { connect } from "node:net";

import { codec } from "./codec.js";

export const CONTINUATION = 0;
export const TEXT = 1;
export const BINARY = 2;
export const CLOSE = 8;
export const PING = 9;
export const PONG = 10;

/** The opcode of frames that hold messages in the format of this run, and of those that hold them in the other one. */
export const MESSAGE = codec.opcode;
export const FOREIGN = codec.foreign;

/** What has not happened by then, on the slowest machine, does not happen. */
const WITHIN_SECS = 120;

const KEY = "dGhlIHNhbXBsZSBub25jZQ==";

/** A client's frame. `rsv`: the three reserved bits as a number. */
export function frame(opcode, payload = "", { fin = true, rsv = 0, masked = true } = {}) {
  const body = Buffer.from(payload);
  const first = (fin ? 0x80 : 0) | (rsv << 4) | opcode;
  const mask = masked ? 0x80 : 0;
  let head;
  if (body.length < 126) head = Buffer.from([first, mask | body.length]);
  else if (body.length < 0x10000) head = Buffer.from([first, mask | 126, body.length >> 8, body.length & 0xff]);
  else {
    head = Buffer.from([first, mask | 127, 0, 0, 0, 0, 0, 0, 0, 0]);
    head.writeBigUInt64BE(BigInt(body.length), 2);
  }
  if (!masked) return Buffer.concat([head, body]);
  const key = Buffer.from([0x37, 0xfa, 0x21, 0x3d]);
  return Buffer.concat([head, key, body.map((byte, i) => byte ^ key[i % 4])]);
}

/** The payload of a close frame. */
export function closing(code, reason = "") {
  const payload = Buffer.concat([Buffer.alloc(2), Buffer.from(reason)]);
  payload.writeUInt16BE(code);
  return payload;
}

/** The text of an upgrade; `headers` replaces or adds, null leaves one out, a list repeats it. */
export function upgrade(headers = {}) {
  const all = {
    Host: "x",
    Connection: "Upgrade",
    Upgrade: "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": KEY,
    ...headers,
  };
  const lines = Object.entries(all).flatMap(([name, value]) => (value === null ? [] : [value].flat().map((one) => `${name}: ${one}\r\n`)));
  return `GET /connection/websocket HTTP/1.1\r\n${lines.join("")}\r\n`;
}

export class Wire {
  #bytes = Buffer.alloc(0);
  #changed = () => undefined;
  #ended = false;
  /** Frames that have come and that nobody has asked for yet: [{opcode, payload}]. */
  frames = [];
  /** The code of the close frame once one has come; 1005 if it said none. */
  code = null;
  /** Replies and pushes that have come, apart from pings of the protocol. */
  lines = [];
  #id = 0;

  /** Upgrades. `headers` are those of the request; with `upgraded: false` the socket is not upgraded; `from`: its own address. */
  static async open(t, server, { headers, token, upgraded = true, from } = {}) {
    const wire = new Wire();
    wire.socket = connect({ port: server.port, host: "127.0.0.1", localAddress: from });
    t.after(() => wire.socket.destroy());
    wire.socket.on("data", (bytes) => wire.#take(bytes));
    for (const event of ["end", "close", "error"]) wire.socket.on(event, () => wire.#end());
    if (upgraded) {
      wire.socket.write(upgrade({ ...codec.headers, ...headers }));
      wire.status = Number(String(await wire.#head()).split(" ")[1]);
      wire.#upgraded = wire.status === 101;
      wire.#take(Buffer.alloc(0));
    }
    if (token) await wire.connect(token);
    return wire;
  }

  #upgraded = false;

  #take(bytes) {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    while (this.#upgraded && this.#frame()) continue;
    this.#changed();
  }

  /** Takes the first frame out of what has come, if it is there whole. */
  #frame() {
    const bytes = this.#bytes;
    if (bytes.length < 2) return false;
    const short = bytes[1] & 0x7f;
    const start = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (bytes.length < start) return false;
    const length = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
    if (bytes.length < start + length) return false;
    const payload = bytes.subarray(start, start + length);
    const opcode = bytes[0] & 0x0f;
    this.#bytes = bytes.subarray(start + length);
    assert.equal(bytes[0] & 0xf0, 0x80, "the server sends whole frames without reserved bits");
    assert.equal(this.code, null, "nothing follows a close frame");
    this.frames.push({ opcode, payload });
    if (opcode === CLOSE) this.code = length >= 2 ? payload.readUInt16BE() : 1005;
    if (opcode === MESSAGE) this.lines.push(...codec.decode(payload));
    return true;
  }

  #end() {
    this.#ended = true;
    this.#changed();
  }

  async #head() {
    const end = () => this.#bytes.indexOf("\r\n\r\n");
    await this.until("the head of an answer", () => end() >= 0);
    const head = this.#bytes.subarray(0, end());
    this.#bytes = this.#bytes.subarray(end() + 4);
    return head;
  }

  /** Bytes, as they are. Who writes to a socket that has ended has not heard so yet. */
  send(...bytes) {
    if (!this.#ended) this.socket.write(Buffer.concat(bytes.map((one) => Buffer.from(one))));
  }

  /** Messages in a frame of their own. */
  tell(...commands) {
    this.send(frame(MESSAGE, codec.encode(...commands)));
  }

  /** A command in a frame of its own; answers its reply. */
  async ask(verb, params = {}) {
    const id = (this.#id += 1);
    this.tell({ id, [verb]: params });
    return this.reply(id);
  }

  /** The reply with this id. */
  async reply(id) {
    const is = (line) => line.id === id;
    await this.until(`the reply to ${id}`, () => this.lines.some(is));
    return this.lines.splice(this.lines.findIndex(is), 1)[0];
  }

  async connect(token) {
    const reply = await this.ask("connect", { token });
    assert.ok(reply.connect, JSON.stringify(reply));
    return reply.connect;
  }

  /** Waits until the connection has ended, and answers the close code; null if there was none. */
  async closed() {
    await this.until("the end", () => this.#ended);
    return this.code;
  }

  /** Whether the close frame was the last that came, behind frames of messages alone. */
  get endedWell() {
    return this.code !== null && this.frames.every(({ opcode }, i) => opcode === MESSAGE || i === this.frames.length - 1);
  }

  pause() {
    this.socket.pause();
  }

  resume() {
    this.socket.resume();
  }

  /** The device is gone without a word. */
  cut() {
    this.socket.destroy();
  }

  get ended() {
    return this.#ended;
  }

  /** Waits for it; fails if the connection ends before. One may wait at a time. */
  async until(what, holds) {
    let late;
    const happened = new Promise((resolve, reject) => {
      late = setTimeout(() => reject(new Error(`not within ${WITHIN_SECS} s: ${what}`)), WITHIN_SECS * 1000);
      const look = () => {
        if (holds()) resolve();
        else if (this.#ended) reject(new Error(`the connection ended (${this.code}) before ${what}`));
      };
      this.#changed = () => {
        try {
          look();
        } catch (error) {
          reject(error);
        }
      };
      look();
    });
    try {
      await happened;
    } finally {
      clearTimeout(late);
      this.#changed = () => undefined;
    }
  }
}
