// The products of examples/ in the console: which of them this server is set up for, which of them its store holds, and
// a click that fills an empty store with one. Their worlds and pages are part of the server, below /console/products/.

import { Refused } from "./backend.js";
import { html, nothing } from "./vendor/lit-html/lit-html.js";

/**
 * `needs`: settings and their values; of a list, what has to be in it. They are in `examples/NAME/feedgate.toml`, and a
 * test starts a server with that file. `mark`: an item of the world, and who its author is.
 */
const PRODUCTS = {
  weibo: {
    name: "Weibo",
    about: "anybody follows anybody, with reposts, comments and a search",
    needs: { own_posts: true, "search.fields": ["text"], "comments.visible": "all" },
    mark: ["104", "ming"],
  },
  moments: {
    name: "Moments",
    about: "friends on both sides, and lists that say who sees a post",
    needs: { own_posts: true, "comments.visible": "mutual" },
    mark: ["204", "hong"],
  },
  notifications: {
    name: "Notifications",
    about: "two hundred likes are one line, and one on the badge",
    needs: {
      "feeds.notifications.kinds": ["like", "comment", "reply", "repost", "follower"],
      "notify.reaction": "like",
      "notify.comment": "comment",
      "notify.reply": "reply",
      "notify.repost": "repost",
      "notify.follow": "follower",
    },
    mark: ["302", "yue"],
  },
  headlines: {
    name: "Headlines",
    about: "a recommender ranks for each reader, and what people like rises",
    needs: { "feeds.headlines.ranked": true },
    mark: ["403", "sport"],
  },
};

const pageOf = (key) => `/console/products/${key}/`;

/** A module of the products; a server that is away is told of as elsewhere. */
const module = (path) => import(`./products/${path}`).catch(() => {
  throw new Refused(0, "the gateway does not answer");
});

const meets = (value, wanted) => (Array.isArray(wanted) ? wanted.every((one) => value?.includes(one)) : value === wanted);

export class Products {
  /** The product whose world the store holds, that which is being loaded, and that which could not be: keys of PRODUCTS. */
  held = null;
  loading = null;
  failed = null;
  /** Who looks at the page of the product that the store holds. */
  viewers = [];
  /** The settings of the server by name; null until they were read. */
  #settings = null;
  /** How many items there were when it was asked which product they are of. */
  #items = 0;

  constructor(backend) {
    this.backend = backend;
  }

  /** Learns what the server is set up for, and what it holds once its number of items is another one. */
  async read(items) {
    if (this.#settings === null) {
      const { settings } = await this.backend.call("GET", "/v1/settings");
      this.#settings = new Map(settings.map(({ name, value }) => [name, value]));
    }
    if (items === this.#items) return;
    const marks = Object.values(PRODUCTS).map(({ mark }) => mark[0]);
    const found = items > 0 ? (await this.backend.call("GET", `/v1/items?ids=${marks.join()}`)).items : [];
    const isHeld = ({ mark: [id, author] }) => found.some((item) => item.id === id && item.author === author);
    const held = Object.keys(PRODUCTS).find((key) => isHeld(PRODUCTS[key])) ?? null;
    this.viewers = held ? (await module(`${held}/world.js`)).viewers : [];
    [this.held, this.#items] = [held, items];
  }

  /** Whether this server is set up for a product; false as long as that is not known. */
  fits({ needs }) {
    return Object.entries(needs).every(([name, wanted]) => meets(this.#settings?.get(name), wanted));
  }

  /** Fills the store with the world of a product, and opens its page. Whatever fails, the same click goes on with it. */
  async load(key) {
    [this.loading, this.failed] = [key, null];
    try {
      const [{ World }, { fill }] = await Promise.all([module("shared/world.js"), module(`${key}/world.js`)]);
      const world = new World((...request) => this.backend.call(...request));
      await fill(world);
      await world.settled();
      location.assign(pageOf(key));
    } catch (error) {
      this.failed = key;
      throw error;
    } finally {
      this.loading = null;
    }
  }
}

/** What an empty store is offered, or where the product is that the store holds; `page` carries out what is clicked. */
export function productsView(page, products) {
  if (products.loading) return html`<p class="invitation" role="status">Loading ${PRODUCTS[products.loading].name}: its people, posts, likes and comments…</p>`;
  if (page.node.isEmpty || products.failed) return offerView(page, products);
  return products.held ? heldView(PRODUCTS[products.held], pageOf(products.held)) : nothing;
}

const heldView = ({ name, about }, address) => html`
  <p class="invitation held">
    <span>This store holds <b>${name}</b>: ${about}.</span>
    <a class="main" href=${address}>Open ${name}</a>
  </p>`;

function offerView(page, products) {
  const all = Object.entries(PRODUCTS);
  const [fitting, others] = [true, false].map((fits) => all.filter(([, product]) => products.fits(product) === fits));
  return html`
    <section class="invitation" aria-label="Demos">
      <p>Nobody has posted here yet. One click fills this store:</p>
      <ul>
        ${fitting.map(([key, { name, about }]) => html`
          <li><span><b>${name}</b> ${about}</span> <button class="main" @click=${() => page.loadProduct(key)}>Load ${name}</button></li>`)}
        <li><span><b>Harbour</b> a day of five people, shown on this page</span> <button class=${fitting.length > 0 ? "" : "main"} @click=${() => page.loadDemo()}>Load demo</button></li>
      </ul>
      <p>${fitting.length > 0 ? "The other products take" : "Whole products take"} a server with settings and data of their own:</p>
      <ul class="others">
        ${others.map(([key, { name, about }]) => html`
          <li><p><b>${name}</b> <small>${about} · <a href=${`${pageOf(key)}feedgate.toml`} target="_blank">its settings</a></small></p><code>feedgate --config examples/${key}/feedgate.toml</code></li>`)}
      </ul>
    </section>`;
}
