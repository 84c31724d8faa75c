// One user in a page: a token from the app's own backend, one connection by the unmodified SDK, and the feeds over it.
//
//     const reader = await Reader.open("ming", () => draw());     the function is called whenever something has changed
//     const feed = reader.feed("feed");                           a list that keeps itself
//     feed.items()                                                what to show, with the counts of now
//     await reader.like(item, true)
//     reader.close()
//
// The reducer keeps the order of a list. What stands around an item is state: it comes with a page, and from then on
// from the channel of the item.

import { Feed, FeedGap } from "../feed.js";

import { again } from "./again.js";
import { json } from "./answer.js";
import { act, session } from "./backend.js";
import { Comments } from "./comments.js";
import { trouble } from "./draw.js";

/** Items of a page. */
const PAGE = 20;

/** A connection may watch 32 items. */
const WATCHED_MAX = 30;

/** How long after a change it is asked how much is unread, in ms. */
const COUNT_AFTER_MS = 200;

/** The code with which a channel of an item ends when the item is gone. */
const GONE = 2001;

/** A backend that gives a user no session has signed the user out: the SDK stops, and does not ask without end. */
function refused(error) {
  throw [401, 403].includes(error.status) ? new Centrifuge.UnauthorizedError(error.message) : error;
}

export class Reader {
  #feeds = [];
  #people = new Map(); // user → {name, avatar}; null while it is being asked
  #comments = new Comments();
  #watched = new Map(); // item → its subscription
  #around = new Map(); // item → what has moved around it since a page said it
  #moves = new Map(); // item → how often something has moved around it

  /** A session of this user; without one, of the first user whom the backend offers. */
  static async open(user, changed) {
    return new Reader(await session(user), changed);
  }

  constructor({ user, token, server, viewers }, changed) {
    Object.assign(this, { user, token, server, viewers, changed });
    for (const { user: id, ...person } of viewers) this.#people.set(id, person);
    this.client = new Centrifuge(`${server.replace(/^http/, "ws")}/connection/websocket`, {
      token,
      getToken: async () => (this.token = (await session(user).catch(refused)).token),
    });
    for (const event of ["connected", "connecting", "disconnected"]) this.client.on(event, () => changed());
    this.client.connect();
  }

  get isLive() {
    return this.client.state === "connected";
  }

  /** Whether the connection has ended for good. */
  get isClosed() {
    return this.client.state === "disconnected";
  }

  /** The viewer after this one, who is another one unless the page offers one alone. */
  another() {
    const users = this.viewers.map(({ user }) => user);
    return users[(users.indexOf(this.user) + 1) % users.length];
  }

  close() {
    this.client.disconnect();
  }

  /** Waits for work that nobody else waits for, and shows why it failed, unless the user has left by then. */
  async after(work) {
    await work.catch((error) => this.isClosed || trouble(error));
  }

  /** One request to Feedgate with the token of this user; answers the JSON. */
  async call(method, path, body, headers = {}) {
    const answer = await fetch(this.server + path, {
      method,
      headers: { authorization: `Bearer ${this.token}`, ...(body && { "content-type": "application/json" }), ...headers },
      body: body && JSON.stringify(body),
    });
    const value = await json(answer);
    if (!answer.ok) throw new Error(value.detail);
    this.#meet(value?.people);
    return value;
  }

  /** What only the app's backend may do, such as to publish. */
  do(action, asked) {
    return act(action, { as: this.user, ...asked });
  }

  /** A list that keeps itself. `unread`: it counts what is unread. `cap` and `ttl`: as the settings of the feed have them. */
  feed(name, options = {}) {
    const feed = new LiveFeed(this, name, options);
    this.#feeds.push(feed);
    return feed;
  }

  /** Name and avatar of a user as far as they are known; asks for those of who is not known yet. */
  person(user) {
    if (!this.#people.has(user)) {
      this.#people.set(user, null);
      this.call("GET", `/v1/users/${user}`).then((person) => this.#meet({ [user]: person }), () => {}).then(this.changed);
    }
    const { name = user, avatar } = this.#people.get(user) ?? {};
    return { user, name, avatar };
  }

  /** Likes an item, or takes the like back. The answer says what is so now. */
  async like(id, on) {
    this.around(await this.call(on ? "PUT" : "DELETE", `/v1/items/${id}/reactions/like/${this.user}`));
  }

  /** Writes a comment. `key` is of the caller: the same key is one comment, however often it is sent. */
  async comment(id, text, key, reply_to) {
    await this.call("POST", `/v1/items/${id}/comments`, { body: { text }, ...(reply_to && { reply_to }) }, { "idempotency-key": key });
    await this.loadComments(id);
  }

  /** The comments on an item, oldest first; null if they were not loaded. */
  comments(id) {
    return this.#comments.on(id);
  }

  async loadComments(id) {
    await this.#comments.load(id, async () => (await this.call("GET", `/v1/items/${id}/comments?limit=100`)).comments);
    this.changed();
  }

  /** Keeps comments no longer. */
  forgetComments(id) {
    this.#comments.forget(id);
    this.changed();
  }

  /** Watches these items, the first of them if they are too many, and no other. */
  watch(ids) {
    const wanted = new Set(ids.slice(0, WATCHED_MAX));
    for (const [id, subscription] of this.#watched) if (!wanted.has(id)) this.#unwatch(id, subscription);
    for (const id of wanted) if (!this.#watched.has(id)) this.#watch(id);
  }

  /** An item with what is so now around it. */
  now(item) {
    return { ...item, ...this.#around.get(item.id) };
  }

  /** How often something has moved around an item. Who has reacted may be others now, also if the counts are the same. */
  moves(id) {
    return this.#moves.get(id) ?? 0;
  }

  /** Takes in what is so now around an item, such as {id, counts, own}; what is not named stays. */
  around({ id, ...state }) {
    this.#moves.set(id, this.moves(id) + 1);
    const { counts, own, ref_item, ref_gone } = { ...this.#around.get(id), ...state };
    this.#around.set(id, JSON.parse(JSON.stringify({ counts, own, ref_item, ref_gone })));
    this.changed();
  }

  /** A page says what is around these items. What their channels say is newer. */
  paged(items) {
    for (const { id } of items) if (!this.#watched.has(id)) this.#around.delete(id);
  }

  #watch(id) {
    const subscription = this.client.newSubscription(`item:${id}`);
    this.#watched.set(id, subscription);
    subscription.on("subscribed", ({ data }) => {
      this.around(data);
      if (this.#comments.has(id)) this.after(this.loadComments(id));
    });
    subscription.on("publication", ({ data }) => this.#moved(id, data));
    subscription.on("unsubscribed", ({ code }) => code === GONE && this.#feeds.forEach((feed) => feed.reload()));
    subscription.subscribe();
  }

  #unwatch(id, subscription) {
    this.#watched.delete(id);
    subscription.unsubscribe();
    this.client.removeSubscription(subscription);
  }

  #moved(id, news) {
    const { op, counts, people } = news;
    this.#meet(people);
    if (op === "counts") this.around({ id, counts });
    if (op === "changed") this.after(this.#reread(id));
    if (op === "missed" && this.#comments.has(id)) this.after(this.loadComments(id));
    if (op === "comment" || op === "uncomment") this.#comments.take(id, news);
    this.changed();
  }

  /** Reads what is so now around an item, of which each user is told another part. */
  async #reread(id) {
    const { counts = {}, own = [] } = await this.call("GET", `/v1/items/${id}`);
    this.around({ id, counts, own });
  }

  #meet(people = {}) {
    for (const [user, person] of Object.entries(people)) this.#people.set(user, person);
  }
}

class LiveFeed {
  unread = 0;
  #feed;
  #loads = 0; // how often page one was asked for
  #counting = null; // the timer of the next question for how much is unread

  constructor(reader, name, { unread = false, ...limits }) {
    Object.assign(this, { reader, name, counts: unread });
    this.#feed = new Feed(limits);
    const data = { deliver: "items", ...(unread && { unread }) };
    // The SDK asks for the state at first, and again when its position cannot be recovered.
    const subscription = reader.client.newSubscription(name, { data, getState: () => this.load() });
    subscription.on("subscribed", ({ data }) => this.#told(data));
    subscription.on("publication", ({ data, offset }) => this.#taken(data, offset));
    subscription.subscribe();
  }

  /** What to show, newest first. */
  items() {
    return this.#feed.items().map((item) => this.reader.now(item));
  }

  /** Whether page one is there. */
  get isLoaded() {
    return this.#feed.position !== null;
  }

  /** Whether there are older items. */
  get hasMore() {
    return this.#feed.next !== null;
  }

  /** Page one again; changes that come meanwhile are held by the reducer. */
  async load() {
    this.#loads += 1;
    this.#feed.lost();
    const page = await this.#page();
    this.reader.paged(page.items);
    this.#feed.reset(page);
    this.reader.changed();
    return this.#feed.position;
  }

  /** Page one again, as the list is stale without it. What fails is tried again, unless a later load has begun. */
  async reload() {
    let mine = this.#loads;
    const attempt = () => {
      mine += 1;
      return this.load();
    };
    await again(attempt, {
      isOver: () => this.reader.isClosed || mine !== this.#loads,
      failed: (error) => this.reader.isClosed || trouble(error),
    });
  }

  async older() {
    const cursor = this.#feed.next;
    const page = await this.#page(cursor);
    // False if the list has changed while the page was on its way; the button asks again.
    if (this.#feed.append(page, cursor)) this.reader.paged(page.items);
    this.reader.changed();
  }

  /** Says that the user has looked at the list: on this device, and so on all. */
  async see() {
    this.#told((await this.reader.client.rpc("seen", { ...this.#feed.position, channel: this.name })).data);
  }

  #page(cursor) {
    const query = new URLSearchParams({ name: this.name, limit: PAGE, ...(cursor && { cursor }) });
    return this.reader.call("GET", `/v1/users/${this.reader.user}/feed?${query}`);
  }

  #taken(change, offset) {
    try {
      this.#feed.apply(change, { offset });
      if (change.op === "seen" || change.op === "behind") this.#told(change);
      else if (this.counts) this.#count();
      if (change.item?.ref) this.reader.after(this.#read(change.item.id));
      this.reader.changed();
    } catch (error) {
      if (!(error instanceof FeedGap)) throw error;
      this.reload();
    }
  }

  /** Asks how much is unread, once for all changes that come together: a line that grows is a delete and an add. */
  #count() {
    this.#counting ??= setTimeout(() => {
      this.#counting = null;
      this.reader.after(this.reader.client.rpc("seen", { channel: this.name }).then(({ data }) => this.#told(data)));
    }, COUNT_AFTER_MS);
  }

  /** Reads what a repost reposts: no push has it. */
  async #read(id) {
    const { items } = await this.reader.call("GET", `/v1/items?ids=${id}`);
    for (const { ref_item, ref_gone } of items) this.reader.around({ id, ref_item, ref_gone });
  }

  #told({ unread = this.unread }) {
    this.unread = unread;
    this.reader.changed();
  }
}
