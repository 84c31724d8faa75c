// The programs of docs/tokens.md, as they are on the page: the token that each prints opens a feed by HTTP and a session
// by WebSocket. Then the tokens are revoked, the server is killed, and none of them opens anything any more.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { TOOLS } from "../actors/process.js";
import { Server } from "../actors/server.js";
import { Wire } from "../actors/wire.js";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../", import.meta.url));
const FEATURES = "feedgate/cluster,feedgate/otlp";
const page = await readFile(join(root, "docs/tokens.md"), "utf8");

/** The code of the one block of this language on the page. */
function block(language) {
  const blocks = [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms"))];
  assert.equal(blocks.length, 1, `one block of ${language}`);
  return blocks[0][1];
}

/** A key pair as PEM: {held: for the server, used: for the signer}. */
function pair(type, options = {}) {
  const { publicKey, privateKey } = generateKeyPairSync(type, options);
  return { held: publicKey.export({ type: "spki", format: "pem" }), used: privateKey.export({ type: "pkcs8", format: "pem" }) };
}

function secret() {
  const text = randomBytes(64).toString("base64url");
  return { held: text, used: text };
}

/**
 * Compiles the program in Rust with the two libraries that it needs, as the server has them. They are built already: with
 * the features that the function `binaries` of tests/run names; with others, cargo would build all crates of the server again.
 */
async function compile(directory) {
  const ours = join(TOOLS, "..");
  const options = { cwd: root, env: { ...process.env, CARGO_TARGET_DIR: ours }, maxBuffer: 1e9 };
  const { stdout } = await run("cargo", ["build", "--locked", "--workspace", "--bins", "--features", FEATURES, "--message-format=json"], options);
  const built = stdout.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
  const libraries = ["jsonwebtoken", "serde_json"].flatMap((name) => {
    const { filenames } = built.find(({ reason, target }) => reason === "compiler-artifact" && target.name === name && target.kind.includes("lib"));
    return ["--extern", `${name}=${filenames.find((file) => file.endsWith(".rlib"))}`];
  });
  await writeFile(join(directory, "main.rs"), block("rust"));
  const search = ["-L", `dependency=${join(ours, "debug/deps")}`];
  await run("rustc", ["--edition=2024", "main.rs", "-o", "token", ...search, ...libraries], { ...options, cwd: directory });
}

const SAMPLES = {
  node: { alg: "EdDSA", key: () => pair("ed25519"), file: "token.mjs", language: "js", command: ["node", "token.mjs"] },
  python: { alg: "HS512", key: secret, file: "token_.py", language: "python", command: ["python3", "token_.py"] },
  go: { alg: "RS256", key: () => pair("rsa", { modulusLength: 2048 }), file: "token.go", language: "go", command: ["go", "run", "token.go"] },
  java: { alg: "ES256", key: () => pair("ec", { namedCurve: "P-256" }), file: "Token.java", language: "java", command: ["java", "Token.java"] },
  rust: { alg: "ES384", key: () => pair("ec", { namedCurve: "P-384" }), prepare: compile, command: ["./token"] },
};

/** What a token opens: [the status by HTTP, the error code of a connect, if any]. */
async function opens(t, server, token) {
  const { status } = await server.request("GET", "/v1/users/ann/feed", undefined, { token });
  const wire = await Wire.open(t, server);
  const { error } = await wire.ask("connect", { token });
  wire.socket.destroy();
  return [status, error?.code ?? null];
}

test("the tokens that the programs of docs/tokens.md print open a feed and a session until they are revoked", async (t) => {
  const server = await Server.start(t);
  const keys = Object.fromEntries(Object.entries(SAMPLES).map(([name, { key }]) => [name, key()]));
  for (const [name, { alg }] of Object.entries(SAMPLES)) {
    await writeFile(join(server.data, "secrets", `token_key.${name}.${alg}`), keys[name].held, { mode: 0o600 });
  }
  await server.stop();
  await server.start();

  const tokens = {};
  for (const [name, { prepare, file, language, command }] of Object.entries(SAMPLES)) {
    const directory = await mkdtemp(join(tmpdir(), "feedgate-token-"));
    t.after(() => rm(directory, { recursive: true, force: true }));
    await (prepare ? prepare(directory) : writeFile(join(directory, file), block(language)));
    await writeFile(join(directory, "key"), keys[name].used);
    const [program, ...given] = command;
    const env = { ...process.env, PATH: `${join(TOOLS, "python/bin")}:${process.env.PATH}` };
    const { stdout } = await run(program, [...given, "key", "ann"], { cwd: directory, env });
    tokens[name] = stdout.trim();
    assert.deepEqual(await opens(t, server, tokens[name]), [200, null], name);
  }

  await server.call("POST", "/v1/users/ann/revoke");
  await server.kill();
  await server.start();
  for (const [name, token] of Object.entries(tokens)) assert.deepEqual(await opens(t, server, token), [401, 109], name);
  assert.deepEqual(await opens(t, server, await server.token("ann")), [200, null], "a new one is good");
});
