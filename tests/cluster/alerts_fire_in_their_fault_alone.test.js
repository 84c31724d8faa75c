// deploy/prometheus: each alert fires in its own fault and in no other, by promtool, which plays hours in a moment; and
// what a real Prometheus says of a cluster whose processes and engines are broken.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Cluster } from "../actors/cluster.js";
import { alerts, Prometheus } from "../actors/prometheus.js";
import { until } from "../actors/until.js";

const { groups } = alerts();
const rules = groups.flatMap((group) => group.rules);
const names = rules.map(({ alert }) => alert);
const deployed = (name) => fileURLToPath(new URL(`../../deploy/prometheus/${name}`, import.meta.url));

/**
 * A cluster for half an hour, a value every 15 s: promtool's notation is START+STEPxTIMES. Some of it goes wrong, as on any
 * day: a turn of a job in fifty fails, a device in twenty-five loads its feed again, a post waits for 40 s.
 */
const HEALTHY = {
  'up{job="feedgate",instance="g1"}': "1x120",
  'up{job="feedgate-timeline",instance="t1"}': "1x120",
  'feedgate_store_up{store="archive",instance="g1"}': "1x120",
  'feedgate_store_up{store="inboxes",instance="g1"}': "1x120",
  'feedgate_store_up{store="jobs",instance="g1"}': "1x120",
  'feedgate_lease_valid{instance="g1"}': "1x120",
  'feedgate_uptime_seconds{instance="g1"}': "600+15x120",
  'feedgate_oldest_event_age_seconds{instance="g1"}': "0x50 40x2 0x67",
  'feedgate_worker_standstill_seconds{instance="t1"}': "0x60 20x59",
  'feedgate_sweep_age_seconds{instance="t1"}': "0x60 5x59",
  'feedgate_jobs_total{lane="posts",outcome="done",instance="t1"}': "0+98x120",
  'feedgate_jobs_total{lane="posts",outcome="failed",instance="t1"}': "0+2x120",
  'feedgate_writes_total{outcome="accepted",instance="g1"}': "0+100x120",
  'feedgate_writes_total{outcome="failed",instance="g1"}': "0x120",
  'feedgate_http_problems_total{type="internal",instance="g1"}': "0x120",
  'feedgate_session_requests_total{outcome="accepted",instance="g1"}': "0+50x120",
  'feedgate_session_requests_total{outcome="node_full",instance="g1"}': "0x120",
  'feedgate_resets_total{cause="cap",instance="g1"}': "0+2x120",
};

/** Each fault begins after a quarter of an hour: value 60. Then come the alert that it is for, and since when it lasts. */
const FAULTS = {
  "a gateway is gone": ["FeedgateProcessDown", 60, { 'up{job="feedgate",instance="g1"}': "1x59 0x60" }],
  "a worker is gone": ["FeedgateProcessDown", 60, { 'up{job="feedgate-timeline",instance="t1"}': "1x59 0x60" }],
  "PostgreSQL is away": ["FeedgateStoreDown", 60, { 'feedgate_store_up{store="archive",instance="g1"}': "1x59 0x60" }],
  "Redis is away": ["FeedgateStoreDown", 60, { 'feedgate_store_up{store="inboxes",instance="g1"}': "1x59 0x60" }],
  "NATS is away": ["FeedgateStoreDown", 60, { 'feedgate_store_up{store="jobs",instance="g1"}': "1x59 0x60" }],
  "a lease has lapsed": ["FeedgateLeaseLapsed", 60, { 'feedgate_lease_valid{instance="g1"}': "1x59 0x60" }],
  "no worker runs": ["FeedgateFanOutBehind", 120, { 'feedgate_oldest_event_age_seconds{instance="g1"}': "0x59 121+15x60" }],
  "a worker hangs": ["FeedgateWorkerStandsStill", 60, { 'feedgate_worker_standstill_seconds{instance="t1"}': "0x59 61+15x60" }],
  // Kubernetes starts the worker anew after three minutes, so the alert must come before.
  "a sweep has ended": ["FeedgateSweepStopped", 120, { 'feedgate_sweep_age_seconds{instance="t1"}': "0x59 15+15x11 0x48" }],
  "each fifth turn of a job fails": ["FeedgateJobsFail", 450, { 'feedgate_jobs_total{lane="posts",outcome="failed",instance="t1"}': "0x59 0+25x60" }],
  "writes fail": ["FeedgateWritesFail", 75, { 'feedgate_writes_total{outcome="failed",instance="g1"}': "0x59 0+1x60" }],
  "a row is damaged": ["FeedgateDataDamaged", 15, { 'feedgate_http_problems_total{type="internal",instance="g1"}': "0x59 0 1x59" }],
  "a device reads an inbox that is damaged": ["FeedgateDataDamaged", 15, { 'feedgate_session_damage_total{instance="g1"}': "0x59 0 1x59" }],
  "a job finds a row damaged": ["FeedgateDataDamaged", 15, { 'feedgate_jobs_total{lane="posts",outcome="damaged",instance="t1"}': "0x59 0 1x59" }],
  "a gateway is full": ["FeedgateNodeFull", 135, { 'feedgate_session_requests_total{outcome="node_full",instance="g1"}': "0x59 0+1x60" }],
  "every second device loads its feed again": ["FeedgateManyResets", 900, { 'feedgate_resets_total{cause="lost",instance="g1"}': "0x59 0+25x60" }],
};

/** What promtool says of these stories; annotations are left out, since it would compare their whole texts. */
async function played(t, stories) {
  const directory = await mkdtemp(join(tmpdir(), "feedgate-alerts-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const bare = groups.map((group) => ({ ...group, rules: group.rules.map(({ annotations, ...rule }) => rule) }));
  await writeFile(join(directory, "alerts.yml"), JSON.stringify({ groups: bare }));
  const tests = stories.map(({ name, series, expected }) => ({
    name,
    interval: "15s",
    input_series: Object.entries(series).map(([series, values]) => ({ series, values })),
    alert_rule_test: expected,
  }));
  await writeFile(join(directory, "tests.yml"), JSON.stringify({ rule_files: ["alerts.yml"], evaluation_interval: "15s", tests }));
  return spawnSync("promtool", ["test", "rules", join(directory, "tests.yml")], { encoding: "utf8" });
}

const severity = (name) => rules.find(({ alert }) => alert === name).labels.severity;

/** What is expected at a time: which alerts fire, each with the labels of its series, and that no other one does. */
function at(seconds, firing) {
  return names.map((alertname) => ({
    alertname,
    eval_time: `${seconds}s`,
    exp_alerts: alertname in firing ? [{ exp_labels: { severity: severity(alertname), ...firing[alertname] } }] : [],
  }));
}

/** The labels with which an alert fires: those of the series that its expression keeps. */
function labels(alert, series) {
  const [, inside] = /\{(.*)\}/.exec(Object.keys(series)[0]);
  const all = Object.fromEntries(inside.split(",").map((pair) => pair.split("=").map((word) => word.replaceAll('"', ""))));
  const { instance, store } = all;
  const kept = {
    FeedgateProcessDown: all,
    FeedgateStoreDown: { store },
    FeedgateLeaseLapsed: { instance },
    FeedgateWorkerStandsStill: { instance },
    FeedgateSweepStopped: { instance },
    FeedgateNodeFull: { instance },
  };
  return kept[alert] ?? {};
}

test("no alert fires in a healthy cluster", async (t) => {
  const story = { name: "healthy", series: HEALTHY, expected: [300, 900, 1800].flatMap((seconds) => at(seconds, {})) };
  const said = await played(t, [story]);
  assert.equal(said.status, 0, said.stdout + said.stderr);
});

test("each alert fires in its fault, once the fault has lasted as long as it says, and in no other", async (t) => {
  const stories = Object.entries(FAULTS).map(([name, [alert, after, series]]) => {
    const begins = 60 * 15;
    const firing = at(begins + after, { [alert]: labels(alert, series) });
    return { name, series: { ...HEALTHY, ...series }, expected: [...at(begins - 15, {}), ...firing] };
  });
  const said = await played(t, stories);
  assert.equal(said.status, 0, said.stdout + said.stderr);
  assert.deepEqual(names.filter((name) => !Object.values(FAULTS).some(([alert]) => alert === name)), [], "every alert has a fault here");
});

test("a story that goes otherwise is noticed", async (t) => {
  const series = { ...HEALTHY, 'feedgate_lease_valid{instance="g1"}': "0x120" };
  const said = await played(t, [{ name: "a lease that never was", series, expected: at(900, {}) }]);
  assert.notEqual(said.status, 0);
  assert.match(said.stdout + said.stderr, /FeedgateLeaseLapsed/);
});

test("promtool takes the rules and the settings of scrapes as they are", () => {
  for (const command of [["check", "rules", deployed("alerts.yml")], ["check", "config", "--syntax-only", deployed("prometheus.yml")]]) {
    const said = spawnSync("promtool", command, { encoding: "utf8" });
    assert.equal(said.status, 0, said.stdout + said.stderr);
  }
});

test("the log says what FeedgateDataDamaged quotes", async () => {
  const { annotations } = rules.find(({ alert }) => alert === "FeedgateDataDamaged");
  const quoted = [...annotations.description.matchAll(/"(.+?)"/g)].map(([, text]) => text);
  const code = await Promise.all(["gateway/src/api/problem.rs", "gateway/src/connection/shared.rs", "common/src/error.rs"].map((file) => readFile(new URL(`../../${file}`, import.meta.url), "utf8")));
  assert.equal(quoted.length, 3);
  for (const text of quoted) assert.ok(code.join().includes(`"${text}`), text);
});

test("a real Prometheus scrapes a cluster, and its alerts fire while something is broken and end with it", async (t) => {
  const cluster = await Cluster.start(t, { gateways: 1, workers: 1 });
  const [gateway, worker] = [cluster.gateways[0], cluster.workers[0]];
  const prometheus = await Prometheus.start(t, { key: cluster.key, gateways: [gateway.port], workers: [worker.port] });
  const up = { [`127.0.0.1:${gateway.port}`]: "up", [`127.0.0.1:${worker.port}`]: "up" };
  const seen = async () => JSON.stringify([await prometheus.firing(), await prometheus.targets()]);
  const fires = (...expected) =>
    until(`exactly ${expected} fire`, async () => `${await prometheus.firing()}` === `${expected.toSorted()}`, { seen });

  await until("both are scraped", async () => JSON.stringify(await prometheus.targets()) === JSON.stringify(up), { seen });
  await until("rules are evaluated", async () => (await prometheus.series("feedgate_lease_valid == 1")) === 1, { seen });
  await fires();

  await worker.pause();
  await fires("FeedgateProcessDown");
  await worker.resume();
  await fires();

  await cluster.nats.kill();
  await fires("FeedgateStoreDown");
  await cluster.nats.restart();
  await fires();

  // The rate of failed writes is over five minutes, so this one lasts longer than the outage.
  await cluster.postgres.pause();
  await fires("FeedgateStoreDown");
  await assert.rejects(cluster.publish("ann", { text: "this is not accepted" }));
  await assert.rejects(cluster.publish("ann", { text: "nor is this" }));
  await fires("FeedgateStoreDown", "FeedgateWritesFail");
  await cluster.postgres.resume();
  await fires("FeedgateWritesFail");
  assert.deepEqual(await prometheus.broken(), []);
});
