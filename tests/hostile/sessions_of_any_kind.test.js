// A fuzzer of whole sessions. Each session sends a random mix of right commands, wrong ones and bytes that are no frame,
// and a small model says what must follow. If all was right, every command is answered once, in order. If not, the
// connection ends with a code that the protocol's document lists. No other connection notices anything.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { codec } from "../actors/codec.js";
import { Phone } from "../actors/phone.js";
import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";
import { CLOSE, closing, CONTINUATION, FOREIGN, frame, MESSAGE, PING, PONG, TEXT, Wire } from "../actors/wire.js";
import { Random } from "../faults/random.js";

const SESSIONS = 250;
const AT_ONCE = 20;
const STEPS = 30;
const SEED = Number(process.env.FEEDGATE_SEED ?? Date.now() % 2 ** 31);

/** The codes that docs/asyncapi.yaml lists. */
async function documented() {
  const text = await readFile(new URL("../../docs/asyncapi.yaml", import.meta.url), "utf8");
  return new Set([...text.matchAll(/^\s*\| (\d{4}) \|/gm)].map(([, code]) => Number(code)));
}

/** JSON of any shape, not too deep. */
function anything(random, depth = 0) {
  const leaf = [null, true, 0, -1, 1.5, 2 ** 53, "", "feed", "\u0000", "\ud7ff", "x".repeat(300), [], {}];
  if (depth > 3 || random.chance(50)) return random.pick(leaf);
  if (random.chance(50)) return Array.from({ length: random.between(0, 4) }, () => anything(random, depth + 1));
  const names = ["id", "channel", "offset", "epoch", "limit", "data", "token", "method", "since", "x"];
  return Object.fromEntries(Array.from({ length: random.between(0, 5) }, () => [random.pick(names), anything(random, depth + 1)]));
}

/** One device: what it says, and what has to come of it. */
class Stranger {
  connected = false;
  /** Ids of commands that must be answered, in order. */
  asked = [];
  /** Why the connection has to end, once something was wrong. */
  wrong = null;
  id = 0;
  /** Every step in base64, to be printed if the session goes wrong. */
  said = [];

  constructor(server, tokens, random) {
    Object.assign(this, { server, tokens, random });
  }

  /** Bytes of one step. */
  step() {
    const { random } = this;
    if (!this.connected && !random.chance(15)) return this.connect();
    if (random.chance(80)) return this.command();
    if (random.chance(50)) return this.odd();
    return random.chance(25) ? this.illegal() : this.command();
  }

  connect() {
    this.connected = true;
    return this.cut(codec.encode(this.asking("connect", { token: this.random.pick(this.tokens), data: {} })));
  }

  asking(verb, params) {
    this.id += 1;
    if (verb !== "send") this.asked.push(this.id);
    return { id: this.id, [verb]: params };
  }

  /** A command that is well-formed, whether it makes sense or not; the first has to be `connect`. */
  command() {
    const { random } = this;
    if (!this.connected) {
      this.wrong ??= "a command before connect";
      return frame(MESSAGE, codec.encode({ id: 1, ping: {} }));
    }
    const verbs = ["subscribe", "unsubscribe", "history", "presence", "presence_stats", "rpc", "ping", "publish", "sub_refresh", "send"];
    const commands = Array.from({ length: random.between(1, 4) }, () => this.asking(random.pick(verbs), this.params()));
    return this.cut(codec.encode(...commands));
  }

  params() {
    const { random } = this;
    // The fields of a message of Protobuf have types, so what has others is no message there.
    if (codec.name === "json" && random.chance(30)) return anything(random) ?? {};
    return {
      channel: random.pick(["feed", "feed", "feed", "nobodys"]),
      method: random.pick(["ack", "page", "other"]),
      recover: random.chance(50),
      offset: random.pick([0, 1, 5, 2 ** 53, 2 ** 63]),
      epoch: random.pick([this.server.epoch, "0", "_"]),
      limit: random.pick([0, 1, -1, 100]),
      since: { offset: random.between(0, 9), epoch: this.server.epoch },
      data: random.chance(50) ? { deliver: random.pick(["items", "notify"]) } : { offset: random.between(0, 9), epoch: this.server.epoch, limit: 3 },
    };
  }

  /** The bytes in one frame or several, with pings between them. */
  cut(bytes) {
    const { random } = this;
    if (random.chance(70)) return frame(MESSAGE, bytes);
    const at = random.between(0, bytes.length + 1);
    const between = random.chance(50) ? [frame(PING, "between")] : [];
    return Buffer.concat([frame(MESSAGE, bytes.subarray(0, at), { fin: false }), ...between, frame(CONTINUATION, bytes.subarray(at))]);
  }

  /** Legal, and nobody answers it with a line. */
  odd() {
    const { random } = this;
    return random.pick([() => frame(PING, "x".repeat(random.between(0, 126))), () => frame(PONG), () => frame(MESSAGE), () => frame(MESSAGE, codec.blank)])();
  }

  illegal() {
    const { random } = this;
    const kinds = [
      ["a reserved bit", () => frame(MESSAGE, "{}", { rsv: random.between(1, 8) })],
      ["an opcode", () => frame(random.pick([3, 7, 11, 15]), "x")],
      ["no mask", () => frame(MESSAGE, "{}", { masked: false })],
      ["the other format", () => frame(FOREIGN, "{}")],
      ["no UTF-8", () => frame(TEXT, Buffer.from([0xff, 0xc0]))],
      ["the end of nothing", () => frame(CONTINUATION, "x")],
      ["a long ping", () => frame(PING, "x".repeat(126))],
      ["no command", () => frame(MESSAGE, random.pick(codec.malformed))],
      ["a pong for no ping", () => frame(MESSAGE, codec.pong)],
      ["an illegal close", () => frame(CLOSE, closing(random.pick([0, 1005, 1016, 5000])))],
      ["too much", () => frame(MESSAGE, " ".repeat(65_537))],
      ["anything", () => Buffer.from(Array.from({ length: 200 }, () => random.between(0, 256)))],
    ];
    // The first `connect` of a connection is no fault, so only a connected session can send a second one.
    const again = codec.encode({ id: 9999, connect: { token: this.tokens[0] } });
    if (this.connected) kinds.push(["a second connect", () => frame(MESSAGE, again)]);
    const [why, bytes] = random.pick(kinds);
    this.wrong ??= why;
    return bytes();
  }
}

/** Lives one session, and says what of it was not as it has to be. */
async function live(t, server, tokens, random, codes) {
  const stranger = new Stranger(server, tokens, random);
  const wire = await Wire.open(t, server);
  for (let step = 0; step < STEPS && stranger.wrong === null; step += 1) {
    const bytes = stranger.step();
    stranger.said.push(bytes.toString("base64"));
    wire.send(bytes);
    if (random.chance(10)) await new Promise(setImmediate);
  }
  if (stranger.wrong !== null) {
    // Some of these are half a frame, for whose other half the server would wait.
    if (stranger.wrong === "anything") wire.socket.end();
    const code = await wire.closed();
    const cut = code === null && ["anything", "an illegal close"].includes(stranger.wrong);
    assert.ok(cut || codes.has(code), `after ${stranger.wrong}: ${code}`);
  } else {
    const last = stranger.asked.at(-1);
    const answered = () => wire.lines.some(({ id }) => id === last);
    if (last !== undefined) await wire.until(`the answer to ${stranger.said.join(" ")}`, answered);
    wire.send(frame(CLOSE, closing(1000)));
    assert.equal(await wire.closed(), 1000);
  }
  const answered = wire.lines.filter(({ id }) => id !== undefined).map(({ id }) => id);
  const due = stranger.asked.slice(0, answered.length);
  assert.deepEqual(answered, due, "each command is answered once, in order");
  if (stranger.wrong === null) assert.equal(answered.length, stranger.asked.length);
}

test("i18_no_session_of_any_kind_breaks_the_rules_or_another", async (t) => {
  t.diagnostic(`FEEDGATE_SEED=${SEED}`);
  const server = await Server.start(t, { config: "[gateway]\ncommands_per_sec = 100000\nconnections_per_user = 1000\n" });
  const users = ["ann", "bea", "cid"];
  for (const user of [...users, "neighbour"]) await server.follow(user, "bob");
  const tokens = await Promise.all(users.map((user) => server.token(user)));
  await server.publishMany("bob", 20);
  const { position } = await server.page("ann");
  server.epoch = position.epoch;
  const neighbour = await Phone.open(t, server, "neighbour", { device: "phone" });
  await neighbour.subscribed();
  const codes = await documented();

  const random = new Random(SEED);
  const seeds = Array.from({ length: SESSIONS }, () => random.branch());
  const work = async () => {
    for (let seed = seeds.pop(); seed; seed = seeds.pop()) await live(t, server, tokens, seed, codes);
  };
  const lives = Array.from({ length: AT_ONCE }, work);
  for (let n = 0; n < 50; n += 1) await server.publish("bob", { n });
  await Promise.all(lives);

  assert.equal(server.ended, null);
  assert.ok(!server.log().includes("panicked"), server.log());
  await neighbour.shows("all posts", (items) => items.length === 70);
  assert.deepEqual([neighbour.connects, neighbour.reloads], [1, 1], "it noticed nothing");
  await neighbour.agrees();
  const sessions = async () => (await server.call("GET", "/v1/stats")).sessions;
  await until("only the neighbour is left", async () => (await sessions()).connections === 1, { seen: sessions });
});
