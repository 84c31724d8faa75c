// Choice of free ports, and further tries where another process took one first.
//
// Between the choice of a port and the moment when a server binds it, any other process can take it. A server that binds
// port 0 has no such gap. But the kernel chooses that port among those of outgoing connections, and a server that is
// started again needs its port once more: so servers get a port of another range, and a second try.

import { createServer } from "node:net";

// Below those the kernel gives to outgoing connections: none of these takes the port of a server that is
// down for a moment.
const FIRST = 20_000;
const COUNT = 12_000;

// Test files that run side by side begin at different places.
let next = Math.floor(Math.random() * COUNT);

/** How often a server is started before its test fails because ports are taken. */
const TRIES = 10;
/** For a server that needs the same port again: another process that looks for a free port holds it for less. */
const PAUSE_MS = 100;

/** A server ended because another process listens on one of its ports. */
export class PortTaken extends Error {
  constructor(log) {
    super(`a port of the server is taken:\n${log}`);
  }
}

/** Calls `start` until it does not throw PortTaken, 10 times at most, and answers what it gives. It chooses ports anew each time. */
export async function onFreePorts(start) {
  for (let tried = 1; ; tried += 1) {
    try {
      return await start();
    } catch (error) {
      if (!(error instanceof PortTaken) || tried === TRIES) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/**
 * A port of the loopback that is free now, and is not answered again by this process for long. Another process may take
 * it before it is used: see onFreePorts.
 */
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
