// A server whose devices connect by TLS, with certificates of an authority of the test's own.
//
//     const server = await TlsServer.start(t);         devices at server.websocket, backends at server.url without TLS
//     await server.renew();                            the files hold another certificate and another key
//     tls.connect({ ...server.trusting, port: server.devices })

import { SplitServer } from "./split.js";

export class TlsServer extends SplitServer {
  /** `config`: more settings, as text of a TOML file. `versions`: {minVersion, maxVersion} of its phones. */
  static async start(t, { config = "", versions = {} } = {}) {
    const server = await this.prepare(t);
    Object.assign(server.trusting, versions);
    await server.renew();
    await server.serve("127.0.0.1", `[tls]\ncertificate = "${server.file("tls.pem")}"\nkey = "${server.file("tls.key")}"\n${config}`);
    return server;
  }

  /** Where devices connect, by TLS. */
  get websocket() {
    return this.opened.href;
  }

  get devices() {
    return Number(this.opened.port);
  }
}
