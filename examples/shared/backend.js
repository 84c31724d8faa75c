// How a page asks the backend of its app: by HTTP, of site.mjs. The console of Feedgate serves another file by this name,
// which does the same with the key of its session.

import { json } from "./answer.js";

async function ask(path, body) {
  const more = body && { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(path, more);
  const value = await json(answer);
  if (!answer.ok) throw Object.assign(new Error(value.error), { status: answer.status });
  return value;
}

/** A session of this user; without one, of the first user whom the backend offers: {user, token, server, viewers}. */
export const session = (user) => ask(`/session${user ? `?as=${user}` : ""}`);

/** What only a backend may do, such as to publish. `asked` has `as`, the user for whom it is done. */
export const act = (action, asked) => ask(`/actions/${action}`, asked);

/** Calls `told` with each push notification to this user. Answers text that says what pushes take, if none can come. */
export function pushes(user, told) {
  new EventSource(`/pushes?as=${user}`).addEventListener("message", ({ data }) => told(JSON.parse(data)));
  return null;
}
