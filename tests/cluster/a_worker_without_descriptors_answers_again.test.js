import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";

import { Cluster } from "../actors/cluster.js";
import { until } from "../actors/until.js";

/** How long somebody who asks a worker without descriptors waits: twenty times as long as between two tries to accept. */
const PATIENCE_MS = 2000;

test("a worker that may open nothing more says so once in ten seconds, and answers when it may again", async (t) => {
  const cluster = await Cluster.start(t, { gateways: 1, workers: 1 });
  const [worker] = cluster.workers;
  const limit = (soft) => promisify(execFile)("prlimit", ["--pid", `${worker.pid}`, `--nofile=${soft}:`]);
  const healthy = async () => (await fetch(`${worker.url}/healthz`, { signal: AbortSignal.timeout(PATIENCE_MS) })).ok;
  assert.equal(await healthy(), true);
  await limit(8);
  await assert.rejects(healthy(), { name: "TimeoutError" });
  const refusals = () => worker.lines(/^(?=.*Too many open files).*accept/);
  await until("the log says so", () => refusals().length > 0, { seen: () => worker.log() });
  assert.deepEqual(refusals().slice(1), []);
  await limit(1024);
  await until("it answers", () => healthy().catch(() => false));
});
