// The page of the example Headlines: what a recommender ranks for one user. An item that gets another rank moves.

import { HALF_LIFE_MS } from "../ranker/rank.js";
import { ago, avatar, drawing, el, keep, nameOf, pictures, textOf, trouble } from "../shared/draw.js";
import { Reader } from "../shared/reader.js";

const at = (id) => document.getElementById(id);

/** How long an item moves, in ms. */
const MOVE_MS = 450;

const STILL = matchMedia("(prefers-reduced-motion: reduce)");

let reader = null;
let feed = null;
/** Where each item stood before the last change, also one that is about to come back elsewhere. */
const stood = new Map();
/** The place of each item in the list. */
const places = new Map();
/** By how many places each item rose when it last got another place; less than 0 if it fell. */
const rose = new Map();

const draw = drawing(() => {
  if (!reader) return;
  const items = feed.items();
  items.forEach(({ id }, place) => {
    if (places.has(id) && places.get(id) !== place) rose.set(id, places.get(id) - place);
    places.set(id, place);
  });
  moving(at("items"), () => keep(at("items"), items.map(part)));
  reader.watch(items.map(({ id }) => id));
  at("older").hidden = !feed.hasMore;
});

/** Changes a list; what stands elsewhere afterwards moves there, and what is new appears. */
function moving(list, change) {
  const top = (child) => child.getBoundingClientRect().top;
  for (const child of list.children) stood.set(child.dataset.key, top(child));
  change();
  if (STILL.matches) return;
  for (const child of list.children) {
    // What is still on its way goes on from where it is seen.
    for (const animation of child.getAnimations()) animation.cancel();
    const from = stood.get(child.dataset.key);
    if (from === undefined) child.animate([{ opacity: 0 }, {}], MOVE_MS);
    else if (from !== top(child)) child.animate(path(from - top(child)), { duration: MOVE_MS, easing: "ease-out" });
  }
}

/** From so many pixels below one's place to it. What rises does so in front of what falls. */
function path(below) {
  const zIndex = below > 0 ? 2 : 1;
  return [{ transform: `translateY(${below}px)`, zIndex }, { zIndex }];
}

/** The score that the rank stands for, as it is now. */
const heat = ({ rank }) => Math.max(1, Math.round(2 ** ((rank - Date.now()) / HALF_LIFE_MS)));

/** An item as a part of the list. All that it shows is in its state, but its place: CSS counts. */
function part(item) {
  const { id, version, counts, own, author } = item;
  return { key: id, state: [version, counts, own, heat(item), rose.get(id), reader.person(author)], make: () => headline(item) };
}

function headline(item) {
  const { id, author, body, counts = {}, own = [], published_at } = item;
  const liked = own.includes("like");
  const who = reader.person(author);
  return el("article", { class: "headline", "aria-label": `Headline of ${who.name}` },
    el("div", { class: "said" },
      el("p", { class: "text", lang: "zh" }, textOf(body)),
      el("p", { class: "by" }, avatar(who), nameOf(who), ago(published_at),
        counts.comments && el("small", {}, `✎ ${counts.comments}`),
        el("b", { class: "heat", lang: "zh" }, `热度 ${heat(item)}`),
        rose.get(id) > 0 && el("b", { class: "rose", "aria-label": `Has risen by ${rose.get(id)}` }, `↑ ${rose.get(id)}`))),
    pictures(body),
    el("div", { class: "actions" },
      el("button", { class: "like", "aria-label": "Like", "aria-pressed": `${liked}`, onclick: () => like(id, !liked) }, `♥ ${counts.like ?? 0}`),
      el("button", { class: "ten", onclick: () => reader.do("likes", { item: id }).catch(trouble) }, "Ten people like it")));
}

/** A like by this user goes to Feedgate; the recommender is told to look. */
const like = (id, on) => reader.like(id, on).then(() => reader.do("rank")).catch(trouble);

/** Shows the page as this user sees it. */
async function enter(user) {
  reader = await Reader.open(user, draw);
  feed = reader.feed("headlines");
  const choices = reader.viewers.map(({ user, name }) => el("option", { value: user, selected: user === reader.user }, name));
  const choose = (event) => (location.search = `?as=${event.target.value}`);
  at("viewer").replaceChildren(avatar(reader.person(reader.user)), el("select", { "aria-label": "Reader", onchange: choose }, choices));
  at("breaking").addEventListener("click", () => reader.do("breaking").catch(trouble));
}

at("beside").addEventListener("click", () => reader && open(`?as=${reader.another()}`));
at("older").addEventListener("click", () => feed.older().catch(trouble));
addEventListener("unhandledrejection", ({ reason }) => trouble(reason));

enter(new URLSearchParams(location.search).get("as")).catch(trouble);
