// An example product of examples/: a server with its settings, filled by its own program, and the server of its page.
//
//     const weibo = await Product.start(t, "weibo");         a home that runs with examples/weibo/feedgate.toml, filled
//     const page = await weibo.page(t);                      the URL of the page; its server ends with the test
//     weibo.server                                           the home

import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Home } from "./home.js";
import { freePort } from "./port.js";
import { Process } from "./process.js";
import { until } from "./until.js";

const EXAMPLES = fileURLToPath(new URL("../../examples", import.meta.url));

/** Where a product's page expects the calls of the webhook, if it takes any. */
const PUSH = "http://127.0.0.1:8000/push";

/** What fill.mjs prints when its page is served. */
const SERVED = /^page +(\S+)$/m;

export class Product {
  static async start(t, name) {
    const product = await Product.empty(t, name);
    await product.fill();
    return product;
  }

  /** A product whose server nobody has filled. */
  static async empty(t, name) {
    const product = new Product();
    Object.assign(product, { name, port: await freePort() });
    const config = await readFile(join(EXAMPLES, name, "feedgate.toml"), "utf8");
    product.server = await Home.start(t, { config: config.replace(PUSH, `http://127.0.0.1:${product.port}/push`) });
    return product;
  }

  /** Runs the program that fills the server, to its end; answers what it printed. */
  async fill() {
    const environment = await this.#environment();
    const { stdout } = await promisify(execFile)(process.execPath, [this.#program, "--fill"], { env: environment });
    return stdout;
  }

  /** Serves the page until the test ends; answers its URL. */
  async page(t) {
    const site = new Process([process.execPath, this.#program]);
    site.start(await this.#environment());
    t.after(() => site.kill());
    await until(`the page of ${this.name} is served`, () => site.ended || site.said(SERVED), { seen: () => site.log() });
    if (site.ended) throw new Error(`the page's server ended:\n${site.log()}`);
    return site.lines(SERVED)[0].split(" ").at(-1);
  }

  get #program() {
    return join(EXAMPLES, this.name, "fill.mjs");
  }

  async #environment() {
    const { url, key } = this.server;
    const secrets = this.server.secrets;
    const webhook = await readFile(join(secrets, "webhook_key"), "utf8").catch(() => "");
    return { FEEDGATE_URL: url, FEEDGATE_KEY: key, FEEDGATE_WEBHOOK_KEY: webhook.trim(), PORT: `${this.port}` };
  }
}
