// How an SDK reaches a server: over a WebSocket, or, where that is blocked, by HTTP streaming or by server-sent events.
// FEEDGATE_TRANSPORT names one of the three for all phones of a run.
//
// The server that `where()` names is asked anew for each connection and each request, because a journey may move a phone.

import { EventSource, WebSocket } from "./sdk.js";

/** The transport of phones that are told no other. */
export const TRANSPORT = process.env.FEEDGATE_TRANSPORT ?? "websocket";

/**
 * The SDK's URL or list of endpoints, and its options, for a server. `transport`: one, or several with commas between
 * them, which the SDK tries in turn. `emulation`: answers the server that takes the device's messages.
 */
export function reach(transport, where, { socket = WebSocket, emulation = where } = {}) {
  const websocket = websocketAt(where, socket);
  if (transport === "websocket") return [where().websocket, { websocket }];
  const fetchAt = (server) => (url, init) => fetch(at(server(), url), init);
  const options = {
    websocket,
    emulationEndpoint: at(where(), "/emulation"),
    fetch: (url, init) => fetchAt(new URL(url).pathname === "/emulation" ? emulation : where)(url, init),
    eventsource: class extends EventSource {
      constructor(url) {
        super(url, { fetch: fetchAt(where) });
      }
    },
  };
  const endpoint = (name) => (name === "websocket" ? where().websocket : at(where(), `/connection/${name}`));
  return [transport.split(",").map((name) => ({ transport: name, endpoint: endpoint(name) })), options];
}

function websocketAt(where, socket) {
  return class extends socket {
    constructor(_, ...more) {
      super(where().websocket, ...more);
    }
  };
}

/** The path and the query of `url`, at the port where the phones of this server connect. */
function at(server, url) {
  const base = server.websocket.replace(/^ws/, "http");
  const { pathname, search } = new URL(url, base);
  return new URL(pathname + search, base).href;
}
