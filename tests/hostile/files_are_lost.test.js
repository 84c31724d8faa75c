// Fault 35: files of a used data directory are removed, cut, changed, or copied while the server runs. The server refuses
// to start, with the name of the file and what to do; or what it serves is right. It never starts as if it were new.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFile, readdir, rename, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";

import { Follower } from "../actors/follower.js";
import { Process } from "../actors/process.js";
import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";

const POSTS = 30;

/** A server that was used and has ended, by SIGTERM or by SIGKILL. */
async function used(t, end = "SIGTERM") {
  const server = await Server.start(t);
  await server.follow("bob", "ann");
  await server.publishMany("ann", POSTS);
  await server.drained();
  await server.stop(end);
  return server;
}

/** Starts it over that directory, and answers what it says when it has ended with an error. */
async function refusal(server, data = server.data) {
  const process = new Process([server.binary, "serve", "--listen", "127.0.0.1:0", "--data", data]);
  process.start();
  await until("the server ends", () => process.ended, { seen: () => process.log() });
  assert.equal(process.ended.code, 1, process.log());
  return process.log();
}

async function goesOn(server, ...flags) {
  await server.start({ flags });
  return (await server.feed("bob")).length;
}

async function files(directory, wanted) {
  const all = await readdir(directory, { recursive: true });
  return all.filter((file) => wanted.test(file)).map((file) => join(directory, file));
}

for (const end of ["SIGTERM", "SIGKILL"]) {
  test(`i6_after_${end}_each_file_of_the_archive_that_is_missing_is_named_and_put_back_everything_is_there`, async (t) => {
    const server = await used(t, end);
    const stable = await files(join(server.data, "archive"), /^version$|^answered$|\.jnl$|current$/);
    assert.equal(stable.length >= 6, true, `${stable}`);
    for (const file of [...stable, join(server.data, "secrets", "token_key"), join(server.data, "secrets", "api_key")]) {
      await rename(file, `${file}.away`);
      const said = await refusal(server);
      assert.equal(said.includes(`${file} is missing`) && said.includes("--accept-loss"), true, `${file}: ${said}`);
      await rename(`${file}.away`, file);
    }
    await rename(join(server.data, "archive"), join(server.data, "away"));
    assert.match(await refusal(server), /archive\/\S+ is missing/);
    await rename(join(server.data, "away"), join(server.data, "archive"));
    assert.equal(await goesOn(server), POSTS);
  });
}

test("i16_a_loss_that_is_accepted_goes_on_with_what_is_left_in_greater_epochs", async (t) => {
  const server = await used(t);
  await server.start();
  const { position: before } = await server.page("bob");
  await server.stop();
  await rm(join(server.data, "archive", "0.jnl"));
  assert.match(await refusal(server), /archive\/0\.jnl is missing/);
  assert.equal(await goesOn(server, "--accept-loss"), 0, "the journal held everything");
  const { position: after } = await server.page("bob");
  assert.equal(BigInt(after.epoch) > BigInt(before.epoch), true, `${after.epoch} after ${before.epoch}`);
  await server.follow("bob", "ann");
  await server.publish("ann", "the first of the others");
  await server.drained();
  await server.stop();
  assert.equal(await goesOn(server), 1, "accepted once and for all");
});

test("i6_a_journal_that_was_cut_after_the_server_was_stopped_is_refused", async (t) => {
  const server = await used(t);
  const journal = join(server.data, "archive", "0.jnl");
  const whole = await readFile(journal);
  // Behind what the start before the last post has written, where a crash might have left it.
  const end = whole.findLastIndex((byte) => byte !== 0);
  await truncate(journal, Math.floor(end * 0.7));
  const said = await refusal(server);
  assert.match(said, /archive\/0\.jnl is damaged behind its byte \d+.*--accept-loss/s);
  await writeFile(journal, whole);
  assert.equal(await goesOn(server), POSTS);
});

test("i16_a_program_whose_place_is_before_an_accepted_loss_is_told_that_it_is_gone", async (t) => {
  const server = await used(t);
  const journal = join(server.data, "archive", "0.jnl");
  const end = async () => (await readFile(journal)).findLastIndex((byte) => byte !== 0);
  await server.start();
  const before = await end();
  for (let n = 0; n < POSTS; n += 1) await server.publish("ann", { n });
  await server.stop();
  await truncate(journal, Math.floor((before + (await end())) / 2));
  const left = await goesOn(server, "--accept-loss");
  assert.equal(left > POSTS && left < 2 * POSTS, true, `${left} items`);
  const follower = await Follower.open(t, server);
  follower.close();
  // Its number lies far beyond those of the events that are left.
  await server.publish("ann", "the first after the loss");
  const headers = { authorization: `Bearer ${server.key}` };
  const answer = await fetch(`${server.url}/v1/events?after=${follower.last}`, { headers });
  await answer.body.cancel();
  assert.equal(answer.status, 410);
});

test("i6_a_bit_that_flips_in_a_journal_after_SIGKILL_takes_no_answered_item_away_unnoticed", async (t) => {
  const server = await used(t, "SIGKILL");
  const journal = join(server.data, "archive", "0.jnl");
  const whole = await readFile(journal);
  const end = whole.findLastIndex((byte) => byte !== 0);
  for (let n = 0; n < 16; n += 1) {
    const flipped = Buffer.from(whole);
    flipped[Math.floor((end * n) / 16)] ^= 1 << (n % 8);
    await writeFile(journal, flipped);
    assert.match(await refusal(server), /archive\/0\.jnl is damaged behind its byte \d+.*--accept-loss/s, `part ${n} of 16`);
  }
  await writeFile(journal, whole);
  assert.equal(await goesOn(server), POSTS);
});

test("i6_a_table_that_is_missing_is_refused_and_the_log_names_it", async (t) => {
  const server = await Server.start(t);
  const text = "x".repeat(60_000);
  for (let n = 0; (await files(join(server.data, "archive", "keyspaces"), /^[1-9]\/tables\/\d+$/)).length === 0; n++) {
    assert.equal(n < 1000, true, "a write buffer was never written");
    await server.publish("ann", { text });
  }
  await server.stop();
  const [table] = await files(join(server.data, "archive", "keyspaces"), /^[1-9]\/tables\/\d+$/);
  await rename(table, join(server.data, "table"));
  const said = await refusal(server);
  assert.match(said, /archive cannot be opened: .*tables.*missing.*Restore/s);
  await rename(join(server.data, "table"), table);
  await server.start();
});

test("i16_a_copy_of_a_running_server_is_refused_or_right", async (t) => {
  const server = await Server.start(t);
  await server.follow("bob", "ann");
  await server.publishMany("ann", POSTS);
  await server.drained();
  const copy = `${server.data}-copy`;
  const more = server.publishMany("ann", POSTS, POSTS + 1);
  // What has gone by the time that it is its turn is left out, and cp says so.
  spawnSync("cp", ["-r", server.data, copy]);
  await more;
  await server.stop();
  await rm(server.data, { recursive: true });
  await rename(copy, server.data);
  await rm(join(server.data, "server.url"), { force: true });
  await server.start().catch(async (refused) => {
    // The journal was copied before the note that says how far it was answered.
    assert.match(String(refused), /archive\/0\.jnl is damaged behind its byte \d+.*--accept-loss/s);
    await server.start({ flags: ["--accept-loss"] });
  });
  // A copy of the inboxes does not count: they are built again when they are read.
  const shown = async () => (await server.feed("bob")).length;
  await until("what was accepted before the copy is shown", async () => (await shown()) >= POSTS, { seen: shown });
  await server.drained();
  assert.equal((await shown()) <= 2 * POSTS, true, `${await shown()} items`);
});

test("i8_a_page_after_the_loss_of_the_inboxes_has_everything_at_once", async (t) => {
  const server = await used(t);
  await rm(join(server.data, "inboxes"), { recursive: true });
  await server.start();
  const page = await server.page("bob");
  assert.equal(page.items.length, POSTS);
});

test("i4_fan_out_that_a_rebuild_reopens_is_done_at_once_and_waits_for_no_sweep", async (t) => {
  const server = await Server.start(t, { config: "[timeline]\nsweep_every_ms = 3600000\n" });
  await server.follow("bob", "ann");
  await server.publishMany("ann", POSTS);
  await server.drained();
  await server.kill();
  await rm(join(server.data, "inboxes"), { recursive: true });
  await server.start();
  const { position } = await server.page("bob");
  assert.notEqual(position, null);
  await server.drained();
});
