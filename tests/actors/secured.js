// The engines of a cluster by TLS alone, with certificates of an authority of the test's own.
//
//     const engines = await SecuredEngines.start(t);                    a PostgreSQL, a Redis and a NATS
//     const cluster = await Cluster.start(t, { engines, config: engines.config });
//
// With `clients`, each of them takes only who shows a certificate of the same authority.

import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

import { Authority } from "./authority.js";
import { Nats, Postgres, Redis, RedisCluster } from "./engines.js";
import { freePort, onFreePorts } from "./port.js";

const run = promisify(execFile);

/** The name that PostgreSQL knows us by; with `clients`, the certificate says it. */
const USER = "gate";

export class SecuredEngines {
  /** `clients`: whether the engines ask for a certificate of their client. `redis`: "single" or "cluster". */
  static async start(t, { clients = false, redis = "single" } = {}) {
    const engines = new this();
    engines.clients = clients;
    engines.directory = await mkdtemp(join(tmpdir(), "feedgate-secured-"));
    t.after(() => rm(engines.directory, { recursive: true, force: true }));
    // PostgreSQL is another user, if we are root.
    await run("chmod", ["755", engines.directory]);
    await engines.#certificates("ca");
    [engines.postgres, engines.redis, engines.nats] = await Promise.all([engines.#postgres(t), engines.#redis(t, redis), engines.#nats(t)]);
    await engines.postgres.psql("postgres", `create role ${USER} superuser login`);
    return engines;
  }

  /** An authority whose root is in `file(`${name}.pem`)`; each call makes another one. */
  async authorityOf(name) {
    const directory = join(this.directory, name);
    await mkdir(directory);
    const authority = await Authority.make(directory);
    await writeFile(this.file(`${name}.pem`), authority.root);
    return authority;
  }

  /** Replaces the authority and all certificates, and starts the engines again with them. */
  async renew() {
    await this.#certificates("next");
    await writeFile(this.file("ca.pem"), this.authority.root);
    await Promise.all([this.postgres, this.redis, this.nats].map((engine) => engine.restart()));
  }

  file(name) {
    return join(this.directory, name);
  }

  /** The URLs of the engines, by which a process finds them; the host may be written otherwise. */
  urls(database, host = "127.0.0.1") {
    const nodes = (this.redis.nodes ?? [this.redis]).map(({ port }) => `${host}:${port}`);
    return {
      archive_url: `postgres://${USER}@${host}:${this.postgres.port}/${database}`,
      inbox_url: `rediss://${nodes.join(",")}`,
      bus_url: `tls://${host}:${this.nats.port}`,
    };
  }

  /** The settings of a process that the engines take, as TOML. */
  get config() {
    const own = this.clients ? { certificate: this.file("client.pem"), key: this.file("client.key") } : {};
    const lines = Object.entries({ ca: this.file("ca.pem"), ...own }).map(([key, path]) => `${key} = ${JSON.stringify(path)}\n`);
    return `[stores_tls]\n${lines.join("")}`;
  }

  async #certificates(name) {
    this.authority = await this.authorityOf(name);
    await this.#certificate("server", { name: "server" });
    await this.#certificate("client", { name: USER });
    // PostgreSQL's key has to belong to the user that it runs as, and nobody else may read it.
    const key = this.file("postgres.key");
    await run("cp", [this.file("server.key"), key]);
    if (process.getuid() === 0) await run("chown", ["postgres", key]);
    await run("chmod", ["600", key]);
  }

  async #certificate(file, options) {
    const { certificate, key } = await this.authority.certificate(options);
    await writeFile(this.file(`${file}.pem`), certificate);
    await writeFile(this.file(`${file}.key`), key);
  }

  async #postgres(t) {
    const [certificate, key, rules] = ["server.pem", "postgres.key", "pg_hba.conf"].map((name) => this.file(name));
    const ours = this.clients ? "cert" : "trust";
    await writeFile(rules, `hostssl all feedgate 127.0.0.1/32 trust\nhostssl all ${USER} 127.0.0.1/32 ${ours}\n`);
    const settings = { ssl: "on", ssl_cert_file: certificate, ssl_key_file: key, ssl_ca_file: this.file("ca.pem"), hba_file: rules };
    return Postgres.start(t, { args: Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]) });
  }

  #redis(t, kind) {
    const tls = { cert: this.file("client.pem"), key: this.file("client.key"), cacert: this.file("ca.pem") };
    const files = ["--tls-cert-file", this.file("server.pem"), "--tls-key-file", this.file("server.key"), "--tls-ca-cert-file", tls.cacert];
    const own = ["--tls-auth-clients", this.clients ? "yes" : "no", ...files];
    const start = async (args) => {
      const port = await freePort();
      return Redis.tryStart(t, { port, args: ["--port", 0, "--tls-port", port, ...own, ...args], tls });
    };
    // Nodes speak TLS with each other too.
    return kind === "cluster" ? RedisCluster.start(t, { args: ["--tls-cluster", "yes"], start }) : onFreePorts(() => start([]));
  }

  async #nats(t) {
    const [certificate, key, ca] = ["server.pem", "server.key", "ca.pem"].map((name) => JSON.stringify(this.file(name)));
    const file = this.file("nats.conf");
    await writeFile(file, `tls { cert_file: ${certificate}, key_file: ${key}, ca_file: ${ca}, verify: ${this.clients} }\n`);
    return Nats.start(t, { args: ["--config", file] });
  }
}
