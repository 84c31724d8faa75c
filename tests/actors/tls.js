// A server whose devices connect by TLS, with certificates of an authority of the test's own, made by the real openssl.
//
//     const server = await TlsServer.start(t);         devices at server.websocket, backends at server.url without TLS
//     await server.renew();                            the files hold another certificate and another key
//     tls.connect({ ...server.trusting, port: server.devices })

import { execFile } from "node:child_process";
import { mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

import { Backend } from "./backend.js";
import { TOOLS } from "./process.js";
import { Program } from "./program.js";
import { WebSocket } from "./sdk.js";

const run = promisify(execFile);
const CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

/** An authority with one more between its root and the certificates of servers, as public ones have. */
export class Authority {
  #made = 0;

  static async make(directory) {
    const authority = new Authority();
    authority.directory = directory;
    const file = (name) => join(directory, name);
    const ca = ["-addext", "basicConstraints=critical,CA:TRUE"];
    await run("openssl", ["req", "-x509", ...CURVE, ...ca, "-days", "2", "-subj", "/CN=root", "-keyout", file("root.key"), "-out", file("root.pem")]);
    await authority.#sign("between", "root", "basicConstraints=critical,CA:TRUE\n");
    authority.root = await readFile(file("root.pem"), "utf8");
    return authority;
  }

  /** Another certificate for 127.0.0.1, with its key: {certificate, key}, the former with what stands between it and the root. */
  async certificate() {
    const name = `server-${(this.#made += 1)}`;
    await this.#sign(name, "between", "subjectAltName=IP:127.0.0.1\n");
    const [own, between, key] = await Promise.all([`${name}.pem`, "between.pem", `${name}.key`].map((file) => readFile(join(this.directory, file), "utf8")));
    return { certificate: own + between, key };
  }

  async #sign(name, by, extensions) {
    const file = (ending) => join(this.directory, ending);
    await writeFile(file(`${name}.ext`), extensions);
    await run("openssl", ["req", "-new", ...CURVE, "-subj", `/CN=${name}`, "-keyout", file(`${name}.key`), "-out", file(`${name}.csr`)]);
    const from = ["-CA", file(`${by}.pem`), "-CAkey", file(`${by}.key`), "-CAcreateserial", "-extfile", file(`${name}.ext`)];
    await run("openssl", ["x509", "-req", "-in", file(`${name}.csr`), ...from, "-days", "2", "-out", file(`${name}.pem`)]);
  }
}

export class TlsServer extends Backend {
  /** `config`: more settings, as text of a TOML file. `versions`: {minVersion, maxVersion} of its phones. */
  static async start(t, { config = "", versions = {} } = {}) {
    const server = new TlsServer();
    const directory = await mkdtemp(join(tmpdir(), "feedgate-tls-"));
    const file = (name) => join(directory, name);
    const settings = `[tls]\ncertificate = "${file("tls.pem")}"\nkey = "${file("tls.key")}"\n${config}`;
    // The port of devices is the kernel's choice, which the program prints.
    const serves = [join(TOOLS, "bin", "feedgate"), "serve", "--data", file("data"), "--config", file("feedgate.toml"), "--listen", "127.0.0.1:0"];
    server.process = new Program((address) => [...serves, "--admin-listen", address]);
    t.after(async () => {
      await server.process.kill();
      await rm(directory, { recursive: true, force: true });
    });
    Object.assign(server, { file, authority: await Authority.make(directory) });
    await server.renew();
    await writeFile(file("feedgate.toml"), settings);
    await server.process.serve("the server answers", () => server.isReady());
    if (server.process.ended) throw new Error(server.process.log());
    server.key = (await readFile(file("data/secrets/api_key"), "utf8")).trim();
    server.websocket = /wss:\S+/.exec(server.process.lines(/wss:/).at(-1))[0];
    server.devices = Number(new URL(server.websocket).port);
    server.trusting = { host: "127.0.0.1", ca: server.authority.root, ...versions };
    server.socket = class extends WebSocket {
      constructor(url, protocols) {
        super(url, protocols, server.trusting);
      }
    };
    return server;
  }

  /** Where backends connect, without TLS. */
  get port() {
    return this.process.port;
  }

  get websocket() {
    return this.address;
  }

  set websocket(address) {
    this.address = address;
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
