// A program that follows the events of `GET /v1/events`: the unmodified `eventsource` client from npm, which connects
// again by itself and sends the last id.
//
//     const follower = await Follower.open(t, server, { after });   listens once the stream has begun
//     follower.events                                               [{v, id, kind, author, …}], as they came
//     follower.last                                                 the id from which another one goes on

import { EventSource } from "./sdk.js";
import { until } from "./until.js";

export class Follower {
  events = [];
  /** The id of the last event; before the first one, what the stream began with. */
  last = null;
  connections = 0;
  #source;

  /** A follower that goes on after the event with the id `after`, or from now on. */
  static async open(t, server, { after } = {}) {
    const follower = new Follower();
    const url = () => `${server.url}/v1/events${after === undefined ? "" : `?after=${after}`}`;
    follower.#source = new EventSource(url(), { fetch: (_, init) => follower.#fetch(server, url(), init) });
    follower.#source.addEventListener("message", ({ data, lastEventId }) => {
      follower.events.push(JSON.parse(data));
      follower.last = lastEventId;
    });
    t.after(() => follower.close());
    await until("the stream begins", () => follower.last !== null || follower.events.length > 0);
    return follower;
  }

  close() {
    this.#source.close();
  }

  /** The events by their kind and the user who did it, such as "publish ann". */
  get told() {
    return this.events.map(({ kind, reader, user, author }) => `${kind} ${reader ?? user ?? author}`);
  }

  async #fetch(server, url, init) {
    const answer = await fetch(url, { ...init, headers: { ...init.headers, authorization: `Bearer ${server.key}` } });
    this.connections += 1;
    // The client gives no event for an id without data, with which a stream begins.
    const [shown, read] = answer.body.tee();
    this.#begin(read.getReader());
    return new Response(shown, answer);
  }

  async #begin(reader) {
    const { value } = await reader.read().catch(() => ({}));
    if (value !== undefined) this.last ??= new TextDecoder().decode(value).match(/^id: (.*)$/m)?.[1] ?? null;
    for (let done = value === undefined; !done; ) ({ done } = await reader.read().catch(() => ({ done: true })));
  }
}
