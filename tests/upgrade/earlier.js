// The programs of earlier commits, which tests/run builds from the history of the repository.

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { TOOLS } from "../actors/process.js";

const lines = readFileSync(new URL("from", import.meta.url), "utf8").split("\n").filter((line) => /^[0-9a-f]{40} /.test(line));

/** The commits of the file `from`: {commit, name, beside, bin}; `bin` is the directory of its programs. */
export const EARLIER = lines.map((line) => {
  const [commit, what] = line.split(" ");
  return { name: commit.slice(0, 7), beside: what === "beside", bin: join(TOOLS, "before", commit, "bin") };
});

/** The one whose programs run beside those of this tree. */
export const BEFORE = EARLIER.find(({ beside }) => beside);

/** The processes of a home: one, or those of a cluster. */
export const processes = (home) => home.members ?? [home];

/** Gives processes that have ended the programs in `bin`, and starts them at once. */
export async function start(members, bin) {
  await Promise.all(members.map((member) => Object.assign(member, { bin }).start()));
}
