// Fault 16: one device connects to two gateways at once, two hundred times. Exactly one connection survives, the other
// is closed with 4500.

import assert from "node:assert/strict";

import { Phone } from "../actors/phone.js";
import { until } from "../actors/until.js";
import { cluster } from "./cluster.js";
import { judged } from "./judged.js";

const RACES = 200;
const AT_ONCE = 10;

const options = { start: cluster(), decides: ["I17"], sizes: { readers: 2 } };

judged("i17_one_device_connects_to_two_gateways_two_hundred_times", options, async ({ load, home, recorder, t }) => {
  const race = async (device) => {
    const phones = await Promise.all(
      home.gateways.map((gateway) => {
        gateway.recorder = recorder;
        return Phone.open(t, gateway, "racer", { device });
      }),
    );
    const stopped = () => phones.filter((phone) => phone.stopped);
    await until("one has stopped", () => stopped().length > 0);
    const [survivor] = phones.filter((phone) => !phone.stopped);
    assert.deepEqual(stopped().map((phone) => phone.stopped.code), [4500]);
    await survivor.subscribed();
    const { sessions } = await load.backend.call("GET", "/v1/users/racer/sessions");
    assert.equal(sessions.filter((session) => session.device === device).length, 1);
    phones.forEach((phone) => phone.close());
  };
  for (let done = 0; done < RACES; done += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => race(`device-${(done + i) % 40}`)));
  }
});
