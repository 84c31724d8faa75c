// The list a device shows, kept from pages and changes. No dependencies; Node and browsers.
//
//     const feed = new Feed({cap, ttl})       both as the server's settings have them for this feed; the main feed has neither
//     feed.reset(page)                        page one: {items, next, position}, from the HTTP API or rpc `page`
//     feed.apply(change, {offset, epoch})     a publication's data, or an entry of `history` or `changes`
//     feed.append(page, cursor)               an older page, and the `feed.next` that it was asked for with
//     feed.lost()                             the position is gone (`recovered: false`): hold changes until `reset`
//     feed.items(now)                         what to show: (rank, id) descending; now and ttl in milliseconds
//     feed.person(author)                     {name, avatar} as the last page with an item of this author had it, or undefined
//     feed.position                           {epoch, offset} of the last change taken in, or null: goes into `since`
//     feed.next                               the cursor of the next older page; null at the end
//     JSON.stringify(feed), Feed.from(object, {cap, ttl})   to keep it between two runs of an app
//
// Taking in a change twice is harmless: `apply` answers false for what is known already, and throws
// a FeedGap when something is missing, which a reload of page one repairs. A `behind` publication
// (notify mode) changes nothing: ask for the changes after `feed.position` and apply those. Nor does a `seen` publication.
//
// Only the loaded stretch is shown: an item that belongs below it waits for its page, so the list
// never has a hole. A `forget` with a `floor` ends the loaded stretch there: pages from `next` on have more of an author who
// is followed now than the changes bring. Ids are 64-bit numbers in strings and are compared as such. A cap and a time to
// live limit what is shown, not what is kept: an item below the cap moves up when another is deleted.
//
// A page says what stands around an item: reactions and comments (`counts`, `own`) and the original of a repost (`ref_item`
// or `ref_gone`). A pushed change says none of it, so an item that is edited keeps what the last page said. So does one
// that moves: its `delete` comes right before its `add`.
//
// feed.py, go/, java/ and rust/ have this reducer in other languages; feed-vectors.json has the steps that all of them
// must take alike.

/** Changes are missing between the position and what came; the app reloads page one. */
export class FeedGap extends Error {}

/** Newest first: by rank, ties by id. */
export function newestFirst(a, b) {
  if (a.rank !== b.rank) return a.rank > b.rank ? -1 : 1;
  const [x, y] = [BigInt(a.id), BigInt(b.id)];
  return x === y ? 0 : x > y ? -1 : 1;
}

/** The fields of an item that only pages have. */
const AROUND = ["counts", "own", "ref_item", "ref_gone"];

/** An item of a change, with what the last page said around the one that is shown. A change says none of that. */
function edited(item, shown) {
  const whole = { ...item };
  for (const name of AROUND) {
    if (name in shown) whole[name] = shown[name];
    else delete whole[name];
  }
  return whole;
}

/** Who wrote an item, and the original that it reposts. */
const authors = ({ author, ref_item }) => (ref_item ? [author, ref_item.author] : [author]);

export class Feed {
  /** Changes held at most while page one is being loaded; more would be a reload of its own. */
  static HELD_MAX = 1000;

  position = null;
  next = null;
  #cap;
  #ttl;
  #shown = new Map(); // id → item
  #people = new Map(); // author → {name, avatar}
  #sorted = null; // what items() answered, until something changes
  #bottom = null; // the last item of the last page, unless that was the end
  #rewritten = 0; // an older page that was read before this offset lacks what the list knows, or has what is gone
  #removed = null; // the item that the last change deleted: the next one adds it again if it moves
  #held = []; // [change, at] that came while there was no position

  /** `cap`: items shown at most. `ttl`: milliseconds from the publication of an item until it is no longer shown. */
  constructor({ cap = Infinity, ttl = Infinity } = {}) {
    this.#cap = cap;
    this.#ttl = ttl;
  }

  /** Starts over from page one, then takes in what came while it was loading. False if the list is newer already. */
  reset(page) {
    if (this.position?.epoch === page.position.epoch && page.position.offset < this.position.offset) return false;
    this.#shown = new Map();
    this.#people = new Map();
    this.position = { ...page.position };
    this.#bottom = null;
    this.#rewritten = page.position.offset;
    this.#removed = null;
    this.#extend(page);
    const held = this.#held;
    this.#held = [];
    for (const [change, at] of held) {
      if (at.epoch === undefined || at.epoch === this.position.epoch) this.apply(change, at);
    }
    return true;
  }

  /**
   * Adds an older page, which was asked for with `cursor`. False if it goes on from another place than the end of the
   * list, or was read before changes that the list holds already: ask again, with the `next` of now.
   */
  append(page, cursor) {
    if (this.position === null || cursor !== this.next) return false;
    const { epoch, offset } = page.position;
    if (epoch !== this.position.epoch || offset < this.#rewritten) return false;
    this.#extend(page);
    return true;
  }

  /** The position is worth nothing any more. What is shown stays until `reset`. */
  lost() {
    this.position = null;
    this.#held = [];
  }

  /** Takes in one change. True if it was new; throws a FeedGap if the one before it is missing. */
  apply(change, at) {
    if (change.op === "behind" || change.op === "seen") return false;
    if (this.position === null) return this.#hold(change, at);
    const { epoch, offset } = this.position;
    if (at.epoch !== undefined && at.epoch !== epoch) throw new FeedGap(`epoch ${at.epoch} after ${epoch}`);
    if (at.offset <= offset) return false;
    if (at.offset !== offset + 1) throw new FeedGap(`change ${at.offset} after ${offset}`);
    this.#change(change);
    this.position = { epoch, offset: at.offset };
    if (change.op !== "add" || !this.#reaches(change.item)) this.#rewritten = at.offset;
    this.#sorted = null;
    return true;
  }

  /** What to show, newest first. `now`: Unix time in milliseconds. */
  items(now = Date.now()) {
    return this.#all().slice(0, this.#cap).filter(({ published_at }) => !(now - published_at > this.#ttl));
  }

  /** What the last page with an item of this author, or with a repost of one, said of the author; a pushed change says nothing. */
  person(author) {
    return this.#people.get(author);
  }

  toJSON() {
    const people = Object.fromEntries(this.#people);
    return { items: this.#all(), next: this.next, position: this.position, bottom: this.#bottom, people };
  }

  /** A feed as `toJSON` wrote it. */
  static from({ items, next, position, bottom, people = {} }, limits) {
    const feed = new Feed(limits);
    feed.#people = new Map(Object.entries(people));
    for (const item of items) feed.#shown.set(item.id, item);
    feed.next = next;
    feed.position = position;
    feed.#bottom = bottom;
    feed.#rewritten = position?.offset ?? 0;
    return feed;
  }

  #all() {
    this.#sorted ??= [...this.#shown.values()].sort(newestFirst);
    return this.#sorted;
  }

  #extend({ items, next, people = {} }) {
    for (const item of items) this.#keep(item);
    for (const author of items.flatMap(authors)) {
      if (Object.hasOwn(people, author)) this.#people.set(author, people[author]);
      else this.#people.delete(author);
    }
    this.next = next ?? null;
    const last = items.at(-1) ?? this.#bottom;
    this.#bottom = this.next === null || !last ? null : { rank: last.rank, id: last.id };
    this.#sorted = null;
  }

  #hold(change, at) {
    if (this.#held.length === Feed.HELD_MAX) this.#held.shift(); // the gap shows in `reset`
    this.#held.push([change, at]);
    return false;
  }

  /** Whether a place is in the loaded stretch, and not below it. */
  #reaches(place) {
    return this.#bottom === null || newestFirst(place, this.#bottom) <= 0;
  }

  #change({ op, item, item_id, author, floor, next }) {
    const removed = this.#removed;
    this.#removed = null;
    if (op === "add") {
      if (this.#reaches(item)) this.#keep(removed?.id === item.id ? edited(item, removed) : item);
    } else if (op === "update") {
      const shown = this.#shown.get(item.id);
      if (shown !== undefined) this.#keep(edited(item, shown));
    } else if (op === "delete") {
      this.#removed = this.#shown.get(item_id) ?? null;
      this.#shown.delete(item_id);
    } else if (op === "forget") {
      // Items that are addressed to the reader stay, also those of this author.
      for (const [id, shown] of this.#shown) if (shown.author === author && !shown.direct) this.#shown.delete(id);
      if (floor && this.#reaches(floor)) this.#cut(floor, next);
    } else {
      throw new TypeError(`a change has op add, update, delete, forget or behind, not ${JSON.stringify(op)}`);
    }
  }

  /** Ends the loaded stretch above `floor`; the page of `next` goes on with it. */
  #cut(floor, next) {
    for (const [id, shown] of this.#shown) if (newestFirst(floor, shown) <= 0) this.#shown.delete(id);
    this.#bottom = { rank: floor.rank, id: floor.id };
    this.next = next;
  }

  /** A page may know a later version than a change that comes after it. */
  #keep(item) {
    const shown = this.#shown.get(item.id);
    if (shown === undefined || shown.version <= item.version) this.#shown.set(item.id, item);
  }
}
