// Fault 26: the disk fills up under a server and is emptied again. The disk is a file system of its own in memory, so
// the test needs to be root, as in CI.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";

import { Phone } from "../actors/phone.js";
import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";

const MIB = 1 << 20;
const TEXT = "x".repeat(20_000);

test("i6_a_full_disk_that_is_emptied_heals_by_itself_and_nothing_accepted_is_lost", async (t) => {
  let disk;
  t.after(() => execFileSync("umount", ["--lazy", disk]));
  const server = await Server.start(t, {
    under: (directory) => {
      disk = join(directory, "data");
      mkdirSync(disk);
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=64m,mode=700", "tmpfs", disk]);
      return [];
    },
  });
  await server.follow("bob", "ann");
  const phone = await Phone.open(t, server, "bob");
  const accepted = [];
  const post = async () => {
    const answer = await server.request("POST", "/v1/items", { author: "ann", body: { text: TEXT } });
    if (answer.status === 201) accepted.push(answer.body.id);
    return answer;
  };
  await post();

  // What somebody else has on the same disk.
  const other = join(disk, "of-somebody-else");
  const { bavail, bsize } = await statfs(disk);
  await writeFile(other, Buffer.alloc(bavail * bsize - 4 * MIB));
  let refused;
  await until("the disk is full", async () => (refused = await post()).status !== 201);
  assert.deepEqual([refused.status, refused.body.type], [503, "/problems/unavailable"]);
  assert.match(refused.body.detail, /^the archive: .*No space left on device/);
  const says = async () => {
    const ready = await server.request("GET", "/readyz");
    return ready.status === 503 && /the archive: .*No space left on device/.test(ready.body.detail);
  };
  await until("the server says that it is not ready, and why", says, { seen: () => server.log() });
  const logged = /ERROR .*the archive: .*No space left on device/;
  await until("the log says so too", () => server.said(logged), { seen: () => server.log() });
  assert.equal((await server.request("GET", "/healthz")).status, 200, "no other process would help");
  assert.equal((await server.page("bob")).items.length > 0, true, "what is there can be read");

  await rm(other);
  await until("the server is ready again", () => server.isReady(), { seen: () => server.log() });
  assert.equal(server.ended, null);
  assert.equal((await post()).status, 201);
  const shown = (ids) => (items) => ids.every((id) => items.some((item) => item.id === id));
  await phone.shows("everything that was accepted", shown(accepted));
  await server.kill();
  await server.start();
  assert.equal(shown(accepted)(await server.feed("bob")), true, "and after a crash too");
});
