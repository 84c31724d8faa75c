import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdir, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";

import { Home } from "../actors/home.js";
import { Phone, WAYS } from "../actors/phone.js";
import { inherited } from "../actors/process.js";
import { Server } from "../actors/server.js";

const BODY = "x".repeat(4000);

/** Runs a command of the program with the settings of `server`, as an operator would. Answers {code, said}. */
function feedgate(server, args, { limit } = {}) {
  const place = ["--data", server.data, "--config", join(server.directory, "feedgate.toml")];
  const bare = [server.binary, ...args, ...place];
  // With a limit no file may have more blocks of 1024 bytes: it stands for a disk that is full.
  const [program, ...rest] = limit ? ["bash", "-c", `trap "" XFSZ; ulimit -f ${limit}; exec "$@"`, "bash", ...bare] : bare;
  const env = inherited();
  const child = spawn(program, rest, { env, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (said += text));
  return new Promise((resolve, reject) => child.once("error", reject).once("close", (code) => resolve({ code, said })));
}

async function succeeds(server, args) {
  const { code, said } = await feedgate(server, args);
  assert.equal(code, 0, said);
  return said;
}

async function refused(server, args, pattern, options) {
  const { code, said } = await feedgate(server, args, options);
  assert.equal(code, 1, said);
  assert.match(said, pattern);
}

const ids = (items) => items.map(({ id }) => id);

/** Stops the server and moves its data away, as if the machine were lost. */
async function loses(server) {
  await server.kill();
  await rename(server.data, `${server.data}-${Date.now()}`);
}

for (const way of WAYS) {
  test(`i6_i9_what_was_accepted_before_a_backup_is_there_once_and_a_phone_that_was_ahead_is_whole (${way})`, async (t) => {
    const server = await Server.start(t);
    await server.follow("ann", "bob");
    const phone = await Phone.open(t, server, "ann", { device: "ios-1", way });
    const accepted = [];
    const posts = async () => accepted.push((await server.publish("bob", { text: `post ${accepted.length + 1}`, BODY })).id);
    for (let n = 0; n < 300; n += 1) await posts();

    const backup = join(server.directory, "backup");
    const before = accepted.length;
    let made = null;
    const making = succeeds(server, ["backup", backup]).finally(() => (made = accepted.length));
    do await posts();
    while (made === null);
    assert.match(await making, /it was read back and is whole/);
    assert.ok(made > before, "posts were accepted while it was made");
    for (let n = 0; n < 20; n += 1) await posts();
    await phone.agrees();
    await phone.acknowledge();
    const [ahead, reloads] = [{ ...phone.position }, phone.reloads];

    await loses(server);
    const said = await succeeds(server, ["restore", backup]);
    await server.start();
    await phone.waitFor("page one is loaded again", () => phone.reloads > reloads);
    await phone.agrees();
    const restored = ids(await server.feed("ann")).reverse();
    assert.deepEqual(restored, accepted.slice(0, restored.length), "each once, in order, without a gap");
    assert.ok(restored.length >= before && restored.length <= made, `${before} ≤ ${restored.length} ≤ ${made}`);
    assert.match(said, new RegExp(` ${restored.length} items`));
    assert.ok(BigInt(phone.position.epoch) > BigInt(ahead.epoch), "the feed is in a greater epoch");

    // A second process that comes with the position of before the loss is told too.
    const stale = await server.request("GET", `/v1/users/ann/changes?${new URLSearchParams(ahead)}`);
    assert.equal(stale.status, 410);
    const { id } = await server.publish("bob", { text: "after the restore" });
    await phone.shows("the next post", ([newest]) => newest?.id === id);
    await phone.agrees();
  });
}

test("i16_a_phone_that_saw_one_restored_server_is_reset_by_another_one_from_the_same_backup", async (t) => {
  const server = await Server.start(t);
  await server.follow("ann", "bob");
  await server.publishMany("bob", 3);
  await server.drained();
  const backup = join(server.directory, "backup");
  await succeeds(server, ["backup", backup]);
  const epochs = [];
  let stored;
  for (let round = 1; round <= 3; round += 1) {
    await loses(server);
    await succeeds(server, ["restore", backup]);
    await server.start();
    const phone = await Phone.open(t, server, "ann", { device: "ios-1", stored });
    await phone.waitFor("page one is loaded", () => phone.reloads === 1);
    await phone.agrees();
    assert.equal(phone.feed.items().length, 3);
    await server.publishMany("bob", round);
    await phone.shows("the posts of this life", (items) => items.length === 3 + round);
    epochs.push(BigInt(phone.position.epoch));
    ({ stored } = phone);
    phone.close();
  }
  assert.ok(epochs[0] < epochs[1] && epochs[1] < epochs[2], `${epochs}`);
});

test("a backup that is damaged and a directory that is in use are refused, and nothing is changed", async (t) => {
  const server = await Server.start(t);
  await server.publishMany("bob", 10);
  const backup = join(server.directory, "backup");
  await succeeds(server, ["backup", backup]);
  await refused(server, ["backup", backup], /backup exists; name a directory that does not exist yet/);
  await refused(server, ["restore", backup], /is not empty, and a restore writes over nothing; name an empty or a new one with --data/);
  await server.stop();
  await refused(server, ["restore", backup], /is not empty/);
  await rename(server.data, `${server.data}-old`);
  await refused(server, ["backup", join(server.directory, "other")], /no server runs on the data directory/);

  const files = ["archive.rows", "backup.json", ...(await readdir(join(backup, "secrets"))).map((name) => `secrets/${name}`)];
  assert.ok(files.includes("secrets/token_key") && files.includes("secrets/api_key"));
  for (const file of files) {
    const path = join(backup, file);
    const sound = await readFile(path);
    const flipped = Buffer.from(sound);
    flipped[sound.length >> 1] ^= 1;
    await writeFile(path, flipped);
    await refused(server, ["restore", backup], new RegExp(`${file} is damaged: .*Nothing was restored from it; use another backup`));
    await writeFile(path, sound);
  }
  assert.deepEqual((await readdir(server.directory)).sort(), ["backup", "data-old", "feedgate.toml"], "no part of anything is left");
  await mkdir(server.data);
  await succeeds(server, ["restore", backup]);
  await server.start();
  assert.equal((await server.call("GET", "/v1/stats")).archive.items, 10);
});

test("a backup for which the disk has no room leaves nothing, and one that was killed is no backup", async (t) => {
  const server = await Server.start(t);
  for (let n = 0; n < 100; n += 1) await server.publish("bob", { BODY });
  const backup = join(server.directory, "backup");
  await refused(server, ["backup", backup], /archive\.rows cannot be written/, { limit: 100 });
  assert.deepEqual((await readdir(server.directory)).sort(), ["data", "feedgate.toml"]);

  await mkdir(`${backup}.partial`);
  await refused(server, ["backup", backup], /backup\.partial exists: another backup is being made, or did not end/);
  await refused(server, ["restore", `${backup}.partial`], /is not empty/);
  await rm(`${backup}.partial`, { recursive: true });
  await succeeds(server, ["backup", backup]);
});

test("a cluster is told to use PostgreSQL's own tools, and only an admin's key copies a server", async (t) => {
  const server = await Home.start(t);
  const answer = (key) => fetch(`${server.url}/v1/backup`, { headers: { authorization: `Bearer ${key}` } });
  assert.equal((await answer(await server.token("ann"))).status, 403);
  const copied = await answer(server.key);
  if (Home === Server) {
    assert.deepEqual([copied.status, copied.headers.get("content-type")], [200, "application/octet-stream"]);
    const rows = Buffer.from(await copied.arrayBuffer());
    assert.equal(rows.subarray(0, 8).toString(), "feedrows");
  } else {
    assert.equal(copied.status, 404);
    assert.match((await copied.json()).detail, /PostgreSQL.*pg_basebackup.*pg_dump/);
  }
});
