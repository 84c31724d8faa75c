// Makes tokens as an attacker would: with any header and any claims, signed with any key.

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
