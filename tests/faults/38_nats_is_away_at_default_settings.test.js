// Fault 38: NATS is away for two seconds, with the timings that are shipped. What was posted meanwhile, and what is
// posted afterwards by the same authors, is there soon after it is back.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Cluster } from "../actors/cluster.js";
import { Phone } from "../actors/phone.js";

/** Seconds within which posts come again: many times what it takes, and far less than the 30 s of an AckWait or a sweep. */
const LIMIT_SECS = 15;

const AUTHORS = Array.from({ length: 8 }, (_, i) => `author-${i}`);

/** Each author posts once; seconds until the phone has the last of them, from `since` on. */
async function posted(cluster, phone, text, since = performance.now()) {
  await Promise.all(AUTHORS.map((author) => cluster.publish(author, { text })));
  return () => arrived(phone, text, since);
}

async function arrived(phone, text, since) {
  await phone.shows(`everybody's ${text}`, (items) => AUTHORS.every((author) => items.some((item) => item.author === author && item.body.text === text)));
  return (performance.now() - since) / 1000;
}

for (const how of ["killed", "hanging"]) {
  test(`i4_posts_come_soon_after_nats_was_${how}_for_two_seconds_at_default_settings`, async (t) => {
    const cluster = await Cluster.start(t);
    for (const author of AUTHORS) await cluster.follow("rea", author);
    const phone = await Phone.open(t, cluster, "rea");
    await (await posted(cluster, phone, "first"))();
    // Work is under way as it goes.
    const under_way = await posted(cluster, phone, "under way");
    await (how === "killed" ? cluster.nats.kill() : cluster.nats.pause());
    await posted(cluster, phone, "meanwhile");
    await sleep(2000);
    await (how === "killed" ? cluster.nats.restart() : cluster.nats.resume());
    const back = performance.now();
    const afterwards = await posted(cluster, phone, "afterwards", back);
    await under_way();
    const waits = { meanwhile: await arrived(phone, "meanwhile", back), afterwards: await afterwards() };
    t.diagnostic(`seconds after it was back: ${JSON.stringify(waits)}`);
    for (const [what, secs] of Object.entries(waits)) assert.ok(secs < LIMIT_SECS, `what was posted ${what} came after ${secs} s`);
  });
}
