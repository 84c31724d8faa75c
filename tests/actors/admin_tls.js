// A server whose backends connect by TLS, and show a certificate of an authority of the test's own.
//
//     const server = await AdminTlsServer.start(t);       server.call(…) shows the certificate of a backend
//     await server.renew();                               the files of the server hold another certificate and key
//     server.ask("/readyz", { cert, key })                one request with these options of node:tls

import { request } from "node:https";

import { SplitServer } from "./split.js";

export class AdminTlsServer extends SplitServer {
  static async start(t) {
    const server = await this.prepare(t);
    await server.renew();
    await server.trustClientsOf(server.authority);
    const files = { certificate: server.file("tls.pem"), key: server.file("tls.key"), client_ca: server.file("clients.pem") };
    const lines = Object.entries(files).map(([name, path]) => `${name} = ${JSON.stringify(path)}\n`);
    await server.serve("127.0.0.1", `[admin_tls]\n${lines.join("")}`);
    return server;
  }

  /** From now on the server lets in clients of this authority alone, and `own` is a certificate of one. */
  async trustClientsOf(authority) {
    const { certificate, key } = await authority.certificate({ name: "backend" });
    this.own = { cert: certificate, key };
    await this.put("clients.pem", authority.root);
  }

  /** One request by TLS with these options. Answers {status, body}; throws if the server lets the client not in. */
  ask(path, options = this.own, { method = "GET", body, headers = {} } = {}) {
    return new Promise((resolve, reject) => {
      const to = { ...this.trusting, port: this.port, path, method, headers, agent: false, ...options };
      const asked = request(to, (answer) => {
        const texts = [];
        answer.setEncoding("utf8").on("data", (text) => texts.push(text)).on("error", reject);
        answer.on("end", () => resolve({ status: answer.statusCode, body: texts.join("") }));
      });
      asked.on("error", reject).end(body);
    });
  }

  async request(method, path, body, { token, headers = {} } = {}) {
    const said = { authorization: `Bearer ${token ?? this.key}`, ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers };
    const answer = await this.ask(path, this.own, { method, headers: said, body: body === undefined ? undefined : JSON.stringify(body) });
    return { ...answer, body: answer.body === "" ? null : JSON.parse(answer.body) };
  }

  /** Where devices connect, without TLS. */
  get websocket() {
    return this.opened.href;
  }

  async isReady() {
    return this.ask("/readyz").then(({ status }) => status === 200, () => false);
  }
}
