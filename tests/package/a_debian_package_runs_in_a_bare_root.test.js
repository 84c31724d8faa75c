// The Debian package on a machine that has nothing but Debian's base: it is installed, its units are started by systemd with
// all their restrictions, it is upgraded and removed. What users have posted outlives all of it.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Backend } from "../actors/backend.js";
import { Nats, Postgres, Redis } from "../actors/engines.js";
import { Machine } from "../actors/machine.js";
import { Phone } from "../actors/phone.js";
import { freePort } from "../actors/port.js";
import { TOOLS } from "../actors/process.js";
import { until } from "../actors/until.js";

const BUILD = fileURLToPath(new URL("../../deploy/debian/build", import.meta.url));
const UNITS = ["feedgate.service", "feedgate-gateway.service", "feedgate-timeline.service"];

let directory;
let package_;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "feedgate-package-"));
  const programs = join(directory, "programs");
  await mkdir(programs);
  for (const name of ["gateway", "timeline"]) await copyFile(join(TOOLS, "bin", name), join(programs, name));
  await copyFile(join(TOOLS, "bin", "feedgate-cluster"), join(programs, "feedgate"));
  const { stdout } = await promisify(execFile)(BUILD, [programs, directory]);
  await rm(programs, { recursive: true });
  package_ = basename(stdout.trim());
});

after(() => rm(directory, { recursive: true, force: true }));

/** A backend of the server that a unit runs on `port` of 127.0.0.1. */
const backend = (port) => Object.defineProperty(new Backend(), "port", { value: port });

/** How many connections to the port are refused until `work` is done. */
async function refusedDuring(port, work) {
  let [going, refused] = [true, 0];
  const done = work.finally(() => (going = false));
  while (going) {
    const answer = await new Promise((resolve) => {
      const socket = connect(port, "127.0.0.1", () => resolve("connected") || socket.destroy());
      socket.on("error", ({ code }) => resolve(code));
    });
    refused += answer === "ECONNREFUSED";
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await done;
  return refused;
}

/** A machine on which the package is installed. */
async function installed(t) {
  const machine = await Machine.boot(t, { shown: directory });
  await machine.run("dpkg", "--install", `/mnt/${package_}`);
  return machine;
}

test("one process: installed, started, killed, reloaded, upgraded and removed, and every post is still there", async (t) => {
  const machine = await installed(t);
  assert.equal(await machine.run("systemd-analyze", "verify", ...UNITS, "feedgate.socket"), "");
  for (const unit of UNITS) assert.equal(await machine.state(unit), "inactive", `${unit} waits for its operator`);

  const server = backend(await freePort());
  const ready = () => until("the server is ready", () => server.isReady(), { seen: () => machine.journal("feedgate") });
  const settings = (log) => machine.write("/etc/feedgate/feedgate.toml", `listen = "127.0.0.1:${server.port}"\nlog = "${log}"\n`);
  await settings("info");
  await machine.write("/etc/feedgate/feedgate.env", "FEEDGATE_CONFIG=/etc/feedgate/feedgate.toml\n");
  await machine.run("systemctl", "enable", "--now", "feedgate");
  await ready();
  server.key = await machine.read("/var/lib/private/feedgate/secrets/api_key");
  assert.equal(await machine.run("stat", "--format=%a", "/var/lib/private/feedgate/secrets/api_key"), "600");
  await server.follow("bob", "ann");
  await server.publish("ann", { text: "before" });
  await until("bob has the post", async () => (await server.feed("bob")).length === 1);

  const first = await machine.pid("feedgate");
  await machine.run("systemctl", "kill", "--signal=KILL", "feedgate");
  await until("systemd has started another process", async () => !["0", first].includes(await machine.pid("feedgate")));
  await ready();
  assert.equal((await server.feed("bob")).length, 1);

  await settings("warn");
  await machine.run("systemctl", "reload", "feedgate");
  await until("the reload is in the log", async () => /settings were read again.*changed="log"/.test(await machine.journal("feedgate")));

  const second = await machine.pid("feedgate");
  await settings("info");
  await machine.run("systemctl", "kill", "--kill-whom=main", "--signal=USR2", "feedgate");
  await until("the port is handed over", async () => /took over from the process before/.test(await machine.journal("feedgate")));
  await ready();
  assert.equal(await machine.pid("feedgate"), second, "a hand-over keeps the process");

  await machine.run("systemctl", "stop", "feedgate");
  const port = `[Socket]\nListenStream=\nListenStream=127.0.0.1:${server.port}\n`;
  await machine.write("/etc/systemd/system/feedgate.socket.d/port.conf", port);
  await machine.run("systemctl", "daemon-reload");
  await machine.run("systemctl", "enable", "--now", "feedgate.socket");
  await ready();
  const [third, refused] = [await machine.pid("feedgate"), await refusedDuring(server.port, machine.run("systemctl", "restart", "feedgate"))];
  assert.equal(refused, 0, "systemd holds the port through a restart");
  await ready();
  const fourth = await machine.pid("feedgate");
  assert.notEqual(fourth, third);

  await machine.run("dpkg", "--install", `/mnt/${package_}`);
  await ready();
  assert.notEqual(await machine.pid("feedgate"), fourth, "an upgrade starts a running unit anew");
  assert.equal((await server.feed("bob")).length, 1);
  assert.match(await machine.read("/etc/feedgate/feedgate.env"), /FEEDGATE_CONFIG/, "an upgrade keeps the settings");

  await machine.run("dpkg", "--purge", "feedgate");
  assert.equal(await machine.ask("systemctl", "cat", "feedgate"), null);
  assert.equal(await server.isReady(), false);
  assert.equal(await machine.read("/var/lib/private/feedgate/secrets/api_key"), server.key, "data is never removed");
});

test("a cluster: gateway and worker run as units over PostgreSQL, Redis and NATS, and a phone gets a post", async (t) => {
  const machine = await installed(t);
  const [postgres, redis, nats] = await Promise.all([Postgres.start(t), Redis.start(t), Nats.start(t)]);
  await postgres.database("feedgate");
  const [listen, health] = [await freePort(), await freePort()];
  const settings = [
    `listen = "127.0.0.1:${listen}"`,
    `health_listen = "127.0.0.1:${health}"`,
    `inbox_url = "redis://127.0.0.1:${redis.port}"`,
    `bus_url = "nats://127.0.0.1:${nats.port}"`,
  ];
  await machine.write("/etc/feedgate/feedgate.toml", settings.join("\n"));
  await machine.run("feedgate", "secrets", "/etc/feedgate/secrets");
  await machine.write("/etc/feedgate/secrets/archive_url", `postgres://feedgate@127.0.0.1:${postgres.port}/feedgate`);
  await machine.run("systemctl", "start", "feedgate-gateway", "feedgate-timeline");

  const server = backend(listen);
  server.key = await machine.read("/etc/feedgate/secrets/api_key");
  await until("the gateway is ready", () => server.isReady(), { seen: () => machine.journal("feedgate-gateway") });
  await until("the worker is ready", () => backend(health).isReady(), { seen: () => machine.journal("feedgate-timeline") });
  await server.follow("bob", "ann");
  const phone = await Phone.open(t, server, "bob");
  await phone.subscribed();
  const { id } = await server.publish("ann", { text: "hello" });
  await phone.shows("the post", ([first]) => first?.id === id);
  for (const unit of ["feedgate-gateway", "feedgate-timeline"]) {
    await machine.run("systemctl", "stop", unit);
    assert.equal(await machine.state(unit), "inactive", `${unit} ends by itself when it is told to`);
  }
});
