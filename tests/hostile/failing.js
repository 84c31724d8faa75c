// A server whose calls fail when a test says so: see shim/failing.c, which is compiled here and preloaded.
//
//     const disk = await Disk.ready(t);
//     const server = await Server.start(t, { under: disk.under });
//     await disk.fail({ call: "fdatasync", error: EIO, path: ".jnl" });
//     await disk.hasFailed();
//     await disk.heal();

import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { until } from "../actors/until.js";

export const EIO = 5;
export const EMFILE = 24;
export const ENOSPC = 28;

const SHIM = fileURLToPath(new URL("shim/failing.c", import.meta.url));

export class Disk {
  /** Compiles the shim. What it leaves is swept up when the test `t` ends. */
  static async ready(t) {
    const disk = new Disk();
    disk.directory = await mkdtemp(join(tmpdir(), "feedgate-disk-"));
    t.after(() => rm(disk.directory, { recursive: true, force: true }));
    disk.library = join(disk.directory, "failing.so");
    execFileSync("cc", ["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", disk.library, SHIM, "-ldl", "-lpthread"]);
    return disk;
  }

  /** The command that a server is started under. */
  get under() {
    return () => ["env", `LD_PRELOAD=${this.library}`, `FAILING=${this.#arming}`];
  }

  get #arming() {
    return join(this.directory, "failing");
  }

  /** From now on the first `times` such calls on files whose path holds `path` fail with this errno. */
  async fail({ call, error, path, times = 1 }) {
    await rm(`${this.#arming}.failed`, { force: true });
    await writeFile(this.#arming, `${call} 1 ${times} ${error} ${path}`);
  }

  /** Lets all calls succeed again. */
  async heal() {
    await writeFile(this.#arming, "");
  }

  /** The calls that have failed, each as "CALL PATH". */
  async failed() {
    const text = await readFile(`${this.#arming}.failed`, "utf8").catch(() => "");
    return text.split("\n").filter((line) => line !== "");
  }

  async hasFailed() {
    await until("a call has failed", async () => (await this.failed()).length > 0);
  }
}
