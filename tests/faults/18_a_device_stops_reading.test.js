// Fault 18: a device stops to read its socket, while a lot is published for it: the gateway's memory stays flat, the
// device's stored position where it was, and others get theirs.
//
// FEEDGATE_FLOOD_MIB says how much is published; 1024 takes minutes.

import assert from "node:assert/strict";

import { WebSocket } from "../actors/phone.js";
import { until } from "../actors/until.js";
import { cluster } from "./cluster.js";
import { judged } from "./judged.js";

const MIB = 1024 * 1024;
const FLOOD_BYTES = Number(process.env.FEEDGATE_FLOOD_MIB ?? 96) * MIB;
const BODY_BYTES = 60 * 1024;

/** Small, for what a request holds while it is read is not what is measured. */
const BATCH = 20;

/** A third is published for what grows once: buffers of requests, caches, the allocator. */
const WARM_BYTES = FLOOD_BYTES / 3;

/** What the gateway may grow by from then on: far less than is published. */
const GROWTH_MAX = (FLOOD_BYTES - WARM_BYTES) / 2;

/** The socket of the device, and what its subscription was answered. */
async function subscribed(t, gateway, user) {
  const token = await gateway.token(user, { device: "deaf" });
  const socket = new WebSocket(gateway.websocket);
  t.after(() => socket.terminate());
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  const subscribe = { channel: "feed", data: { deliver: "items" } };
  const commands = [{ id: 1, connect: { token } }, { id: 2, subscribe }];
  const answered = new Promise((resolve) => {
    socket.on("message", (frame) => {
      const reply = String(frame).split("\n").map(JSON.parse).find(({ id }) => id === 2);
      if (reply) resolve(reply.subscribe);
    });
  });
  socket.send(commands.map((command) => JSON.stringify(command)).join("\n"));
  return { socket, answer: await answered };
}

/** A device that says what is needed, and then reads no more. */
async function deaf(t, gateway, user) {
  const { socket, answer } = await subscribed(t, gateway, user);
  const { epoch, offset } = answer;
  socket.send(JSON.stringify({ id: 3, rpc: { method: "ack", data: { epoch, offset } } }));
  const stored = async () => (await gateway.call("GET", `/v1/users/${user}/sessions`)).sessions.find(({ device }) => device === "deaf")?.position;
  await until("its position is stored", async () => (await stored())?.offset === offset, { seen: stored });
  socket.pause();
  return { stored, position: { epoch, offset } };
}

judged("i18_a_device_that_stops_reading_costs_nothing", { start: cluster(), decides: ["I18"] }, async ({ load, fault, home, recorder, t }) => {
  const [gateway] = home.gateways;
  await gateway.follow("slow", "flood");
  await gateway.page("slow");
  const device = await fault("stops reading", "a device", () => deaf(t, gateway, "slow"));
  let warm = 0;
  const body = { text: "x".repeat(BODY_BYTES) };
  for (let bytes = 0; bytes < FLOOD_BYTES; bytes += BATCH * BODY_BYTES) {
    await gateway.call("POST", "/v1/items/batch", { ops: Array.from({ length: BATCH }, () => ({ author: "flood", body })) });
    const held = await gateway.memory();
    if (bytes < WARM_BYTES) warm = Math.max(warm, held);
    else recorder.line({ kind: "memory", who: gateway.name, bytes: held, most: warm + GROWTH_MAX });
    const position = await device.stored();
    assert.ok(position === undefined || position.offset === device.position.offset, `stored at ${JSON.stringify(position)}`);
  }
  await load.flows(30);
  // Once the device was closed, it is in no list. Its position stays stored, and is listed when it is back.
  await subscribed(t, gateway, "slow");
  assert.deepEqual(await device.stored(), device.position);
});
