// A moderate load of everything that a feed is made of, by a seed; recorded.
//
//   authors  publish, edit, delete: one thing at a time each, asked again until it is answered. One is pushed, one pulled,
//            one crosses the threshold as readers come and go, and of one the class changes. Some items are addressed
//            to a few readers, followers or not; some are narrowed to the followers on a list, or to those not on it;
//            some are likes, which belong to a feed of their own. Now and then an author hides from a reader or blocks
//            one, for a while, or changes the list
//   star     is of class everyone: every reader sees it, without a follow
//   readers  follow and unfollow, mute and block, one edge at a time each
//   phones   two devices a reader, the unmodified SDK in items mode: acknowledge, are put away, die and come back. The
//            first of them has both feeds over one connection
//
//     const load = await Load.start(t, { home, recorder, random });
//     …faults…
//     await load.settle();        writers stop, work drains, phones catch up, the end is read and recorded

import { Phone } from "../actors/phone.js";
import { until } from "../actors/until.js";
import { FEEDS } from "./cluster.js";
import { Patient } from "./patient.js";

const SIZES = { authors: 4, readers: 10, devices: 2 };

/** The classes of authors, in turn; of "auto" the number of followers decides, "any" of them changes now and then. */
const CLASSES = ["push", "auto", "pull", "any"];

/** The list that each author has; its first reader is on it all the time. */
const LIST = "near";

const MAIN = "feed";
const NAMES = [MAIN, ...Object.keys(FEEDS)];

/** An author whom every reader sees at all times. A reader who has the last of its items has pulled all before it. */
const STAR = "star";

/** Pauses between two things an actor does, in ms: about 40 requests a second of all. */
const PACES = { author: [100, 400], star: [500, 1500], reader: [500, 2500], phone: [300, 1700] };

/** How long things may take on a machine that is busy with much else. */
const FLOWS_SECS = 180;
const SYNC_SECS = 90;

/** Longer than the pool may be at odds with the connections that are there: a lease, its renewal, and some time. */
const SETTLES_SECS = 20;

export class Load {
  #stopped = false;
  #actors = [];
  #failed = null;
  /** Accepted items so far; what may be edited and deleted. */
  published = [];
  phones = [];
  /** What users have put up, in paths: to be taken down again. */
  #shields = new Map();

  /** Follows first, then phones, then everything at once. `home`: what runs the product. */
  static async start(t, { home, recorder, random, sizes = {} }) {
    const load = new Load();
    t.after(() => (load.#stopped = true));
    Object.assign(load, { t, home, recorder, random });
    load.backend = new Patient(home, random.branch(), recorder);
    const { authors, readers, devices } = { ...SIZES, ...sizes };
    load.authors = names("author", authors);
    load.readers = names("reader", readers);
    await Promise.all([STAR, ...load.authors].map((author) => load.#classify(author)));
    await Promise.all(load.authors.map((author) => load.#list(author, load.readers[0], true)));
    await Promise.all(load.readers.map((reader) => load.backend.follow(reader, random.pick(load.authors))));
    const seats = load.readers.flatMap((reader) => names("device", devices).map((device, i) => ({ reader, device, feeds: i === 0 ? NAMES : [MAIN] })));
    await Promise.all(seats.map((seat) => load.#open(seat)));
    for (const author of load.authors) load.#act(PACES.author, random.branch(), (chance) => load.#write(author, chance));
    load.#act(PACES.star, random.branch(), (chance) => load.#publish(STAR, chance));
    for (const reader of load.readers) load.#act(PACES.reader, random.branch(), (chance) => load.#refollow(reader, chance));
    for (const seat of seats) load.#act(PACES.phone, random.branch(), (chance) => load.#handle(seat, chance));
    load.#act([500, 500], random.branch(), () => load.#weigh());
    return load;
  }

  /** Waits until so many more items have been accepted. */
  async flows(count, withinSecs = FLOWS_SECS) {
    const goal = this.published.length + count;
    await until(`${count} more items`, () => this.#sound() && this.published.length >= goal, { withinSecs, seen: () => this.published.length });
  }

  /** Ends the load, lets everything come to rest, and records the end. */
  async settle() {
    this.#stopped = true;
    await Promise.all(this.#actors);
    this.#sound();
    await this.backend.drained();
    const last = {};
    for (const name of NAMES) last[name] = await this.#publish(STAR, this.random, { kind: FEEDS[name]?.[0] });
    await this.backend.drained();
    const late = await this.#sync(last);
    await this.#listed();
    this.recorder.line({ kind: "drained" });
    for (const { reader, device, phones } of this.phones) {
      for (const { channel, feed } of phones) this.recorder.view(reader, device, channel, feed);
    }
    for (const author of [STAR, ...this.authors]) {
      for (const name of NAMES) await this.#walk(`/v1/users/${author}/outbox`, { name });
      for (const list of ["hidden", "blocked"]) await this.#walk(`/v1/users/${author}/${list}`);
    }
    for (const reader of this.readers) {
      for (const name of NAMES) {
        await this.#walk(`/v1/users/${reader}/feed`, { name });
        await this.#log(reader, name);
      }
      for (const list of ["following", "muted", "blocked"]) await this.#walk(`/v1/users/${reader}/${list}`);
      await this.backend.call("GET", `/v1/users/${reader}/sessions`);
    }
    this.recorder.end();
    return late;
  }

  // --- the actors: authors, readers and phones --------------------------------------------------------

  /** Lets an actor do one thing after another until the load stops. */
  #act([least, most], chance, step) {
    const live = async () => {
      while (!this.#stopped) {
        await new Promise((resolve) => setTimeout(resolve, chance.between(least, most + 1)));
        if (!this.#stopped) await step(chance);
      }
    };
    this.#actors.push(live().catch((error) => (this.#failed ??= error)));
  }

  async #write(author, chance) {
    const own = this.published.filter((item) => item.author === author);
    const what = chance.between(0, 100);
    if (what < 3 && this.#classOf(author) === "any") await this.#classify(author, chance.pick(["push", "pull"]));
    else if (what < 6) await this.#shield(author, chance.pick(this.readers), ["hidden", "blocked"], chance);
    else if (what < 9) await this.#list(author, chance.pick(this.readers.slice(1)), chance.chance(60));
    else if (what < 56 || own.length === 0) await this.#publish(author, chance, { kind: this.#kind(chance) });
    else if (what < 66) await this.#publish(author, chance, { kind: this.#kind(chance), audience: chance.chance(50) ? { lists: [LIST] } : { except_lists: [LIST] } });
    else if (what < 75) await this.#publish(author, chance, { kind: this.#kind(chance), audience: { users: this.#someReaders(chance) } });
    else if (what < 90) {
      const { id } = chance.pick(own.slice(-20));
      await this.backend.request("PATCH", `/v1/items/${id}`, { body: { text: `edited ${chance.between(0, 2 ** 32)}` } });
    } else {
      const { id } = chance.pick(own.slice(-20));
      await this.backend.request("DELETE", `/v1/items/${id}`);
    }
  }

  /** `more`: fields of the item besides its author and body. */
  async #publish(author, chance, more = {}) {
    const key = `${author}-${this.published.length}-${chance.between(0, 2 ** 32)}`;
    const fields = { author, body: { text: key }, ...more };
    const item = await this.backend.call("POST", "/v1/items", fields, { headers: { "idempotency-key": key } });
    this.published.push(item);
    return item;
  }

  /** Puts a reader on the author's list, or takes the reader off. */
  async #list(author, member, on) {
    const { results } = await this.backend.call("POST", "/v1/lists/batch", { ops: [{ op: on ? "add" : "remove", user: author, list: LIST, member }] });
    if (results[0].status !== 200) throw new Error(`a list was not changed: ${JSON.stringify(results[0])}`);
  }

  /** One item in five is a like. */
  #kind(chance) {
    return chance.chance(20) ? chance.pick(Object.values(FEEDS).flat()) : undefined;
  }

  /** Picks one to three readers. */
  #someReaders(chance) {
    return [...new Set(Array.from({ length: chance.between(1, 4) }, () => chance.pick(this.readers)))];
  }

  #classOf(author) {
    return author === STAR ? "everyone" : CLASSES[this.authors.indexOf(author) % CLASSES.length];
  }

  /** Gives an author a class: its own, if it has one. */
  async #classify(author, name = this.#classOf(author)) {
    if (name === "auto" || name === "any") return;
    await this.backend.call("PUT", `/v1/authors/${author}`, { class: name });
  }

  async #refollow(reader, chance) {
    const author = chance.pick(this.authors);
    if (chance.chance(20)) await this.#shield(reader, author, ["muted", "blocked"], chance);
    else await (chance.chance(60) ? this.backend.follow(reader, author) : this.backend.unfollow(reader, author));
  }

  /** Takes down what the user has put up, or puts something up against the other. */
  async #shield(user, other, lists, chance) {
    const up = this.#shields.get(user);
    const path = up ?? `/v1/users/${user}/${chance.pick(lists)}/${other}`;
    await this.backend.call(up ? "DELETE" : "PUT", path);
    this.#shields.set(user, up ? undefined : path);
  }

  async #handle(seat, chance) {
    const phone = chance.pick(seat.phones);
    const stored = () => seat.phones.map((phone) => phone.stored);
    const what = chance.between(0, 100);
    if (what < 60) await (phone.position && phone.acknowledge().catch(() => {})); // its answer is recorded, or did not come
    else if (what < 70) await this.backend.call("GET", `/v1/users/${seat.reader}/sessions`);
    else if (what < 80) await this.#open(seat, { stored: stored(), dies: true });
    else if (what < 85) await this.#open(seat, { dies: true });
    else if (what < 90) await this.#open(seat, { stored: stored() }); // the older connection is still there
    else if (what < 95) await this.#walk(`/v1/users/${seat.reader}/feed`, { name: phone.channel, limit: 20 });
  }

  /** The app is started: anew, or beside the one that runs. `stored`: what it kept of each feed. */
  async #open(seat, { stored = [], dies = false } = {}) {
    const older = seat.phones;
    if (dies) older?.[0].close();
    seat.phones = await this.#phones(seat, stored);
    if (older && !dies) {
      // The newest connection wins. After a crash both connect again, and either may be the newer one.
      // If neither stops, both stay: that is for the judge (I17).
      const stops = until("one of the two stops", () => older[0].stopped || seat.phones[0].stopped, { withinSecs: SETTLES_SECS });
      await stops.catch(() => {});
      if (seat.phones[0].stopped) seat.phones = older;
    }
    if (!this.phones.includes(seat)) this.phones.push(seat);
  }

  /** One for each feed of the seat, over one connection. */
  async #phones({ reader, device, feeds }, stored) {
    const phones = [];
    for (const [i, channel] of feeds.entries()) {
      phones.push(await Phone.open(this.t, this.backend, reader, { device, channel, over: phones[0], stored: stored[i] }));
    }
    return phones;
  }

  async #weigh() {
    for (const { name, memory } of await this.home.memory()) this.recorder.line({ kind: "memory", who: name, bytes: memory });
  }

  // --- the end ---------------------------------------------------------------------------------

  /** Every phone at its head, with the star's last item of each feed; answers why some are not. */
  async #sync(last) {
    const phones = this.phones.flatMap((seat) => seat.phones);
    const outcomes = await Promise.allSettled(phones.map((phone) => this.#catchUp(phone, last[phone.channel].id)));
    return outcomes.filter(({ status }) => status === "rejected").map(({ reason }) => reason.message);
  }

  /**
   * Pulled items are numbered in the order in which they were committed, and taken in that order: so a log that has the
   * last one has them all. A gateway that was not told of it asks, and wakes the phone then.
   */
  async #catchUp(phone, last) {
    await phone.waitFor("the phone shows the star's last item", () => phone.feed.items().some(({ id }) => id === last), SYNC_SECS);
    await phone.catchesUp(SYNC_SECS);
  }

  /**
   * Waits until the lists name the device of every phone. A pool that has lost its memory names each again once its
   * gateway has renewed its lease. If that takes too long, the judge says which device is not named (I17).
   */
  async #listed() {
    const isNamed = async ({ reader, device }) => {
      const { sessions } = await this.backend.call("GET", `/v1/users/${reader}/sessions`);
      return sessions.some((session) => session.device === device);
    };
    const named = this.phones.map((seat) => until(`${seat.reader} ${seat.device} is listed`, () => isNamed(seat), { withinSecs: SETTLES_SECS }));
    await Promise.allSettled(named);
  }

  async #walk(path, { limit = 100, ...query } = {}) {
    for (let cursor = ""; cursor !== null; ) {
      const { next } = await this.backend.call("GET", `${path}?${new URLSearchParams({ ...query, limit, ...(cursor ? { cursor } : {}) })}`);
      cursor = next;
    }
  }

  /** The whole log, unless it was cut. */
  async #log(reader, name) {
    const { position } = await this.backend.page(reader, { name, limit: 1 });
    for (let after = { ...position, offset: 0 }; ; ) {
      const query = new URLSearchParams({ name, ...after, limit: 1000 });
      const { status, body } = await this.backend.request("GET", `/v1/users/${reader}/changes?${query}`);
      if (status === 410 || body.position.offset >= body.head) return;
      after = body.position;
    }
  }

  #sound() {
    if (this.#failed) throw this.#failed;
    return true;
  }
}

const names = (what, count) => Array.from({ length: count }, (_, i) => `${what}-${i + 1}`);
