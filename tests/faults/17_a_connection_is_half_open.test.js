// Fault 17: devices vanish without a word: their connections stay open, and nothing passes any more. They are reaped
// within a ping and its pong, and hold nothing from then on.

import { Backend } from "../actors/backend.js";
import { Phone } from "../actors/phone.js";
import { Proxy } from "../actors/proxy.js";
import { until } from "../actors/until.js";
import { cluster } from "./cluster.js";
import { judged } from "./judged.js";

const DEVICES = 10;

/** A gateway behind a wire. */
class Behind extends Backend {
  constructor({ key }, { port }, recorder) {
    super();
    Object.assign(this, { key, port, recorder });
  }
}

judged("i17_i18_half_open_connections_are_reaped", { start: cluster(), decides: ["I17", "I18"] }, async ({ load, fault, home, recorder, t }) => {
  const [gateway] = home.gateways;
  const wire = await Proxy.start(t, gateway.port);
  const names = Array.from({ length: DEVICES }, (_, i) => `device-${i + 1}`);
  const phones = await Promise.all(names.map((device) => Phone.open(t, new Behind(gateway, wire, recorder), "lost", { device })));
  for (const phone of phones) await phone.subscribed();
  const sessions = async () => (await load.backend.call("GET", "/v1/users/lost/sessions")).sessions.length;
  await until("all are listed", async () => (await sessions()) === DEVICES, { seen: sessions });
  await fault("stall both ways", "the wire of ten devices", () => wire.stall("both"));
  await load.flows(20);
  await until("all are reaped", async () => (await sessions()) === 0, { seen: sessions });
});
