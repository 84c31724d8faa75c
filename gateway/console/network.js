// The network of one phone, with a switch. The SDK is given `Socket` in place of the browser's WebSocket, and `events`
// in place of the browser's word on whether the device is online. It knows of no console.

/** What a connection is while there is no network: it ends as soon as it begins. */
class NoSocket {
  constructor() {
    setTimeout(() => this.onclose?.({ code: 1006, reason: "no network" }));
  }

  close() {}

  send() {}
}

export class Network {
  events = new EventTarget();
  isUp = true;
  #open = new Set();

  /** The class of WebSockets that go through this network. */
  get Socket() {
    const network = this;
    return class extends WebSocket {
      constructor(...address) {
        if (!network.isUp) return new NoSocket();
        super(...address);
        network.#open.add(this);
        this.addEventListener("close", () => network.#open.delete(this));
      }
    };
  }

  /** Ends every connection. Until `restore`, none begins. */
  cut() {
    this.isUp = false;
    for (const socket of this.#open) {
      socket.onmessage = null;
      socket.close();
    }
    this.events.dispatchEvent(new Event("offline"));
  }

  /** Lets connections begin again, the first one at once. */
  restore() {
    this.isUp = true;
    this.events.dispatchEvent(new Event("online"));
  }
}
