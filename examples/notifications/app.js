// The page of the example Notifications: the phone of one user, with the lines of what others did, a badge, and a lock
// screen that shows what the push service was told.

import { act, pushes } from "../shared/backend.js";
import { ago, avatar, drawing, el, keep, nameOf, names, pictures, textOf, trouble } from "../shared/draw.js";
import { Reader } from "../shared/reader.js";

const at = (id) => document.getElementById(id);

const FEED = "notifications";

/** What feedgate.toml says of the feed: items shown at most, and the milliseconds for which an item is shown. */
const LIMITS = { cap: 500, ttl: 720 * 3_600_000 };

/** Whose phone it is. */
const USER = "yue";

let reader = null;
/** The promise of the reader since the phone was unlocked; null while it is locked. */
let opening = null;
let feed = null;
/** The posts and comments that lines speak of, by id; null while one is being asked. */
const spoken = new Map();
/** How many lines were unread when the list was opened; null while it is closed. */
let fresh = null;

const draw = drawing(() => {
  at("bell").disabled = !feed?.isLoaded;
  if (!feed) return;
  const isOpen = fresh !== null;
  at("badge").hidden = feed.unread === 0;
  at("badge").textContent = feed.unread >= 999 ? "999+" : `${feed.unread}`;
  at("home").setAttribute("aria-current", `${!isOpen}`);
  at("bell").setAttribute("aria-current", `${isOpen}`);
  at("posts").hidden = isOpen;
  at("lines").hidden = !isOpen;
  keep(at("lines"), feed.items().map((item, n) => linePart(item, n < fresh + feed.unread)));
  const posts = [...spoken.values()].filter((of) => of?.author === reader.user && of.published_at).sort((a, b) => b.rank - a.rank);
  keep(at("posts"), posts.map((post) => reader.now(post)).map((post) => ({ key: post.id, state: post, make: () => postView(post) })));
  reader.watch(posts.map(({ id }) => id));
});

function postView({ author, body, counts = {}, published_at }) {
  const who = reader.person(author);
  return el("article", { class: "post", "aria-label": "Post of mine" },
    el("p", { class: "by" }, avatar(who), nameOf(who), ago(published_at)),
    el("p", { class: "text", lang: "zh" }, textOf(body)), pictures(body),
    el("p", { class: "counts" }, `♥ ${counts.like ?? 0}   ✎ ${counts.comments ?? 0}`));
}

function linePart(item, isNew) {
  const { kind, body, published_at } = item;
  const people = (body.actors ?? [body.actor]).map((user) => reader.person(user));
  const about = [body.item && know("item", body.item), body.comment && know("comment", body.comment, body.item)];
  return { key: item.id, state: [item, isNew, people, about], make: () => line(kind, body, people, about, published_at, isNew) };
}

const DEEDS = { like: "liked your post", comment: "commented on your post", reply: "answered you", repost: "reposted your post", follower: "follow you" };

/** What was done; a kind that the page does not know is something new. */
const deedOf = (kind, count) => (kind === "follower" && count === 1 ? "follows you" : DEEDS[kind] ?? "did something new");

/** One line: who did what, to which post, and when. */
function line(kind, { count = 1 }, people, [post, comment], published_at, isNew) {
  return el("article", { class: `entry ${isNew ? "new" : ""}`, "aria-label": kind },
    el("span", { class: `faces n${people.length}` }, people.map(avatar)),
    el("div", { class: "what" },
      el("p", {}, names(people, count), ` ${deedOf(kind, count)}`, " · ", ago(published_at)),
      comment && el("p", { class: "comment", lang: "zh" }, textOf(comment.body))),
    post && el("p", { class: "excerpt", lang: "zh" }, textOf(post.body)));
}

/** A post or a comment that a line speaks of; asks for it at first. */
function know(kind, id, item) {
  const key = `${kind} ${id}`;
  if (!spoken.has(key)) {
    spoken.set(key, null);
    const path = kind === "item" ? `/v1/items/${id}` : `/v1/items/${item}/comments/${id}`;
    // What is deleted, or is not to be seen, stays null.
    reader.call("GET", path).then((found) => spoken.set(key, found), () => {}).then(draw);
  }
  return spoken.get(key);
}

/** Opens the list: all of it is seen. */
async function openLines() {
  fresh = feed.unread;
  draw();
  await feed.see();
}

/** Closes the list: what came while it was open was seen too. */
async function closeLines() {
  if (fresh !== null) await feed.see();
  fresh = null;
  draw();
}

async function open() {
  const mine = (opening = Reader.open(USER, draw));
  const opened = await mine;
  if (mine !== opening) return opened.close(); // the phone was locked meanwhile
  reader = opened;
  feed = reader.feed(FEED, { unread: true, ...LIMITS });
  const { items } = await reader.call("GET", `/v1/users/${reader.user}/outbox`);
  for (const item of items) spoken.set(`item ${item.id}`, item);
  draw();
}

/** Locks the phone: the app is gone, and its connection with it. Unlocks it: the app starts. */
function lock(isLocked) {
  at("locked").hidden = !isLocked;
  at("app").hidden = isLocked;
  at("clock").textContent = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  at("pushes").replaceChildren();
  if (!isLocked) return void open().catch(trouble);
  reader?.close();
  [opening, reader, feed, fresh] = [null, null, null, null];
}

/** What the push service shows on the lock screen. A newer notification takes the place of the one before. */
function pushed({ name, unread, newest }) {
  if (at("locked").hidden) return;
  const { count = 1 } = newest.body;
  const note = el("article", { class: "push", "aria-label": "Push notification" },
    el("b", { class: "icon" }, "f"),
    el("div", {}, el("p", { class: "by" }, el("b", {}, "Feedgate"), el("time", {}, "now")),
      el("p", {}, names([{ name }], count), ` ${deedOf(newest.kind, count)}`)),
    el("b", { class: "badge", "aria-label": `${unread} unread` }, `${unread}`));
  at("pushes").replaceChildren(note);
}

for (const button of document.querySelectorAll("[data-deed]"))
  button.addEventListener("click", () => act("others", { as: USER, deed: button.dataset.deed }).catch(trouble));
at("bell").addEventListener("click", () => openLines().catch(trouble));
at("home").addEventListener("click", () => closeLines().catch(trouble));
at("lock").addEventListener("change", (event) => lock(event.target.checked));
addEventListener("unhandledrejection", ({ reason }) => trouble(reason));
const missing = pushes(USER, pushed);
if (missing) {
  at("locking").hidden = true;
  at("how").textContent = missing;
}

lock(false);
