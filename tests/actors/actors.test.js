// What the tests start does not fail because another process took its port.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { freePort, onFreePorts, PortTaken } from "./port.js";
import { TOOLS } from "./process.js";
import { Program } from "./program.js";
import { until } from "./until.js";

/** Another process's server on this port: it answers every request with 200, as a server that is ready does. */
async function listens(t, port) {
  const other = createServer((_, response) => response.end()).listen(port, "127.0.0.1");
  await once(other, "listening");
  const close = async () => {
    if (!other.listening) return;
    other.closeAllConnections();
    await new Promise((resolve) => other.close(resolve));
  };
  t.after(close);
  return close;
}

/** feedgate in a directory of its own; its port is the next of `ports`. */
async function program(t, ports) {
  const directory = await mkdtemp(join(tmpdir(), "feedgate-"));
  const one = new Program((listen) => [join(TOOLS, "bin", "feedgate"), "serve", "--listen", listen, "--data", directory], () => ports.shift());
  t.after(async () => {
    await one.kill();
    await rm(directory, { recursive: true, force: true });
  });
  const serve = () => one.serve("the server answers", async () => (await fetch(`http://127.0.0.1:${one.port}/readyz`)).ok);
  return { one, serve };
}

test("a program whose port was taken starts on another", async (t) => {
  const [taken, free] = [await freePort(), await freePort()];
  await listens(t, taken);
  const { one, serve } = await program(t, [taken, free]);
  await serve();
  assert.deepEqual([one.port, one.ended], [free, null]);
});

test("a program that is started again waits for its port", async (t) => {
  const port = await freePort();
  const { one, serve } = await program(t, [port]);
  await serve();
  await one.stop();
  const close = await listens(t, port);
  const started = serve();
  await until("it has been refused", () => one.said(/is in use by another program/));
  await close();
  await started;
  assert.deepEqual([one.port, one.ended], [port, null]);
});

test("a program that cannot start for another reason is started once", async () => {
  let tries = 0;
  const fails = () => onFreePorts(() => Promise.reject(new Error(`try ${(tries += 1)}`)));
  await assert.rejects(fails, /^Error: try 1$/);
  const taken = () => onFreePorts(() => Promise.reject(new PortTaken(`try ${(tries += 1)}`)));
  await assert.rejects(taken, /try 11$/, "ten more, and no more");
});
