// Whether posts flow again soon after an engine is back: small authors post all the time, beside the load, for a reader
// at each gateway.
//
//     const probe = await Probe.start(t, { home, random });
//     …the engine goes…
//     const back = performance.now();
//     await probe.recovers("NATS", back);
//
// From RECOVERED_MS after the return on, posts must take less than LATE_MS to each of the devices, 99 of 100 of them; and
// what had been accepted before the return must be there by then. Each post is timed from when its author begins to ask.
//
// A machine that is busy with other tests makes posts late as well. So all our processes are asked for /healthz meanwhile,
// which asks no engine, and a file beside the engines' is synced. Only if those are late too, or posts were before any
// fault, is the next window judged instead, a few times; the last of them is judged by how late they are.

import assert from "node:assert/strict";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { Phone } from "../actors/phone.js";
import { until } from "../actors/until.js";
import { Patient } from "./patient.js";

/** Posts flow as ever so long after the return of an engine. */
const RECOVERED_MS = 3000;

/** The p99 of a post's way to a device. */
const LATE_MS = 1000;

/** In which posts are timed. */
const WINDOW_MS = 2000;

/** Windows at most. */
const WINDOWS = 3;

/** The p99 of /healthz, and of a sync, on a machine that is busy. */
const BUSY_MS = 150;

/** How many times as long as such an answer the way of a post takes: through three processes and three engines, several
 * times to the disk. */
const HOPS = 10;

/** How much later than in peace, when that was late, a post may be. */
const THAN_IN_PEACE = 3;

const AUTHORS = 4;

/** Between an author's post and the next one. */
const PACE_MS = 150;

/** Between two controls of a kind. */
const CONTROL_MS = 50;

/** Between two looks at who shows what. */
const LOOK_MS = 10;

/** A backend whose devices connect to one gateway. */
class At extends Patient {
  #gateway;

  constructor(home, random, gateway) {
    super(home, random, null);
    this.#gateway = gateway;
  }

  get websocket() {
    return this.#gateway.websocket;
  }
}

export class Probe {
  #stopped = false;
  /** Each post: when its author began to ask, when it was accepted, when each of the devices had it. */
  #posts = [];
  /** Posts that some device lacks. */
  #open = new Set();
  /** Of /healthz, and of syncs: {at, took}. */
  #controls = [];
  #failed = null;

  static async start(t, { home, random }) {
    const probe = new Probe();
    Object.assign(probe, { t, home, random });
    t.after(() => (probe.#stopped = true));
    probe.backend = new Patient(home, random.branch(), null);
    const authors = Array.from({ length: AUTHORS }, (_, i) => `probe-${i}`);
    await Promise.all(authors.map((author) => probe.backend.call("PUT", `/v1/authors/${author}`, { class: "push" })));
    probe.phones = await Promise.all(home.gateways.map((gateway, i) => probe.#reader(`prober-${i}`, gateway, authors)));
    const loops = [...authors.map((author) => probe.#write(author)), probe.#look(), probe.#sync(), ...home.members.map((member) => probe.#ask(member))];
    probe.loops = loops.map((loop) => loop.catch((error) => (probe.#failed ??= error)));
    await sleep(WINDOW_MS);
    probe.peace = await probe.#window(performance.now() - WINDOW_MS);
    probe.#say("in peace", probe.peace);
    return probe;
  }

  /** Waits for the posts after the return of `engine` at `back`, and judges them. */
  async recovers(engine, back = performance.now()) {
    await sleep(back + RECOVERED_MS - performance.now());
    const before = () => this.#posts.filter(({ accepted }) => accepted !== null && accepted < back);
    await this.#until("what was accepted before is there", () => before().every((post) => this.#arrived(post)));
    const last = Math.max(0, ...before().map((post) => Math.max(...post.shown) - back));
    for (let nth = 1, from = back + RECOVERED_MS; ; nth += 1, from = performance.now()) {
      const window = await this.#window(from);
      this.#say(`${seconds(from - back)} s after the return of ${engine}, what was accepted before it after ${seconds(last)} s`, window);
      const busy = window.machine > BUSY_MS || this.peace.posts > LATE_MS / 2;
      const slack = busy && nth === WINDOWS ? HOPS * window.machine + THAN_IN_PEACE * this.peace.posts : 0;
      const [late, recovered] = [LATE_MS + slack, RECOVERED_MS + slack];
      if (window.posts < late && last < recovered) return;
      assert.ok(busy && nth < WINDOWS, `posts are late after the return of ${engine}: p99 ${window.posts} ms, of before ${last} ms, of the machine ${window.machine} ms`);
    }
  }

  /** The figures of posts whose authors began to ask in the window from `from` on, all of which are awaited. */
  async #window(from) {
    const upto = from + WINDOW_MS;
    await sleep(upto - performance.now());
    const posts = this.#posts.filter(({ asked }) => asked >= from && asked < upto);
    assert.ok(posts.length > 0, "somebody posts");
    await this.#until("all posts of a window are there", () => posts.every((post) => this.#arrived(post)));
    const machine = this.#controls.filter(({ at }) => at >= from && at < upto).map(({ took }) => took);
    return { count: posts.length, posts: p99(posts.flatMap(({ asked, shown }) => shown.map((at) => at - asked))), machine: p99(machine) };
  }

  /** Nobody posts any more. */
  async stop() {
    this.#stopped = true;
    await Promise.all(this.loops);
  }

  #say(when, { count, posts, machine }) {
    this.t.diagnostic(`${when}: ${count} posts, p99 to a device ${posts} ms; of the machine ${machine} ms`);
  }

  #arrived({ accepted, shown }) {
    return accepted !== null && !shown.includes(null);
  }

  #until(what, condition) {
    const sound = () => {
      if (this.#failed) throw this.#failed;
      return condition();
    };
    return until(what, sound, { withinSecs: 60, seen: () => this.#posts.filter((post) => !this.#arrived(post)).slice(0, 5) });
  }

  async #reader(reader, gateway, authors) {
    await Promise.all(authors.map((author) => this.backend.follow(reader, author)));
    return Phone.open(this.t, new At(this.home, this.random.branch(), gateway), reader, { device: "probe" });
  }

  async #write(author) {
    for (let n = 0; !this.#stopped; n += 1) {
      const post = { asked: performance.now(), accepted: null, shown: this.phones.map(() => null) };
      this.#posts.push(post);
      const options = { headers: { "idempotency-key": `${author}-${n}` } };
      post.id = (await this.backend.call("POST", "/v1/items", { author, body: { n } }, options)).id;
      post.accepted = performance.now();
      this.#open.add(post);
      await sleep(PACE_MS);
    }
  }

  async #look() {
    while (!this.#stopped) {
      await sleep(LOOK_MS);
      if (this.#open.size === 0) continue;
      for (const [i, phone] of this.phones.entries()) {
        await phone.loadAll(); // after a reset only page one was loaded
        const shown = new Set(phone.feed.items().map(({ id }) => id));
        for (const post of this.#open) if (shown.has(post.id)) post.shown[i] ??= performance.now();
      }
      for (const post of this.#open) if (this.#arrived(post)) this.#open.delete(post);
    }
  }

  #ask(member) {
    return this.#control(() => fetch(`${member.url}/healthz`, { signal: AbortSignal.timeout(LATE_MS) }).catch(() => {}));
  }

  async #sync() {
    const file = await open(join(this.home.directory, "synced"), "w");
    await this.#control(async () => {
      await file.write("x".repeat(4096), 0);
      await file.datasync();
    });
    await file.close();
  }

  async #control(call) {
    for (; !this.#stopped; await sleep(CONTROL_MS)) {
      const at = performance.now();
      await call();
      this.#controls.push({ at, took: performance.now() - at });
    }
  }
}

const seconds = (ms) => (ms / 1000).toFixed(1);

/** In whole ms. */
function p99(times) {
  const sorted = times.toSorted((a, b) => a - b);
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.99))]);
}
