// Waiting for a condition, with a deadline; the only clock of the journeys.

/** Pauses between two questions, in ms. They grow with the time waited: an answer is at most a tenth late. */
const PAUSE_MS = { least: 5, most: 25 };

/** What has not happened by then, on the slowest machine, does not happen. */
const WITHIN_SECS = 300;

/** Asks again and again until `condition` answers something true, and answers that. */
export async function until(what, condition, { withinSecs = WITHIN_SECS, seen = () => undefined } = {}) {
  const started = Date.now();
  const deadline = started + withinSecs * 1000;
  for (;;) {
    const answer = await condition();
    if (answer) return answer;
    if (Date.now() > deadline) {
      const last = await seen();
      throw new Error(`not within ${withinSecs} s: ${what}${last === undefined ? "" : `; it was ${JSON.stringify(last)}`}`);
    }
    const pause = Math.min(Math.max((Date.now() - started) / 10, PAUSE_MS.least), PAUSE_MS.most);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}
