// How the recommender of ranker.mjs ranks: a score that decays with age, for the newest items of some authors. It runs in
// Node and in a page, and needs no more than a function that calls the API.

/** After so long, an item needs twice as many points to stand where it stood. */
export const HALF_LIFE_MS = 6 * 3600 * 1000;

/** How many items a reader is shown. */
const SHOWN = 200;

/** How many of the newest items of each author may be shown. */
const CANDIDATES = 100;

/** What an item is worth: a comment or a repost says more than a reaction. */
export function points({ counts = {} }) {
  const { comments = 0, reposts = 0, ...reactions } = counts;
  return Object.values(reactions).reduce((sum, count) => sum + count, 0) + 3 * (comments + reposts);
}

/**
 * The rank of an item. Its score is (1 + points) · 2^(-age / half-life). What counts is only which of two scores is
 * greater, so their logarithms do as well: age / half-life less log2(1 + points). In these the time of now is the same
 * for all items, so it is left out. So a rank stays as it is until somebody reacts: nothing moves because time passes.
 */
export function rank(item) {
  return Math.round(item.published_at + HALF_LIFE_MS * Math.log2(1 + points(item)));
}

/** The ranking of these items: the best, each with its rank. */
export function ranking(items, shown = SHOWN) {
  const ranked = items.map((item) => ({ id: item.id, rank: rank(item) }));
  return ranked.sort((a, b) => b.rank - a.rank).slice(0, shown);
}

/** The newest items of an author that are for all, with what others did with them. */
async function candidates(call, author) {
  const { items } = await call("GET", `/v1/users/${encodeURIComponent(author)}/outbox?limit=${CANDIDATES}`);
  const ids = items.filter((item) => !item.narrowed).map((item) => item.id);
  if (ids.length === 0) return [];
  return (await call("GET", `/v1/items?ids=${ids.join()}`)).items;
}

/** Ranks the items of these authors for these readers. Answers what has changed for each reader. */
export async function run(call, authors, readers, feed = "picks") {
  const items = (await Promise.all(authors.map((author) => candidates(call, author)))).flat();
  const changed = {};
  for (const reader of readers) {
    // Nobody needs a recommendation of what is one's own. Here a real recommender would look at what the reader likes.
    const wanted = ranking(items.filter((item) => item.author !== reader));
    const path = `/v1/users/${encodeURIComponent(reader)}/feeds/${encodeURIComponent(feed)}/ranking`;
    changed[reader] = await call("PUT", path, wanted);
  }
  return changed;
}
