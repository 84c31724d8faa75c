// The backend of an example app: it fills the server, serves the page, makes tokens, publishes and follows for users.
//
//     await run(import.meta.url, { fill, viewers, actions });     the whole of a program `fill.mjs`
//
//     GET  /session?as=USER      a token of this user, and where the server is
//     POST /actions/NAME         {as, …}: what only a backend may do, since it takes the API key
//     POST /push                 the calls of push.webhook_url
//     GET  /pushes?as=USER       the notifications of these calls, as server-sent events
//
// Anybody on this machine may be any user here, because a demo has no passwords. So it listens on the loopback alone,
// and answers no page but its own.

import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { basename, dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { isSigned } from "../push_receiver.mjs";
import { App, Refused } from "./app.js";
import { client, World } from "./world.js";

const EXAMPLES = fileURLToPath(new URL("..", import.meta.url));

const KINDS = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };

/** The largest request that the site reads: a call of the webhook holds whole items. */
const REQUEST_MAX_BYTES = 1024 * 1024;

/** What a page may do: it runs the scripts of this site alone, and makes no HTML of text. */
const policy = (server) =>
  `default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self' ${server} ${server.replace(/^http/, "ws")}; ` +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

class Site {
  /** The open streams of notifications, by user. */
  #streams = new Map();
  #told = new Set();

  /** `product`: the folder of the example. `url`: where Feedgate is. `webhookKey`: signs calls of /push. */
  constructor({ product, url, app, webhookKey }) {
    Object.assign(this, { product, url, app, webhookKey });
  }

  /** Listens on a port of the loopback, 0 for any that is free, and answers which it is. */
  async listen(port) {
    const server = createServer((request, response) => this.#answer(request, response));
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    this.port = server.address().port;
    return this.port;
  }

  async #answer(request, response) {
    const send = (status, kind, body, headers = {}) =>
      response.writeHead(status, { "content-type": `${kind}; charset=utf-8`, "cache-control": "no-cache", "x-content-type-options": "nosniff", ...headers }).end(body);
    try {
      const { pathname, searchParams } = new URL(request.url, "http://site");
      if (![`127.0.0.1:${this.port}`, `localhost:${this.port}`].includes(request.headers.host)) throw new Refused(403, "this host has another name");
      const json = (value) => send(200, "application/json", JSON.stringify(value ?? null));
      if (request.method === "POST") json(await this.#post(pathname, request));
      else if (pathname === "/") response.writeHead(302, { location: `/${this.product}/` }).end();
      else if (pathname === "/session") json({ ...(await this.app.session(searchParams.get("as") ?? undefined)), server: this.url });
      else if (pathname === "/pushes") this.#stream(searchParams.get("as"), response);
      else {
        const [kind, body] = await this.#file(pathname);
        send(200, kind, body, { "content-security-policy": policy(this.url), "referrer-policy": "no-referrer" });
      }
    } catch (error) {
      send(error.status ?? 502, "application/json", JSON.stringify({ error: error.message }));
    }
  }

  /** A file of the example, or of what all examples share. */
  async #file(path) {
    if (path === "/centrifuge.js") return [KINDS[".js"], await readFile(join(EXAMPLES, "../gateway/console/vendor/centrifuge/centrifuge.js"))];
    const file = path.endsWith("/") ? `${path}index.html` : path;
    const isOurs = file === "/feed.js" || new RegExp(`^/(shared|ranker|${this.product})/[a-z_]+\\.(html|js|css)$`).test(file);
    if (!isOurs) throw new Refused(404, "there is no such page");
    return [KINDS[extname(file)], await readFile(join(EXAMPLES, file))];
  }

  async #post(path, request) {
    const body = await text(request);
    if (path === "/push") return this.#push(request.headers, body);
    // A form of another site cannot send this type, and its scripts may not.
    if (request.headers["content-type"] !== "application/json") throw new Refused(415, "the body must be application/json");
    return this.app.act(path.replace("/actions/", ""), JSON.parse(body));
  }

  /** Shows notifications to the pages of their users, each once, with the name of who has done it. */
  async #push(headers, body) {
    if (!this.webhookKey || !isSigned(headers, body, [this.webhookKey])) throw new Refused(401, "the signature is wrong");
    for (const notification of JSON.parse(body).notifications) {
      if (this.#told.has(notification.id)) continue;
      this.#told.add(notification.id);
      const { author } = notification.newest;
      const { name = author } = await this.app.world.call("GET", `/v1/users/${author}`).catch(() => ({}));
      const event = `data: ${JSON.stringify({ ...notification, name })}\n\n`;
      for (const stream of this.#streams.get(notification.user) ?? []) stream.write(event);
    }
    return {};
  }

  #stream(user, response) {
    const streams = this.#streams.get(user) ?? new Set();
    this.#streams.set(user, streams.add(response));
    response.on("close", () => streams.delete(response));
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" }).write(":\n\n");
  }
}

async function text(request) {
  const pieces = [];
  let bytes = 0;
  for await (const piece of request) {
    bytes += piece.length;
    if (bytes > REQUEST_MAX_BYTES) throw new Refused(413, "the request is too large");
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

/** What the settings of the example keep in their folder of secrets, unless the environment has it. */
const secret = (product, name, variable) =>
  process.env[variable] ?? readFile(join("data", product, "secrets", name), "utf8").then((text) => text.trim(), () => undefined);

/** What a person can do about an error that comes before the page is there. */
function advice(error, product, url) {
  const start = `cargo run --release -- --config examples/${product}/feedgate.toml`;
  if (error.message === "fetch failed") return `nobody answers at ${url}. Start the server: ${start}`;
  if (error.code === "EADDRINUSE") return `port ${error.port} is taken. Name another one by PORT, and in push.webhook_url if the settings have it`;
  return error instanceof Refused ? `${error.message}. Start the server: ${start}` : error.stack;
}

/**
 * Fills the server, then serves the page until Ctrl-C; with `--fill` it only fills. `module`: the URL of fill.mjs.
 * `served`: what the program does meanwhile.
 */
export async function run(module, { fill, viewers, actions, served }) {
  const product = basename(dirname(fileURLToPath(module)));
  const { FEEDGATE_URL: url = "http://127.0.0.1:8080", PORT: port = 8000 } = process.env;
  try {
    const key = await secret(product, "api_key", "FEEDGATE_KEY");
    if (!key) throw new Refused(401, `there is no key in data/${product}/secrets`);
    const world = new World(client(url, key));
    await fill(world);
    await world.settled();
    console.log(`filled    ${url}`);
    if (process.argv.includes("--fill")) return;
    const webhookKey = await secret(product, "webhook_key", "FEEDGATE_WEBHOOK_KEY");
    const site = new Site({ product, url, app: new App(world, { viewers, actions }), webhookKey });
    console.log(`page      http://127.0.0.1:${await site.listen(Number(port))}/${product}/`);
    await served?.(world);
  } catch (error) {
    console.error(advice(error, product, url));
    process.exitCode = 1;
  }
}
