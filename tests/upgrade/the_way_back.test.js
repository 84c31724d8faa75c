// The way back. A version goes on with what a later one left, as long as there are no rows of a kind that it does not know. It
// reads none of those, says so and leaves them as they are. A store of a later format is refused with what to do.

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";

import { Cluster } from "../actors/cluster.js";
import { isSound } from "../actors/doctor.js";
import { Phone } from "../actors/phone.js";
import { BIN } from "../actors/process.js";
import { Server } from "../actors/server.js";
import { BEFORE, EARLIER, processes, start } from "./earlier.js";
import { SETTINGS, holds, read, settings, show, write } from "./story.js";

for (const [name, Home] of Object.entries({ server: Server, cluster: Cluster })) {
  test(`i4_i9_a_${name}_goes_back_to_the_version_before_and_forward_again`, async (t) => {
    const home = await Home.start(t, { config: SETTINGS, bin: BEFORE.bin });
    const posts = await write(home, { later: true });
    const phone = await Phone.open(t, home, "ann", { device: "phone" });
    await phone.subscribed();
    let last = 100;
    for (const bin of [BIN, BEFORE.bin, BIN]) {
      const before = await read(home, posts, { later: true });
      await Promise.all(processes(home).map((member) => member.stop()));
      // What docs/operate.md tells to ask before the way back. A cluster has no damage that its doctor of before would see.
      if (home instanceof Server) await isSound(Object.assign(home, { bin }));
      await start(processes(home), bin);
      holds(await read(home, posts, { later: true }), before);
      await home.publishMany("bob", 5, (last += 10));
      await home.publishMany("pia", 5, (last += 10));
      await home.call("POST", `/v1/items/${posts[0].id}/comments`, { author: "eve", body: { text: "again" } });
      await home.call("PATCH", `/v1/items/${posts[1].id}`, { body: { text: `edited ${last}` } });
      await show(home, [phone]);
    }
    assert.deepEqual([phone.recovered, phone.reloads], [true, 1]);
    await isSound(home);
  });
}

for (const version of EARLIER.filter(({ beside }) => !beside)) {
  test(`a_version_reads_no_row_of_a_later_kind_says_so_and_leaves_it_as_it_is_${version.name}`, async (t) => {
    const server = await Server.start(t, { config: settings(version), bin: version.bin });
    const posts = await write(server, { later: false });
    const change = async (bin) => {
      await server.stop();
      await start([server], bin);
    };
    await change(BIN);
    const { id } = await server.publish("bob", { text: "hello @ann" }, { mentions: ["ann"] });
    await server.call("PUT", `/v1/items/${posts[0].id}/reactions/like/ann`);
    await server.drained();
    const before = await read(server, posts, { later: true });

    await change(version.bin);
    for (const path of [`/v1/items/${id}`, "/v1/users/ann/feed"]) {
      const { status, body } = await server.request("GET", path);
      assert.deepEqual([status, body.type], [500, "/problems/internal"], path);
    }
    assert.ok(server.said(/a request found a store damaged what=the row ItemId\(\d+\) of Items/), server.log());
    await server.publish("dan", { text: "in between" });
    await server.drained();

    await change(BIN);
    holds(await read(server, posts, { later: true }), before);
    assert.equal((await server.call("GET", "/v1/users/dan/outbox")).items.length, 1);
    await isSound(server);
  });
}

test("a data directory of a later format is refused, and the reason says what to do", async (t) => {
  const server = await Server.start(t);
  await server.stop();
  const path = join(server.data, "manifest");
  const noted = JSON.parse(await readFile(path, "utf8"));
  await writeFile(path, JSON.stringify({ ...noted, format: noted.format + 1 }));
  await assert.rejects(server.start(), /manifest is of format 2, and this version reads format 1 only: start the version that wrote it, or restore a backup/);
  await writeFile(path, JSON.stringify(noted));
  await server.start();
});
