import assert from "node:assert/strict";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";
import { until } from "../actors/until.js";

/** After its token has run out, a session stays for so long. */
const grace = (secs) => ({ config: `[gateway]\nrefresh_grace_secs = ${secs}\n` });

test("a token is refreshed in time, and the connection stays", async (t) => {
  const server = await Home.start(t, grace(300));
  await server.follow("ann", "bob");
  const phone = await Phone.open(t, server, "ann", { ttl: 2 });
  await phone.waitFor("three tokens", () => phone.tokens >= 3);

  await server.publish("bob", { text: "still here" });
  await phone.shows("the post", (items) => items.length === 1);
  assert.deepEqual([phone.connects, phone.connecting.length], [1, 1], "it never had to connect again");
  await phone.agrees();
});

test("an expired token is answered with 109, and the SDK asks the app for another", async (t) => {
  const server = await Home.start(t);
  const { token: stale, expires_at } = await server.call("POST", "/v1/users/ann/token", { ttl: 1 });
  await until("the token has expired", () => Date.now() > expires_at);
  const tokens = [stale, await server.token("ann")];
  const phone = await Phone.open(t, server, "ann", { getToken: async () => tokens.shift() });
  await phone.subscribed();
  assert.equal(phone.tokens, 2);
  assert.ok(phone.errors.some(({ code, message }) => code === 109 || message.includes("109")), JSON.stringify(phone.errors));
});

test("a session that is not refreshed is closed with 3005, and the SDK comes back with a fresh token", async (t) => {
  const server = await Home.start(t, grace(1));
  await server.follow("ann", "bob");
  let phone = null;
  const getToken = () => {
    // One that has run out before it was used is asked for again.
    if (!phone?.connects) return server.token("ann", { ttl: 1 });
    // The app's backend answers no refresh. A slow SDK may ask for none before it is closed.
    if (!phone.connecting.includes(3005)) return new Promise(() => {});
    return server.token("ann", { ttl: 3600 });
  };
  phone = await Phone.open(t, server, "ann", { getToken });
  await phone.waitFor("the close and the way back", () => phone.connects === 2);
  assert.ok(phone.connecting.includes(3005), JSON.stringify(phone.connecting));

  await server.publish("bob", { text: "welcome back" });
  await phone.shows("the post", (items) => items.length === 1);
  await phone.agrees();
});

test("a token that never was valid stops the SDK", async (t) => {
  const server = await Home.start(t);
  const phone = await Phone.open(t, server, "ann", { getToken: async () => "not.a.token" });
  await phone.waitFor("the end", () => phone.stopped);
  assert.equal(phone.connects, 0);
});
