// Fault 42: Redis carries out claims and releases of devices without an id, and its answers do not arrive. Within a
// minute after this fault has ended, the session pool lists exactly the devices that are connected.

import { test } from "node:test";

import { Cluster } from "../actors/cluster.js";
import { WebSocket } from "../actors/phone.js";
import { until } from "../actors/until.js";
import { CONFIG } from "./cluster.js";

const EACH = 10;

/** A device without an id: the socket, and what its `connect` was answered with, once it was. */
function nameless(t, gateway, token) {
  const device = { socket: new WebSocket(gateway.websocket), answer: null };
  t.after(() => device.socket.terminate());
  device.socket.on("error", () => {});
  device.socket.on("open", () => device.socket.send(JSON.stringify({ id: 1, connect: { token } })));
  device.socket.on("message", (text) => {
    if (String(text) === "{}") device.socket.send("{}");
    else device.answer ??= JSON.parse(String(text).split("\n")[0]);
  });
  return device;
}

const some = (open) => Array.from({ length: EACH }, open);

test("i17_sessions_whose_claims_and_releases_were_not_answered_are_gone_within_a_minute", async (t) => {
  const home = await Cluster.start(t, { config: CONFIG, gateways: 2, workers: 1, through: ["gateway-2"] });
  const [other, gateway] = home.gateways;
  const token = await other.token("ann");
  const listed = async () => (await other.call("GET", "/v1/users/ann/sessions")).sessions.length;
  const stay = some(() => nameless(t, gateway, token));
  const leave = some(() => nameless(t, gateway, token));
  await until("all are connected", () => [...stay, ...leave].every(({ answer }) => answer?.connect));
  await until("all are listed", async () => (await listed()) === 2 * EACH);

  home.proxies["gateway-2"].redis.stall("answers");
  for (const { socket } of leave) socket.terminate();
  const come = some(() => nameless(t, gateway, token));
  await until("nobody else gets in", () => come.every(({ answer }) => answer?.error));
  for (const { socket } of come) socket.terminate();
  home.proxies["gateway-2"].redis.heal();

  await until("those are listed who stay", async () => (await listed()) === EACH, { seen: listed });
});
