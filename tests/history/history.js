// A recorded run, read and joined: what the invariants decide on.
//
//   lines ─▶ operations (HTTP) ─▶ items, edges, audiences, classes
//        └─▶ connections (WebSocket) ─▶ logs ─▶ final
//
// Nothing here judges; every piece keeps the numbers of the lines it came from.

import { Audiences } from "./audiences.js";
import { Classes } from "./classes.js";
import { connectionsOf } from "./connections.js";
import { Edges } from "./edges.js";
import { Final } from "./final.js";
import { Items } from "./items.js";
import { linesOf } from "./lines.js";
import { Logs } from "./logs.js";
import { operations } from "./requests.js";

/** What a `run` line leaves unsaid. */
const DEFAULTS = { backfill: 100, pull_above: 10_000, feeds: {}, keep: 1000, batch: 100, grace_ms: 15_000, memory_max_bytes: 512 * 1024 * 1024 };

export class History {
  /** `texts`: the lines of the file, as `linesOf` gives them. A torn last line, of a run that crashed, is left out. */
  constructor(texts) {
    this.lines = parse(texts);
    this.run = { ...DEFAULTS, ...this.lines.find(({ kind }) => kind === "run") };
    this.drained = this.lines.findLast(({ kind }) => kind === "drained");
    this.ended = this.lines.at(-1)?.kind === "end";
    this.last = this.lines.at(-1)?.at ?? 0;
    this.operations = this.#join();
    this.connections = connectionsOf(this.lines);
    this.items = new Items(this.operations, this.run.feeds);
    this.edges = new Edges(this.operations);
    this.audiences = new Audiences(this.operations, this.edges);
    this.logs = new Logs(this.connections, this.operations, this.items);
    this.#route(new Classes(this.operations, this.edges, this.run));
    this.final = new Final(this.lines, this.operations, this.drained);
  }

  static load(path) {
    return new History(linesOf(path));
  }

  /** The names of all feeds. */
  get feeds() {
    return ["feed", ...Object.keys(this.run.feeds)];
  }

  kind(kind) {
    return this.lines.filter((line) => line.kind === kind);
  }

  /** Only now are all items known: some are first met in a log. */
  #route(classes) {
    for (const item of this.items.all()) item.route = classes.route(item);
  }

  #join() {
    const answers = new Map(this.kind("answered").map((line) => [line.call, line]));
    return this.kind("asked").flatMap((asked) => operations(asked, answers.get(asked.call)));
  }
}

function parse(texts) {
  const lines = [];
  let last;
  for (const text of texts) {
    if (last !== undefined) lines.push(numbered(last, lines));
    last = text;
  }
  if (last !== undefined && isJson(last)) lines.push(numbered(last, lines));
  return lines;
}

const numbered = (text, before) => Object.assign(JSON.parse(text), { n: before.length + 1 });

function isJson(text) {
  try {
    return typeof JSON.parse(text) === "object";
  } catch {
    return false;
  }
}
