// One process of ours: started, killed, stopped, paused and started again; and the last it wrote.

import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { PortTaken } from "./port.js";
import { until } from "./until.js";

/** The directory into which tests/run puts the programs that it builds and fetches. */
export const TOOLS = process.env.FEEDGATE_TOOLS ?? fileURLToPath(new URL("../../target/tools", import.meta.url));

/** The directory of our programs, as they are built from this tree. */
export const BIN = join(TOOLS, "bin");

/** The environment of the test without its FEEDGATE_*, which our programs would take for settings. */
export function inherited() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("FEEDGATE_")));
}

const LOG_LINES_SHOWN = 30;

/** How the engines, and our programs, say that they cannot listen on a port. */
const PORT_TAKEN = /address already in use|is in use by another program/i;

export class Process {
  #child = null;
  #over = null; // resolves to {code, signal}, when all that it wrote is in the log
  #log = [];
  #started = 0; // where in the log its last start begins
  /** {code, signal} once it has ended and all that it wrote is in the log, until it is started again. */
  ended = null;

  /** `command`: the program and its arguments; or a function that answers them at each start. */
  constructor(command) {
    this.command = command;
  }

  /** The process id of the process; each start gives another one. */
  get pid() {
    return this.#child.pid;
  }

  /** Starts it, with `environment` besides that of the test, of which it sees no FEEDGATE_*, and with `more` arguments. */
  start(environment = {}, more = []) {
    const command = typeof this.command === "function" ? this.command() : this.command;
    const [program, ...args] = [...command, ...more];
    const env = { ...inherited(), ...environment };
    const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => this.#log.push(text));
    this.ended = null;
    this.#child = child;
    this.#started = this.#log.length;
    this.#over = new Promise((resolve, reject) => {
      child.once("error", reject);
      // At its "exit" the last lines that it wrote may still be in the pipe.
      child.once("close", (code, signal) => resolve((this.ended = { code, signal })));
    });
  }

  /** SIGKILL: nothing is flushed, nobody is told. */
  async kill() {
    return this.stop("SIGKILL");
  }

  /** Ends the process and answers {code, signal}. */
  async stop(signal = "SIGTERM") {
    if (this.#child === null) return null;
    if (!this.ended) this.#child.kill(signal);
    return this.#over;
  }

  /** SIGSTOP: it does nothing, and its sockets stay. */
  pause() {
    this.#child.kill("SIGSTOP");
  }

  /** SIGCONT: lets a paused process run again. */
  resume() {
    this.#child.kill("SIGCONT");
  }

  /** The bytes of its resident memory; null if it is not running. */
  async memory() {
    const status = this.ended ? "" : await readFile(`/proc/${this.#child.pid}/status`, "utf8").catch(() => "");
    const match = /^VmRSS:\s+(\d+) kB$/m.exec(status);
    return match && Number(match[1]) * 1024;
  }

  /** Whether the process has written something that matches `pattern` since its last start. */
  said(pattern) {
    return pattern.test(this.#log.slice(this.#started).join(""));
  }

  /** Waits until `ready` answers true or the process has ended; throws PortTaken if another process has its port. */
  async settled(what, ready) {
    await until(what, async () => this.ended || (await ready()), { seen: () => this.log() });
    if (this.ended && this.said(PORT_TAKEN)) throw new PortTaken(this.log());
  }

  /** SIGHUP: it reads its settings again. */
  hangUp() {
    this.#child.kill("SIGHUP");
  }

  /** All lines that the process has written to their end and that match `pattern`. */
  lines(pattern) {
    return this.#log.join("").split("\n").slice(0, -1).filter((line) => pattern.test(line));
  }

  /** The last lines that it wrote. */
  log() {
    return this.#log.join("").split("\n").slice(-LOG_LINES_SHOWN).join("\n");
  }
}
