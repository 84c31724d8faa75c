// Each engine keeps its data over a kill, and ends with the process that started it. For tests in JavaScript.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { access, readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Nats, Postgres, Redis, RedisCluster } from "../actors/engines.js";
import { freePort, onFreePorts, PortTaken } from "../actors/port.js";
import { until } from "../actors/until.js";

const alive = (pid) => access(`/proc/${pid}`).then(() => true, () => false);
const gone = async (path) => access(path).then(() => false, () => true);

/** The numbers of all System V segments of shared memory on this machine. */
const sharedSegments = async () => [...(await readFile("/proc/sysvipc/shm", "utf8")).matchAll(/^ *-?\d+ +(\d+)/gm)].map(([, id]) => id);

/** Runs `body` with a test's hooks and then what it left to do after it. */
async function within(body) {
  const hooks = [];
  try {
    return await body({ after: (hook) => hooks.push(hook) });
  } finally {
    for (const hook of hooks) await hook();
  }
}

/** Another process's server on this port, which takes connections and says nothing. */
async function listens(t, port) {
  const listener = createServer(() => {}).listen(port, "127.0.0.1");
  await once(listener, "listening");
  const close = () => listener.close();
  t.after(close);
  return close;
}

async function leavesNothingBehind(start, use) {
  const { pid, directory } = await within(async (t) => {
    const engine = await start(t);
    await use(engine);
    assert.ok(await alive(engine.pid));
    return { pid: engine.pid, directory: engine.directory };
  });
  await until("its process is gone", async () => !(await alive(pid)));
  assert.ok(await gone(directory));
}

test("redis keeps its data over a kill and leaves nothing behind", async () => {
  await leavesNothingBehind((t) => Redis.start(t, { args: ["--appendfsync", "always"] }), async (redis) => {
    await redis.cli("set", "word", "kept");
    const { pid } = redis;
    await redis.kill();
    await assert.rejects(redis.cli("ping"));
    await redis.restart();
    assert.equal(await redis.cli("get", "word"), "kept");
    assert.notEqual(redis.pid, pid);
    await redis.stop();
    await redis.restart();
    assert.equal(await redis.cli("get", "word"), "kept");
  });
});

test("a paused redis hangs until it is resumed", async (t) => {
  const redis = await Redis.start(t);
  await redis.pause();
  const answer = redis.cli("ping");
  const { stdout } = await promisify(execFile)("ps", ["-o", "stat=", "-p", redis.pid]);
  assert.match(stdout, /^T/);
  await redis.resume();
  assert.equal(await answer, "PONG");
});

test("a replica is in step and can be promoted", async (t) => {
  const master = await Redis.start(t);
  await master.cli("set", "word", "kept");
  const replica = await Redis.start(t, { replicaOf: master });
  await master.kill();
  assert.equal(await replica.cli("get", "word"), "kept");
  await replica.cli("replicaof", "no", "one");
  assert.equal(await replica.cli("set", "word", "changed"), "OK");
});

test("a cluster is whole again after a master was killed", async (t) => {
  const cluster = await RedisCluster.start(t);
  await cluster.nodes[1].kill();
  await cluster.nodes[1].restart();
  await cluster.ok();
  assert.equal(new Set(cluster.urls).size, 3);
});

test("nats comes back after a kill and leaves nothing behind", async () => {
  await leavesNothingBehind((t) => Nats.start(t), async (nats) => {
    await nats.kill();
    assert.equal(await nats.answers(), false);
    await nats.restart();
    await nats.stop();
    await nats.restart();
  });
});

test("postgres keeps what it committed over a kill and leaves nothing behind", async () => {
  await leavesNothingBehind((t) => Postgres.start(t), async (postgres) => {
    assert.equal(await postgres.database("words"), `postgres://feedgate@127.0.0.1:${postgres.port}/words`);
    await postgres.psql("words", "create table words (word text)", "insert into words values ('kept')");
    await postgres.kill();
    await postgres.restart();
    assert.equal(await postgres.psql("words", "select word, word from words"), "kept\tkept");
    await postgres.pause();
    await postgres.resume();
    await postgres.stop();
    await postgres.restart();
    assert.equal(await postgres.psql("words", "select word from words"), "kept");
  });
});

test("a killed postgres leaves no shared memory behind", async () => {
  const segment = await within(async (t) => {
    const postgres = await Postgres.start(t);
    assert.doesNotMatch(await readFile(`/proc/${postgres.pid}/maps`, "utf8"), /\/dev\/shm\//);
    const [, found] = /^ *\d+ +(\d+)$/m.exec(await readFile(join(postgres.directory, "data/postmaster.pid"), "utf8"));
    assert.ok((await sharedSegments()).includes(found));
    await postgres.kill();
    return found;
  });
  assert.ok(!(await sharedSegments()).includes(segment));
});

test("an engine whose port was taken starts on another, and waits for it later", async (t) => {
  for (const Kind of [Redis, Nats, Postgres]) {
    const port = await freePort();
    await listens(t, port);
    const ports = [port, undefined];
    const engine = await onFreePorts(() => Kind.tryStart(t, { port: ports.shift() }));
    assert.notEqual(engine.port, port);
    const own = engine.port;
    await engine.kill();
    const close = await listens(t, own);
    const started = engine.restart();
    await until("it has been refused", () => engine.said(/address already in use/i));
    close();
    await started;
    assert.deepEqual([engine.port, engine.ended], [own, null]);
  }
  const bus = await freePort();
  await listens(t, bus);
  await assert.rejects(Redis.tryStart(t, { args: ["--cluster-enabled", "yes", "--cluster-port", bus] }), PortTaken);
});

test("an engine that cannot start says why", async (t) => {
  await assert.rejects(Redis.start(t, { args: ["--no-such-setting", "1"] }), /the engine ended:[^]*no-such-setting/);
});

test("the death of the test process takes its engine with it", async (t) => {
  const module = fileURLToPath(new URL("../actors/engines.js", import.meta.url));
  const program = `import { Redis } from ${JSON.stringify(module)};
    const redis = await Redis.start({ after() {} });
    console.log(JSON.stringify([redis.pid, redis.directory]));`;
  const holder = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => holder.kill("SIGKILL"));
  const [line] = await once(holder.stdout.setEncoding("utf8"), "data");
  const [pid, directory] = JSON.parse(line);
  assert.ok(await alive(pid));
  holder.kill("SIGKILL");
  await until("its engine is gone", async () => !(await alive(pid)) && (await gone(directory)));
});
