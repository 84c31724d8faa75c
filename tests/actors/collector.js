// A collector of traces: a real HTTP server for OTLP. What comes is read with the official schema (collector.py).
//
//     const collector = await Collector.start(t);
//     const server = await Home.start(t, { config: collector.config() });
//     const spans = await collector.trace(id, ["accept", ...]);   once these are there, and no others

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { buffer } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

import { TOOLS } from "./process.js";
import { until } from "./until.js";

const READER = fileURLToPath(new URL("collector.py", import.meta.url));

export class Collector {
  /** How many requests came, whatever they were answered. */
  requests = 0;
  /** All spans that were taken. */
  spans = [];
  /** Answers a request: "takes", "refuses" it, or is "silent". */
  mode = "takes";
  #server;
  #reader;
  #wrong = null;

  static async start(t) {
    const collector = new Collector();
    collector.#reader = spawn(join(TOOLS, "python", "bin", "python"), [READER], { stdio: ["pipe", "pipe", "inherit"] });
    collector.#reader.once("exit", (code) => (collector.#wrong ??= `the reader of OTLP ended with ${code}`));
    createInterface(collector.#reader.stdout).on("line", (line) => collector.spans.push(JSON.parse(line)));
    collector.#server = createServer((request, response) => collector.#receive(request, response));
    await once(collector.#server.listen(0, "127.0.0.1"), "listening");
    t.after(() => collector.#end());
    return collector;
  }

  get url() {
    return `http://127.0.0.1:${this.#server.address().port}`;
  }

  /** The section of the settings. */
  config(more = "") {
    return `[traces]\nendpoint = "${this.url}"\n${more}`;
  }

  /** The spans of a trace, once their names are these and no others. */
  async trace(id, names) {
    const found = () => this.spans.filter((span) => span.trace === id);
    const sorted = (all) => JSON.stringify([...all].sort());
    const complete = async () => {
      if (this.#wrong) throw new Error(this.#wrong);
      return sorted(found().map(({ name }) => name)) === sorted(names);
    };
    await until(`the trace ${id}`, complete, { seen: () => this.spans });
    return found();
  }

  async #receive(request, response) {
    const body = await buffer(request);
    this.requests += 1;
    const { method, url, headers } = request;
    if (method !== "POST" || url !== "/v1/traces" || headers["content-type"] !== "application/x-protobuf") {
      this.#wrong = `a request that is none of OTLP: ${method} ${url} ${JSON.stringify(headers)}`;
    }
    if (this.mode === "silent") return;
    if (this.mode === "refuses") {
      response.writeHead(503).end();
      return;
    }
    this.#reader.stdin.write(`${body.toString("base64")}\n`);
    response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
  }

  async #end() {
    this.#reader.removeAllListeners("exit");
    this.#reader.kill();
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
