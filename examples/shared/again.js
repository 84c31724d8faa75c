// Does again what has failed, until it succeeds.

/** How long the pause is after the first failure, and at most, in ms. */
const FIRST_MS = 1000;
const MAX_MS = 30_000;

/**
 * Does something until it succeeds or is over, with pauses that grow. Answers whether it has succeeded. `failed` gets
 * each error.
 */
export async function again(attempt, { isOver, failed }) {
  for (let pause = FIRST_MS; !isOver(); pause = Math.min(2 * pause, MAX_MS)) {
    try {
      await attempt();
      return true;
    } catch (error) {
      failed(error);
    }
    // Pages that failed together do not come back together.
    await new Promise((resolve) => setTimeout(resolve, pause * (0.5 + Math.random() / 2)));
  }
  return false;
}
