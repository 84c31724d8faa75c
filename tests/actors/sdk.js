// The unmodified `centrifuge` SDK from npm, over JSON or, with FEEDGATE_PROTOCOL=protobuf, over Protobuf.
//
// Over Protobuf an app gives and gets `data` as bytes. They hold JSON here, as in every app of Feedgate; this module
// turns it into bytes and back, so that the journeys are the same over both.

import { createRequire } from "node:module";
import { join } from "node:path";

import { TOOLS } from "./process.js";

const require = createRequire(join(TOOLS, "node", "package.json"));

const PROTOCOL = process.env.FEEDGATE_PROTOCOL ?? "json";

export const WebSocket = require("ws");
export const Centrifuge = { json: () => require("centrifuge").Centrifuge, protobuf }[PROTOCOL]();

const bytes = (value) => new TextEncoder().encode(JSON.stringify(value));
const value = (data) => JSON.parse(new TextDecoder().decode(data));

/** The SDK's class for Protobuf, with `data` as values. */
function protobuf() {
  const { Centrifuge: Sdk } = require("centrifuge/build/protobuf");
  return class extends Sdk {
    constructor(url, options) {
      super(url, { ...options, protocol: "protobuf", data: bytes(options.data ?? {}) });
    }

    newSubscription(channel, options = {}) {
      const subscription = super.newSubscription(channel, { ...options, data: bytes(options.data ?? {}) });
      const { on, history } = subscription;
      subscription.on = (event, listener) =>
        on.call(subscription, event, event === "publication" ? (context) => listener({ ...context, data: value(context.data) }) : listener);
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
