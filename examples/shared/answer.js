// Reads the answer of a server as JSON. A proxy may answer in the place of the server, and not in JSON.

/** How much an error shows of a text that is not JSON, in characters. */
const SHOWN = 200;

/** The JSON of an answer of `fetch`, null if it is empty. Fails with the status and the text if it is anything else. */
export async function json(answer) {
  const text = await answer.text();
  if (answer.ok && text === "") return null;
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${answer.status}: ${text.slice(0, SHOWN) || answer.statusText}`);
  }
}
