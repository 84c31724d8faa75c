// The page as a backend of this gateway: the HTTP API, with the key of a session.
//
// The key comes for a ticket, which the link has behind its #. A browser sends that part to nobody, and it is taken
// out of the address at once. The key is in the memory of this tab (`sessionStorage`, so that a reload keeps it) and
// goes out in one header, to this gateway alone.

import { json } from "./answer.js";

const KEPT = "feedgate.key";

/** An answer of the gateway that is no success; `status` is 0 if there was no answer. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export class Backend {
  #key;

  constructor(key) {
    this.#key = key;
  }

  /** Comes in by the ticket of the address, or by the key of before a reload; null if there is neither. */
  static async enter() {
    const ticket = /^#ticket=([\w-]+)$/.exec(location.hash)?.[1];
    if (ticket !== undefined) {
      history.replaceState(null, "", location.pathname);
      const { key } = await new Backend(ticket).call("POST", "/v1/console/session");
      sessionStorage.setItem(KEPT, key);
    }
    const key = sessionStorage.getItem(KEPT);
    return key === null ? null : new Backend(key);
  }

  /** Forgets the key: it opens nothing any more. */
  static leave() {
    sessionStorage.removeItem(KEPT);
  }

  /** Sends a request and answers the JSON of a success; null if there is none. `body` is sent as JSON; `more`: headers. */
  async call(method, path, body, more = {}) {
    const headers = { authorization: `Bearer ${this.#key}`, ...more };
    if (body !== undefined) headers["content-type"] = "application/json";
    const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) }).catch(() => {
      throw new Refused(0, "the gateway does not answer");
    });
    const value = await json(answer).catch(({ message }) => {
      throw new Refused(answer.status, message);
    });
    if (!answer.ok) throw new Refused(answer.status, value?.detail ?? answer.statusText);
    return value;
  }
}
