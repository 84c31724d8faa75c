// A real proxy in front of a server, with the file that deploy/proxies/ has for it. Only addresses, ports and paths are
// replaced. The server gives devices a port of their own, as docs/operate.md says.
//
//     const front = await Front.start(t, "haproxy", { config });     devices by TLS at front.websocket
//     await front.publish("bob", { text: "hello" });                 backends past the proxy

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Backend } from "./backend.js";
import { freePort, onFreePorts } from "./port.js";
import { Process, TOOLS } from "./process.js";
import { Program } from "./program.js";
import { WebSocket } from "./sdk.js";
import { Authority } from "./tls.js";

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
      ["http {", `http {\n${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `  ${name}_temp_path ${join(home, name)};\n`).join("")}`],
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

export class Front extends Backend {
  #answers = [];

  /** `config`: more settings of the server, as text of a TOML file. */
  static async start(t, name, { config = "" } = {}) {
    const front = new Front();
    const home = await mkdtemp(join(tmpdir(), `feedgate-${name}-`));
    const inside = (file) => join(home, file);
    const serves = [join(TOOLS, "bin", "feedgate"), "serve", "--data", inside("data"), "--config", inside("feedgate.toml"), "--listen", "0.0.0.0:0"];
    front.server = new Program((address) => [...serves, "--admin-listen", address]);
    const { file, command, replaced } = PROXIES[name];
    front.proxy = new Process(command(inside(file), home));
    t.after(async () => {
      await Promise.all([front.proxy.kill(), front.server.kill()]);
      await rm(home, { recursive: true, force: true });
    });
    await writeFile(inside("feedgate.toml"), config);
    await front.server.serve("the server answers", () => front.isReady());
    if (front.server.ended) throw new Error(front.server.log());
    front.key = (await readFile(inside("data/secrets/api_key"), "utf8")).trim();
    const devices = Number(new URL(/ws:\S+/.exec(front.server.lines(/ws:/).at(-1))[0]).port);

    const authority = await Authority.make(home);
    const { certificate, key } = await authority.certificate();
    await Promise.all([writeFile(inside("tls.pem"), certificate), writeFile(inside("tls.key"), key), writeFile(inside("tls.pem.key"), key)]);
    front.trusting = { host: "127.0.0.1", ca: authority.root };
    const shipped = await readFile(new URL(file, FILES), "utf8");
    await onFreePorts(async () => {
      front.devices = await freePort();
      const edits = [["127.0.0.1:8080", `127.0.0.1:${devices}`], ["/etc/feedgate/", `${home}/`], ...replaced({ port: front.devices, home })];
      await writeFile(inside(file), edits.reduce(replace, shipped));
      front.proxy.start({ HOME: home, XDG_DATA_HOME: home });
      await front.proxy.settled(`${name} passes requests on`, () => front.asked("GET", "/v1/").then(({ statusCode }) => statusCode === 404, () => false));
    });
    if (front.proxy.ended) throw new Error(front.proxy.log());
    t.after(() => front.#answers.forEach((answer) => answer.destroy()));
    front.socket = class extends WebSocket {
      constructor(url, protocols) {
        super(url, protocols, front.trusting);
      }
    };
    return front;
  }

  /** Where backends connect, past the proxy. */
  get port() {
    return this.server.port;
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
