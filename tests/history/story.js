// A made-up history: a small server that does everything right, at once, and writes the lines that a
// recorder would have written. Tests let it do single things wrong.
//
//     const story = new Story();
//     story.follow("ann", "bob");
//     const phone = story.connect("ann", "ios");
//     story.publish("bob", "hello");               told to the phone
//     check(story.finish())                        read in the end, as the tests of faults read

import { Feed, newestFirst } from "../../examples/feed.js";
import { Graph, SHIELDS } from "./graph.js";
import { History } from "./history.js";

const PAGE = 100;

export class Story {
  lines = [];
  items = new Map(); // id → {id, author, feed, readers, set, seq, body, rank, version, gone}
  graph = new Graph();
  edges = this.graph.edges;
  logs = new Map(); // "reader feed" → {epoch, next, changes}
  phones = new Set();
  stored = new Map(); // "reader device" → {phone, position}
  #heads = new Map();
  #lists = new Map(); // "user list" → Set of members
  #epochs = 0;
  #calls = 0;
  #connections = 0;
  #backfill;
  #feeds;

  constructor(run = {}) {
    this.#backfill = run.backfill ?? 100;
    this.#feeds = run.feeds ?? {};
    this.line({ kind: "run", ...run });
  }

  line(fields) {
    const line = { at: this.lines.length, ...fields };
    this.lines.push(line);
    return line;
  }

  // --- what backends do ------------------------------------------------------------------------

  /**
   * `effect: false`: answered, and not done. `answered: false`: done, and not answered. `readers`: whom it is addressed
   * to. `narrowed`: {lists, except_lists}.
   */
  publish(author, text, { kind, key, id = String(1000 + this.items.size), effect = true, answered = true, readers, narrowed, to = readers } = {}) {
    const body = { text };
    const audience = narrowed ?? (readers && { users: readers });
    const known = key && [...this.items.values()].find((item) => item.key === key);
    const answer = this.call("POST", "/v1/items", { body: { author, body, kind, audience }, key, answered }, () => {
      if (known) return [200, this.#accepted(known)];
      const seq = readers ? null : this.#next(author);
      const set = narrowed && this.#audience(author, seq, narrowed);
      const item = { id, author, feed: this.#feedOf(kind), readers, set, seq, body, key, rank: Number(id), version: 1, gone: false };
      if (effect) this.items.set(id, item);
      if (effect) for (const reader of to ?? set ?? this.#followers(author, seq)) this.append(reader, { op: "add", id });
      return [201, this.#accepted(item)];
    });
    return answer?.id ?? id;
  }

  edit(id) {
    this.call("PATCH", `/v1/items/${id}`, { body: { body: { text: "edited" } } }, () => {
      const item = this.items.get(id);
      item.version += 1;
      this.#record(item, "update");
      return [200, {}];
    });
  }

  delete(id) {
    this.call("DELETE", `/v1/items/${id}`, {}, () => {
      const item = this.items.get(id);
      item.gone = true;
      this.#record(item, "delete");
      return [204, null];
    });
  }

  /** `name`: "push", "pull", "auto" or "everyone". What is pulled is taken at once, unless the publish says `to` whom it goes. */
  classify(author, name) {
    this.call("PUT", `/v1/authors/${author}`, { body: { class: name } }, () => {
      if (name === "everyone") this.graph.everyones.add(author);
      return [204, null];
    });
  }

  follow(reader, author) {
    this.call("PUT", `/v1/users/${reader}/following/${author}`, {}, () => {
      this.#turn(reader, author, (edge) => (edge.on = true));
      return [204, null];
    });
  }

  /** `forget: false`: the inbox is not told. */
  unfollow(reader, author, { forget = true } = {}) {
    this.call("DELETE", `/v1/users/${reader}/following/${author}`, {}, () => {
      this.#turn(reader, author, (edge) => (edge.on = false), forget);
      return [204, null];
    });
  }

  /** `list`: "muted", "hidden" or "blocked". `forget: false`: the inbox is not told. */
  shield(user, list, other, { up = true, forget = true } = {}) {
    this.call(up ? "PUT" : "DELETE", `/v1/users/${user}/${list}/${other}`, {}, () => {
      for (const { reader, author, change } of this.graph.shield(list, user, other, up)) this.#turn(reader, author, change, forget);
      return [204, null];
    });
  }

  /** Puts users on a list of another one, or takes them off. */
  list(user, list, members, on = true) {
    const ops = members.map((member) => ({ op: on ? "add" : "remove", user, list, member }));
    this.call("POST", "/v1/lists/batch", { body: { ops } }, () => {
      for (const member of members) this.#lists.get(`${user} ${list}`)?.[on ? "add" : "delete"](member) ?? this.#lists.set(`${user} ${list}`, new Set([member]));
      return [200, { results: ops.map(() => ({ status: 200 })) }];
    });
  }

  // --- what is read ----------------------------------------------------------------------------

  page(reader, { feed = "feed", cursor, limit = PAGE, change = (answer) => answer } = {}) {
    const query = new URLSearchParams({ name: feed, limit, ...(cursor ? { cursor } : {}) });
    return this.call("GET", `/v1/users/${reader}/feed?${query}`, {}, () => {
      const shown = this.shown(reader, feed).filter(({ rank }) => cursor === undefined || rank < Number(cursor));
      const items = shown.slice(0, limit).map((item) => this.show(item));
      const next = shown.length > limit ? String(items.at(-1).rank) : null;
      return [200, change({ items, next, position: this.head(reader, feed) })];
    });
  }

  walk(reader, limit = PAGE, feed = "feed") {
    for (let cursor; cursor !== null; ) cursor = this.page(reader, { feed, cursor: cursor ?? undefined, limit }).next;
  }

  changes(reader, { feed = "feed", offset = 0, change = (answer) => answer } = {}) {
    const { epoch, offset: head } = this.head(reader, feed);
    this.call("GET", `/v1/users/${reader}/changes?${new URLSearchParams({ name: feed, offset, epoch, limit: 1000 })}`, {}, () => {
      const changes = this.log(reader, feed).changes.filter((entry) => entry.offset > offset).map((entry) => ({ offset: entry.offset, ...this.hydrate(entry) }));
      return [200, change({ changes, position: { epoch, offset: Math.max(offset, changes.at(-1)?.offset ?? 0) }, head })];
    });
  }

  sessions(reader) {
    const list = [...this.stored].filter(([name, { phone }]) => name.startsWith(`${reader} `) && this.phones.has(phone));
    const sessions = list.map(([, { phone, position }]) => ({ device: phone.device, node: phone.node, position, since: 0 }));
    this.call("GET", `/v1/users/${reader}/sessions`, {}, () => [200, { sessions }]);
  }

  outbox(author, feed = "feed") {
    const items = [...this.items.values()].filter((item) => item.author === author && item.feed === feed && !item.readers && !item.gone).map((item) => this.show(item));
    this.call("GET", `/v1/users/${author}/outbox?name=${feed}&limit=100`, {}, () => [200, { items: items.reverse(), next: null }]);
  }

  following(reader) {
    const users = this.graph.following(reader).map((user) => ({ user, since: 0 }));
    this.call("GET", `/v1/users/${reader}/following?limit=1000`, {}, () => [200, { users, next: null }]);
  }

  lists(user) {
    for (const list of SHIELDS) {
      const users = this.graph.shielded(list, user).map((other) => ({ user: other, since: 0 }));
      this.call("GET", `/v1/users/${user}/${list}?limit=1000`, {}, () => [200, { users, next: null }]);
    }
  }

  // --- the phones of a story ---------------------------------------------------------------------

  /** A phone that loads page one, connects and subscribes. `replaces: false`: its older connection stays. */
  connect(reader, device, { node = "n1", replaces = true, position, subscribe = true, deliver = "items" } = {}) {
    const connection = (this.#connections += 1);
    const older = this.stored.get(`${reader} ${device}`);
    const phone = { connection, reader, device, channel: "feed", node, deliver, feed: new Feed(), position, ids: 2 };
    this.line({ kind: "opened", connection, reader, device, gateway: node });
    this.line({ kind: "sent", connection, message: { id: 1, connect: { data: { device_id: device } } } });
    if (older && replaces && this.phones.has(older.phone)) this.close(older.phone, 4500);
    this.stored.set(`${reader} ${device}`, { phone, position: older?.position ?? null });
    this.line({ kind: "got", connection, message: { id: 1, connect: { node } } });
    this.phones.add(phone);
    if (subscribe) this.subscribe(phone);
    return phone;
  }

  /** Subscribes the phone to another channel too, over its one connection. */
  also(phone, channel) {
    const also = { ...phone, channel, feed: new Feed(), position: undefined, ids: 1000, over: phone };
    this.phones.add(also);
    this.subscribe(also);
    return also;
  }

  /** Subscribes at `phone.position`, or at that of a page one loaded now. */
  subscribe(phone, { reply = (reply) => reply } = {}) {
    if (phone.position === undefined) phone.feed.reset(this.page(phone.reader, { feed: phone.channel }));
    const { epoch, offset } = phone.position ?? phone.feed.position;
    const id = (phone.ids += 1);
    this.#sent(phone, { id, subscribe: { channel: phone.channel, recover: true, epoch, offset, data: { deliver: phone.deliver } } });
    const head = this.head(phone.reader, phone.channel);
    const recovered = epoch === head.epoch && offset <= head.offset;
    const at = recovered ? { epoch, offset } : head;
    this.#got(phone, { id, subscribe: reply({ ...at, was_recovering: true, recovered }) });
    phone.at = at;
    if (!recovered) phone.feed.reset(this.page(phone.reader, { feed: phone.channel }));
    for (const entry of this.log(phone.reader, phone.channel).changes) if (entry.offset > at.offset) this.push(phone, entry);
  }

  push(phone, entry) {
    const data = phone.deliver === "items" ? this.hydrate(entry) : { op: "behind" };
    this.#got(phone, { push: { channel: phone.channel, pub: { offset: entry.offset, data } } });
    if (phone.feed.position?.offset === entry.offset - 1) phone.feed.apply(data, { offset: entry.offset });
  }

  /** A stretch of the log, by the command `history`. */
  history(phone, offset, { change = (publications) => publications } = {}) {
    const id = (phone.ids += 1);
    const { epoch, offset: head } = this.head(phone.reader, phone.channel);
    this.#sent(phone, { id, history: { channel: phone.channel, since: { epoch, offset }, limit: 100 } });
    const after = this.log(phone.reader, phone.channel).changes.filter((entry) => entry.offset > offset);
    const publications = change(after.map((entry) => ({ offset: entry.offset, data: this.hydrate(entry) })));
    this.#got(phone, { id, history: { epoch, offset: head, publications } });
    for (const { offset, data } of publications) phone.feed.apply(data, { offset });
  }

  /** Acknowledges a position. `fenced: false`: it is stored even if the phone's session was replaced. */
  ack(phone, position = phone.feed.position, { fenced = true } = {}) {
    const id = (phone.ids += 1);
    this.#sent(phone, { id, rpc: { method: "ack", data: { ...position, channel: phone.channel } } });
    this.#got(phone, { id, rpc: { data: {} } });
    const session = this.stored.get(`${phone.reader} ${phone.device}`);
    const isMain = phone.channel === "feed";
    if (isMain && (session.phone === phone || !fenced)) session.position = { ...position };
  }

  close(phone, code = 1000, by = "server") {
    for (const own of this.phones) if (own.connection === phone.connection) this.phones.delete(own);
    this.line({ kind: "closed", connection: phone.connection, code, reason: "", by });
  }

  // --- the end ---------------------------------------------------------------------------------

  /** Reads everything once more, and answers the History. */
  finish() {
    this.drain();
    for (const author of this.#heads.keys()) {
      for (const feed of this.#names) this.outbox(author, feed);
      this.lists(author);
    }
    for (const reader of this.#readers) {
      for (const feed of this.#names) this.walk(reader, PAGE, feed);
      for (const feed of this.#names) this.changes(reader, { feed });
      this.following(reader);
      this.lists(reader);
      this.sessions(reader);
    }
    return this.end();
  }

  drain() {
    this.line({ kind: "drained" });
    for (const { reader, device, channel, feed } of this.phones) {
      const items = feed.items().map(({ id, author, version }) => ({ id, author, version }));
      this.line({ kind: "view", reader, device, feed: channel, position: feed.position, items });
    }
  }

  end() {
    this.line({ kind: "end" });
    return new History(this.lines.map((line) => JSON.stringify(line)));
  }

  // --- inside: to be done wrong by tests -------------------------------------------------------

  call(method, path, { body, key, answered = true }, effect) {
    const call = (this.#calls += 1);
    this.line({ kind: "asked", call, method, path, body, key });
    const [status, answer] = effect();
    this.line(answered ? { kind: "answered", call, status, answer } : { kind: "answered", call, status: null });
    return answered ? answer : undefined;
  }

  log(reader, feed = "feed") {
    const inbox = `${reader} ${feed}`;
    if (!this.logs.has(inbox)) this.logs.set(inbox, { epoch: String((this.#epochs += 1)), next: 1, changes: [] });
    return this.logs.get(inbox);
  }

  head(reader, feed) {
    const { epoch, next } = this.log(reader, feed);
    return { epoch, offset: next - 1 };
  }

  /** One change to a log, that of the item's feed or `feed`, and to the phones that read it. */
  append(reader, change, feed = this.items.get(change.id)?.feed ?? "feed") {
    const log = this.log(reader, feed);
    const entry = { offset: log.next, ...change };
    log.next += 1;
    log.changes.push(entry);
    for (const phone of this.phones) if (phone.reader === reader && phone.channel === feed && phone.at) this.push(phone, entry);
  }

  /** The store of the logs has lost a reader's: they are rebuilt in new epochs, and the phones are closed with 3010. */
  lose(reader) {
    for (const feed of this.#names) this.logs.delete(`${reader} ${feed}`);
    for (const phone of this.phones) if (phone.reader === reader && !phone.over) this.close(phone, 3010);
    for (const item of this.#due(reader).reverse()) this.append(reader, { op: "add", id: item.id });
  }

  /** The items a reader is to see in all feeds, newest first. */
  #due(reader) {
    const authors = this.graph.seen(reader);
    const isFor = ({ author, readers, set }) => (readers ? readers.includes(reader) : authors.includes(author) && (set?.includes(reader) ?? true));
    return [...this.items.values()].filter((item) => !item.gone && isFor(item)).sort(newestFirst);
  }

  /** The items a reader sees in a feed: by the log, newest first. */
  shown(reader, feed) {
    const held = new Map();
    for (const { op, id, author } of this.log(reader, feed).changes) {
      if (op === "add") held.set(id, this.items.get(id));
      if (op === "delete") held.delete(id);
      if (op === "forget") for (const item of held.values()) if (item.author === author && !item.readers) held.delete(item.id);
    }
    return [...held.values()].filter(({ gone }) => !gone).sort(newestFirst);
  }

  hydrate({ op, id, author }) {
    if (op === "forget") return { op, author };
    const item = this.items.get(id);
    return op === "delete" || item.gone ? { op: "delete", item_id: id } : { op, item: this.show(item) };
  }

  show({ id, author, readers, body, rank, version }) {
    return { id, author, body, rank, published_at: rank, version, ...(readers && { direct: true }) };
  }

  #accepted({ id, author, seq, rank }) {
    return { id, author, outbox_seq: seq, published_at: rank };
  }

  #record(item, op) {
    if (!item.readers) this.#next(item.author);
    for (const reader of item.readers ?? this.#followers(item.author, Infinity)) {
      if (this.log(reader, item.feed).changes.some(({ id }) => id === item.id)) this.append(reader, { op, id: item.id });
    }
  }

  #next(author) {
    this.#heads.set(author, (this.#heads.get(author) ?? 0) + 1);
    return this.#heads.get(author);
  }

  /** The followers for whom a narrowed item is. */
  #audience(author, seq, { lists = [], except_lists = [] }) {
    const isOn = (reader) => (list) => this.#lists.get(`${author} ${list}`)?.has(reader);
    const followers = this.#followers(author, seq).filter((reader) => lists.length === 0 || lists.some(isOn(reader)));
    return followers.filter((reader) => !except_lists.some(isOn(reader)));
  }

  #newest(author, feed) {
    return [...this.items.values()].filter((item) => item.author === author && item.feed === feed && !item.readers && !item.gone).slice(-this.#backfill);
  }

  #forget(reader, author) {
    for (const feed of this.#names) this.append(reader, { op: "forget", author }, feed);
  }

  get #names() {
    return ["feed", ...Object.keys(this.#feeds)];
  }

  #feedOf(kind) {
    return this.#names.find((name) => this.#feeds[name]?.includes(kind)) ?? "feed";
  }

  /** Changes an edge. If it comes into effect thereby, the newest items come; if it came or went before, a forget. */
  #turn(reader, author, change, tells = true) {
    const { was, is, known } = this.graph.turn(reader, author, this.#heads.get(author) ?? 0, change);
    if (is === was) return;
    if (known && tells) this.#forget(reader, author);
    if (is) for (const feed of this.#names) for (const { id, set } of this.#newest(author, feed)) if (set?.includes(reader) ?? true) this.append(reader, { op: "add", id });
  }

  #followers(author, seq) {
    return this.graph.followers(author, seq, this.#readers);
  }

  get #readers() {
    return [...new Set([...this.logs.keys()].map((inbox) => inbox.split(" ")[0]))];
  }

  #sent({ connection }, message) {
    this.line({ kind: "sent", connection, message });
  }

  #got({ connection }, message) {
    this.line({ kind: "got", connection, message });
  }
}
