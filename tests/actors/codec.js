// How a device at the level of frames writes and reads messages: as JSON, or with FEEDGATE_PROTOCOL=protobuf as
// Protobuf by the schema of the gateway. A command and a reply are the same objects in both.

import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { TOOLS } from "./process.js";

const SCHEMA = fileURLToPath(new URL("../../gateway/proto/client.proto", import.meta.url));

/** JSON that goes out as it is written, such as a number that JavaScript has not. */
class Raw {
  constructor(text) {
    this.text = text;
  }
}

export const raw = (text) => new Raw(text);

/** A value as JSON text. */
function textOf(value) {
  const raws = [];
  const text = JSON.stringify(value, (_, one) => (one instanceof Raw ? `@raw${raws.push(one.text) - 1}@` : one));
  return text.replace(/"@raw(\d+)@"/g, (_, at) => raws[at]);
}

const json = () => ({
  name: "json",
  headers: {},
  type: "application/json",
  opcode: 1,
  foreign: 2,
  pong: "{}",
  /** A frame in which no message stands. */
  blank: " \n\n ",
  /** What is no command. */
  malformed: ["{", "x", '{"id":1', "[]", "1", '{"id":-1,"ping":{}}', '{"id":1,"ping":{},"rpc":{}}', '{"ping":{}}'].map(Buffer.from),
  encode: (...commands) => Buffer.from(commands.map(textOf).join("\n")),
  /** A command that is as long as this text makes it. */
  ping: (id, text = "") => Buffer.from(JSON.stringify({ id, ping: {}, text })),
  /** All messages but pings. */
  decode: (payload) => String(payload).split("\n").filter((line) => line !== "" && line !== "{}").map((line) => JSON.parse(line)),
  /** The replies at the start of `bytes` that are there whole, and what is left. */
  cut(bytes) {
    const end = bytes.lastIndexOf("\n") + 1;
    return [this.decode(bytes.subarray(0, end)), bytes.subarray(end)];
  },
  emulation: ({ session, node, data }) => Buffer.from(JSON.stringify({ session, node, data: String(data) })),
  says: () => true,
});

/** Protobuf: fields of bytes hold JSON; a reply has what Protobuf leaves out, where tests look at it. */
function protobuf() {
  const { Reader, Root, Writer } = createRequire(join(TOOLS, "node", "package.json"))("protobufjs");
  const schema = new Root().loadSync(SCHEMA, { keepCase: true }).lookup("centrifugal.centrifuge.protocol");
  const [Command, Reply, Emulation] = ["Command", "Reply", "EmulationRequest"].map((name) => schema.lookupType(name));
  const hex = (text) => Buffer.from(text.replaceAll(" ", ""), "hex");
  const delimited = (message) => Buffer.concat([Writer.create().uint32(message.length).finish(), message]);
  const encode = (command) => delimited(Command.encode(Command.fromObject(packed(command))).finish());
  const decode = (payload) => {
    const [reader, replies] = [Reader.create(payload), []];
    while (reader.pos < reader.len) replies.push(whole(unpacked(Reply.toObject(Reply.decodeDelimited(reader), { longs: Number }))));
    return replies.filter((reply) => Object.keys(reply).length > 0);
  };
  return {
    name: "protobuf",
    headers: { "Sec-WebSocket-Protocol": "centrifuge-protobuf" },
    type: "application/octet-stream",
    opcode: 2,
    foreign: 1,
    pong: hex("00"),
    blank: "",
    // Cut, too long a length, a length without an end, a group, a wrong type, text that is not UTF-8, no id, two verbs.
    malformed: ["02 08", "ff 08 01", "ffffffffffffffffffffff", "02 0b 0c", "04 08 01 2a 01", "05 08 01 2a 02 0a 01", "07 08 01 2a 03 0a 01 ff", "02 5a 00", "06 08 01 5a 00 6a 00"].map(hex),
    encode: (...commands) => Buffer.concat(commands.map(encode)),
    ping: (id, text = "") => delimited(Buffer.concat([Command.encode({ id, ping: {} }).finish(), Writer.create().uint32((100 << 3) | 2).string(text).finish()])),
    decode,
    cut(bytes) {
      let end = 0;
      for (const reader = Reader.create(bytes); reader.pos < reader.len; end = reader.pos) {
        try {
          reader.skip(reader.uint32());
        } catch {
          break; // the rest has not come yet
        }
      }
      return [decode(bytes.subarray(0, end)), bytes.subarray(end)];
    },
    emulation: (request) => Emulation.encode(Emulation.fromObject(request)).finish(),
    /** Whether a field for a number without a sign can hold this. */
    says: (number) => /^\d+$/.test(number) && BigInt(number) < 2n ** 64n,
  };
}

/** A command with its `data` as bytes of JSON. */
function packed(value) {
  if (value instanceof Raw) return value.text;
  if (value === null || typeof value !== "object" || Buffer.isBuffer(value)) return value;
  const fields = Object.entries(value).map(([name, one]) => [name, name === "data" ? Buffer.from(textOf(one)) : packed(one)]);
  return Object.fromEntries(fields);
}

/** A reply with JSON in place of bytes. */
function unpacked(value) {
  if (value instanceof Uint8Array) return JSON.parse(new TextDecoder().decode(value));
  if (Array.isArray(value)) return value.map(unpacked);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, unpacked(one)]));
}

function whole(reply) {
  if (reply.subscribe) reply.subscribe = { offset: 0, recovered: false, was_recovering: false, ...reply.subscribe };
  if (reply.history) reply.history = { offset: 0, publications: [], ...reply.history };
  return reply;
}

export const codec = { json, protobuf }[process.env.FEEDGATE_PROTOCOL ?? "json"]();
