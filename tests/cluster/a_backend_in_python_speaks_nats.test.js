import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Cluster } from "../actors/cluster.js";
import { TOOLS } from "../actors/process.js";
import { until } from "../actors/until.js";

const BACKEND = fileURLToPath(new URL("../actors/nats_backend.py", import.meta.url));

test("the unmodified nats-py writes by FEED_IN, is answered, and reads on FEED what was accepted", async (t) => {
  const cluster = await Cluster.start(t, { config: "[intake]\nopen = true\n" });
  const python = join(TOOLS, "python", "bin", "python");
  const { stdout } = await promisify(execFile)(python, [BACKEND, `nats://127.0.0.1:${cluster.nats.port}`]);
  const { duplicates, refused, answered, events } = JSON.parse(stdout);

  assert.deepEqual(duplicates, [false, true]);
  assert.deepEqual([refused.status, refused.pointer], [422, "/author"]);
  assert.equal(answered.status, "201");
  const bare = events.map(({ v: _, id, at, item, ...rest }) => rest).sort((one, other) => one.subject.localeCompare(other.subject));
  assert.deepEqual(bare, [
    { subject: "feed.event.edit.bob%2Esmith", kind: "edit", author: "bob.smith", version: 2 },
    { subject: "feed.event.follow.ann", kind: "follow", reader: "ann", author: "bob.smith" },
    { subject: "feed.event.publish.bob%2Esmith", kind: "publish", author: "bob.smith", version: 1, foreign_id: "post/1" },
    { subject: "feed.event.publish.eve", kind: "publish", author: "eve", version: 1 },
  ]);
  const [published, edited] = ["publish", "edit"].map((kind) => events.findIndex((event) => event.kind === kind && event.author === "bob.smith"));
  assert.ok(published < edited, "an author's events are in order");
  assert.equal(events[published].item, events[edited].item);
  assert.equal(events.find(({ author }) => author === "eve").item, answered.id);
  await until("ann's feed has the edit", async () => (await cluster.feed("ann"))[0]?.body.text === "two");
});
