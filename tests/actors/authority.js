// An authority for the certificates of a test, made by the real openssl.

import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

/** An authority with one more between its root and the certificates of servers, as public ones have. */
export class Authority {
  #made = 0;

  static async make(directory) {
    const authority = new Authority();
    authority.directory = directory;
    const file = (name) => join(directory, name);
    const ca = ["-addext", "basicConstraints=critical,CA:TRUE"];
    await run("openssl", ["req", "-x509", ...CURVE, ...ca, "-days", "2", "-subj", "/CN=root", "-keyout", file("root.key"), "-out", file("root.pem")]);
    await authority.#sign("between", "root", "basicConstraints=critical,CA:TRUE\n");
    authority.root = await readFile(file("root.pem"), "utf8");
    return authority;
  }

  /**
   * Another certificate for 127.0.0.1, or of the client `name`, with its key: {certificate, key}, the former with what
   * stands between it and the root.
   */
  async certificate({ name: subject } = {}) {
    const name = `made-${(this.#made += 1)}`;
    await this.#sign(name, "between", "subjectAltName=IP:127.0.0.1\n", subject);
    const [own, between, key] = await Promise.all([`${name}.pem`, "between.pem", `${name}.key`].map((file) => readFile(join(this.directory, file), "utf8")));
    return { certificate: own + between, key };
  }

  async #sign(name, by, extensions, subject = name) {
    const file = (ending) => join(this.directory, ending);
    await writeFile(file(`${name}.ext`), extensions);
    await run("openssl", ["req", "-new", ...CURVE, "-subj", `/CN=${subject}`, "-keyout", file(`${name}.key`), "-out", file(`${name}.csr`)]);
    const from = ["-CA", file(`${by}.pem`), "-CAkey", file(`${by}.key`), "-CAcreateserial", "-extfile", file(`${name}.ext`)];
    await run("openssl", ["x509", "-req", "-in", file(`${name}.csr`), ...from, "-days", "2", "-out", file(`${name}.pem`)]);
  }
}
