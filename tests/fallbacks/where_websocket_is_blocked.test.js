// Where WebSocket is blocked: the unmodified SDK over HTTP streaming and over server-sent events, through real proxies and
// with lines that go silent. The journeys of tests/journeys run over both besides, with FEEDGATE_TRANSPORT.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Backend } from "../actors/backend.js";
import { Nginx } from "../actors/nginx.js";
import { Phone } from "../actors/phone.js";
import { Proxy } from "../actors/proxy.js";
import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";
import { missesPosts } from "./away.js";

/** A device on a busy machine may be seconds late with a pong. */
const PONG_WITHIN_SECS = 5;
const QUICK = { config: `[gateway]\nping_interval_secs = 1\npong_within_secs = ${PONG_WITHIN_SECS}\n` };

/** A server behind a wire. */
class Behind extends Backend {
  constructor({ key }, { port }) {
    super();
    Object.assign(this, { key, port });
  }
}

const sessions = async (server, user) => (await server.call("GET", `/v1/users/${user}/sessions`)).sessions;

for (const transport of ["http_stream", "sse"]) {
  test(`a session passes a proxy that keeps answers back and speaks HTTP/1.0 (${transport})`, async (t) => {
    const server = await Server.start(t, QUICK);
    await server.follow("ann", "bob");
    const phone = await Phone.open(t, await Nginx.start(t, server), "ann", { device: "web-1", transport });
    await phone.subscribed();
    await server.publish("bob", { text: "hello" });
    await phone.shows("the post", (items) => items.length === 1);
    await phone.acknowledge();

    await missesPosts(phone, server);
  });

  test(`the SDK goes on over ${transport} where a proxy lets no WebSocket through`, async (t) => {
    const server = await Server.start(t);
    await server.follow("ann", "bob");
    const phone = await Phone.open(t, await Nginx.start(t, server), "ann", { transport: `websocket,${transport}` });
    await phone.subscribed();
    assert.equal(phone.carriers.at(-1), transport);
    await server.publish("bob", { text: "hello" });
    await phone.shows("the post", (items) => items.length === 1);
  });

  test(`pings are answered, so a silent session stays (${transport})`, async (t) => {
    const server = await Server.start(t, QUICK);
    await server.follow("ann", "bob");
    let sent = 0;
    const emulation = () => {
      sent += 1;
      return server;
    };
    const phone = await Phone.open(t, server, "ann", { transport, emulation });
    await phone.subscribed();
    // Without the first of these it would have ended before the last. The first request subscribes.
    await phone.waitFor("more pongs", () => sent >= 1 + PONG_WITHIN_SECS + 3);
    assert.deepEqual([phone.connects, phone.connecting.length], [1, 1]);
  });

  test(`i18_a_half_open_session_is_reaped_within_a_ping_and_its_pong (${transport})`, async (t) => {
    const server = await Server.start(t, QUICK);
    const wire = await Proxy.start(t, server.port);
    const phone = await Phone.open(t, new Behind(server, wire), "ann", { device: "web-1", transport });
    await phone.subscribed();
    const before = phone.connects;
    wire.stall("both");
    await until("it is reaped", async () => (await sessions(server, "ann")).length === 0, { seen: () => sessions(server, "ann") });
    wire.heal();
    await phone.waitFor("the way back", () => phone.connects > before);
    assert.equal((await sessions(server, "ann")).length, 1);
  });

  test(`i17_the_newest_connection_of_a_device_wins_and_the_older_stops_for_good (${transport})`, async (t) => {
    const server = await Server.start(t);
    const older = await Phone.open(t, server, "ann", { device: "web-1", transport });
    await older.subscribed();
    const newer = await Phone.open(t, server, "ann", { device: "web-1", transport: "websocket" });
    await newer.subscribed();
    await older.waitFor("the older stops", () => older.stopped);
    assert.equal(older.stopped.code, 4500);
  });
}
