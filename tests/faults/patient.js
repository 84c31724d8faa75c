// A backend, or an app, that asks again until it has an answer: at another gateway each time, with the same
// idempotency key, as its author would have it. Every try is recorded as a call of its own.

import { Backend } from "../actors/backend.js";

const PAUSE_MS = 40;
const ANSWER_MS = 3000;
const PATIENCE_MS = 180_000;

export class Patient extends Backend {
  timeoutMs = ANSWER_MS;
  #home;
  #random;

  /** `home`: the `gateways` to ask, each with a `url`, and their `key`. */
  constructor(home, random, recorder) {
    super();
    this.#home = home;
    this.#random = random;
    this.recorder = recorder;
  }

  get key() {
    return this.#home.key;
  }

  /** Of one of the gateways that are running, by chance. */
  get url() {
    const running = this.#home.gateways.filter(({ ended }) => !ended);
    return this.#random.pick(running.length > 0 ? running : this.#home.gateways).url;
  }

  async request(...call) {
    for (const deadline = performance.now() + PATIENCE_MS; ; ) {
      const answer = await super.request(...call).catch((error) => ({ status: null, error }));
      const isAnswer = answer.status !== null && answer.status !== 429 && answer.status < 500;
      if (isAnswer) return answer;
      if (performance.now() > deadline) throw new Error(`no answer within ${PATIENCE_MS} ms to ${call[0]} ${call[1]}`, { cause: answer.error ?? answer });
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}
