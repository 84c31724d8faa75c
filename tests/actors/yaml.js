// YAML as a parser reads it that is not ours.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { TOOLS } from "./process.js";

/** What stands in a file of YAML with one document. */
export function yamlOf(file) {
  const read = spawnSync(join(TOOLS, "python", "bin", "python"), ["-c", "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)"], {
    input: readFileSync(file, "utf8"),
    encoding: "utf8",
  });
  if (read.status !== 0) throw new Error(`${file}: ${read.error ?? read.stderr}`);
  return JSON.parse(read.stdout);
}
