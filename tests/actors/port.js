// Ports nobody listens on.

import { createServer } from "node:net";

// Below those the kernel gives to outgoing connections: none of these takes the port of a server that is
// down for a moment.
const FIRST = 20_000;
const COUNT = 12_000;

// Test files that run side by side begin at different places.
let next = Math.floor(Math.random() * COUNT);

/** A port of the loopback that is free now, and is not answered again by this process for long. */
export async function freePort() {
  for (let tried = 0; tried < COUNT; tried++) {
    const port = FIRST + (next++ % COUNT);
    if (await isFree(port)) return port;
  }
  throw new Error(`no port from ${FIRST} to ${FIRST + COUNT - 1} is free`);
}

function isFree(port) {
  const listener = createServer();
  return new Promise((resolve) => {
    listener.once("error", () => resolve(false));
    listener.listen(port, "127.0.0.1", () => listener.close(() => resolve(true)));
  });
}
