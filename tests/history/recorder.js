// The history of a run: one JSON object per line, in the order things happened to this process.
//
//     const recorder = new Recorder(path, { seed, grace_ms: 12000 });
//     client.recorder = recorder            every HTTP call: an `asked` line, then its `answered` line
//     tap(recorder, WebSocket, { reader })  a WebSocket class: every message there and back, every close
//     recorder.line({ kind: "fault", what: "kill", who: "gateway-1" })
//
// Each line is written before the program goes on, so a test that crashes leaves all it saw. `at` is
// milliseconds of a monotonic clock. An `asked` without its `answered` may or may not have happened.
//
//   run        what the run was: seed, backfill, pull_above, feeds, keep, batch, grace_ms, memory_max_bytes
//   asked      call, gateway, method, path, body, key       a request is about to be sent
//   answered   call, status, answer                         status null: no answer came
//   opened     connection, reader, device, gateway          a WebSocket is about to be opened
//   sent, got  connection, message                          one command, reply or push (no token, no ping)
//   closed     connection, code, reason, by                 by: "client" if this side asked for it
//   fault      what, who                                    somebody breaks a process: as it begins, and when it is done
//   memory     who, bytes, most                             resident memory of a process, and its bound
//   view       reader, device, feed, position, items        what an app shows
//   drained                                                 all work is done, all phones are in sync: what
//                                                           is read from here on is final
//   end                                                     the run went as planned

import { closeSync, openSync, writeSync } from "node:fs";

export class Recorder {
  #file;
  #began = performance.now();
  #calls = 0;
  #connections = 0;

  /** Starts a new file at `path`; `run` says what the run is. */
  constructor(path, run = {}) {
    this.path = path;
    this.#file = openSync(path, "w");
    this.line({ kind: "run", ...run });
  }

  /** Writes one line of the history: these fields, and the time. */
  line(fields) {
    if (this.#file === null) return;
    const at = Math.round((performance.now() - this.#began) * 1000) / 1000;
    writeSync(this.#file, `${JSON.stringify({ at, ...fields }, withoutToken)}\n`);
  }

  /** Records the call that `ask` makes, which answers {status, body}. What it throws is recorded, and thrown. */
  async call(asked, ask) {
    const call = (this.#calls += 1);
    this.line({ kind: "asked", call, ...asked });
    try {
      const { status, body, ...more } = await ask();
      this.line({ kind: "answered", call, status, answer: body });
      return { status, body, ...more };
    } catch (error) {
      this.line({ kind: "answered", call, status: null, error: String(error.cause?.code ?? error.message) });
      throw error;
    }
  }

  /** A number for a connection that is about to be opened. */
  opened(fields) {
    const connection = (this.#connections += 1);
    this.line({ kind: "opened", connection, ...fields });
    return connection;
  }

  /** What an app shows of the feed of that name, by its `Feed`. */
  view(reader, device, name, feed) {
    const items = feed.items().map(({ id, author, version }) => ({ id, author, version }));
    this.line({ kind: "view", reader, device, feed: name, position: feed.position, items });
  }

  /** The last line; nothing is written after it. */
  end() {
    this.line({ kind: "end" });
    this.close();
  }

  /** Closes the file without an end: the run went otherwise. */
  close() {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }
}

/** No history holds a credential. */
const withoutToken = (name, value) => (name === "token" ? undefined : value);

/** `WebSocket` (of the package ws), recorded. `who`: {reader, device}. */
export function tap(recorder, WebSocket, who) {
  return class extends WebSocket {
    #connection;
    #by = "server";

    constructor(url, ...more) {
      super(url, ...more);
      this.#connection = recorder.opened({ ...who, gateway: new URL(url).host });
      this.on("message", (data) => this.#each("got", String(data)));
      this.on("close", (code, reason) => {
        recorder.line({ kind: "closed", connection: this.#connection, code, reason: String(reason), by: this.#by });
      });
    }

    send(data, ...more) {
      this.#each("sent", String(data));
      super.send(data, ...more);
    }

    close(...more) {
      this.#by = "client";
      super.close(...more);
    }

    #each(kind, frame) {
      for (const text of frame.split("\n").filter((text) => text !== "" && text !== "{}")) {
        recorder.line({ kind, connection: this.#connection, message: JSON.parse(text) });
      }
    }
  };
}
