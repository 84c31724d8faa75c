// A real nginx in front of a server, as its defaults are: it keeps answers back until it has much of them, speaks HTTP/1.0
// to the server, and lets no WebSocket through.
//
//     const proxy = await Nginx.start(t, server);       connect to proxy.url

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Backend } from "./backend.js";
import { freePort, onFreePorts } from "./port.js";
import { Process } from "./process.js";

export class Nginx extends Backend {
  static async start(t, server) {
    const proxy = new Nginx();
    proxy.key = server.key;
    const directory = await mkdtemp(join(tmpdir(), "feedgate-nginx-"));
    const file = join(directory, "nginx.conf");
    const nginx = new Process(["nginx", "-e", "stderr", "-c", file]);
    t.after(async () => {
      await nginx.kill();
      await rm(directory, { recursive: true, force: true });
    });
    await onFreePorts(async () => {
      proxy.port = await freePort();
      await writeFile(file, configuration(directory, proxy.port, server.port));
      nginx.start();
      await nginx.settled("nginx passes requests on", () => proxy.isReady());
    });
    return proxy;
  }
}

/** One process in the foreground, whose files are all in `directory`. */
function configuration(directory, port, to) {
  return `
daemon off;
master_process off;
pid ${directory}/pid;
events {}
http {
  access_log off;
${folders(directory)}  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://127.0.0.1:${to}; }
  }
}
`;
}

/** Lines that let nginx keep large bodies in `directory`. The folders compiled into it are those of root. */
export function folders(directory) {
  return ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `  ${name}_temp_path ${directory}/${name};\n`).join("");
}
