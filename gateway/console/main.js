// The page: what it knows, what a person can do, and the drawing of it.
//
//     page ──view──▶ what is shown        a click ──▶ an action ──▶ the gateway ──▶ phones and logs ──▶ page
//
// One drawing shows all that has changed before it. What people wrote is only ever text: lit-html sets it as text.

import { Backend, Refused } from "./backend.js";
import { chooser } from "./chooser.js";
import { load } from "./demo.js";
import { Log } from "./log.js";
import { logView } from "./log-view.js";
import { Node, nodeView } from "./node.js";
import { People, peopleView } from "./people.js";
import { Phone } from "./phone.js";
import { phoneView } from "./phone-view.js";
import { Products, productsView } from "./products.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";
import { Why, whyView } from "./why.js";

const UNAUTHORIZED = 401;
const LOGS_EVERY_MS = 1000;
const PANEL_EVERY_MS = 2000;

/** Whose devices are shown at first. */
const FIRST = "bob";

/** After a write the logs are read this often until one has grown, in case no phone tells of it. */
const GROWTH_EVERY_MS = 60;
const GROWTH_TRIES = 20;

class Page {
  /** Why nothing can be shown any more; text. */
  ended = "";
  /** What was wrong with the last action; text. */
  trouble = "";
  /** What keeps the logs, and what keeps the panel, from being read; text. */
  away = { logs: "", panel: "" };
  author = "ann";
  /** The panel that is open: a key of PANELS. */
  panel = "people";
  /** How long the last post took to a phone, in ms, if one got it. */
  took = null;
  /** The item that is being edited, on which device: {device, id}. */
  editing = null;
  /** The log of each user who has a phone here. */
  logs = new Map();
  #drawing = false;
  /** What reads the logs and the panel again and again. */
  #timers = [];
  /** By item: when a phone got it, in ms of this page. */
  #got = new Map();

  constructor(backend) {
    this.backend = backend;
    this.people = new People(backend);
    this.node = new Node(backend);
    this.why = new Why(backend);
    this.products = new Products(backend);
    this.phones = ["phone", "tablet"].map((device) => new Phone(device, {
      getToken: async (user) => (await backend.call("POST", `/v1/users/${user}/token`, { device_id: device })).token,
      taken: (user, change) => this.taken(user, change),
      changed: () => this.changed(),
    }));
    for (const phone of this.phones) this.show(phone, FIRST);
    this.readPanel();
    this.#timers = [
      setInterval(() => document.hidden || this.readLogs(), LOGS_EVERY_MS),
      setInterval(() => document.hidden || this.readPanel(), PANEL_EVERY_MS),
    ];
    new ResizeObserver(() => this.changed()).observe(document.documentElement);
  }

  /** Draws at the next frame, however much has changed by then. */
  changed() {
    if (this.#drawing) return;
    this.#drawing = true;
    requestAnimationFrame(() => {
      this.#drawing = false;
      render(this.ended ? lockedView(this.ended) : pageView(this), document.body);
    });
  }

  /** Makes a phone a device of this user. */
  show(phone, user) {
    phone.open(user);
    const users = new Set(this.phones.map((phone) => phone.user).filter(Boolean));
    this.logs = new Map([...users].map((user) => [user, this.logs.get(user) ?? new Log(this.backend, user)]));
    this.readLogs();
  }

  readLogs() {
    return this.#look("logs", () => Promise.all([...this.logs.values()].map((log) => log.read())));
  }

  readPanel() {
    return this.#look("panel", async () => {
      await Promise.all([this.people.read(), this.node.read([...this.logs.keys()]), this.panel === "why" && this.why.read()]);
      const before = this.products.held;
      await this.products.read(this.node.stats.archive.items);
      if (this.products.held !== before) this.welcome();
    });
  }

  /** Reads something that is shown, and shows what keeps it from being read. */
  async #look(what, read) {
    try {
      await read();
      this.away[what] = "";
    } catch (error) {
      this.away[what] = this.#told(error);
    }
    this.changed();
  }

  /** Does a write, then follows the logs until one has grown. Answers what the gateway did; null if it refused. */
  async write(method, path, body) {
    const before = this.#heads();
    try {
      this.trouble = "";
      const written = await this.backend.call(method, path, body);
      for (let tries = 0; tries < GROWTH_TRIES && this.#heads() === before; tries += 1) {
        await this.readLogs();
        await new Promise((resolve) => setTimeout(resolve, GROWTH_EVERY_MS));
      }
      return written;
    } catch (error) {
      this.trouble = this.#told(error);
      this.changed();
      return null;
    }
  }

  async post(text) {
    const started = performance.now();
    const accepted = await this.write("POST", "/v1/items", { author: this.author, body: { text } });
    const got = this.#got.get(accepted?.id);
    this.took = got === undefined ? null : got - started;
    this.#got.clear();
    this.changed();
  }

  /** A phone of this user has taken in a change. */
  taken(user, change) {
    if (change.op === "add" && !this.#got.has(change.item.id)) this.#got.set(change.item.id, performance.now());
    this.logs.get(user)?.extend(change);
  }

  /** Does a write of a panel, and reads the panel again. */
  async change(method, path, body) {
    await this.write(method, path, body);
    await this.readPanel();
  }

  /** Shows what this reader has to do with the others. */
  about(reader) {
    this.people.reader = reader;
    return this.readPanel();
  }

  /** Learns of a person by name. */
  meet(name) {
    this.people.learn([name]);
    return this.readPanel();
  }

  open(panel) {
    this.panel = panel;
    return this.readPanel();
  }

  /** Asks why a reader sees a post: `question` has what changes of {reader, author, item}. */
  ask(question) {
    Object.assign(this.why, question);
    return this.readPanel();
  }

  /** Waits for an action, and shows what was wrong with it. */
  #act(action) {
    this.trouble = "";
    return action.catch((error) => (this.trouble = this.#told(error)));
  }

  async loadDemo() {
    await this.#act(load(this.backend).then((names) => this.people.learn(names)));
    await Promise.all([this.readLogs(), this.readPanel()]);
  }

  /** Fills the store with a product, and leaves for its page. */
  async loadProduct(key) {
    const loaded = this.#act(this.products.load(key));
    this.changed();
    await loaded;
    this.changed();
  }

  /** Shows the first reader of the product that the store holds on the phones that nobody has made another's. */
  welcome() {
    const { viewers } = this.products;
    this.people.learn(viewers);
    for (const phone of this.phones) if (viewers.length > 0 && phone.user === FIRST) this.show(phone, viewers[0]);
  }

  /** Opens an item for editing on a phone; without one, closes what is open. */
  begin(phone, id) {
    this.editing = phone && { device: phone.device, id };
    this.changed();
  }

  edit(id, text) {
    this.editing = null;
    return this.write("PATCH", `/v1/items/${id}`, { body: { text } });
  }

  delete(id) {
    return this.write("DELETE", `/v1/items/${id}`);
  }

  #heads() {
    return [...this.logs.values()].map(({ epoch, head }) => `${epoch}:${head}`).join();
  }

  #told(error) {
    if (!(error instanceof Refused)) throw error;
    if (error.status === UNAUTHORIZED) this.end("This session has ended.");
    return error.message;
  }

  /** Shows why there is nothing to show, reads nothing more, and stops the phones. */
  end(why) {
    Backend.leave();
    this.ended = why;
    for (const timer of this.#timers) clearInterval(timer);
    for (const phone of this.phones) phone.close();
  }
}

const PANELS = {
  people: { name: "People", view: (page) => peopleView(page, page.people) },
  why: { name: "Why", view: (page) => whyView(page, page.why) },
  node: { name: "Node", view: (page) => nodeView(page, page.node) },
};

const pageView = (page) => html`
  <header class="top">
    <h1>Feedgate</h1>
    <p>An inbox is a log. A device is a position in it.</p>
  </header>
  <main>
    <div class="stage">
      ${[...page.logs.values()].map((log) => logView(page, log))}
      ${productsView(page, page.products)}
      ${composer(page)}
      <p class="trouble" role="alert">${page.trouble || page.away.logs || page.away.panel}</p>
      <section class="phones">${page.phones.map((phone) => phoneView(page, phone))}</section>
    </div>
    <aside>
      <nav aria-label="Panels">${Object.entries(PANELS).map(([key, { name }]) => html`
        <button aria-current=${key === page.panel} @click=${() => page.open(key)}>${name}</button>`)}
      </nav>
      <section class="panel" aria-label=${PANELS[page.panel].name}>${PANELS[page.panel].view(page)}</section>
    </aside>
  </main>`;

const composer = (page) => html`
  <form class="composer" @submit=${(event) => submitted(page, event)}>
    ${chooser("Author", page.people.names, page.author, (name) => (page.author = name))}
    <input name="text" aria-label="Text of the post" placeholder="says something" maxlength="500" autocomplete="off" required />
    <button class="main">Post</button>
    ${page.took === null ? nothing : html`<small class="took">on a phone after ${Math.max(1, Math.round(page.took))} ms</small>`}
  </form>`;

function submitted(page, event) {
  event.preventDefault();
  const { text } = event.target.elements;
  page.post(text.value);
  text.value = "";
}

const lockedView = (why) => html`
  <main class="locked">
    <h1>Feedgate</h1>
    <p>${why}</p>
    <p>Run <code>feedgate console</code> beside the server. It prints a link that opens this page once.</p>
  </main>`;

async function start() {
  try {
    const backend = await Backend.enter();
    if (backend === null) render(lockedView("This page shows nothing without a ticket."), document.body);
    else new Page(backend);
  } catch (error) {
    render(lockedView(error.message), document.body);
  }
}

// A new link that is opened in this tab changes only what is behind the #, and so loads no page by itself.
addEventListener("hashchange", () => location.reload());

start();
