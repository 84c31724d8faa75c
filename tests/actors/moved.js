// What one server exports, and another one imports.
//
//     const report = await imported(to, await exported(from));

/** Exports all that `from` has. */
export async function exported(from) {
  const answer = await fetch(`${from.url}/v1/export`, { headers: { authorization: `Bearer ${from.key}` } });
  return answer.text();
}

/** Lets `to` import these lines, and answers the lines of its report. */
export async function imported(to, lines) {
  const headers = { authorization: `Bearer ${to.key}`, "content-type": "application/x-ndjson" };
  const answer = await fetch(`${to.url}/v1/import`, { method: "POST", headers, body: lines });
  return (await answer.text()).trim().split("\n").map((line) => JSON.parse(line));
}
