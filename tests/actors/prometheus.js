// A real Prometheus that scrapes processes of ours by the files in deploy/prometheus. What it takes from them anew are the
// addresses, the path of the key, and the times: it scrapes every two seconds, and `for` of an alert is a second.
//
//     const prometheus = await Prometheus.start(t, { key, gateways: [port], workers: [port] });
//     await prometheus.firing();                         ["FeedgateStoreDown"]

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { Program } from "./program.js";
import { yamlOf } from "./yaml.js";

const deployed = (name) => fileURLToPath(new URL(`../../deploy/prometheus/${name}`, import.meta.url));

/** What alerts.yml says: {groups}. */
export const alerts = () => yamlOf(deployed("alerts.yml"));

/** What prometheus.yml says, for processes on these ports. */
function configuration(directory, gateways, workers) {
  const config = yamlOf(deployed("prometheus.yml"));
  const addresses = { feedgate: gateways, "feedgate-timeline": workers };
  for (const job of config.scrape_configs) {
    job.static_configs = [{ targets: addresses[job.job_name].map((port) => `127.0.0.1:${port}`) }];
    if (job.authorization) job.authorization.credentials_file = join(directory, "key");
  }
  // A gateway waits a second for a store that does not answer.
  const times = { scrape_interval: "2s", scrape_timeout: "2s", evaluation_interval: "500ms" };
  return { ...config, global: { ...config.global, ...times } };
}

function hurried({ groups }) {
  const rules = ({ rules }) => rules.map((rule) => (rule.for ? { ...rule, for: "1s" } : rule));
  return { groups: groups.map((group) => ({ ...group, rules: rules(group) })) };
}

export class Prometheus extends Program {
  static async start(t, { key, gateways, workers }) {
    const directory = await mkdtemp(join(tmpdir(), "feedgate-prometheus-"));
    // Prometheus reads JSON too, because every text in JSON is one in YAML.
    await writeFile(join(directory, "prometheus.yml"), JSON.stringify(configuration(directory, gateways, workers)));
    await writeFile(join(directory, "alerts.yml"), JSON.stringify(hurried(alerts())));
    await writeFile(join(directory, "key"), key, { mode: 0o600 });
    const files = [`--config.file=${join(directory, "prometheus.yml")}`, `--storage.tsdb.path=${join(directory, "data")}`];
    const prometheus = new Prometheus((address) => ["prometheus", ...files, `--web.listen-address=${address}`]);
    t.after(async () => {
      await prometheus.kill();
      await rm(directory, { recursive: true, force: true });
    });
    await prometheus.serve("Prometheus is ready", async () => (await fetch(`${prometheus.url}/-/ready`).catch(() => null))?.ok);
    return prometheus;
  }

  /** It says nothing of ours when it serves. */
  said(pattern) {
    return super.said(/Server is ready to receive web requests/) || super.said(pattern);
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  async #asked(path) {
    const answer = await (await fetch(`${this.url}/api/v1/${path}`)).json();
    if (answer.status !== "success") throw new Error(JSON.stringify(answer));
    return answer.data;
  }

  /** The names of the alerts that fire now, each once, in order. */
  async firing() {
    const { alerts: all } = await this.#asked("alerts");
    return [...new Set(all.filter(({ state }) => state === "firing").map(({ labels }) => labels.alertname))].sort();
  }

  /** {address: health} of each process that it scrapes: "up", "down" or "unknown". */
  async targets() {
    const { activeTargets } = await this.#asked("targets");
    return Object.fromEntries(activeTargets.map(({ labels, health }) => [labels.instance, health]));
  }

  /** The names of the rules whose last evaluation failed. */
  async broken() {
    const { groups } = await this.#asked("rules");
    return groups.flatMap(({ rules }) => rules).filter(({ health }) => health === "err").map(({ name }) => name);
  }

  /** How many series a query gives. */
  async series(query) {
    return (await this.#asked(`query?query=${encodeURIComponent(query)}`)).result.length;
  }
}
