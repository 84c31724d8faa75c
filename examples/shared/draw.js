// Elements of a page. What people wrote is only ever text: strings become text nodes, and nothing here takes HTML.

import { picture } from "./pictures.js";
import { once } from "./random.js";

for (const icon of document.querySelectorAll("link[data-picture]")) icon.href = picture(icon.dataset.picture);

/** An element: attributes, `on…` for events, and what it holds; null and false are left out. */
export function el(tag, attributes = {}, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...inside.flat(Infinity).filter((part) => part != null && part !== false));
  return element;
}

/** The face of a user, or the first letter of the name: no page loads a picture from anywhere. */
export function avatar({ name, avatar }) {
  const drawn = picture(avatar);
  if (drawn) return el("img", { class: "avatar", src: drawn, alt: "" });
  return el("span", { class: "avatar letter", "aria-hidden": "true" }, [...name][0].toUpperCase());
}

/** A name, in an element of its own because it may be written from right to left. */
export const nameOf = ({ name }) => el("bdi", { class: "name" }, name);

/** The text of a body; a body without a text is shown as it is. */
export const textOf = (body) => (typeof body?.text === "string" ? body.text : JSON.stringify(body));

/** The pictures of a post, at most nine. */
export function pictures({ pictures = [] } = {}) {
  const shown = Array.isArray(pictures) ? pictures.filter((name) => /^[\w-]+$/.test(name)).slice(0, 9) : [];
  if (shown.length === 0) return null;
  return el("div", { class: `pictures n${Math.min(shown.length, 3)}` }, shown.map((name) => el("img", { src: picture(`/scenes/${name}.svg`), alt: "" })));
}

const STEPS = [[60, "s"], [3600, "min", 60], [86400, "h", 3600], [Infinity, "d", 86400]];

/** How long ago something was. */
export function ago(ms) {
  const secs = Math.max(0, (Date.now() - ms) / 1000);
  const [, unit, size] = STEPS.find(([below]) => secs < below);
  const words = unit === "s" ? "just now" : `${Math.floor(secs / size)} ${unit}`;
  return el("time", { datetime: new Date(ms).toISOString() }, words);
}

/** The names of some, and how many others there are: "A, B and 198 others". */
export function names(people, count) {
  const shown = people.slice(0, count > people.length ? 2 : 3);
  const others = count - shown.length;
  const parts = shown.map(nameOf);
  const last = others > 0 ? `${others} other${others > 1 ? "s" : ""}` : parts.length > 1 ? parts.pop() : null;
  return [parts.flatMap((part, n) => (n > 0 ? [", ", part] : [part])), last && [" and ", last]];
}

/** Draws at the next frame, however much has changed by then. */
export function drawing(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
}

/**
 * Makes the children of a list those of `parts`, [{key, state, make}]. A part is made again when its state is another
 * one; what somebody writes into a field of it stays there. What stays is not touched.
 */
export function keep(list, parts) {
  const before = new Map([...list.children].map((child) => [child.dataset.key, child]));
  const focused = list.contains(document.activeElement) && document.activeElement.matches("input");
  const now = parts.map((part) => kept(before.get(part.key), part));
  const stays = new Set(now);
  for (const child of before.values()) if (!stays.has(child)) child.remove();
  now.forEach((child, n) => list.children[n] === child || list.insertBefore(child, list.children[n] ?? null));
  if (focused && !list.contains(document.activeElement)) list.querySelector("[data-focus]")?.focus();
  for (const field of list.querySelectorAll("[data-focus]")) delete field.dataset.focus;
}

/** The element of a part: the one of before if it shows the same, else one that takes its place. */
function kept(old, { key, state, make }) {
  const text = JSON.stringify(state);
  if (old?.keptState === text) return old;
  const made = make();
  made.dataset.key = key;
  made.keptState = text;
  if (old) restore(old, made);
  return made;
}

/** Takes the fields of an older element over, each for the one with the same label, and remembers which had the focus. */
function restore(old, made) {
  made.classList.add("again");
  const fields = (element) => new Map([...element.querySelectorAll("input")].map((input) => [input.getAttribute("aria-label"), input]));
  const before = fields(old);
  for (const [label, field] of fields(made)) {
    const kept = before.get(label);
    if (!kept) continue;
    if (kept === document.activeElement) kept.dataset.focus = "true";
    field.replaceWith(kept);
  }
}

/**
 * A field with a button. `send` gets the text and a key, and answers a promise. Once it has succeeded, the field is
 * empty. If it fails, the text stays, and the same text is sent again with the same key: so it is one post.
 */
export function field({ label, button, send }) {
  const input = el("input", { "aria-label": label, placeholder: label, maxlength: 500, autocomplete: "off", required: true });
  const submit = async (event) => {
    event.preventDefault();
    // A part that is made again keeps the field of before, so it may be another one than `input`.
    const field = event.target.querySelector("input");
    const text = field.value.trim();
    if (text === "" || field.readOnly) return;
    if (field.sent?.text !== text) field.sent = { text, key: once() };
    field.readOnly = true;
    try {
      await send(text, field.sent.key);
      [field.value, field.sent] = ["", null];
    } catch (error) {
      trouble(error);
    }
    field.readOnly = false;
  };
  return el("form", { class: "field", onsubmit: submit }, input, el("button", { class: "main" }, button));
}

/** Shows what went wrong, for as long as it takes to read it. */
export function trouble(error) {
  const note = document.getElementById("trouble");
  note.textContent = error?.message ?? "";
  clearTimeout(note.timer);
  note.timer = setTimeout(() => (note.textContent = ""), 6000);
}
