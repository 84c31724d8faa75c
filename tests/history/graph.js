// Who follows whom in a made-up history, and what stands between them.

/** The edges, [reader, author], that a shield of `user` stands on. */
const GUARDED = {
  muted: (user, other) => [[user, other]],
  hidden: (user, other) => [[other, user]],
  blocked: (user, other) => [[user, other], [other, user]],
};

export const SHIELDS = Object.keys(GUARDED);

export class Graph {
  edges = new Map(); // "reader author" → {on: whether the reader follows, from, shields: Set}
  everyones = new Set(); // authors whom everyone follows
  #lists = new Map(); // "list user" → Set of users

  /** Changes an edge at the author's `head`; answers whether it was in effect and is, and whether it was known at all. */
  turn(reader, author, head, change) {
    const name = `${reader} ${author}`;
    const known = this.edges.has(name);
    const edge = { on: this.everyones.has(author), from: 0, shields: new Set(), ...this.edges.get(name) };
    this.edges.set(name, edge);
    const was = isInEffect(edge);
    change(edge);
    const is = isInEffect(edge);
    if (is && !was) edge.from = head;
    return { was, is, known };
  }

  /** Puts a shield up or down; answers each edge with the change for `turn`. */
  shield(list, user, other, up) {
    const name = `${list} ${user}`;
    this.#lists.set(name, new Set(this.shielded(list, user)));
    this.#lists.get(name)[up ? "add" : "delete"](other);
    const change = ({ shields }) => shields[up ? "add" : "delete"](name);
    return GUARDED[list](user, other).map(([reader, author]) => ({ reader, author, change }));
  }

  /** Those whom the user has put in one of the lists of shields. */
  shielded(list, user) {
    return [...(this.#lists.get(`${list} ${user}`) ?? [])];
  }

  /** The authors whom the reader follows, whatever shields are up. */
  following(reader) {
    return [...this.edges].filter(([name, { on }]) => on && name.startsWith(`${reader} `)).map(([name]) => name.split(" ")[1]);
  }

  /** Those of `readers`, and of all with an edge, who are to have the author's record `seq`. */
  followers(author, seq, readers) {
    const own = [...this.edges].filter(([name, edge]) => isInEffect(edge) && seq > edge.from && name.endsWith(` ${author}`));
    const implicit = this.everyones.has(author) ? readers.filter((reader) => !this.edges.has(`${reader} ${author}`)) : [];
    return [...own.map(([name]) => name.split(" ")[0]), ...implicit];
  }

  /** The authors whose items the reader sees. */
  seen(reader) {
    const own = this.following(reader).filter((author) => isInEffect(this.edges.get(`${reader} ${author}`)));
    return [...own, ...[...this.everyones].filter((author) => !this.edges.has(`${reader} ${author}`))];
  }
}

const isInEffect = ({ on, shields }) => on && !(shields?.size > 0);
