// A cluster: gateways and workers, each a process, over engines that they share.
//
//     const cluster = await Cluster.start(t);            two gateways, two workers; swept up when the test `t` ends
//     await cluster.gateways[0].kill();                  so can workers, and the engines
//     await cluster.gateways[0].start();
//
//   backend ──▶ gateways[0]      PostgreSQL
//                                Redis           workers
//   phones ───▶ gateways.at(-1)  NATS
//
// A journey uses it like a `Server`: a backend talks to the first gateway, phones talk to the last one, and this last
// gateway is the one that a journey kills, stops and starts.

import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { promisify } from "node:util";

import { Backend } from "./backend.js";
import { Nats, Postgres, Redis, RedisCluster } from "./engines.js";
import { BIN } from "./process.js";
import { Program } from "./program.js";
import { Proxy } from "./proxy.js";

/** How far epochs and numbers of notices leap when PostgreSQL is taken back, so that none is given again. */
const LEAP = 1_000_000_000;

/** What lives as long as the test file: a PostgreSQL, which takes long to make; each cluster has a database of its own. */
const file = { ends: [], after: (end) => file.ends.push(end) };
after(() => Promise.all(file.ends.map((end) => end())));
let postgres = null;
let databases = 0;

/** One process of a cluster: a gateway or a worker. */
class Member extends Backend {
  #process;

  #configure;

  /**
   * `config`: the path of its settings; `configure`: writes TOML there, after what makes it a member; `bin`: the
   * directory of its program, which may be changed before it is started again.
   */
  constructor(name, command, config, configure, bin) {
    super();
    Object.assign(this, { name, config, bin });
    this.#configure = configure;
    this.#process = new Program((address) => command(this.bin, address));
  }

  /** Gives it other settings, the text of a TOML file, for its next start. */
  configure(text) {
    return this.#configure(text);
  }

  /** Gives it other settings, and asks it to read them. */
  async reload(text) {
    await this.configure(text);
    this.#process.hangUp();
  }

  get port() {
    return this.#process.port;
  }

  /** Starts it, again after it ended, and waits until it is ready (or has died of its failpoint). */
  async start({ failpoint } = {}) {
    await this.#process.serve(`${this.name} is ready`, () => this.isReady(), failpoint ? { FEEDGATE_FAILPOINT: failpoint } : {});
    if (this.ended && !failpoint) throw new Error(`${this.name} ended with ${JSON.stringify(this.ended)}:\n${this.log()}`);
  }

  get ended() {
    return this.#process.ended;
  }

  get pid() {
    return this.#process.pid;
  }

  /** SIGKILL: nothing is flushed, nobody is told. */
  kill() {
    return this.#process.kill();
  }

  /** Ends the process and answers {code, signal}. */
  stop(signal = "SIGTERM") {
    return this.#process.stop(signal);
  }

  /** SIGSTOP: it does nothing, and its sockets stay. */
  pause() {
    this.#process.pause();
  }

  /** SIGCONT: lets a paused process run again. */
  resume() {
    this.#process.resume();
  }

  memory() {
    return this.#process.memory();
  }

  said(pattern) {
    return this.#process.said(pattern);
  }

  log() {
    return this.#process.log();
  }

  /** All lines that the process has written and that match `pattern`. */
  lines(pattern) {
    return this.#process.lines(pattern);
  }
}

export class Cluster extends Backend {
  gateways = [];
  workers = [];
  /** {redis, nats, postgres} of each process that was named in `through`. */
  proxies = {};
  #natsUser;
  #bin;
  /** The engines that ran already. */
  #taken = null;

  /**
   * `config`: TOML for every process; `redis`: "single" or "cluster"; `failpoint`: of the gateway that phones
   * connect to; `through`: names of processes that reach the engines through proxies of their own; `disks`: the sizes of
   * the disks of engines that have one of their own, such as {redis: "64m"}; `nats`: the {config} of NATS, and the `user`
   * that the processes are there, as "name:password"; `engines`: {postgres, redis, nats} that run already, with
   * `urls(database)`, the URLs for the processes; `bin`: the directory of the programs of its members.
   */
  static async start(t, { config = "", gateways = 2, workers = 2, redis = "single", failpoint, through = [], disks = {}, nats = {}, engines, bin = BIN } = {}) {
    const cluster = new Cluster();
    cluster.#bin = bin;
    cluster.#natsUser = nats.user;
    cluster.directory = await mkdtemp(join(tmpdir(), "feedgate-cluster-"));
    t.after(() => cluster.#sweep());
    await (engines ? cluster.#take(engines) : cluster.#engines(t, redis, disks, nats.config));
    cluster.config = config;
    for (const name of through) cluster.proxies[name] = await cluster.#proxied(t);
    await promisify(execFile)(join(BIN, "feedgate"), ["secrets", cluster.secrets]);
    cluster.key = (await readFile(join(cluster.secrets, "api_key"), "utf8")).trim();
    for (let i = 1; i <= gateways; i += 1) cluster.gateways.push(await cluster.#gateway(`gateway-${i}`));
    for (let i = 1; i <= workers; i += 1) cluster.workers.push(await cluster.#worker(`timeline-${i}`));
    await Promise.all(cluster.members.map((member) => member.start({ failpoint: member === cluster.#phones ? failpoint : undefined })));
    return cluster;
  }

  get secrets() {
    return join(this.directory, "secrets");
  }

  /** The program whose commands know settings of a cluster. */
  get binary() {
    return join(BIN, "feedgate-cluster");
  }

  get members() {
    return [...this.gateways, ...this.workers];
  }

  /** The URLs under which a process finds the engines. */
  get urls() {
    return this.#urls();
  }

  get url() {
    return this.gateways[0].url;
  }

  get websocket() {
    return this.#phones.websocket;
  }

  /** The gateway that phones connect to. */
  get #phones() {
    return this.gateways.at(-1);
  }

  get ended() {
    return this.#phones.ended;
  }

  start(options) {
    return this.#phones.start(options);
  }

  kill() {
    return this.#phones.kill();
  }

  stop(signal) {
    return this.#phones.stop(signal);
  }

  log() {
    return this.members.map((member) => `--- ${member.name}\n${member.log()}`).join("\n");
  }

  /**
   * Takes PostgreSQL back to an earlier state, in the steps of docs/operate.md: `restore` does that while all processes
   * stand still, and leaves PostgreSQL running.
   */
  async takeBack(restore) {
    await Promise.all(this.members.map((member) => member.stop()));
    await restore();
    await this.postgres.psql(this.database, `UPDATE counters SET value = value + ${LEAP} WHERE name = 'epoch'`);
    await this.postgres.psql(this.database, `SELECT setval('push_numbers', nextval('push_numbers') + ${LEAP})`);
    await this.redis.cli("flushall");
    await Promise.all(this.members.map((member) => member.start()));
  }

  /** What each process holds: [{name, memory}], bytes. */
  async memory() {
    const held = await Promise.all(this.members.map(async (member) => ({ name: member.name, memory: await member.memory() })));
    return held.filter(({ memory }) => memory !== null);
  }

  async #engines(t, redis, disks, natsConfig) {
    const natsFile = join(this.directory, "nats.conf");
    if (natsConfig) await writeFile(natsFile, natsConfig);
    const args = natsConfig ? ["--config", natsFile] : [];
    const Home = redis === "cluster" ? RedisCluster : Redis;
    const own = disks.postgres ? Postgres.start(t, { disk: disks.postgres }) : (postgres ??= Postgres.start(file));
    const others = [Home.start(t, { disk: disks.redis }), Nats.start(t, { disk: disks.nats, args })];
    [this.postgres, this.redis, this.nats] = await Promise.all([own, ...others]);
    await this.#database();
  }

  async #take(engines) {
    this.#taken = engines;
    ({ postgres: this.postgres, redis: this.redis, nats: this.nats } = engines);
    await this.#database();
  }

  async #database() {
    this.database = `cluster_${(databases += 1)}`;
    await this.postgres.database(this.database);
  }

  async #proxied(t) {
    const { redis, nats, postgres } = this;
    const each = Object.entries({ redis, nats, postgres }).map(async ([name, { port }]) => [name, await Proxy.start(t, port)]);
    return Object.fromEntries(await Promise.all(each));
  }

  /** The URLs under which a process finds its engines. */
  #urls(name) {
    if (this.#taken) return this.#taken.urls(this.database);
    const { redis, nats, postgres } = { ...this, ...this.proxies[name] };
    const hosts = (redis.nodes ?? [redis]).map(({ port }) => `127.0.0.1:${port}`);
    return {
      archive_url: `postgres://feedgate@127.0.0.1:${postgres.port}/${this.database}`,
      inbox_url: `redis://${hosts.join(",")}`,
      bus_url: `nats://${this.#natsUser ? `${this.#natsUser}@` : ""}127.0.0.1:${nats.port}`,
    };
  }

  async #gateway(name) {
    const data = join(this.directory, name);
    return this.#member(name, data, (bin, config, address) => [join(bin, "gateway"), "--config", config, "--listen", address, "--data", data]);
  }

  async #worker(name) {
    const directory = join(this.directory, name);
    return this.#member(name, directory, (bin, config, address) => [join(bin, "timeline"), "--config", config, "--health-listen", address]);
  }

  async #member(name, directory, command) {
    const path = join(directory, "feedgate.toml");
    await mkdir(directory, { recursive: true });
    const configure = (text) => this.#configure(name, path, text);
    await configure(this.config);
    const member = new Member(name, (bin, address) => command(bin, path, address), path, configure, this.#bin);
    member.key = this.key;
    return member;
  }

  async #configure(name, path, config) {
    const settings = { ...this.#urls(name), secrets: this.secrets, node: name };
    const lines = Object.entries(settings).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
    await writeFile(path, `${lines.join("\n")}\n${config}`);
  }

  async #sweep() {
    await Promise.all(this.members.map((member) => member.kill()));
    await rm(this.directory, { recursive: true, force: true });
  }
}
