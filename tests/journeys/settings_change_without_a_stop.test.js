import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHmac } from "node:crypto";
import { appendFile, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";

import { handshake } from "../actors/handshake.js";
import { Home } from "../actors/home.js";
import { Phone } from "../actors/phone.js";
import { inherited } from "../actors/process.js";
import { until } from "../actors/until.js";

const READ = /the settings were read again(?! and)/;
const REFUSED = /the settings were read again and are not taken/;

/** Gives every gateway these settings, and waits until each has said what became of them; gives the last one's line. */
async function reload(server, config, said = READ) {
  const before = server.gateways.map((gateway) => gateway.lines(said).length);
  await Promise.all(server.gateways.map((gateway) => gateway.reload(config)));
  const heard = async () => server.gateways.every((gateway, at) => gateway.lines(said).length > before[at]);
  await until("each gateway has read its settings", heard, { seen: () => server.log() });
  return server.gateways.at(-1).lines(said).at(-1);
}

/** Runs a command of `feedgate` that knows the settings of this server, and gives {code, out, said}. */
function feedgate({ binary }, args) {
  const env = inherited();
  return new Promise((resolve) => {
    execFile(binary, args, { env }, (error, out, said) => resolve({ code: error?.code ?? 0, out, said }));
  });
}

/** What the gateway of the phones answers a page of `origin` that asks for a WebSocket. */
const asks = (server, origin) => handshake(server.gateways.at(-1).url, origin);

/** The status of a read of ann's feed with this credential, at the gateway of the phones. */
async function read(server, bearer) {
  const answer = await fetch(`${server.gateways.at(-1).url}/v1/users/ann/feed`, { headers: { authorization: `Bearer ${bearer}` } });
  await answer.arrayBuffer();
  return answer.status;
}

/** A phone of ann, to whom bob's posts come, and `lives`, which fails unless a post comes over its first connection. */
async function follower(t, server) {
  await server.follow("ann", "bob");
  const phone = await Phone.open(t, server, "ann", { device: "phone" });
  await phone.subscribed();
  let posts = 0;
  const lives = async () => {
    posts += 1;
    await server.publish("bob", { n: posts });
    await phone.shows("the post", (items) => items.length === posts);
    assert.deepEqual([phone.connects, phone.stopped, phone.reloads, phone.repeated], [1, null, 1, 0]);
  };
  await lives();
  return { phone, lives };
}

const signed = (key, claims) => {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const said = `${part({ alg: "HS256", typ: "JWT" })}.${part(claims)}`;
  return `${said}.${createHmac("sha256", key).update(said).digest("base64url")}`;
};

test("origins, limits, proxies and the log change at a SIGHUP, and a phone stays connected", async (t) => {
  const server = await Home.start(t);
  const { lives } = await follower(t, server);
  const gateway = server.gateways.at(-1);
  assert.equal(await asks(server, "https://other.example"), 101);

  const line = await reload(server, '[gateway]\nallowed_origins = ["https://app.example"]\n');
  assert.match(line, /changed="gateway\.allowed_origins" secrets="" needs_restart=""/);
  assert.equal(await asks(server, "https://other.example"), 403);
  assert.equal(await asks(server, "https://app.example"), 101);
  await lives();

  const token = await server.token("ann");
  assert.deepEqual([await read(server, token), await read(server, token), await read(server, token)], [200, 200, 200]);
  await reload(server, "[gateway]\nreads_per_user = 0\n", REFUSED);
  await reload(server, "[gateway]\nreads_per_user_per_sec = 1\n");
  const statuses = await Promise.all(Array.from({ length: 8 }, () => read(server, token)));
  assert.ok(statuses.includes(429), `${statuses}`);
  assert.equal(await asks(server, "https://other.example"), 101, "what the file no longer says is as by default");
  await lives();

  await reload(server, "[gateway]\ntrusted_proxies = []\nupgrades_per_sec_per_address = 1\n");
  const upgrades = await Promise.all(Array.from({ length: 8 }, () => asks(server, "https://a.example")));
  assert.ok(upgrades.includes(429) && upgrades.includes(101), `${upgrades}`);
  await reload(server, "");
  const again = await Promise.all(Array.from({ length: 8 }, () => asks(server, "https://a.example")));
  assert.deepEqual(again, Array(8).fill(101));
  await lives();

  const came = /a device has connected/;
  await (await Phone.open(t, server, "ann", { device: "quiet" })).subscribed();
  await reload(server, 'log = "warn,feedgate_gateway::connection=debug"\n');
  await (await Phone.open(t, server, "ann", { device: "told" })).subscribed();
  await until("the line of the tablet", async () => gateway.lines(came).some((said) => /told/.test(said)), { seen: () => server.log() });
  assert.equal(gateway.lines(came).length, 1);
  assert.match(await reload(server, ""), /changed="log"/, "it is told by the filter that comes, if not by the one that goes");
  await lives();
});

test("users are told of other deeds, and by other kinds, from a SIGHUP on", async (t) => {
  const server = await Home.start(t);
  const { id } = await server.publish("bob", { text: "hello" });
  const told = async () => (await server.feed("bob")).filter(({ direct }) => direct).map(({ kind, body }) => [kind, body.actor]);
  const like = async (user) => {
    await server.call("PUT", `/v1/items/${id}/reactions/like/${user}`);
    await server.drained();
  };
  await like("ann");
  assert.deepEqual(await told(), [], "nobody is told unless it is asked for");
  assert.match(await reload(server, '[notify]\nreaction = "liked"\ngrouped = []\n'), /changed="notify\.grouped notify\.reaction" secrets="" needs_restart=""/);
  await like("cid");
  assert.deepEqual(await told(), [["liked", "cid"]]);
  await reload(server, '[notify]\nreaction = "a\\n"\n', REFUSED);
  await reload(server, '[notify]\nreaction = "heart"\ngrouped = []\n');
  await like("eve");
  assert.deepEqual(await told(), [["heart", "eve"], ["liked", "cid"]]);
  await server.call("DELETE", `/v1/items/${id}/reactions/like/cid`);
  await server.drained();
  assert.deepEqual(await told(), [["heart", "eve"]], "what was told by the kind of before is taken back");
  await reload(server, "");
  await like("dan");
  assert.deepEqual(await told(), [["heart", "eve"]]);
});

test("a feed comes at a SIGHUP, changes, and stays when the file has it no more", async (t) => {
  const server = await Home.start(t);
  const { phone, lives } = await follower(t, server);
  const likes = (kinds, more = "") => `[feeds.likes]\nkinds = ${JSON.stringify(kinds)}\n${more}`;
  const none = await server.request("GET", "/v1/users/ann/feed?name=likes");
  assert.equal(none.status, 404);

  assert.match(await reload(server, likes(["like"])), /changed="feeds\.likes\.cap feeds\.likes\.kinds feeds\.likes\.ranked feeds\.likes\.ttl_hours" secrets="" needs_restart=""/);
  const other = await Phone.open(t, server, "ann", { device: "phone", channel: "likes", over: phone });
  await other.subscribed();
  await server.publish("bob", { n: "a like" }, { kind: "like" });
  await other.shows("the like", (items) => items.length === 1);
  await lives();

  assert.match(await reload(server, likes(["like", "heart"], "cap = 2\n")), /changed="feeds\.likes\.cap feeds\.likes\.kinds" secrets="" needs_restart=""/);
  for (const n of [1, 2, 3]) await server.publish("bob", { n }, { kind: "heart" });
  await other.shows("the hearts", ([first]) => first.body.n === 3);
  assert.deepEqual((await server.feed("ann", "likes")).map(({ body }) => body.n), [3, 2], "its cap is another");

  await reload(server, '[feeds.likes]\nranked = true\ncap = 2\n', REFUSED);
  assert.match(await reload(server, ""), /changed="" secrets="" needs_restart="feeds\.likes\.cap feeds\.likes\.kinds feeds\.likes\.ranked feeds\.likes\.ttl_hours"/);
  await server.publish("bob", { n: "another" }, { kind: "like" });
  await other.shows("what came after", ([first]) => first.body.n === "another");
  await reload(server, `[feeds.posts]\nkinds = ["like"]\n`, REFUSED);
  await lives();
});

test("whose comments users see changes at a SIGHUP", async (t) => {
  const server = await Home.start(t);
  await server.follow("ann", "bob");
  const { id } = await server.publish("bob", { text: "hello" });
  await server.call("POST", `/v1/items/${id}/comments`, { author: "cid", body: { text: "a stranger" } });
  const seen = async () => (await server.call("GET", `/v1/items/${id}/comments?viewer=ann`)).comments.length;
  assert.equal(await seen(), 1);
  assert.match(await reload(server, '[comments]\nvisible = "mutual"\n'), /changed="comments\.visible" secrets="" needs_restart=""/);
  assert.equal(await seen(), 0);
  await reload(server, "");
  assert.equal(await seen(), 1);
});

test("a user may have another number of connections, and those that are open stay", async (t) => {
  const server = await Home.start(t);
  const { lives } = await follower(t, server);
  await reload(server, "[gateway]\nconnections_per_user = 1\n");
  const late = await Phone.open(t, server, "ann", { device: "tablet" });
  await until("the tablet is refused", async () => late.stopped !== null || late.errors.length > 0, { seen: () => server.log() });
  assert.equal(late.connects, 0);
  await lives();
  await reload(server, "");
  await (await Phone.open(t, server, "ann", { device: "desk" })).subscribed();
  await lives();
});

test("keys of backends and of signers come and go, and no session ends with them", async (t) => {
  const server = await Home.start(t);
  const { phone, lives } = await follower(t, server);
  const secrets = (name) => join(server.secrets, name);

  const made = await feedgate(server, ["api-key", "shop", "--role", "read", "--config", server.gateways.at(-1).config, ...(server.data ? ["--data", server.data] : [])]);
  assert.equal(made.code, 0, made.said);
  const key = made.out.trim();
  assert.equal(await read(server, key), 401, "it is not read yet");
  const line = await reload(server, "");
  assert.match(line, /changed="" secrets="api_keys" needs_restart=""/);
  assert.ok(!line.includes(key));
  assert.equal(await read(server, key), 200);
  await appendFile(secrets("api_keys"), "shop read\n");
  assert.match(await reload(server, "", REFUSED), /api_keys, line 2: a key is NAME ROLES/);
  assert.equal(await read(server, key), 200, "a file that is wrong takes no key away");
  const [gateway] = server.gateways;
  const { ticket } = await gateway.call("POST", "/v1/console/ticket");
  const { key: session } = await gateway.call("POST", "/v1/console/session", undefined, { token: ticket });
  const opens = async () => (await gateway.request("GET", "/v1/stats", undefined, { token: session })).status;
  assert.equal(await opens(), 200);
  await rm(secrets("api_keys"));
  await reload(server, "");
  assert.equal(await read(server, key), 401);
  assert.equal(await opens(), 401, "the key that goes may have opened it");
  await lives();

  const own = "a secret of more than thirty-two bytes";
  const theirs = signed(own, { sub: "ann", exp: Math.floor(Date.now() / 1000) + 3600 });
  assert.equal(await read(server, theirs), 401);
  await writeFile(secrets("token_key.shop.HS256"), own, { mode: 0o600 });
  await reload(server, "");
  assert.equal(await read(server, theirs), 200);
  assert.match(await reload(server, '[gateway]\ntoken_audience = "app"\n'), /changed="gateway.token_audience" secrets=""/);
  assert.equal(await read(server, theirs), 401, "it names no audience");
  await rm(secrets("token_key.shop.HS256"));
  await reload(server, "");
  assert.equal(await read(server, theirs), 401);

  const before = await server.token("ann");
  const first = await readFile(secrets("token_key"), "utf8");
  await writeFile(secrets("token_key"), "another key that signs readers' tokens".replaceAll(" ", "-"));
  await reload(server, "");
  assert.deepEqual([await read(server, before), await read(server, await server.token("ann"))], [401, 200]);
  await lives();
  await phone.acknowledge();
  await rm(secrets("token_key"));
  assert.match(await reload(server, "", REFUSED), /token_key is missing; restore it from a copy/);
  await writeFile(secrets("token_key"), first, { mode: 0o600 });
  await reload(server, "");
  assert.equal(await read(server, before), 200);
  await lives();
});

test("a file with anything wrong changes nothing, and what needs a restart is named beside what holds", async (t) => {
  const server = await Home.start(t, { config: "[gateway]\nbatch = 50\n" });
  const { lives } = await follower(t, server);
  const gateway = server.gateways.at(-1);
  const settings = async () => {
    const answer = await gateway.call("GET", "/v1/settings");
    return Object.fromEntries(answer.settings.map(({ name, value }) => [name, value]));
  };
  const began = await settings();
  const wrong = await reload(server, 'log = "debug"\n[gateway]\nbatch = 0\nbatsh = 7\n', REFUSED);
  assert.match(wrong, /gateway\.batsh; the nearest is gateway\.batch/);
  assert.match(await reload(server, "log = \n", REFUSED), /feedgate\.toml is not TOML: line \d+/);
  assert.match(await reload(server, "[gateway]\nbatch = 0\n", REFUSED), /gateway\.batch must be at least 1, it is 0/);
  assert.deepEqual(await settings(), began);
  await lives();

  const config = 'log_format = "json"\n[gateway]\nbatch = 60\nconnections = 7\n[timeline]\nin_flight = 3\n';
  const line = await reload(server, config);
  assert.match(line, /changed="gateway.batch" secrets="" needs_restart="gateway.connections log_format timeline.in_flight"/);
  assert.deepEqual(await settings(), { ...began, "gateway.batch": 60 });
  assert.match(await reload(server, config), /changed="" secrets="" needs_restart="gateway.connections log_format timeline.in_flight"/);
  await lives();
});

test("check-config tells what a reload of a running server would do, and does nothing", async (t) => {
  const server = await Home.start(t);
  const gateway = server.gateways.at(-1);
  const flags = ["--config", gateway.config, "--listen", `127.0.0.1:${gateway.port}`];
  if (server.data) flags.push("--data", server.data);
  const place = (await gateway.call("GET", "/v1/settings")).settings.find(({ name }) => name === "data").value;
  if (!server.data) flags.push("--data", place);
  const against = (...more) => feedgate(server, ["check-config", ...flags, "--against", gateway.url, ...more]);
  const same = await against();
  assert.deepEqual([same.code, same.out], [0, "no setting differs\n"], same.said);
  const said = await readFile(gateway.config, "utf8");
  await writeFile(gateway.config, `${said}\n[gateway]\nbatch = 50\n`);
  const reloads = await against("--key", server.key);
  assert.deepEqual([reloads.code, reloads.out], [3, "a reload takes:\n  gateway.batch: 50 (the server has 100)\n"]);
  await writeFile(gateway.config, `${said}\n[gateway]\nbatch = 50\nconnections = 7\n[events]\nkept_mb = 9\n`);
  const both = await against();
  const restart = "a restart is needed for:\n  events.kept_mb: 9 (the server has 256)\n  gateway.connections: 7 (the server has 1000000)\n";
  assert.deepEqual([both.code, both.out], [4, reloads.out + restart]);
  const stranger = await against("--key", "x".repeat(43));
  assert.equal(stranger.code, 1);
  assert.match(stranger.said, /neither an API key nor a token/);
  await writeFile(gateway.config, `${said}\n[gateway]\nbatch = 0\n`);
  assert.match((await against()).said, /gateway\.batch must be at least 1/);
  assert.deepEqual(gateway.lines(READ), []);
});
