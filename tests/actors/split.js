// A server whose devices have a port of their own, as they have when they connect by TLS or through a proxy. Backends use
// another port. A certificate of an authority of the test's own stands beside it.
//
//     const server = await SplitServer.prepare(t);     a directory, an authority in it, and nothing that runs
//     await server.serve("127.0.0.1", settings);       `settings`: the text of a TOML file

import { mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Authority } from "./authority.js";
import { Backend } from "./backend.js";
import { TOOLS } from "./process.js";
import { Program } from "./program.js";
import { WebSocket } from "./sdk.js";

export class SplitServer extends Backend {
  /** What runs in the directory. */
  processes = [];

  static async prepare(t) {
    const server = new this();
    server.directory = await mkdtemp(join(tmpdir(), "feedgate-split-"));
    t.after(async () => {
      await Promise.all(server.processes.map((process) => process.kill()));
      await rm(server.directory, { recursive: true, force: true });
    });
    server.authority = await Authority.make(server.directory);
    server.trusting = { host: "127.0.0.1", ca: server.authority.root };
    return server;
  }

  /** Starts it. Devices connect to a port of `host` that the kernel chooses: `opened` is its URL, as the program prints it. */
  async serve(host, settings) {
    await writeFile(this.file("feedgate.toml"), settings);
    const serves = [join(TOOLS, "bin", "feedgate"), "serve", "--data", this.file("data"), "--config", this.file("feedgate.toml"), "--listen", `${host}:0`];
    this.process = new Program((address) => [...serves, "--admin-listen", address]);
    this.processes.push(this.process);
    await this.process.serve("the server answers", () => this.isReady());
    if (this.process.ended) throw new Error(this.process.log());
    this.key = (await readFile(this.file("data/secrets/api_key"), "utf8")).trim();
    this.opened = new URL(/wss?:\S+/.exec(this.process.lines(/wss?:/).at(-1))[0]);
  }

  /** Where backends connect, without TLS. */
  get port() {
    return this.process.port;
  }

  /** A WebSocket of a device that trusts the authority. */
  get socket() {
    const { trusting } = this;
    return class extends WebSocket {
      constructor(url, protocols) {
        super(url, protocols, trusting);
      }
    };
  }

  file(name) {
    return join(this.directory, name);
  }

  /** Puts another certificate and its key in the place of the files, the key first; gives the certificate. */
  async renew() {
    const { certificate, key } = await this.authority.certificate();
    await this.put("tls.key", key);
    await this.put("tls.pem", certificate);
    return certificate;
  }

  /** Moves a whole file into the place of the one of that name. */
  async put(name, text) {
    await writeFile(this.file(`${name}.new`), text);
    await rename(this.file(`${name}.new`), this.file(name));
  }
}
