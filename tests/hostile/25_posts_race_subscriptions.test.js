// Fault 25: an author posts without a pause while readers subscribe, leave and resume, ten thousand times. Between
// the changes from before a subscription and those after it, none is missing and none comes twice.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Device } from "../actors/device.js";
import { Server } from "../actors/server.js";
import { TRANSPORT } from "../actors/transport.js";
import { Random } from "../faults/random.js";

/** Without WebSocket each command is a request of its own. */
const RACES = TRANSPORT === "websocket" ? 10_000 : 1000;

/** So many posts at least come meanwhile, however slow the disk is. */
const POSTS = 100;
const READERS = 25;
const SEED = Number(process.env.FEEDGATE_SEED ?? Date.now() % 2 ** 31);

/** A device that checks each line in the order in which it comes. */
class Racer {
  position = null;
  subscribed = false;
  races = 0;

  constructor(t, server, user, random) {
    Object.assign(this, { t, server, user, random });
  }

  async open() {
    this.token ??= await this.server.token(this.user, { device: "phone" });
    this.wire = await Device.open(this.t, this.server, { token: this.token });
    this.id = 10;
    this.subscribed = false;
  }

  /** Takes in all that has come: answers the reply to `id` if it is there. */
  take(id) {
    let answer;
    for (const line of this.wire.lines.splice(0)) {
      if (line.push) this.told(line.push.pub.offset);
      else if (line.id === id) {
        assert.equal(line.error, undefined, JSON.stringify(line));
        answer = line;
        this.turned(line);
      }
    }
    return answer;
  }

  told(offset) {
    assert.ok(this.subscribed, `${this.user}: ${offset} came while it was not subscribed`);
    assert.equal(offset, this.position.offset + 1, `${this.user}: no gap and no duplicate`);
    this.position.offset = offset;
  }

  turned({ subscribe, unsubscribe }) {
    if (unsubscribe) this.subscribed = false;
    if (!subscribe) return;
    if (this.resuming) {
      assert.equal(subscribe.recovered, true, `${this.user}: so little was missed`);
      assert.deepEqual({ offset: subscribe.offset, epoch: subscribe.epoch }, this.position, "it is told its own position");
    } else this.position = { offset: subscribe.offset, epoch: subscribe.epoch };
    this.subscribed = true;
  }

  async ask(verb, params) {
    const id = (this.id += 1);
    this.wire.tell({ id, [verb]: params });
    let answer;
    await this.wire.until(verb, () => (answer ??= this.take(id)));
  }

  async subscribe() {
    this.resuming = this.position !== null && !this.random.chance(10);
    const recover = this.resuming ? { recover: true, ...this.position } : {};
    await this.ask("subscribe", { channel: "feed", data: { deliver: "items" }, ...recover });
    this.races += 1;
  }

  /** Listens until a few more items have come. */
  async hear(few) {
    const goal = this.position.offset + few;
    await this.wire.until("items", () => {
      this.take();
      return this.position.offset >= goal;
    });
  }

  async race() {
    await this.subscribe();
    if (this.random.chance(30)) await this.hear(this.random.between(0, 3));
    if (this.random.chance(3)) {
      // The connection is cut: what had not come by then comes on the next one.
      this.wire.cut();
      this.take();
      await this.open();
    } else await this.ask("unsubscribe", { channel: "feed" });
  }
}

test("i2_i9_posts_race_ten_thousand_subscriptions_and_resumptions", async (t) => {
  t.diagnostic(`FEEDGATE_SEED=${SEED}`);
  const server = await Server.start(t, { config: "[gateway]\ncommands_per_sec = 100000\nping_interval_secs = 3600\n" });
  const random = new Random(SEED);
  const racers = Array.from({ length: READERS }, (_, i) => new Racer(t, server, `reader-${i}`, random.branch()));
  for (const racer of racers) {
    await server.follow(racer.user, "bob");
    await server.page(racer.user);
    await racer.open();
  }
  await server.drained();

  let going = true;
  let posts = 0;
  const posting = (async () => {
    for (; going; posts += 1) await server.publish("bob", { n: posts });
  })();
  try {
    await Promise.all(
      racers.map(async (racer) => {
        while (racer.races < RACES / READERS || posts < POSTS) await racer.race();
      }),
    );
  } finally {
    going = false;
    await posting;
  }
  await server.drained();
  for (const racer of racers) {
    await racer.subscribe();
    const { position: head } = await server.page(racer.user);
    await racer.wire.until("the last item", () => {
      racer.take();
      return racer.position.offset === head.offset;
    });
  }
});
