// Fault 24: a device claims changes that it does not have, or a position that cannot exist. It is told that this is wrong
// or that it must reload. Its stored position does not change, nor does what others see.

import assert from "node:assert/strict";
import { test } from "node:test";

import { codec, raw } from "../actors/codec.js";
import { Device } from "../actors/device.js";
import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";

const POSTS = 9;
const TRUTH = 5;

/** Ann's phone, which has acknowledged up to TRUTH of POSTS. */
async function honest(t) {
  const server = await Server.start(t, { config: "[gateway]\ncommands_per_sec = 1000\n" });
  await server.follow("ann", "bob");
  await server.page("ann");
  await server.publishMany("bob", POSTS);
  await server.drained();
  const { position: head } = await server.page("ann");
  const wire = await Device.open(t, server, { token: await server.token("ann", { device: "phone" }) });
  const ack = { method: "ack", data: { offset: TRUTH, epoch: head.epoch } };
  assert.deepEqual((await wire.ask("rpc", ack)).rpc, { data: {} });
  const stored = async () => (await server.call("GET", "/v1/users/ann/sessions")).sessions.find(({ device }) => device === "phone")?.position;
  const truth = { offset: TRUTH, epoch: head.epoch };
  await until("it is stored", async () => (await stored())?.offset === TRUTH);
  return { server, wire, head, stored, truth };
}

/** Offsets as JSON; some of them no number of JavaScript can say. */
const beyond = (head) => [
  `${head.offset + 1}`,
  "9007199254740991",
  "9007199254740992",
  "9223372036854775807",
  "9223372036854775808",
  "18446744073709551615",
  "18446744073709551616",
  "1e400",
  "-1",
  "-0.5",
  "5.5",
  '"5"',
  "null",
  "[5]",
  "true",
];
/** Those that a field of the command can hold in the format of this run; what the app passes as data is JSON in both. */
const sayable = (head) => beyond(head).filter(codec.says);
const epochs = ({ epoch }) => [`${epoch - 1}`, `${Number(epoch) + 1}`, "0", "18446744073709551615", "18446744073709551616", "_", "-1", "x", "", " "];

test("i12_no_acknowledgement_that_cannot_be_true_is_taken", async (t) => {
  const { wire, head, stored, truth } = await honest(t);
  const lies = [
    ...beyond(head).map((offset) => `{"offset":${offset},"epoch":"${head.epoch}"}`),
    ...epochs(head).map((epoch) => `{"offset":6,"epoch":"${epoch}"}`),
    '{"offset":6}',
    "{}",
    "[]",
    `{"offset":6,"offset":7,"epoch":"${head.epoch}"}`,
    `{"offset":6,"epoch":"${head.epoch}","channel":"feed:eve"}`,
  ];
  let id = 1000;
  for (const lie of lies) {
    id += 1;
    await wire.tell({ id, rpc: { method: "ack", data: raw(lie) } });
    const { error } = await wire.reply(id);
    assert.ok([102, 107].includes(error?.code), `${lie}: ${JSON.stringify(error)}`);
  }
  assert.deepEqual(await stored(), truth);
});

test("i9_no_position_that_cannot_be_is_recovered_from", async (t) => {
  const { server, head, stored, truth } = await honest(t);
  const token = await server.token("ann", { device: "liar" });
  const lies = [
    ...sayable(head).map((offset) => [offset, head.epoch]),
    ...epochs(head).map((epoch) => ["6", epoch]),
  ];
  for (const [offset, epoch] of lies) {
    const wire = await Device.open(t, server, { token });
    await wire.tell({ id: 1000, subscribe: { channel: "feed", recover: true, offset: raw(offset), epoch, data: { deliver: "items" } } });
    const { subscribe, error } = await wire.reply(1000);
    if (subscribe) {
      assert.equal(subscribe.recovered, false, `${offset} of ${epoch}`);
      assert.deepEqual({ epoch: subscribe.epoch, offset: subscribe.offset }, head, "it is told where the feed stands");
    } else assert.ok([107, 112].includes(error.code), `${offset} of ${epoch}: ${JSON.stringify(error)}`);
    wire.cut();
  }
  assert.deepEqual(await stored(), truth);
});

test("history and changes from such a position are refused, and say nothing as if it were all", async (t) => {
  const { server, head } = await honest(t);
  const token = await server.token("ann", { device: "reader" });
  for (const offset of sayable(head)) {
    const wire = await Device.open(t, server, { token });
    await wire.tell({ id: 1000, history: { channel: "feed", limit: 10, since: { offset: raw(offset), epoch: head.epoch } } });
    const { history, error } = await wire.reply(1000);
    // Some SDKs leave a zero out, and null is the same.
    if (offset === "null") assert.equal(history.publications.length, POSTS);
    else assert.ok([107, 112].includes(error?.code), `${offset}: ${JSON.stringify(history ?? error)}`);
    wire.cut();
    const query = new URLSearchParams({ offset, epoch: head.epoch });
    const { status } = await server.request("GET", `/v1/users/ann/changes?${query}`, undefined, { token });
    assert.ok([400, 410].includes(status), `${offset}: ${status}`);
  }
  for (const epoch of epochs(head)) {
    const query = new URLSearchParams({ offset: "6", epoch });
    const { status } = await server.request("GET", `/v1/users/ann/changes?${query}`, undefined, { token });
    assert.ok([400, 410].includes(status), `${epoch}: ${status}`);
  }
});
