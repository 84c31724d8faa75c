// The page of the example Weibo: the feed of one user, what moves around its posts, and the search.

import { ago, avatar, drawing, el, field, keep, nameOf, pictures, textOf, trouble } from "../shared/draw.js";
import { Reader } from "../shared/reader.js";

const at = (id) => document.getElementById(id);

/** Users whom the page offers to follow. */
const SUGGESTED = ["tang", "zhou", "fu", "lan", "ming", "chef"];

let reader = null;
let feed = null;
/** Whom the user follows. */
let following = new Set();
/** What a search has found: {words, items, users}; null while nobody searches. */
let found = null;
/** The post that is being reposted. */
let reposting = null;

const draw = drawing(() => {
  if (!reader) return;
  const items = feed.items();
  keep(at("posts"), items.map((item) => part(item)));
  reader.watch(items.map(({ id }) => id));
  at("older").hidden = !feed.hasMore;
  at("found").hidden = found === null;
  at("found").replaceChildren(...(found ? foundView(found) : []));
  keep(at("people"), SUGGESTED.filter((user) => user !== reader.user).map(suggestion));
  keep(at("me"), [{ key: reader.user, state: [following.size, reader.isLive, reader.person(reader.user)], make: me }]);
});

/** A post as a part of a list. All that it shows is in its state. */
function part(item) {
  const { counts, own, ref_item } = item;
  const comments = reader.comments(item.id);
  const people = [item, ref_item, ...(comments ?? [])].filter((of) => of?.author).map(({ author }) => reader.person(author));
  return { key: item.id, state: [item.version, counts, own, ref_item, item.ref_gone, comments, people, reposting === item.id], make: () => post(item, comments) };
}

function post(item, comments) {
  const { id, author, body, counts = {}, own = [], published_at } = item;
  const liked = own.includes("like");
  const toggle = () => (comments ? reader.forgetComments(id) : reader.after(reader.loadComments(id)));
  const who = reader.person(author);
  return el("article", { class: "card post", "aria-label": `Post of ${who.name}` },
    avatar(who),
    el("div", { class: "said" },
      el("p", { class: "by" }, nameOf(who), ago(published_at)),
      el("p", { class: "text", lang: "zh" }, textOf(body)),
      pictures(body),
      original(item),
      el("div", { class: "actions" },
        action("repost", "Repost", counts.reposts, { onclick: () => begin(reposting === id ? null : id), "aria-expanded": `${reposting === id}` }),
        action("comment", "Comments", counts.comments, { onclick: () => toggle(), "aria-expanded": `${comments !== null}` }),
        action("like", "Like", counts.like, { onclick: () => reader.like(id, !liked).catch(trouble), "aria-pressed": `${liked}` })),
      reposting === id && field({ label: "Say something about it", button: "Repost", send: (text, key) => repost(item, text, key) }),
      comments && thread(id, comments)));
}

const ICONS = { repost: "⟲", comment: "✎", like: "♥" };

const action = (kind, label, count, more) =>
  el("button", { class: kind, "aria-label": label, ...more }, el("i", { "aria-hidden": "true" }, ICONS[kind]), el("span", { class: "count" }, count ? `${count}` : label));

/** What a post reposts, as it is now. */
function original({ ref, ref_item, ref_gone }) {
  if (ref_gone) return el("blockquote", { class: "gone" }, "This post is not available.");
  if (!ref_item) return ref ? el("blockquote", { class: "gone" }, "…") : null;
  const counts = ref_item.counts ?? {};
  return el("blockquote", {},
    el("p", { class: "text", lang: "zh" }, "@", nameOf(reader.person(ref_item.author)), "：", textOf(ref_item.body)),
    pictures(ref_item.body),
    el("p", { class: "by" }, ago(ref_item.published_at), counts.like && ` ♥ ${counts.like}`, counts.comments && ` ✎ ${counts.comments}`));
}

const thread = (id, comments) =>
  el("div", { class: "thread" },
    comments.map((comment) => commentView(comment, comments)),
    field({ label: "Write a comment", button: "Send", send: (text, key) => reader.comment(id, text, key) }));

function commentView({ author, body, deleted, reply_to, created_at }, comments) {
  if (deleted) return el("p", { class: "comment gone" }, "This comment was deleted.");
  const answered = comments.find(({ id }) => id === reply_to)?.author;
  const who = reader.person(author);
  return el("p", { class: "comment" }, avatar(who),
    el("span", {}, nameOf(who), answered && [" ▸ ", nameOf(reader.person(answered))], el("br"), el("span", { lang: "zh" }, textOf(body))), ago(created_at));
}

function begin(id) {
  reposting = id;
  draw();
}

async function repost({ id, ref, author, body }, said, key) {
  // A repost of a repost brings the first original along, and quotes who said what on the way.
  const quoted = ref ? ` //@${reader.person(author).name}：${textOf(body)}` : "";
  await reader.do("post", { text: said + quoted, ref: ref ?? id, once: key });
  begin(null);
}

function me() {
  const who = reader.person(reader.user);
  return el("div", { class: "person" }, avatar(who),
    el("p", {}, nameOf(who), el("small", {}, `follows ${following.size} · `, el("b", { class: reader.isLive ? "live" : "" }, reader.isLive ? "live" : "connecting"))));
}

function suggestion(user) {
  const on = following.has(user);
  const who = reader.person(user);
  return { key: user, state: [who, on], make: () => el("div", { class: "person" }, avatar(who), el("p", {}, nameOf(who)), followButton(user, on)) };
}

const followButton = (user, on) =>
  el("button", { class: on ? "" : "main", "aria-label": `${on ? "Unfollow" : "Follow"} ${reader.person(user).name}`, onclick: () => follow(user, !on) }, on ? "Following" : "Follow");

async function follow(author, on) {
  await reader.do("follow", { author, on }).catch(trouble);
  await loadFollowing();
}

async function loadFollowing() {
  const { users } = await reader.call("GET", `/v1/users/${reader.user}/following?limit=100`);
  following = new Set(users.map(({ user }) => user));
  draw();
}

async function search(words) {
  await entered; // The box is there before the reader is.
  const query = new URLSearchParams({ q: words });
  const [{ items }, { users }] = await Promise.all([reader.call("GET", `/v1/search/items?${query}`), reader.call("GET", `/v1/search/users?${query}`)]);
  found = { words, items, users };
  draw();
}

const some = (count, one, many) => `${count} ${count === 1 ? one : many}`;

/** What a search has found: people, then posts. */
const foundView = ({ words, items, users }) => [
  el("p", { class: "line" }, el("span", {}, "Found for ", el("b", {}, words), `: ${some(users.length, "person", "people")}, ${some(items.length, "post", "posts")}`), el("button", { onclick: leaveSearch }, "Close")),
  users.length > 0 && el("section", { class: "card", "aria-label": "People found" },
    users.map((who) => el("div", { class: "person" }, avatar({ name: who.user, ...who }), el("p", {}, nameOf({ name: who.user, ...who })), who.user !== reader.user && followButton(who.user, following.has(who.user))))),
  el("section", { "aria-label": "Posts found" }, items.map((item) => post(reader.now(item), null))),
].filter(Boolean);

function leaveSearch() {
  found = null;
  at("search").querySelector("input").value = "";
  draw();
}

/** Shows the page as this user sees it. */
async function enter(user) {
  reader?.close();
  reader = null;
  leaveSearch();
  reader = await Reader.open(user, draw);
  feed = reader.feed("feed");
  const choices = reader.viewers.map(({ user, name }) => el("option", { value: user, selected: user === reader.user }, name));
  const choose = (event) => (location.search = `?as=${event.target.value}`);
  at("viewer").replaceChildren(avatar(reader.person(reader.user)), el("select", { "aria-label": "Viewer", onchange: choose }, choices));
  at("composer").replaceChildren(el("div", { class: "card composer" }, field({ label: "有什么新鲜事想分享给大家？", button: "Post", send: (text, key) => reader.do("post", { text, once: key }) })));
  await loadFollowing();
}

at("beside").addEventListener("click", () => reader && open(`?as=${reader.another()}`));
at("older").addEventListener("click", () => feed.older().catch(trouble));
at("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const words = event.target.querySelector("input").value.trim();
  if (words) search(words).catch(trouble);
  else leaveSearch();
});
addEventListener("unhandledrejection", ({ reason }) => trouble(reason));

const entered = enter(new URLSearchParams(location.search).get("as"));
entered.catch(trouble);
