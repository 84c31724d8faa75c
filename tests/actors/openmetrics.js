// What a process says at /metrics, as a parser reads it that is not ours (openmetrics.py).

import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { TOOLS } from "./process.js";

const PARSER = fileURLToPath(new URL("openmetrics.py", import.meta.url));

/** What the processes of a cluster alone count, by its name. */
const OF_A_CLUSTER = /^feedgate_(postgresql|redis)_call/;

/** What docs/metrics.md says that there is, as [name, type, labels]: `own` of one process, and `cluster`, more in a cluster. */
export async function documented() {
  const rows = (await readFile(new URL("../../docs/metrics.md", import.meta.url), "utf8")).split("\n").filter((line) => line.startsWith("| `feedgate_"));
  const told = rows.map((row) => row.split("|").slice(1, 4).map((cell) => cell.replaceAll("`", "").trim())).sort();
  const ofCluster = ([name]) => OF_A_CLUSTER.test(name);
  return { own: told.filter((row) => !ofCluster(row)), cluster: told.filter(ofCluster) };
}

/** The numbers of one scrape. */
export class Scrape {
  /** [{name, type, unit, help, samples: [[name, labels, value]]}] */
  families;

  /** Asks `url` for its numbers; `key` is an API key, if one is needed. Fails if they are not valid OpenMetrics. */
  static async of(url, key) {
    const answer = await fetch(`${url}/metrics`, { headers: key ? { authorization: `Bearer ${key}` } : {} });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`/metrics: ${answer.status} ${text}`);
    const type = answer.headers.get("content-type");
    if (!type.startsWith("application/openmetrics-text; version=1.0.0")) throw new Error(`/metrics is ${type}`);
    const parsed = spawnSync(join(TOOLS, "python", "bin", "python"), [PARSER], { input: text, encoding: "utf8" });
    if (parsed.status !== 0) throw new Error(`/metrics is not valid: ${parsed.error ?? parsed.stderr}`);
    const scrape = new Scrape();
    scrape.families = JSON.parse(parsed.stdout);
    return scrape;
  }

  /** The value of the only sample of this name that has these labels. */
  value(name, labels = {}) {
    const has = (sample) => Object.entries(labels).every(([label, value]) => sample[1][label] === value);
    const found = this.samples.filter((sample) => sample[0] === name && has(sample));
    if (found.length !== 1) throw new Error(`${found.length} samples of ${name} ${JSON.stringify(labels)}`);
    return found[0][2];
  }

  get samples() {
    return this.families.flatMap((family) => family.samples);
  }

  /** Each metric by the name that queries use for it: [name, type, labels]. */
  get metrics() {
    return this.families.map(({ name, type, samples }) => {
      const labels = Object.keys(samples[0][1]).filter((label) => label !== "le");
      return [type === "counter" ? `${name}_total` : name, type, labels.sort().join(", ")];
    });
  }
}
