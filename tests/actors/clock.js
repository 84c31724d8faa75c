// The wall clock of a server, which a test moves.
//
//     const clock = await Clock.make(t);
//     const server = await Server.start(t, { under: clock.under });
//     await clock.shift(-3_600_000);

import { execFile } from "node:child_process";
import { mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const SOURCE = fileURLToPath(new URL("clock.c", import.meta.url));

export class Clock {
  #file;

  /** Builds what is preloaded; it goes when the test ends. */
  static async make(t) {
    const clock = new Clock();
    const directory = await mkdtemp(join(tmpdir(), "feedgate-clock-"));
    t.after(async () => {
      await clock.#file?.close();
      await rm(directory, { recursive: true, force: true });
    });
    const [library, file] = [join(directory, "clock.so"), join(directory, "shift")];
    await promisify(execFile)("cc", ["-shared", "-fPIC", "-O2", "-o", library, SOURCE, "-ldl"]);
    await writeFile(file, Buffer.alloc(8));
    clock.#file = await open(file, "r+");
    clock.under = () => ["env", `LD_PRELOAD=${library}`, `CLOCK_SHIFT_FILE=${file}`];
    return clock;
  }

  /** From now on the server's wall clock is so many milliseconds ahead of ours. */
  async shift(ms) {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(ms));
    await this.#file.write(bytes, 0, 8, 0);
  }
}
