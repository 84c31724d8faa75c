import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";

import { Server } from "../actors/server.js";
import { notDurableBecause } from "./strace.js";

const CALLS = "read,readv,recvfrom,recvmsg,write,writev,pwrite64,pwritev,pwritev2,sendto,sendmsg,fsync,fdatasync";

test("i6_an_item_is_synced_before_201_and_every_other_write_before_its_answer", async (t) => {
  let output;
  const server = await Server.start(t, {
    under: (directory) => {
      output = join(directory, "trace");
      // -D: the server stays our own child, so that it is the server that signals reach.
      return ["strace", "-D", "-f", "-y", "-s", "64", "-e", `trace=${CALLS}`, "-o", output];
    },
  });
  await server.follow("ann", "warm-up");
  const { id } = await server.publish("bob", { text: "warm-up" });

  const asked = [
    ["POST", "/v1/items", { author: "bob", body: { text: "traced" } }, "201"],
    ["POST", "/v1/items/batch", { ops: [{ author: "bob", body: {} }] }, "200"],
    ["PATCH", `/v1/items/${id}`, { body: { text: "edited" } }, "200"],
    ["PUT", "/v1/users/ann/following/bob", undefined, "204"],
    ["DELETE", "/v1/users/ann/following/bob", undefined, "204"],
    ["POST", "/v1/follows/batch", { ops: [{ op: "follow", user: "cyd", author: "bob" }] }, "200"],
    ["DELETE", `/v1/items/${id}`, undefined, "204"],
  ];
  for (const [method, to, body, wants] of asked) {
    const { status } = await server.request(method, to, body);
    assert.equal(String(status), wants, `${method} ${to}`);
  }
  await server.stop();

  const trace = await readFile(output, "utf8");
  for (const [method, to, , status] of asked) {
    const claim = { request: `${method} ${to} HTTP/1.1`, answer: `HTTP/1.1 ${status}`, directory: join(server.data, "archive") };
    assert.equal(notDurableBecause(trace, claim), null, `${method} ${to}`);
  }
});

const claim = { request: "POST /v1/items", answer: "HTTP/1.1 201", directory: "/data/archive" };
const READ = '7 recvfrom(9<socket:[1]>, "POST /v1/items HTTP/1.1"..., 8192, 0, NULL, NULL) = 99';
const WRITE = '8 write(5</data/archive/0.jnl>, "item"..., 64) = 64';
const BEGIN = "8 fdatasync(5</data/archive/0.jnl> <unfinished ...>";
const END = "8 <... fdatasync resumed>) = 0";
const FAIL = "8 <... fdatasync resumed>) = -1 EIO (Input/output error)";
const OTHER = "8 fdatasync(6</data/inboxes/log>) = 0";
const ANSWER = '7 writev(9<socket:[1]>, [{iov_base="HTTP/1.1 201 Created"..., iov_len=99}], 1) = 99';

for (const [lines, durable, what] of [
  [[READ, WRITE, BEGIN, END, ANSWER], true, "a sync between the write and the answer is"],
  [[READ, WRITE, ANSWER, BEGIN, END], false, "a sync after the answer is not"],
  [[READ, WRITE, BEGIN, ANSWER, END], false, "a sync still going on at the answer is not"],
  [[BEGIN, READ, WRITE, END, ANSWER], false, "a sync that began before the write is not"],
  [[READ, BEGIN, END, WRITE, ANSWER], false, "a sync before the write is not"],
  [[READ, WRITE, BEGIN, FAIL, ANSWER], false, "a sync that failed is not"],
  [[READ, WRITE, OTHER, ANSWER], false, "a sync of another file is not"],
  [[READ, BEGIN, END, ANSWER], false, "a sync of nothing is not"],
  [[WRITE, BEGIN, END, ANSWER], false, "an answer to nothing is not"],
]) {
  test(`${what} durable before accepted`, () => {
    assert.equal(notDurableBecause(lines.join("\n"), claim) === null, durable);
  });
}
