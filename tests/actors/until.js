// Waiting for a condition, with a deadline; the only clock of the journeys.

const PAUSE_MS = 5;

/** What has not happened by then, on the slowest machine, does not happen. */
const WITHIN_SECS = 300;

/** Asks again and again until `condition` answers something true, and answers that. */
export async function until(what, condition, { withinSecs = WITHIN_SECS, seen = () => undefined } = {}) {
  const deadline = Date.now() + withinSecs * 1000;
  for (;;) {
    const answer = await condition();
    if (answer) return answer;
    if (Date.now() > deadline) {
      const last = await seen();
      throw new Error(`not within ${withinSecs} s: ${what}${last === undefined ? "" : `; it was ${JSON.stringify(last)}`}`);
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}
