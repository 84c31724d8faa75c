// The engines behind a cluster of Feedgate: the real servers, started by the launchers of tests/engines.
//
//     const redis = await Redis.start(t);            a free port, a directory of its own; gone after the test `t`
//     await redis.kill();                            SIGKILL to all its processes
//     await redis.restart();                         the same port and data
//     const copy = await Redis.start(t, { replicaOf: redis });
//
// Whatever ends this process closes its pipe to tests/engines/sweep, which kills the engine and removes
// the directory.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, readdir, readFile, rm, statfs } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { freePort, onFreePorts } from "./port.js";
import { Process, TOOLS } from "./process.js";
import { until } from "./until.js";

const run = promisify(execFile);
const script = (name) => fileURLToPath(new URL(`../engines/${name}`, import.meta.url));

const GREETING_WITHIN_MS = 1000;

/** One server in one directory: `port`, `directory`, `url`. */
class Engine {
  #process = null;
  #args = [];

  /**
   * `args`: more arguments for the launcher, which hold for every restart as well. `disk`: its directory is a file system
   * in memory of that size, such as "64m", which takes root. If another process takes its port, it starts on another one.
   */
  static start(t, options) {
    return onFreePorts(() => this.tryStart(t, options));
  }

  /** One try on `port`, or a free one; throws PortTaken if another process has it, or one that `args` names. */
  static async tryStart(t, { args = [], disk, port, ...others } = {}) {
    const engine = new this();
    engine.prepare(others);
    engine.directory = await mkdtemp(join(tmpdir(), "feedgate-"));
    if (disk) await run("mount", ["-t", "tmpfs", "-o", `size=${disk},mode=755`, "tmpfs", engine.directory]);
    const sweeper = spawn(script("sweep"), [engine.directory], { stdio: ["pipe", "inherit", "inherit"] });
    const swept = once(sweeper, "exit");
    t.after(async () => {
      sweeper.stdin.end();
      await swept;
    });
    engine.port = port ?? (await freePort());
    engine.#args = args;
    engine.#process = engine.#server();
    await engine.#launch();
    return engine;
  }

  /** Takes what a kind of engine is told beside the rest. */
  prepare() {}

  /** The server's first process: it changes with a restart. */
  get pid() {
    return this.#process.pid;
  }

  /** {code, signal} once it has ended, until it is started again. */
  get ended() {
    return this.#process.ended;
  }

  /** Whether the process has written something that matches `pattern` since its last start. */
  said(pattern) {
    return this.#process.said(pattern);
  }

  /** All lines that the server has written and that match `pattern`. */
  lines(pattern) {
    return this.#process.lines(pattern);
  }

  /** Ends it as a power cut ends its machine: SIGKILL to all its processes. */
  async kill() {
    if (this.ended) return;
    await this.#signal("KILL");
    await this.#process.kill();
  }

  /** Asks it to end and waits until it has: SIGTERM; SIGINT for PostgreSQL, which waits for its clients otherwise. */
  async stop() {
    await this.#process.stop(this.constructor.STOP);
  }

  /** Lets it hang, connections open: SIGSTOP to all its processes. Its first process has stopped when this is done. */
  async pause() {
    await this.#signal("STOP");
    await until("all its threads have stopped", () => this.#hangs());
  }

  /** Lets it go on after pause(): SIGCONT. */
  async resume() {
    await this.#signal("CONT");
  }

  /** Copies a part of its directory as it stands at one moment: it hangs meanwhile, or files would come and go. */
  async copy(part, name) {
    await this.pause();
    try {
      await cp(join(this.directory, part), join(this.directory, name), { recursive: true });
    } finally {
      await this.resume();
    }
  }

  /** Somebody else's file takes all of its disk but so many bytes. */
  async fill(left) {
    const { bavail, bsize } = await statfs(this.directory);
    await run("fallocate", ["--length", bavail * bsize - left, this.#other]);
  }

  /** Removes the file that filled the disk. */
  async empty() {
    await rm(this.#other);
  }

  get #other() {
    return join(this.directory, "of-somebody-else");
  }

  /**
   * Starts it again on the same port and directory; kills it first if it runs. If another process has the port, it waits
   * a second for that one to leave.
   */
  async restart() {
    await this.kill();
    await onFreePorts(() => this.#launch());
  }

  /** Starts it again on the same directory and another port; kills it first if it runs. */
  async move() {
    await this.kill();
    this.port = await freePort();
    this.#process = this.#server();
    await onFreePorts(() => this.#launch());
  }

  /** The last lines it wrote. */
  log() {
    return this.#process.log();
  }

  async #hangs() {
    const threads = `/proc/${this.pid}/task`;
    // One that has ended meanwhile does not hang, so all are looked at again.
    const stats = (await readdir(threads)).map((thread) => readFile(join(threads, thread, "stat"), "utf8").catch(() => ""));
    return (await Promise.all(stats)).every((stat) => /\) T /.test(stat));
  }

  #server() {
    return new Process([script(this.constructor.LAUNCHER), this.port, this.directory, ...this.#args]);
  }

  async #launch() {
    this.#process.start({ FEEDGATE_TOOLS: TOOLS });
    await this.#process.settled(`${this.url} answers`, () => this.answers());
    if (this.ended) throw new Error(`the engine ended:\n${this.log()}`);
  }

  async #signal(name) {
    if (this.ended) throw new Error(`the engine has ended and takes no ${name}:\n${this.log()}`);
    await run(script("signal"), [name, this.pid, this.directory]);
  }
}

/** A single Redis; its append-only file survives a kill. */
export class Redis extends Engine {
  static LAUNCHER = "redis";
  static STOP = "SIGTERM";

  /** How redis-cli reaches it. */
  #by = [];

  /**
   * `replicaOf`: the Redis of which this is a replica, in step with it when this returns. `tls`: the files {cert, key,
   * cacert} with which a client reaches it by TLS.
   */
  static tryStart(t, { replicaOf, args = [], ...others } = {}) {
    const replica = replicaOf ? ["--replicaof", "127.0.0.1", replicaOf.port] : [];
    return super.tryStart(t, { args: [...replica, ...args], ...others });
  }

  prepare({ tls }) {
    if (tls) this.#by = ["--tls", ...Object.entries(tls).flatMap(([name, file]) => [`--${name}`, file])];
  }

  get url() {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Runs one command through redis-cli and answers what that prints; throws if Redis refuses it. */
  async cli(...command) {
    const { stdout } = await run("redis-cli", ["-e", "-p", this.port, ...this.#by, ...command]);
    return stdout.replaceAll("\r", "").trimEnd();
  }

  /** Whether this very process serves, its data loaded, in step with its master. */
  async answers() {
    // Another process may listen on the port and never answer.
    const said = await run("redis-cli", ["-p", this.port, ...this.#by, "info"], { timeout: GREETING_WITHIN_MS }).catch(() => ({ stdout: "" }));
    const info = said.stdout.replaceAll("\r", "").split("\n");
    const inStep = info.includes("role:master") || info.includes("master_link_status:up");
    return info.includes(`process_id:${this.pid}`) && info.includes("loading:0") && inStep;
  }
}

/** A NATS server with JetStream. */
export class Nats extends Engine {
  static LAUNCHER = "nats";
  static STOP = "SIGTERM";

  get url() {
    return `nats://127.0.0.1:${this.port}`;
  }

  /** The server speaks first, once JetStream has recovered its streams; its name is its process id. */
  async answers() {
    const greeting = await new Promise((resolve) => {
      const socket = connect(this.port, "127.0.0.1");
      const settle = (said) => {
        socket.destroy();
        resolve(said);
      };
      socket.setEncoding("utf8").setTimeout(GREETING_WITHIN_MS, () => settle(""));
      socket.once("data", settle).once("error", () => settle("")).once("close", () => settle(""));
    });
    return greeting.includes(`"server_name":"${this.pid}"`) && greeting.includes('"jetstream":true');
  }
}

/** A PostgreSQL server; its superuser `feedgate` needs no password. */
export class Postgres extends Engine {
  static LAUNCHER = "postgres";
  static STOP = "SIGINT";

  get url() {
    return this.#database("postgres");
  }

  /** Makes an empty database and answers its URL; one of that name is dropped first, its clients cut off. */
  async database(name) {
    await this.psql("postgres", `drop database if exists ${name} with (force)`, `create database ${name}`);
    return this.#database(name);
  }

  /** Runs statements through psql and answers their rows: one on a line, a tab between columns. */
  async psql(database, ...statements) {
    const { stdout } = await run(script("psql"), [this.port, database, ...statements]);
    return stdout.trimEnd();
  }

  /** What pg_ctl looks at: the first line is the process, the eighth its state. */
  async answers() {
    const file = await readFile(join(this.directory, "data", "postmaster.pid"), "utf8").catch(() => "");
    const lines = file.split("\n").map((line) => line.trim());
    return lines[0] === String(this.pid) && lines[7] === "ready";
  }

  #database(name) {
    return `postgres://feedgate@127.0.0.1:${this.port}/${name}`;
  }
}

/** The first slot of each master, and the end of the last. */
const SLOTS = [0, 5461, 10_923, 16_384];
/** A node that is silent for so long has failed. While a disk is busy, a write of one that has not may take seconds. */
const NODE_TIMEOUT_MS = 5000;

/** Three masters that share the slots: `nodes`, in the order of their slots; and the `replicas` that were added. */
export class RedisCluster {
  replicas = [];
  #args;
  #start;

  /**
   * Starts it and waits until every node says cluster_state:ok. `args`: more arguments for each redis-server; `start`:
   * what starts one with the arguments that it is given, in place of `Redis.tryStart`.
   */
  static async start(t, { args = [], start = (args) => Redis.tryStart(t, { args }) } = {}) {
    const cluster = new RedisCluster();
    cluster.#args = args;
    cluster.#start = start;
    cluster.nodes = await Promise.all(SLOTS.slice(1).map(() => cluster.#node()));
    for (const [index, one] of cluster.nodes.entries()) {
      await one.cli("cluster", "addslotsrange", SLOTS[index], SLOTS[index + 1] - 1);
      await one.cli("cluster", "set-config-epoch", index + 1);
    }
    for (const other of cluster.nodes.slice(1)) await meet(cluster.nodes[0], other);
    await cluster.ok();
    return cluster;
  }

  /** Starts a replica of a master; it is in step, and every node knows it as one, when this is done. */
  async replica(t, master) {
    const replica = await this.#node();
    await meet(master, replica);
    const [own, id] = [await myself(replica), await myself(master)];
    await until("the replica knows its master", async () => (await replica.cli("cluster", "nodes")).includes(id));
    await replica.cli("cluster", "replicate", id);
    const known = (nodes) => nodes.split("\n").some((line) => line.startsWith(own) && line.includes("slave") && line.includes(id));
    const all = () => Promise.all(this.nodes.map((node) => node.cli("cluster", "nodes").catch(String)));
    await until("every node knows the replica as one", async () => (await replica.answers()) && (await all()).every(known), { seen: all });
    this.replicas.push(replica);
    return replica;
  }

  /** Waits until another node has found that this master is away. */
  async failed(master) {
    const others = this.nodes.filter((node) => node !== master);
    const away = new RegExp(`127.0.0.1:${master.port}@\\S+ \\S*fail(,|\\s)`);
    const views = () => Promise.all(others.map((node) => node.cli("cluster", "nodes").catch(String)));
    await until("a master counts as failed", async () => (await views()).some((view) => away.test(view)), { seen: views });
  }

  /** Moves a slot with all that lies in it from one master to another. */
  async move(slot, from, to) {
    await to.cli("cluster", "setslot", slot, "importing", await myself(from));
    await from.cli("cluster", "setslot", slot, "migrating", await myself(to));
    const keys = (await from.cli("cluster", "getkeysinslot", slot, 10_000)).split("\n").filter((key) => key !== "");
    for (const key of keys) await from.cli("migrate", "127.0.0.1", to.port, key, 0, 5000);
    for (const node of [to, from]) await node.cli("cluster", "setslot", slot, "node", await myself(to));
  }

  #node() {
    return onFreePorts(async () => {
      const own = ["--cluster-enabled", "yes", "--cluster-port", await freePort(), "--cluster-node-timeout", NODE_TIMEOUT_MS];
      return this.#start([...own, ...this.#args]);
    });
  }

  /** The first node, from which a client learns the others. */
  get url() {
    return this.urls[0];
  }

  get urls() {
    return this.nodes.map((node) => node.url);
  }

  /** Waits until every node knows the others and serves; after a restart, for example. */
  async ok() {
    const infos = () => Promise.all(this.nodes.map((node) => node.cli("cluster", "info").catch(String)));
    const known = `cluster_known_nodes:${this.nodes.length + this.replicas.length}\n`;
    const good = (info) => info.includes("cluster_state:ok") && info.includes(known);
    await until("cluster_state:ok on every node", async () => (await infos()).every(good), { seen: infos });
  }
}

/** The id of a node of a cluster. */
const myself = (node) => node.cli("cluster", "myid");

/** Lets two nodes of a cluster know each other. */
async function meet(one, other) {
  const line = (await other.cli("cluster", "nodes")).split("\n").find((each) => each.includes("myself"));
  const [, bus] = /@(\d+)/.exec(line);
  await one.cli("cluster", "meet", "127.0.0.1", other.port, bus);
}
