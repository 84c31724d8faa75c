// Tokens as an attacker makes them: any header, any claims, signed by anything.

import { createHmac } from "node:crypto";

const base64url = (text) => Buffer.from(text).toString("base64url");

/** `header` and `claims`: objects, or the text itself where an object cannot say it (a name that is there twice). */
export function forge({ header = { alg: "HS256", typ: "JWT" }, claims, sign }) {
  const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  const signed = `${base64url(text(header))}.${base64url(text(claims))}`;
  return `${signed}.${base64url(sign(signed))}`;
}

/** Signs with a shared key, as HS256 or another of them. */
export const hmac = (key, hash = "sha256") => (text) => createHmac(hash, key).update(text).digest();
