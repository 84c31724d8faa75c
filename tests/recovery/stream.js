// A stream of posts, each timed from the moment its author begins to ask until each device shows it.
//
//     const stream = await Stream.start(t, cluster);     four authors post; a phone at each gateway follows them
//     …an engine goes and comes back…
//     await stream.lastOf(back)         ms after `back` until everything that was accepted before it was shown
//     await stream.waits(from, upto)    {count, p50, p99} of the posts whose authors began to ask in that time

import { setTimeout as sleep } from "node:timers/promises";

import { Phone } from "../actors/phone.js";
import { until } from "../actors/until.js";
import { Patient } from "../faults/patient.js";
import { Random } from "../faults/random.js";

const AUTHORS = ["ada", "bob", "cyd", "dan"];

/** The pause of an author between two posts. */
const PACE_MS = 100;

/** The pause between two looks at what the phones show. */
const LOOK_MS = 10;

/** A backend whose phones connect to one certain gateway. */
class At extends Patient {
  constructor(cluster, random, gateway) {
    super(cluster, random, null);
    this.gateway = gateway;
  }

  get websocket() {
    return this.gateway.websocket;
  }
}

export class Stream {
  #stopped = false;
  /** Of each post: when its author began to ask, when it was accepted, when each phone showed it; times in ms. */
  #posts = [];
  #failed = null;

  static async start(t, cluster) {
    const stream = new Stream();
    const random = new Random(1);
    t.after(() => (stream.#stopped = true));
    const backend = new Patient(cluster, random.branch(), null);
    stream.phones = [];
    for (const [i, gateway] of cluster.gateways.entries()) {
      const reader = `reader-${i}`;
      for (const author of AUTHORS) await backend.follow(reader, author);
      const phone = await Phone.open(t, new At(cluster, random.branch(), gateway), reader, { device: "phone" });
      await phone.subscribed();
      stream.phones.push(phone);
    }
    const loops = [...AUTHORS.map((author) => stream.#write(backend, author)), stream.#look()];
    stream.loops = loops.map((loop) => loop.catch((error) => (stream.#failed ??= error)));
    return stream;
  }

  async stop() {
    this.#stopped = true;
    await Promise.all(this.loops);
    if (this.#failed) throw this.#failed;
  }

  /** Waits until everything accepted before the time `back` is shown, and answers how many ms after `back` that was. */
  async lastOf(back) {
    const posts = () => this.#posts.filter(({ accepted }) => accepted < back);
    await this.#shown("what was accepted before the engine was back", posts);
    return Math.max(0, ...posts().map((post) => Math.max(...post.shown) - back));
  }

  /** Waits for the posts whose authors began to ask in that time, and answers {count, p50, p99}, in ms. */
  async waits(from, upto) {
    await sleep(upto - performance.now());
    const posts = () => this.#posts.filter(({ asked }) => asked >= from && asked < upto);
    await this.#shown("posts", posts);
    const waits = posts().flatMap(({ asked, shown }) => shown.map((at) => at - asked)).sort((a, b) => a - b);
    const at = (share) => Math.round(waits[Math.min(waits.length - 1, Math.floor(waits.length * share))]);
    return { count: waits.length, p50: at(0.5), p99: at(0.99) };
  }

  /** For a report: the slowest post of each half second after `back`, in ms, and in brackets how long its 201 took. */
  slowest(back) {
    const slots = [];
    for (const { asked, accepted, shown } of this.#posts.filter((post) => post.asked >= back && isShown(post))) {
      const slot = Math.floor((asked - back) / 500);
      const wait = Math.round(Math.max(...shown) - asked);
      if (!(slots[slot]?.wait >= wait)) slots[slot] = { wait, accepted: Math.round(accepted - asked) };
    }
    return Array.from(slots, (slot) => (slot ? `${slot.wait} (${slot.accepted})` : "-")).join(", ");
  }

  #shown(what, posts) {
    const all = () => {
      if (this.#failed) throw this.#failed;
      return posts().every(isShown);
    };
    return until(`every phone shows ${what}`, all, { seen: () => posts().filter((post) => !isShown(post)).slice(0, 5) });
  }

  async #write(backend, author) {
    for (let n = 0; !this.#stopped; n += 1) {
      const post = { author, n, asked: performance.now(), accepted: Infinity, shown: this.phones.map(() => null) };
      this.#posts.push(post);
      const headers = { "idempotency-key": `${author}-${n}` };
      post.id = (await backend.call("POST", "/v1/items", { author, body: { n } }, { headers })).id;
      post.accepted = performance.now();
      await sleep(PACE_MS);
    }
  }

  async #look() {
    while (!this.#stopped) {
      await sleep(LOOK_MS);
      const open = this.#posts.filter((post) => post.id && !isShown(post));
      if (open.length === 0) continue;
      for (const [i, phone] of this.phones.entries()) {
        await phone.loadAll(); // after a reset the phone has loaded its first page only
        const shown = new Set(phone.feed.items().map(({ id }) => id));
        for (const post of open) if (shown.has(post.id)) post.shown[i] ??= performance.now();
      }
    }
  }
}

const isShown = ({ shown }) => !shown.includes(null);
