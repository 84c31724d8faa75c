// Asks the doctor whether the store of a home is sound.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";

import { inherited } from "./process.js";

/**
 * Fails if a row of the Archive is at odds with another one, or an inbox with the Archive. The store of a single process is
 * looked at once it is stopped. `more`: further arguments of the command.
 */
export async function isSound(home, ...more) {
  if (!home.postgres) await home.stop();
  const place = home.postgres ? ["--config", home.gateways[0].config] : ["--data", home.data, "--config", home.config];
  const looked = promisify(execFile)(home.binary, ["doctor", ...more, ...place], { env: inherited() });
  await looked.catch(({ stdout, stderr }) => assert.fail(`${stdout}${stderr}`));
}
