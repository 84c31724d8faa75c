// The request for a WebSocket as a web page sends it, for tests of who is let in.

import { request } from "node:http";

/** Asks for a WebSocket as a page of `origin` does, with more `headers`, and gives the status of the answer. */
export function handshake(url, origin, headers = {}) {
  const asked = {
    connection: "Upgrade",
    upgrade: "websocket",
    origin,
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    ...headers,
  };
  return new Promise((resolve, reject) => {
    const asking = request(`${url}/connection/websocket`, { headers: asked, agent: false });
    asking.on("upgrade", (answer, socket) => resolve(socket.destroy() && answer.statusCode));
    asking.on("response", (answer) => resolve(answer.resume().statusCode)).on("error", reject).end();
  });
}
