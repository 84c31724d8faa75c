// A wire between two processes that a test can break: a TCP proxy on the loopback.
//
//     const proxy = await Proxy.start(t, redis.port);    connect to proxy.port
//     proxy.stall("answers");                            requests still arrive, their answers do not
//     proxy.heal();                                      what was held back goes on
//     proxy.cut();                                       every connection is reset, and no new one is taken
//     proxy.target = other.port;                         where connections lead from now on

import { connect, createServer } from "node:net";

const DIRECTIONS = { requests: ["near"], answers: ["far"], both: ["near", "far"] };

export class Proxy {
  #pairs = new Set();
  #stalled = new Set(); // of "near", "far": whose words do not pass
  #refuses = false;

  static async start(t, target) {
    const proxy = new Proxy();
    proxy.target = target;
    const listener = createServer((near) => proxy.#take(near));
    await new Promise((resolve, reject) => listener.once("error", reject).listen(0, "127.0.0.1", resolve));
    proxy.port = listener.address().port;
    t.after(() => {
      listener.close();
      proxy.cut();
    });
    return proxy;
  }

  /** Holds back what one side says, or both; connections stay open. `what`: "requests", "answers" or "both". */
  stall(what) {
    this.#stalled = new Set(DIRECTIONS[what]);
    for (const pair of this.#pairs) for (const side of this.#stalled) pair[side].pause();
  }

  /** Resets every connection and refuses new ones, until heal(). */
  cut() {
    this.#refuses = true;
    for (const { near, far } of this.#pairs) [near, far].forEach((socket) => socket.resetAndDestroy());
  }

  /** Lets all bytes and all new connections pass again. */
  heal() {
    this.#refuses = false;
    this.#stalled.clear();
    for (const { near, far } of this.#pairs) [near, far].forEach((socket) => socket.resume());
  }

  #take(near) {
    if (this.#refuses) {
      near.resetAndDestroy();
      return;
    }
    const far = connect(this.target, "127.0.0.1");
    const pair = { near, far };
    this.#pairs.add(pair);
    for (const [from, to] of [[near, far], [far, near]]) {
      from.setNoDelay(true);
      from.on("data", (data) => to.write(data));
      from.on("error", () => {});
      from.on("close", () => {
        this.#pairs.delete(pair);
        to.destroy();
      });
    }
    for (const side of this.#stalled) pair[side].pause();
  }
}
