// The unmodified SDK that the phones of a run use: FEEDGATE_SDK names its language, `javascript` unless it is set, and
// FEEDGATE_PROTOCOL its format, `json` or `protobuf`.
//
// Over Protobuf an app gives and gets `data` as bytes. They hold JSON here, as in every app of Feedgate; this module
// turns it into bytes and back, so that the journeys are the same over both.

import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { foreign } from "./foreign.js";
import { TOOLS } from "./process.js";

const require = createRequire(join(TOOLS, "node", "package.json"));
const phone = (...path) => join(TOOLS, "phones", ...path);

const PROTOCOL = process.env.FEEDGATE_PROTOCOL ?? "json";
const PYTHON = fileURLToPath(new URL("../phones/python_phone.py", import.meta.url));
const JARS = ["phone.jar", "dependency/*"].map((name) => phone("java", name)).join(":");

/**
 * How each SDK is made, and how it may get its position: `since` and `getState` are options of a subscription, and
 * `stored` is for an SDK that has neither.
 */
const SDKS = {
  javascript: { sdk: { json: () => require("centrifuge").Centrifuge, protobuf }[PROTOCOL], ways: ["since", "getState"] },
  python: { sdk: () => foreign([join(TOOLS, "python", "bin", "python"), PYTHON]), ways: ["getState"] },
  go: { sdk: () => foreign([phone("go-phone")]), ways: ["stored"] },
  java: { sdk: () => foreign(["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", JARS, "Phone"]), ways: ["stored"] },
  rust: { sdk: () => foreign([phone("rust-phone")]), ways: ["since", "getState"] },
};

const { sdk, ways } = SDKS[process.env.FEEDGATE_SDK ?? "javascript"];

export const WebSocket = require("ws");
export const { WebSocketServer } = WebSocket;
export const { EventSource } = require("eventsource");
export const Centrifuge = sdk();
export const WAYS = ways;

/** The class of the SDK of JavaScript for Protobuf, with `data` as values. */
function protobuf() {
  const bytes = (value) => new TextEncoder().encode(JSON.stringify(value));
  const value = (data) => JSON.parse(new TextDecoder().decode(data));
  const { Centrifuge: Sdk } = require("centrifuge/build/protobuf");
  return class extends Sdk {
    constructor(url, options) {
      super(url, { ...options, protocol: "protobuf", data: bytes(options.data ?? {}) });
    }

    newSubscription(channel, options = {}) {
      const subscription = super.newSubscription(channel, { ...options, data: bytes(options.data ?? {}) });
      const { on, history } = subscription;
      const read = (context) => (context.data instanceof Uint8Array ? { ...context, data: value(context.data) } : context);
      subscription.on = (event, listener) => on.call(subscription, event, (context) => listener(read(context)));
      subscription.history = async (options) => {
        const found = await history.call(subscription, options);
        return { ...found, publications: found.publications.map((publication) => ({ ...publication, data: value(publication.data) })) };
      };
      return subscription;
    }

    async rpc(method, data) {
      const reply = await super.rpc(method, bytes(data));
      return { ...reply, data: value(reply.data) };
    }
  };
}
