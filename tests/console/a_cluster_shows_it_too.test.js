// The console of one gateway of a cluster: what another gateway accepts arrives at its phones, the session pool is that of
// all gateways, and PostgreSQL says why somebody does not see an item.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Cluster } from "../actors/cluster.js";
import { Phone } from "../actors/phone.js";
import { until } from "../actors/until.js";
import { device, open, texts } from "./browser.js";

test("a gateway of a cluster shows what another one accepts, and who is where", async (t) => {
  const cluster = await Cluster.start(t);
  const [one, two] = cluster.gateways;
  await cluster.follow("bob", "ann");
  const page = await open(t, one);
  const phone = device(page, "phone");
  await phone.getByText("online").waitFor();
  await two.call("POST", "/v1/items", { author: "ann", body: { text: "by the other gateway" } });
  await until("the phone shows it", async () => (await texts(phone)).join() === "by the other gateway", { seen: () => texts(phone) });

  const elsewhere = await Phone.open(t, two, "bob", { device: "watch" });
  await elsewhere.subscribed();
  const sessions = async () => (await one.call("GET", "/v1/users/bob/sessions")).sessions.map(({ device, node }) => `${device} ${node.split(".")[0]}`);
  await until("the pool has all three", async () => (await sessions()).length === 3, { seen: sessions });
  assert.ok((await sessions()).includes("watch gateway-2"));
  await page.getByRole("button", { name: "Node" }).click();
  await page.getByRole("row").filter({ hasText: "watch" }).waitFor();

  const { items } = await one.call("GET", "/v1/users/ann/outbox");
  const why = await two.call("GET", `/v1/explain?${new URLSearchParams({ reader: "ann", item: items[0].id })}`);
  assert.equal(why.verdict, "hidden", JSON.stringify(why));
});
