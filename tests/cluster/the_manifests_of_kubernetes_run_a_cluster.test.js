// deploy/kubernetes: what its schemas allow, and what the processes do with the settings that their pods give them. The pods
// are played by processes on this machine: the same arguments and variables, directories as a kubelet mounts them.

import assert from "node:assert/strict";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Cluster } from "../actors/cluster.js";
import { manifests, mounted } from "../actors/kubernetes.js";
import { Scrape } from "../actors/openmetrics.js";
import { freePort } from "../actors/port.js";
import { TOOLS } from "../actors/process.js";
import { Program } from "../actors/program.js";

const FOLDER = fileURLToPath(new URL("../../deploy/kubernetes", import.meta.url));
/** The oldest one that has all we use, and the newest one that the validator knows. */
const VERSIONS = ["1.30", "1.37"];

const { kustomization, objects, settings } = manifests(FOLDER, VERSIONS);
const all = (kind) => objects.filter((object) => object.kind === kind);
const deployment = (name) => all("Deployment").find(({ metadata }) => metadata.name === name);
const pod = (name) => deployment(name).spec.template;
const container = (name) => pod(name).spec.containers[0];
const chooses = (selector, { metadata }) => Object.entries(selector).every(([label, value]) => metadata.labels[label] === value);
const variables = (name) => Object.fromEntries(container(name).env.map((given) => [given.name, given.value]));
const told = settings["feedgate.toml"];

async function scratch(t) {
  const directory = await mkdtemp(join(tmpdir(), "feedgate-kubernetes-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

test("a manifest with a misspelled field is refused by its name", async (t) => {
  const copy = await scratch(t);
  await cp(FOLDER, copy, { recursive: true });
  const text = await readFile(join(copy, "gateway.yaml"), "utf8");
  await writeFile(join(copy, "gateway.yaml"), text.replace("livenessProbe:", "livenesProbe:"));
  assert.throws(() => manifests(copy, VERSIONS), /gateway\.yaml: Deployment: .*livenesProbe.*Kubernetes 1\.30/);
});

test("every selector of a manifest chooses pods, and every port that is named is one of theirs", () => {
  const pods = [pod("gateway"), pod("timeline")];
  for (const { kind, metadata, spec } of objects) {
    const selector = { Service: spec?.selector, NetworkPolicy: spec?.podSelector?.matchLabels }[kind] ?? spec?.selector?.matchLabels;
    if (!selector) continue;
    const chosen = pods.filter((one) => chooses(selector, one));
    assert.equal(chosen.length, 1, `${kind} ${metadata.name} chooses the pods of one deployment`);
    const ports = [...(spec.ports ?? []).map(({ targetPort }) => targetPort), ...(spec.ingress ?? []).flatMap((rule) => rule.ports.map(({ port }) => port))];
    const named = chosen[0].spec.containers[0].ports.map(({ name }) => name);
    for (const port of ports) assert.ok(named.includes(port), `${kind} ${metadata.name} names the port ${port}`);
  }
  for (const { spec } of all("HorizontalPodAutoscaler")) assert.ok(deployment(spec.scaleTargetRef.name));
});

test("what a container mounts is a volume of its pod, and what a volume names is generated or explained", async () => {
  const guide = await readFile(new URL("../../docs/operate.md", import.meta.url), "utf8");
  const maps = kustomization.configMapGenerator.map(({ name }) => name);
  for (const name of ["gateway", "timeline"]) {
    const { volumes } = pod(name).spec;
    for (const mount of container(name).volumeMounts) assert.ok(volumes.some((volume) => volume.name === mount.name), mount.name);
    for (const { configMap, secret } of volumes) {
      if (configMap) assert.ok(maps.includes(configMap.name), configMap.name);
      if (secret) assert.match(guide, new RegExp(`create secret generic ${secret.secretName} `));
    }
    assert.equal(container(name).image, kustomization.images[0].name);
  }
});

test("a pod has the time that its process takes to end", () => {
  const waits = container("gateway").lifecycle.preStop.sleep.seconds;
  const goodbyes = 5;
  assert.ok(waits + told.gateway.drain_ms / 1000 + goodbyes < pod("gateway").spec.terminationGracePeriodSeconds);
  assert.ok((2 * told.timeline.drain_ms) / 1000 < pod("timeline").spec.terminationGracePeriodSeconds);
});

test("a pod that migrates a large database is not killed before the process itself gives up", async () => {
  const connect = await readFile(new URL("../../common/backends/postgres/src/connect.rs", import.meta.url), "utf8");
  const [, seconds] = /const MIGRATION: Duration = Duration::from_secs\((\d+)\)/.exec(connect);
  for (const name of ["gateway", "timeline"]) {
    const { periodSeconds, failureThreshold } = container(name).startupProbe;
    assert.ok(periodSeconds * failureThreshold >= Number(seconds), `${name}: ${periodSeconds * failureThreshold} s`);
  }
});

/** Starts the process of a pod on this machine: directories that it mounts lie in `root`, each of its ports is a free one. */
async function started(t, name, root, ports) {
  const moved = (value) => {
    const mount = container(name).volumeMounts.find(({ mountPath }) => value === mountPath || value.startsWith(`${mountPath}/`));
    if (mount) return join(root, mount.name, value.slice(mount.mountPath.length));
    const [, port] = /^0\.0\.0\.0:(\d+)$/.exec(value) ?? [];
    return port ? `0.0.0.0:${ports[port]}` : value;
  };
  const environment = Object.fromEntries(Object.entries(variables(name)).map(([variable, value]) => [variable, moved(value)]));
  const [program, ...args] = container(name).args;
  const process = new Program(() => [join(TOOLS, "bin", program), ...args, "--node", `${name}-7d9f-x2x9k`]);
  t.after(() => process.kill());
  await process.serve(`${name} is ready`, async () => (await probed(name, "startupProbe", ports)) === 200, environment);
  assert.equal(process.ended, null, process.log());
  return process;
}

/** The status with which a process answers one of the probes of its pod. */
async function probed(name, probe, ports) {
  const { path, port } = container(name)[probe].httpGet;
  const { containerPort } = container(name).ports.find((one) => one.name === port);
  const answer = await fetch(`http://127.0.0.1:${ports[containerPort]}${path}`).catch(() => null);
  return answer?.status;
}

test("the processes start with what their pods give them, answer the probes, and end in time", async (t) => {
  const root = await scratch(t);
  const engines = await Cluster.start(t, { gateways: 0, workers: 0 });
  const keys = Object.fromEntries(await Promise.all(["api_key", "token_key"].map(async (name) => [name, await readFile(join(engines.secrets, name), "utf8")])));
  await mounted(join(root, "keys"), keys);
  await mounted(join(root, "stores"), engines.urls);
  await mounted(join(root, "config"), { "feedgate.toml": await readFile(join(FOLDER, "feedgate.toml"), "utf8") });
  await mkdir(join(root, "data"));

  const ports = Object.fromEntries(await Promise.all([8080, 8081, 8082].map(async (port) => [port, await freePort()])));
  const timeline = await started(t, "timeline", root, ports);
  const gateway = await started(t, "gateway", root, ports);
  for (const probe of ["readinessProbe", "livenessProbe"]) assert.equal(await probed("gateway", probe, ports), 200, probe);
  assert.equal(await probed("timeline", "livenessProbe", ports), 200);

  // The number by which the autoscaler counts, where it looks for it.
  const numbers = await Scrape.of(`http://127.0.0.1:${ports[8081]}`, engines.key);
  const [{ spec }] = all("HorizontalPodAutoscaler");
  assert.equal(numbers.value(spec.metrics[0].pods.metric.name), 0);

  assert.deepEqual(await gateway.stop(), { code: 0, signal: null });
  assert.deepEqual(await timeline.stop(), { code: 0, signal: null });
});
