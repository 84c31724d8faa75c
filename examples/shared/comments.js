// The comments on items, as they were loaded and as news have changed them since. News that come while a load is under
// way are held for its answer, which may be older than they are.

/** Takes news of one comment into those of an item. What is held in a later version stays. */
function take(comments, { op, comment, id }) {
  if (op === "uncomment") comments.delete(id);
  else if (!(comments.get(comment.id)?.version > comment.version)) comments.set(comment.id, comment);
}

/** The order of comments, oldest first. */
const byAge = (a, b) => a.created_at - b.created_at || (BigInt(a.id) < BigInt(b.id) ? -1 : 1);

export class Comments {
  #of = new Map(); // item → Map of id → comment
  #loads = new Map(); // item → the news since its last load began, while that is under way

  /** The comments on an item, oldest first; null if they are not loaded. */
  on(item) {
    const comments = this.#of.get(item);
    return comments ? [...comments.values()].sort(byAge) : null;
  }

  /** Whether the comments on an item are loaded, or are being loaded. */
  has(item) {
    return this.#of.has(item) || this.#loads.has(item);
  }

  /** Loads the comments on an item; `ask` answers them. A later load, or `forget`, puts this one out of date. */
  async load(item, ask) {
    const news = [];
    this.#loads.set(item, news);
    try {
      const comments = new Map((await ask()).map((comment) => [comment.id, comment]));
      if (this.#loads.get(item) !== news) return;
      for (const one of news) take(comments, one);
      this.#of.set(item, comments);
    } finally {
      if (this.#loads.get(item) === news) this.#loads.delete(item);
    }
  }

  /** Takes a push {op: "comment" or "uncomment", …} of the channel of an item. */
  take(item, news) {
    this.#loads.get(item)?.push(news);
    if (this.#of.has(item)) take(this.#of.get(item), news);
  }

  forget(item) {
    this.#of.delete(item);
    this.#loads.delete(item);
  }
}
