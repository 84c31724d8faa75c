// A version stops, and a later one goes on with its store: what was read is read, devices that were live or away get what
// they have not, once and in order, and what came with the later version works on what the earlier one wrote.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Cluster } from "../actors/cluster.js";
import { isSound } from "../actors/doctor.js";
import { Phone } from "../actors/phone.js";
import { BIN } from "../actors/process.js";
import { Server } from "../actors/server.js";
import { EARLIER, processes, start } from "./earlier.js";
import { SETTINGS, holds, read, settings, show, useAll, write } from "./story.js";

const HOMES = { server: Server, cluster: Cluster };

/** Ann's devices: one that stays live, one that is notified, one whose process is gone and one that is put away. */
async function devices(t, home) {
  const open = (device, more) => Phone.open(t, home, "ann", { device, ...more });
  const all = { live: await open("live"), notified: await open("notified", { deliver: "notify" }), gone: await open("gone"), away: await open("away") };
  for (const phone of Object.values(all)) {
    await phone.subscribed();
    await phone.catchesUp();
  }
  await all.away.sleep();
  all.gone.close();
  return all;
}

for (const version of EARLIER) {
  for (const [name, Home] of Object.entries(HOMES)) {
    for (const signal of ["SIGTERM", "SIGKILL"]) {
      test(`i4_i9_a_${name}_of_${version.name}_that_ended_by_${signal}_goes_on`, async (t) => {
        const home = await Home.start(t, { config: settings(version), bin: version.bin });
        const kinds = { later: version.beside };
        const posts = await write(home, kinds);
        const phones = await devices(t, home);
        await home.publishMany("bob", 7, 100);
        await home.publishMany("pia", 3, 200);
        await home.drained();
        await phones.live.shows("the last post", ([first]) => first.body.text === "post 202");
        await phones.live.acknowledge();
        const before = await read(home, posts, kinds);

        const ended = await Promise.all(processes(home).map((member) => member.stop(signal)));
        for (const { code } of ended) assert.equal(code, signal === "SIGTERM" ? 0 : null, home.log());
        for (const member of processes(home)) await member.configure(SETTINGS);
        await start(processes(home), BIN);

        holds(await read(home, posts, kinds), before);
        const gone = await Phone.open(t, home, "ann", { device: "gone", stored: phones.gone.stored });
        await phones.away.wake();
        const all = [phones.live, phones.notified, gone, phones.away];
        await show(home, all);
        const { id } = await home.publish("bob", { text: "after" });
        for (const phone of all) {
          await phone.shows("what is posted now", ([first]) => first.id === id);
          assert.ok(phone.recovered, "it goes on by its log");
        }
        assert.deepEqual([phones.live.reloads, phones.notified.reloads, gone.reloads, phones.away.reloads], [1, 1, 0, 1], "none loads page one again");
        await useAll(home, posts);
        await show(home, all);
        await isSound(home);
      });
    }
  }
}
