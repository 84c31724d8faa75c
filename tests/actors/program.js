// One of our programs on a port of its own.

import { freePort, onFreePorts } from "./port.js";
import { Process } from "./process.js";

/** What a program prints once its ports are bound: another program on the port would answer for it before. */
const SERVES = /^Ctrl-C stops the server\.$/m;

/** A process that serves on `port`; it chooses one at its first start and keeps it. */
export class Program extends Process {
  port = null;
  #choose;
  #settled = false;

  /** `command`: answers the program and its arguments, given the address to listen on. `choose`: answers a port. */
  constructor(command, choose = freePort) {
    super(() => command(`127.0.0.1:${this.port}`));
    this.#choose = choose;
  }

  /**
   * Starts it and waits until it says that it serves and `ready` answers true, or until it has ended. If another process
   * has the port, it starts on another one; later ones wait a second for that process to leave, as clients know the port.
   */
  async serve(what, ready, environment, flags) {
    await onFreePorts(async () => {
      if (!this.#settled) this.port = await this.#choose();
      this.start(environment, flags);
      await this.settled(what, () => this.said(SERVES) && ready());
    });
    this.#settled = true;
  }
}
