// One call of a store fails: what was answered with 201 is there afterwards, and a server that cannot work says so and
// recovers, or ends with an error so that a supervisor starts another. This is fault 34.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";
import { Disk, EIO, EMFILE, ENOSPC } from "./failing.js";

/** So many failures in a row that somebody who asks in between sees the server fail. */
const MANY = 1_000_000;

/** Bodies of this size fill a write buffer of the Archive within a few hundred posts. */
const LARGE = "x".repeat(60_000);

const CASES = [
  { store: "archive", call: "fdatasync", error: EIO, path: ".jnl", then: "ends" },
  { store: "archive", call: "write", error: EIO, path: ".jnl", then: "ends" },
  { store: "archive", call: "write", error: ENOSPC, path: ".jnl", times: MANY, then: "heals", says: /archive.*No space left/ },
  { store: "archive", call: "open", error: EMFILE, path: "/archive/", times: MANY, then: "heals", says: /archive.*Too many open files/, body: LARGE },
  { store: "archive", call: "fsync", error: EIO, path: "/tables/", then: "ends", body: LARGE },
  { store: "inboxes", call: "fdatasync", error: EIO, path: ".log", then: "ends" },
  { store: "inboxes", call: "write", error: EIO, path: ".log", then: "ends" },
  { store: "inboxes", call: "write", error: ENOSPC, path: ".log", times: MANY, then: "heals", says: /inboxes.*No space left/ },
  { store: "inboxes", call: "open", error: EMFILE, path: "/inboxes/", then: "goes on" },
  { store: "inboxes", call: "rename", error: EIO, path: "/inboxes/", then: "goes on" },
];

for (const fault of CASES) {
  const { store, call, error, then } = fault;
  test(`i6_when_a_${call}_of_the_${store}_fails_with_errno_${error}_the_server_${then.replace(" ", "_")}_and_nothing_accepted_is_lost`, async (t) => {
    const disk = await Disk.ready(t);
    // A build with debug assertions writes snapshots all the time.
    const server = await Server.start(t, { under: disk.under });
    await server.follow("bob", "ann");
    const accepted = [await post(server, 0)];
    await server.drained();

    await disk.fail(fault);
    for (let n = 1; (await disk.failed()).length === 0; n++) accepted.push(await post(server, n, fault.body));
    await outcome[then](server, disk, fault);

    accepted.push(await post(server, "last"));
    await server.drained();
    const shown = new Set((await server.feed("bob")).map((item) => item.id));
    const lost = accepted.filter((id) => id !== null && !shown.has(id));
    assert.deepEqual(lost, [], `accepted and not shown, of ${accepted.length}`);
    assert.notEqual(accepted.at(-1), null, "the server takes posts again");
  });
}

const outcome = {
  async ends(server, disk) {
    await disk.hasFailed();
    await until("the server ends", () => server.ended, { seen: () => server.log() });
    assert.equal(server.ended.code, 1, server.log());
    assert.match(server.log(), /ERROR .*(archive|inboxes).*has to start again/);
    await disk.heal();
    await server.start();
  },
  async heals(server, disk, { says, store }) {
    await until("the server says what is wrong", () => notReady(server, says), { seen: () => server.log() });
    if (store === "archive") {
      const refused = await server.request("POST", "/v1/items", { author: "ann", body: "refused" });
      assert.deepEqual([refused.status, says.test(refused.body.detail)], [503, true], JSON.stringify(refused));
    }
    const logged = new RegExp(`ERROR.*${says.source}`);
    await until("the log says so too", () => server.said(logged), { seen: () => server.log() });
    await disk.heal();
    await until("the server is ready again", () => server.isReady(), { seen: () => server.log() });
    assert.equal(server.ended, null);
  },
  async "goes on"(server, disk) {
    await disk.heal();
    assert.equal(await server.isReady(), true);
  },
};

/** What `/readyz` answers, if it says this. */
async function notReady(server, says) {
  const answer = await server.request("GET", "/readyz");
  return answer.status === 503 && says.test(answer.body.detail) && answer;
}

/** The id of a post if it was accepted. */
async function post(server, n, body = "") {
  const request = { author: "ann", body: { n, text: body } };
  // The connection may break in the middle, when the server ends.
  const answer = await server.request("POST", "/v1/items", request).catch(() => ({ status: 0 }));
  return answer.status === 201 ? answer.body.id : null;
}
