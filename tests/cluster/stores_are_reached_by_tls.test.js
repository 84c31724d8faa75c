// TLS with the stores: real engines that take nothing else, and an authority of the test's own. What is wrong with a
// certificate is said in the last words of a start, and nothing is ever sent without TLS in its place.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";

import { Cluster } from "../actors/cluster.js";
import { Nats, Postgres, Redis } from "../actors/engines.js";
import { Phone } from "../actors/phone.js";
import { Process, TOOLS } from "../actors/process.js";
import { SecuredEngines } from "../actors/secured.js";
import { until } from "../actors/until.js";

/** Runs a post from a backend to a phone that listens. */
async function delivers(t, cluster) {
  await cluster.follow("ann", "bob");
  const phone = await Phone.open(t, cluster, "ann");
  await phone.subscribed();
  await cluster.publish("bob", { text: "by TLS" });
  await phone.shows("the post", (items) => items.length === 1);
}

/** A fault of TLS ends a start at once, so no start waits for so long. */
const NEVER_SECS = 120;

/** A Redis that does not speak TLS may say nothing, and a start waits for it to the end. */
const SILENT_SECS = 10;

/** What a worker says that cannot start with these URLs and settings; it must not start. */
async function refused(t, engines, urls, { config = engines.config, waits = NEVER_SECS } = {}) {
  const file = engines.file("refused.toml");
  const lines = Object.entries({ ...urls, wait_for_stores_secs: waits }).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  await writeFile(file, `${lines.join("\n")}\n${config}`);
  const worker = new Process([join(TOOLS, "bin", "timeline"), "--config", file, "--health-listen", "127.0.0.1:0"]);
  t.after(() => worker.kill());
  worker.start();
  await worker.settled("it ends", () => worker.said(/Ctrl-C stops the server/));
  assert.equal(worker.ended?.code, 1, worker.log());
  return worker.log();
}

const STORES = { archive_url: "PostgreSQL", inbox_url: "Redis", bus_url: "nats-server" };

test("a cluster lives on engines that speak TLS alone, and what is not right is refused with its reason", async (t) => {
  const engines = await SecuredEngines.start(t);
  const cluster = await Cluster.start(t, { engines, config: engines.config, gateways: 1, workers: 1 });
  await delivers(t, cluster);
  const right = cluster.urls;
  const elsewhere = engines.urls(cluster.database, "localhost");
  for (const [setting, store] of Object.entries(STORES)) {
    await t.test(`${store} with a certificate of another host`, async (t) => {
      const said = await refused(t, engines, { ...right, [setting]: elsewhere[setting] });
      assert.match(said, new RegExp(`\\(${setting} = .*no TLS with ${store}.*its certificate is of another host than the URL names`));
      assert.match(said, /127\.0\.0\.1.*localhost|localhost.*127\.0\.0\.1/, "both names are told");
    });
  }

  const plain = await Promise.all([Postgres.start(t), Redis.start(t), Nats.start(t)]);
  const [archive_url, inbox_url, bus_url] = plain.map(({ url }) => url);
  const untold = {
    archive_url: [archive_url, /no TLS with PostgreSQL at \S+: server does not support TLS/],
    inbox_url: [inbox_url.replace("redis:", "rediss:"), /Redis .*(what answers there does not speak TLS|does it speak TLS on this port\?)/],
    bus_url: [bus_url.replace("nats:", "tls:"), /no TLS with nats-server at \S+: what answers there does not speak TLS/],
  };
  for (const [setting, [url, sentence]] of Object.entries(untold)) {
    await t.test(`${STORES[setting]} without TLS`, async (t) => {
      const waits = setting === "inbox_url" ? SILENT_SECS : NEVER_SECS;
      assert.match(await refused(t, engines, { ...right, [setting]: url }, { waits }), sentence);
    });
  }
});

test("a Redis Cluster is followed by TLS from node to node", async (t) => {
  const engines = await SecuredEngines.start(t, { clients: true, redis: "cluster" });
  const cluster = await Cluster.start(t, { engines, config: engines.config, gateways: 1, workers: 1 });
  await delivers(t, cluster);
  const elsewhere = { ...cluster.urls, inbox_url: engines.urls(cluster.database, "localhost").inbox_url };
  assert.match(await refused(t, engines, elsewhere), /no TLS with Redis: its certificate is of another host than the URL names/);
});

test("another authority and other certificates need no restart", async (t) => {
  const engines = await SecuredEngines.start(t, { clients: true });
  const cluster = await Cluster.start(t, { engines, config: engines.config, gateways: 1, workers: 1 });
  await cluster.follow("ann", "bob");
  const phone = await Phone.open(t, cluster, "ann");
  await phone.subscribed();
  await engines.renew();
  await until("a post is taken", async () => (await cluster.request("POST", "/v1/items", { author: "bob", body: { text: "hello" }, foreign_id: "one" })).status < 300);
  await phone.shows("the post", (items) => items.length === 1);
});

test("each store is refused when its authority is another one, whatever the others are", async (t) => {
  const engines = await SecuredEngines.start(t);
  await engines.postgres.database("x");
  await engines.authorityOf("other");
  const other = `[stores_tls]\nca = ${JSON.stringify(engines.file("other.pem"))}\n`;
  const right = engines.urls("x");
  const plain = await Promise.all([Postgres.start(t), Redis.start(t), Nats.start(t)]);
  const [archive_url, inbox_url, bus_url] = plain.map(({ url }) => url);
  const without = { archive_url: `${archive_url}?sslmode=disable`, inbox_url, bus_url };
  for (const [setting, store] of Object.entries(STORES)) {
    const sentence = new RegExp(`\\(${setting} = .*no TLS with ${store}.*of an authority that is not trusted; name the right one in stores_tls\\.ca`);
    assert.match(await refused(t, engines, { ...without, [setting]: right[setting] }, { config: other }), sentence);
    // Without a setting PostgreSQL's certificate is checked only if its URL says so.
    const checked = setting === "archive_url" ? `${right[setting]}?sslmode=verify-full` : right[setting];
    assert.match(await refused(t, engines, { ...without, [setting]: checked }, { config: "" }), sentence, "the system does not know it either");
  }
});

test("engines that ask for a certificate get ours, and say so if there is none", async (t) => {
  const engines = await SecuredEngines.start(t, { clients: true });
  const cluster = await Cluster.start(t, { engines, config: engines.config, gateways: 1, workers: 1 });
  await delivers(t, cluster);
  const none = `[stores_tls]\nca = ${JSON.stringify(engines.file("ca.pem"))}\n`;
  assert.match(await refused(t, engines, cluster.urls, { config: none }), /PostgreSQL.*(certificate|stores_tls)/);
  const trusted = cluster.urls.archive_url.replace("gate@", "feedgate@");
  assert.match(await refused(t, engines, { ...cluster.urls, archive_url: trusted }, { config: none }), /no TLS with Redis: it asks for a certificate of ours; name one in stores_tls\.certificate/);
  const free = await Redis.start(t);
  const last = { ...cluster.urls, archive_url: trusted, inbox_url: free.url };
  assert.match(await refused(t, engines, last, { config: none }), /no TLS with nats-server at \S+: it (asks for a certificate of ours|refused the handshake).*stores_tls\.certificate/);
});

test("a file that cannot be used stops the start, and the message names it and its setting", async (t) => {
  const engines = await SecuredEngines.start(t);
  const urls = engines.urls("postgres");
  const [gone, empty] = [engines.file("gone.pem"), engines.file("empty.pem")];
  await writeFile(empty, "");
  const tls = (settings) => `[stores_tls]\n${Object.entries(settings).map(([key, path]) => `${key} = ${JSON.stringify(path)}\n`).join("")}`;
  assert.match(await refused(t, engines, urls, { config: tls({ ca: gone }) }), new RegExp(`stores_tls\\.ca: ${gone} cannot be read: No such file`));
  assert.match(await refused(t, engines, urls, { config: tls({ ca: empty }) }), new RegExp(`stores_tls\\.ca: ${empty} is not right: it holds no section "BEGIN CERTIFICATE"`));
  const mixed = tls({ certificate: engines.file("client.pem"), key: engines.file("server.key") });
  assert.match(await refused(t, engines, urls, { config: mixed }), /stores_tls\.certificate \S+client\.pem with stores_tls\.key \S+server\.key: /);
  const half = tls({ certificate: engines.file("client.pem") });
  assert.match(await refused(t, engines, urls, { config: half }), /stores_tls\.key must name a file, because stores_tls\.certificate does/);
});
