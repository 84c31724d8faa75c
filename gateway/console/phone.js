// A device of a reader: the unmodified `centrifuge` SDK, and the list that the example reducer keeps.

import { again } from "./again.js";
import { Feed, FeedGap } from "./feed.js";
import { Network } from "./network.js";

const ACK_AFTER_MS = 250;
const PAGE = 20;

export class Phone {
  network = new Network();
  feed = new Feed();
  /** What is wrong, if anything; text. */
  trouble = "";
  isLive = false;
  /** The offset of the last change that the reader has looked at, on whatever device. */
  #seen = 0;
  /** By item: the offset of the change that brought it. */
  #arrived = new Map();
  #client = null;
  #acking = null;

  /**
   * `device`: its id. `getToken(user, device)`: gets a reader's token. `taken(user, {offset, change})`: hears of each
   * change that the phone has taken in. `changed()`: hears that there is something new to show.
   */
  constructor(device, { getToken, taken, changed }) {
    Object.assign(this, { device, getToken, taken, changed });
  }

  /** Becomes a device of this user, from nothing. */
  open(user) {
    this.close();
    this.user = user;
    this.feed = new Feed();
    this.#arrived.clear();
    const url = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/connection/websocket`;
    this.#client = new Centrifuge(url, {
      websocket: this.network.Socket,
      networkEventTarget: this.network.events,
      data: { device_id: this.device },
      getToken: () => this.getToken(user, this.device),
      maxReconnectDelay: 5000,
    });
    const subscription = this.#client.newSubscription("feed", {
      data: { deliver: "items", unread: true },
      getState: () => this.#load(),
    });
    subscription.on("subscribed", ({ data }) => {
      this.#sees(data);
      this.#tell({ isLive: true, trouble: "" });
    });
    subscription.on("subscribing", () => this.#tell({ isLive: false }));
    subscription.on("publication", ({ data, offset }) => (data.op === "seen" ? this.#sees(data) : this.#take(data, offset)));
    subscription.on("error", ({ error }) => this.#tell({ trouble: error.message }));
    this.#client.on("disconnected", ({ reason }) => this.#tell({ isLive: false, trouble: reason }));
    subscription.subscribe();
    this.#client.connect();
  }

  close() {
    clearTimeout(this.#acking);
    this.#client?.removeAllListeners();
    this.#client?.disconnect();
    this.isLive = false;
  }

  cut() {
    this.network.cut();
    this.changed();
  }

  restore() {
    this.network.restore();
    this.changed();
  }

  /** How many of the shown items the reader has not looked at. */
  get unread() {
    return this.feed.items().filter((item) => this.isUnread(item)).length;
  }

  isUnread({ id }) {
    return (this.#arrived.get(id) ?? 0) > this.#seen;
  }

  /** The reader has looked at everything that is shown. */
  look() {
    if (this.feed.position === null) return;
    this.#sees({ seen: this.feed.position });
    // What is not told now is told with the next look.
    this.#client.rpc("seen", this.feed.position).catch(() => {});
  }

  /** A device of the reader, this one or another, has seen the feed up to there. */
  #sees({ seen }) {
    if (seen === null || seen.epoch !== this.feed.position?.epoch) return;
    this.#seen = Math.max(this.#seen, seen.offset);
    this.changed();
  }

  /** Loads page one, and answers the position that belongs to it. */
  async #load() {
    const client = this.#client;
    this.feed.lost();
    const { data } = await client.rpc("page", { limit: PAGE });
    if (client !== this.#client) throw new Error("this phone has another reader by now");
    this.feed.reset(data);
    this.#arrived.clear();
    this.#seen = this.feed.position.offset;
    this.#acknowledge();
    this.changed();
    return this.feed.position;
  }

  /** Page one again, because a change is missing. What fails is tried again. */
  async #reload() {
    const client = this.#client;
    const isLoaded = await again(() => this.#load(), {
      isOver: () => client.state === "disconnected",
      failed: (error) => client === this.#client && this.#tell({ trouble: error.message }),
    });
    if (isLoaded) this.#tell({ trouble: "" });
  }

  #take(change, offset) {
    try {
      if (!this.feed.apply(change, { offset })) return;
    } catch (error) {
      if (!(error instanceof FeedGap)) throw error;
      this.#reload();
      return;
    }
    if (change.op === "add") this.#arrived.set(change.item.id, offset);
    this.taken(this.user, { offset, ...change });
    this.#acknowledge();
    this.changed();
  }

  /** Tells the gateway how far the list has come, once for a burst of changes. */
  #acknowledge() {
    clearTimeout(this.#acking);
    // A position that is not acknowledged is acknowledged with the next one.
    this.#acking = setTimeout(() => this.#client.rpc("ack", this.feed.position).catch(() => {}), ACK_AFTER_MS);
  }

  #tell(news) {
    Object.assign(this, news);
    this.changed();
  }
}
