// The program of a running server is exchanged for another one, under load: the process and its port stay, no request is
// refused, every post that was accepted comes once, and devices come back.

import assert from "node:assert/strict";
import { copyFile, mkdtemp, rename, rm, stat } from "node:fs/promises";
import { request } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Phone } from "../actors/phone.js";
import { BIN } from "../actors/process.js";
import { Server } from "../actors/server.js";
import { until } from "../actors/until.js";

const TOOK_OVER = /took over from the process before/;
const REFUSED = /nothing is handed over/;

/** A server that runs a program of its own directory, and `exchange`, which puts another file in the program's place. */
async function serverWithItsOwnProgram(t, options) {
  const bin = await mkdtemp(join(tmpdir(), "feedgate-program-"));
  t.after(() => rm(bin, { recursive: true, force: true }));
  const exchange = async () => {
    await copyFile(join(BIN, "feedgate"), join(bin, "new"));
    await rename(join(bin, "new"), join(bin, "feedgate"));
  };
  await exchange();
  return { server: await Server.start(t, { bin, ...options }), exchange };
}

/** Asks for a hand-over, and waits until the log has one line more that matches; gives that line. */
async function handOver(server, says = TOOK_OVER) {
  const before = server.lines(says).length;
  process.kill(server.pid, "SIGUSR2");
  await until(`${says}`, async () => server.lines(says).length > before || server.ended, { seen: () => server.log() });
  assert.equal(server.ended, null, server.log());
  return server.lines(says).at(-1);
}

/** Whether the process runs the file that stands at the path of its program now. */
const runsWhatIsThere = async (server) => (await stat(`/proc/${server.pid}/exe`)).ino === (await stat(server.binary)).ino;

/** A post on a connection of its own, which no request before has opened. Gives the status of the answer. */
function publishByItself(server, body) {
  const headers = { authorization: `Bearer ${server.key}`, "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const asking = request(`${server.url}/v1/items`, { method: "POST", headers, agent: false });
    asking.on("response", (answer) => answer.resume().on("end", () => resolve(answer.statusCode))).on("error", reject);
    asking.end(JSON.stringify(body));
  });
}

/** Posts of `author` by `publish`, one after another, until `end`, which gives {accepted, failed}. */
function flow(author, publish) {
  const [accepted, failed] = [[], []];
  let going = true;
  const run = async () => {
    for (let n = 1; going; n += 1) {
      const status = await publish({ author, body: { n } }).catch((error) => error.cause ?? error);
      if (status === 201) accepted.push(n);
      else failed.push(status);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  const running = run();
  return {
    accepted,
    end: async () => {
      going = false;
      await running;
      return { accepted, failed };
    },
  };
}

test("twice under load: no request is refused, each post comes once, and devices come back", async (t) => {
  const { server, exchange } = await serverWithItsOwnProgram(t);
  for (const author of ["ann", "eve"]) await server.follow("bob", author);
  const phones = await Promise.all(["phone", "tablet"].map((device) => Phone.open(t, server, "bob", { device })));
  for (const phone of phones) await phone.subscribed();
  const { pid } = server;
  const flows = [
    flow("ann", async (item) => (await server.request("POST", "/v1/items", item)).status),
    flow("eve", (item) => publishByItself(server, item)),
  ];
  const flows_on = async () => {
    const counts = flows.map(({ accepted }) => accepted.length + 5);
    await until("posts flow", async () => flows.every(({ accepted }, at) => accepted.length >= counts[at]), { seen: () => server.log() });
  };

  await flows_on();
  for (const round of [1, 2]) {
    await exchange();
    assert.equal(await runsWhatIsThere(server), false);
    assert.match(await handOver(server), /gap_ms=\d+ leaving_ms=\d+ starting_ms=\d+/);
    assert.equal(await runsWhatIsThere(server), true);
    await flows_on();
    const back = async () => phones.every(({ connects }) => connects > round);
    await until("the devices are back", back, { seen: () => server.log() });
  }

  const ended = await Promise.all(flows.map((each) => each.end()));
  assert.deepEqual(ended.map(({ failed }) => failed), [[], []]);
  const count = ended.reduce((sum, { accepted }) => sum + accepted.length, 0);
  const items = await (async () => {
    await server.drained();
    return server.feed("bob");
  })();
  assert.equal(items.length, count);
  for (const [at, author] of ["ann", "eve"].entries()) {
    const seen = items.filter((item) => item.author === author).map(({ body }) => body.n);
    assert.deepEqual(seen.reverse(), ended[at].accepted, "each once, in order");
  }
  for (const phone of phones) {
    await phone.shows("every post", ([first]) => first?.id === items[0].id);
    assert.deepEqual([phone.stopped, phone.repeated, phone.connecting.filter((code) => code === 3001).length], [null, 0, 2]);
  }
  assert.equal(server.pid, pid);
  assert.equal(server.ended, null);
});

test("whatever keeps the new program from its start is told, and the old one goes on", async (t) => {
  const { server, exchange } = await serverWithItsOwnProgram(t);
  await server.follow("bob", "ann");
  const phone = await Phone.open(t, server, "bob", { device: "phone" });
  await phone.subscribed();
  const lives = async () => {
    const { id } = await server.publish("ann", { text: "hello" });
    await phone.shows("the post", ([first]) => first?.id === id);
    assert.deepEqual([phone.connects, phone.stopped], [1, null]);
  };

  await server.configure("[gateway]\nbatch = 0\n");
  assert.match(await handOver(server, REFUSED), /gateway\.batch must be at least 1, it is 0/);
  await lives();
  await rm(server.binary);
  assert.match(await handOver(server, REFUSED), /cannot be run.*No such file/);
  await lives();
  await copyFile("/bin/false", server.binary);
  assert.match(await handOver(server, REFUSED), /does not start \(exit status: 1\)/);
  await lives();

  await exchange();
  await server.configure("[gateway]\nbatch = 50\n");
  await handOver(server);
  const { settings } = await server.call("GET", "/v1/settings");
  assert.equal(settings.find(({ name }) => name === "gateway.batch").value, 50, "the new one has read its settings");
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
  const refused = await new Promise((resolve) => connect(server.port, "127.0.0.1").on("error", resolve));
  assert.equal(refused.code, "ECONNREFUSED", "no one holds the port any more");
});
