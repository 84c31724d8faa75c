// A real proxy in front of a server, with the file that deploy/proxies/ has for it. Only addresses, ports and paths are
// replaced. The server gives devices a port of their own, as docs/operate.md says.
//
//     const front = await Front.start(t, "haproxy", { config });     devices by TLS at front.websocket
//     await front.publish("bob", { text: "hello" });                 backends past the proxy

import { readFile, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";

import { folders } from "./nginx.js";
import { freePort, onFreePorts } from "./port.js";
import { Process } from "./process.js";
import { SplitServer } from "./split.js";

const FILES = new URL("../../deploy/proxies/", import.meta.url);

/** Each proxy: its file, what runs it, and what stands in the file in place of what a test has. */
const PROXIES = {
  nginx: {
    file: "nginx.conf",
    command: (file, home) => ["nginx", "-e", "stderr", "-c", file, "-g", `daemon off; master_process off; pid ${join(home, "pid")};`],
    replaced: ({ port, home }) => [
      ["listen 443 ssl;", `listen 127.0.0.1:${port} ssl;`],
      ["server_name feed.example.com;", ""],
      ["/var/log/nginx/feedgate.log", join(home, "access.log")],
      // Where nginx keeps large bodies is compiled into it, and only root may write there.
      ["http {", `http {\n${folders(home)}`],
      // A test has fewer descriptors than a server.
      ["worker_rlimit_nofile 131072;", ""],
      ["worker_connections 65536;", "worker_connections 1024;"],
    ],
  },
  caddy: {
    file: "Caddyfile",
    command: (file) => ["caddy", "run", "--adapter", "caddyfile", "--config", file],
    replaced: ({ port }) => [
      ["auto_https disable_redirects", "auto_https disable_redirects\n\tadmin off"],
      ["feed.example.com {", `https://127.0.0.1:${port} {`],
    ],
  },
  haproxy: {
    file: "haproxy.cfg",
    command: (file) => ["haproxy", "-db", "-f", file],
    replaced: ({ port }) => [
      ["bind :443", `bind 127.0.0.1:${port}`],
      ["maxconn 60000", "maxconn 1000"],
    ],
  },
};

export const FRONTS = Object.keys(PROXIES);

export class Front extends SplitServer {
  #answers = [];

  /** `config`: more settings of the server, as text of a TOML file. */
  static async start(t, name, { config = "" } = {}) {
    const front = await this.prepare(t);
    await front.serve("0.0.0.0", config);
    await front.renew();
    // HAProxy looks for the key beside the certificate, under this name.
    await front.put("tls.pem.key", await readFile(front.file("tls.key"), "utf8"));
    await front.#pass(t, name, PROXIES[name]);
    return front;
  }

  /** Starts the proxy, and waits until it passes requests on. */
  async #pass(t, name, { file, command, replaced }) {
    const { directory: home } = this;
    const proxy = new Process(command(this.file(file), home));
    this.processes.push(proxy);
    t.after(() => this.#answers.forEach((answer) => answer.destroy()));
    const shipped = await readFile(new URL(file, FILES), "utf8");
    await onFreePorts(async () => {
      this.devices = await freePort();
      const edits = [["127.0.0.1:8080", `127.0.0.1:${this.opened.port}`], ["/etc/feedgate/", `${home}/`], ...replaced({ port: this.devices, home })];
      await writeFile(this.file(file), edits.reduce(replace, shipped));
      proxy.start({ HOME: home, XDG_DATA_HOME: home });
      await proxy.settled(`${name} passes requests on`, () => this.asked("GET", "/v1/").then(({ statusCode }) => statusCode === 404, () => false));
    });
    if (proxy.ended) throw new Error(proxy.log());
  }

  /** A request of a device, through the proxy: the answer, whose `text` grows as it comes. `from`: the device's address. */
  asked(method, path, { headers = {}, body, from } = {}) {
    const to = { ...this.trusting, port: this.devices, localAddress: from, agent: false, method, path, headers };
    return new Promise((resolve, reject) => {
      const sent = request(to, (answer) => {
        this.#answers.push(answer);
        answer.text = "";
        answer.setEncoding("utf8").on("data", (text) => (answer.text += text)).on("error", () => undefined);
        resolve(answer);
      });
      sent.on("error", reject).end(body);
    });
  }

  /** Where devices connect, through the proxy. */
  get websocket() {
    return `wss://127.0.0.1:${this.devices}/connection/websocket`;
  }
}

/** Puts `by` in the place of `what`, which the file must have. */
function replace(text, [what, by]) {
  if (!text.includes(what)) throw new Error(`the file has no ${JSON.stringify(what)}`);
  return text.replaceAll(what, by);
}
