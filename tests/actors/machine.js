// A bare Debian that runs under systemd, as a machine does: the root that tests/run has made with debootstrap, in a container
// of systemd-nspawn. All that changes in it is gone when the test ends. It shares the network of this machine, so its servers
// and those of the test reach each other on 127.0.0.1.
//
//     const machine = await Machine.boot(t, { shown: directory });    a directory of this machine is /mnt there
//     await machine.run("systemctl", "start", "feedgate");            throws if the command fails

import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

import { Process, TOOLS } from "./process.js";
import { until } from "./until.js";

const run = promisify(execFile);

export class Machine {
  #nspawn;
  #leader;

  static async boot(t, { shown }) {
    const machine = new this();
    const options = ["--quiet", "--register=no", "--keep-unit", "--volatile=overlay", "--console=pipe", "--boot"];
    machine.#nspawn = new Process(["systemd-nspawn", ...options, `--bind-ro=${shown}:/mnt`, "--directory", join(TOOLS, "root")]);
    machine.#nspawn.start();
    t.after(() => machine.#nspawn.kill());
    await until("the machine is up", () => machine.#isUp(), { seen: () => machine.#nspawn.log() });
    return machine;
  }

  /** Runs a command as root, and gives what it prints. */
  async run(...command) {
    const { stdout } = await run("nsenter", ["--target", this.#leader, "--all", ...command]);
    return stdout.trim();
  }

  /** Like `run`, but gives `null` if the command fails. */
  ask(...command) {
    return this.run(...command).catch(() => null);
  }

  /** What systemd says of a unit: "active", "inactive", "failed" and others. */
  async state(unit) {
    return /^ActiveState=(.*)$/m.exec(await this.run("systemctl", "show", "--property=ActiveState", unit))[1];
  }

  /** The process id of a unit's main process in the machine; "0" if it does not run. */
  async pid(unit) {
    return /^MainPID=(.*)$/m.exec(await this.run("systemctl", "show", "--property=MainPID", unit))[1];
  }

  /** All that a unit has logged. */
  journal(unit) {
    return this.run("journalctl", "--no-pager", "--output=cat", "--unit", unit);
  }

  async write(path, text) {
    await mkdir(dirname(this.#path(path)), { recursive: true });
    await writeFile(this.#path(path), text);
  }

  async read(path) {
    return (await readFile(this.#path(path), "utf8")).trim();
  }

  #path(path) {
    return join("/proc", this.#leader, "root", path);
  }

  /** Whether systemd has started all that it starts. */
  async #isUp() {
    if (this.#nspawn.ended) throw new Error(`systemd-nspawn ended: ${this.#nspawn.log()}`);
    this.#leader = await this.#child();
    return this.#leader !== undefined && (await this.ask("systemctl", "is-system-running")) === "running";
  }

  /** The child of systemd-nspawn. One that prepares the container comes first; then it is systemd. */
  async #child() {
    const { pid } = this.#nspawn;
    return /^\d+/.exec(await readFile(`/proc/${pid}/task/${pid}/children`, "utf8"))?.[0];
  }
}
