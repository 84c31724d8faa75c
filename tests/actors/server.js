// The real server in one process over embedded storage, on a free port, its data in a directory of its
// own; and a backend's way to talk to it.
//
//     const server = await Server.start(t);          stopped and swept up when the test `t` ends
//     await server.kill();                           SIGKILL
//     await server.start({ failpoint: "job-taken" }) the same data, port and clients

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Backend } from "./backend.js";
import { BIN } from "./process.js";
import { Program } from "./program.js";

export class Server extends Backend {
  #process = null;

  /**
   * `config`: the text of a TOML file; `failpoint`: where it kills itself; `under`: a tracer's command line; `bin`: the
   * directory of its program, which may be changed before it is started again.
   */
  static async start(t, { config: text = "", failpoint, under = () => [], bin = BIN } = {}) {
    const server = new Server();
    server.bin = bin;
    server.directory = await mkdtemp(join(tmpdir(), "feedgate-"));
    t.after(() => server.#sweep());
    await writeFile(server.config, text);
    const [tracer, place] = [under(server.directory), ["--data", server.data, "--config", server.config]];
    server.#process = new Program((address) => [...tracer, server.binary, "serve", ...place, "--listen", address]);
    await server.start({ failpoint });
    return server;
  }

  get port() {
    return this.#process.port;
  }

  get binary() {
    return join(this.bin, "feedgate");
  }

  get data() {
    return join(this.directory, "data");
  }

  get secrets() {
    return join(this.data, "secrets");
  }

  /** The path of its settings. */
  get config() {
    return join(this.directory, "feedgate.toml");
  }

  /** Gives it other settings, the text of a TOML file, for its next start. */
  configure(text) {
    return writeFile(this.config, text);
  }

  /** Gives it other settings, and asks it to read them. */
  async reload(text) {
    await this.configure(text);
    this.#process.hangUp();
  }

  /** The one gateway there is. */
  get gateways() {
    return [this];
  }

  /** The process id; another one after each start. */
  get pid() {
    return this.#process.pid;
  }

  /** What each process holds: [{name, memory}], bytes. */
  async memory() {
    const memory = await this.#process.memory();
    return memory === null ? [] : [{ name: "feedgate", memory }];
  }

  /** {code, signal} once the process has ended, until it is started again. */
  get ended() {
    return this.#process.ended;
  }

  /** Starts the process, again after it ended, with more `flags`, and waits until it answers (or has died of its failpoint). */
  async start({ failpoint, flags = [] } = {}) {
    await this.#process.serve("the server answers", () => this.isReady(), failpoint ? { FEEDGATE_FAILPOINT: failpoint } : {}, flags);
    if (this.ended && !failpoint) throw new Error(`the server ended with ${JSON.stringify(this.ended)}:\n${this.log()}`);
    if (!this.ended) this.key = (await readFile(join(this.secrets, "api_key"), "utf8")).trim();
  }

  /** SIGKILL: nothing is flushed, nobody is told. */
  async kill() {
    return this.#process.kill();
  }

  /** Ends the process and answers {code, signal}. */
  async stop(signal = "SIGTERM") {
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

  /** The last lines that the process wrote. */
  log() {
    return this.#process.log();
  }

  /** Whether the process has written something that matches `pattern` since its last start. */
  said(pattern) {
    return this.#process.said(pattern);
  }

  /** All lines that the process has written and that match `pattern`. */
  lines(pattern) {
    return this.#process.lines(pattern);
  }

  async #sweep() {
    await this.#process?.kill();
    await rm(this.directory, { recursive: true, force: true });
  }
}
