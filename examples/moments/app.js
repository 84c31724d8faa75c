// The page of the example Moments: two phones, each of a user of one's choice, so that one sees who is shown what.

import { ago, avatar, drawing, el, field, keep, nameOf, names, pictures, textOf, trouble } from "../shared/draw.js";
import { picture } from "../shared/pictures.js";
import { Reader } from "../shared/reader.js";

/** All posts are for friends on both sides; a list makes it fewer. */
const ALL = { mutual: true };

class Phone {
  #reader = null;
  #opening = null; // the promise of the reader of the user who was chosen last
  #feed = null;
  #likes = new Map(); // item → who likes it, newest first, and after which move around it that was read
  #draw = drawing(() => this.#shown());
  /** The comment that is being answered, or the post that is being commented on: {item, comment}. */
  #answering = null;

  constructor(label, user) {
    this.list = el("div", { class: "posts", role: "feed" });
    this.cover = el("div", { class: "cover" });
    this.composer = el("div", { class: "composer" });
    this.choice = el("select", { "aria-label": `User of the ${label}`, onchange: (event) => this.enter(event.target.value) });
    const screen = el("div", { class: "screen" }, this.cover, this.composer, this.list);
    this.element = el("section", { class: "phone", "aria-label": label }, el("label", { class: "whose" }, this.choice), screen);
    this.enter(user).catch(trouble);
  }

  /** Makes the phone one of this user. */
  async enter(user) {
    this.#reader?.close();
    this.#reader = null;
    this.#likes = new Map();
    this.list.replaceChildren();
    const opening = (this.#opening = Reader.open(user, this.#draw));
    const reader = await opening;
    if (opening !== this.#opening) return reader.close(); // another user was chosen meanwhile
    this.#feed = reader.feed("feed");
    this.#reader = reader;
    this.choice.replaceChildren(...reader.viewers.map(({ user, name }) => el("option", { value: user, selected: user === reader.user }, name)));
    const me = reader.person(user);
    this.cover.replaceChildren(el("img", { class: "scene", src: picture(`/scenes/cover-${user}.svg`), alt: "" }), nameOf(me), avatar(me));
    const { lists } = await reader.call("GET", `/v1/users/${user}/lists`);
    if (reader === this.#reader) this.#compose(lists.map(({ list }) => list));
  }

  /** The field for a new post, with the choice of who may see it. */
  #compose(lists) {
    const options = [
      ["All friends", ALL],
      ...lists.map((list) => [`Only ${list}`, { ...ALL, lists: [list] }]),
      ...lists.map((list) => [`Not ${list}`, { ...ALL, except_lists: [list] }]),
    ];
    const audience = el("select", { "aria-label": "Who may see it" }, options.map(([name], n) => el("option", { value: n }, name)));
    const publish = (text, key) => this.#reader.do("post", { text, audience: options[audience.value][1], once: key });
    this.composer.replaceChildren(field({ label: "这一刻的想法…", button: "Post", send: publish }), audience);
  }

  #shown() {
    if (!this.#reader) return;
    const items = this.#feed.items();
    for (const item of items) this.#look(item);
    keep(this.list, items.length > 0 ? items.map((item) => this.#part(item)) : [{ key: "none", state: 0, make: () => el("p", { class: "none" }, "Nothing here: Moments are for friends on both sides.") }]);
    this.#reader.watch(items.map(({ id }) => id));
  }

  /** Reads the comments on a post once, and who likes it whenever something has moved around it. */
  #look({ id, counts = {} }) {
    const [reader, likes] = [this.#reader, this.#likes];
    if (reader.comments(id) === null && !likes.has(id)) reader.after(reader.loadComments(id));
    const moves = reader.moves(id);
    const known = likes.get(id);
    if (known?.moves === moves) return;
    likes.set(id, { users: (counts.like && known?.users) || [], moves });
    if (!counts.like) return;
    const read = async () => {
      const { reactions } = await reader.call("GET", `/v1/items/${id}/reactions?kind=like`);
      if (likes.get(id).moves !== moves) return; // something has moved again
      likes.set(id, { users: reactions.map(({ user }) => user), moves });
      this.#draw();
    };
    reader.after(read());
  }

  #part(item) {
    const [reader, comments, { users }] = [this.#reader, this.#reader.comments(item.id) ?? [], this.#likes.get(item.id)];
    const answering = this.#answering?.item === item.id && this.#answering;
    const people = [item.author, ...users, ...comments.map(({ author }) => author).filter(Boolean)].map((user) => reader.person(user));
    return { key: item.id, state: [item, comments, users, people, answering], make: () => this.#post(item, comments, users, answering) };
  }

  #post({ id, author, body, own = [], published_at }, comments, users, answering) {
    const reader = this.#reader;
    const who = reader.person(author);
    const liked = own.includes("like");
    return el("article", { class: "post", "aria-label": `Post of ${who.name}` },
      avatar(who),
      el("div", { class: "said" },
        nameOf(who),
        el("p", { class: "text", lang: "zh" }, textOf(body)),
        pictures(body),
        el("p", { class: "under" },
          ago(published_at),
          body.some === true && el("span", { class: "lock", title: "For some friends alone" }, el("i", { "aria-hidden": "true" }), "some friends"),
          el("button", { class: "like", "aria-label": "Like", "aria-pressed": `${liked}`, onclick: () => reader.like(id, !liked).catch(trouble) }, "♥"),
          el("button", { class: "say", "aria-label": "Comment", onclick: () => this.#answer({ item: id }) }, "✎")),
        (users.length > 0 || comments.length > 0) && el("div", { class: "around" },
          users.length > 0 && el("p", { class: "likes" }, "♥ ", names(users.map((user) => reader.person(user)), users.length)),
          comments.map((comment) => this.#comment(id, comment, comments))),
        answering && field({ label: answering.comment ? `Answer ${reader.person(answering.author).name}` : "Comment", button: "Send", send: (text, key) => this.#say(answering, text, key) })));
  }

  #comment(item, { id, author, body, deleted, reply_to }, comments) {
    if (deleted) return el("p", { class: "comment gone" }, "This comment was deleted.");
    const answered = comments.find(({ id }) => id === reply_to)?.author;
    const answer = () => this.#answer({ item, comment: id, author });
    return el("p", { class: "comment", onclick: answer },
      nameOf(this.#reader.person(author)), answered && [" ▸ ", nameOf(this.#reader.person(answered))], "：", el("span", { lang: "zh" }, textOf(body)));
  }

  #answer(what) {
    this.#answering = what;
    this.#draw();
    if (what) requestAnimationFrame(() => requestAnimationFrame(() => this.list.querySelector(".field input")?.focus()));
  }

  async #say(answering, text, key) {
    await this.#reader.comment(answering.item, text, key, answering.comment);
    if (this.#answering === answering) this.#answer(null);
  }
}

addEventListener("unhandledrejection", ({ reason }) => trouble(reason));

const asked = new URLSearchParams(location.search);
const phones = [new Phone("first phone", asked.get("as") ?? "mama"), new Phone("second phone", asked.get("beside") ?? "wang")];
document.querySelector("main").append(...phones.map(({ element }) => element));
