// Turns the recorded requests into operations.
//
// Each operation: {op, start, end, outcome, answer, lines, ...what it names}.
//
//   done      a 2xx answer: it happened between start and end
//   refused   a 4xx answer: it changed nothing
//   unknown   no answer, or 5xx: it may have happened at any time after start, or may happen yet; end is Infinity

const SHIELDS = { muted: "mute", hidden: "hide", blocked: "block" };

const ROUTES = [
  ["POST", /^\/v1\/items$/, ({ body, key }) => ({ ...publish(body), key })],
  ["PATCH", /^\/v1\/items\/([^/]+)$/, (_, item) => ({ op: "edit", item })],
  ["DELETE", /^\/v1\/items\/([^/]+)$/, (_, item) => ({ op: "delete", item })],
  ["GET", /^\/v1\/items\/([^/]+)$/, (_, item) => ({ op: "item", item })],
  ["PUT", /^\/v1\/authors\/([^/]+)$/, ({ body }, author) => ({ op: "classify", author, class: body.class })],
  ["PUT", /^\/v1\/users\/([^/]+)\/following\/([^/]+)$/, (_, reader, author) => ({ op: "follow", reader, author })],
  ["DELETE", /^\/v1\/users\/([^/]+)\/following\/([^/]+)$/, (_, reader, author) => ({ op: "unfollow", reader, author })],
  ["GET", /^\/v1\/users\/([^/]+)\/(feed|changes|outbox)$/, (_, user, op, { name = "feed" }) => ({ op, user, feed: name })],
  ["PUT", /^\/v1\/users\/([^/]+)\/(muted|hidden|blocked)\/([^/]+)$/, (_, user, list, other) => ({ op: SHIELDS[list], user, other, up: true })],
  ["DELETE", /^\/v1\/users\/([^/]+)\/(muted|hidden|blocked)\/([^/]+)$/, (_, user, list, other) => ({ op: SHIELDS[list], user, other, up: false })],
  ["GET", /^\/v1\/users\/([^/]+)\/(following|muted|hidden|blocked|sessions)$/, (_, user, op) => ({ op, user })],
  ["DELETE", /^\/v1\/users\/([^/]+)\/sessions\/([^/]+)$/, (_, user, device) => ({ op: "kick", user, device })],
];

/** The operations of one request; `answered` is undefined if the run ended before. */
export function operations(asked, answered) {
  const { pathname, searchParams } = new URL(asked.path, "http://feedgate");
  const query = Object.fromEntries(searchParams);
  const call = { query, start: asked.at, lines: [asked.n, ...(answered ? [answered.n] : [])], gateway: asked.gateway };
  if (asked.method === "POST" && pathname in BATCHES) return batch(asked, answered, call, BATCHES[pathname]);
  for (const [method, pattern, name] of ROUTES) {
    const match = method === asked.method && pattern.exec(pathname);
    if (match) return [{ ...call, ...name(asked, ...match.slice(1).map(decodeURIComponent), query), ...outcome(answered) }];
  }
  return [];
}

const BATCHES = {
  "/v1/items/batch": (op) => ({ ...publish(op), key: op.idempotency_key }),
  "/v1/lists/batch": ({ op, user, list, member }) => ({ op: "list", user, list, member, on: op === "add" }),
};

function batch(asked, answered, call, name) {
  return asked.body.ops.map((op, i) => {
    const result = answered?.answer?.results?.[i];
    const own = result ? { ...answered, status: result.status, answer: result } : answered;
    return { ...call, ...name(op), ...outcome(own) };
  });
}

/** `readers`: to whom it is addressed; undefined if it is for followers. `narrowed`: the lists that say for which of them. */
function publish({ author, body, kind, audience }) {
  const { users, lists = [], except_lists: except = [] } = audience ?? {};
  return { op: "publish", author, body, kind, readers: users && new Set(users), narrowed: audience && !users ? { lists, except } : undefined };
}

function outcome(answered) {
  const status = answered?.status ?? null;
  if (status === null || status >= 500) return { status, outcome: "unknown", end: Infinity };
  return { status, outcome: status < 300 ? "done" : "refused", end: answered.at, answer: answered.answer };
}
