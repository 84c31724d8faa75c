// A list of names, one of them chosen.

import { html } from "./vendor/lit-html/lit-html.js";

/** `label` is what a screen reader says; `choose(name)` hears of another choice. */
export const chooser = (label, names, chosen, choose) => html`
  <select aria-label=${label} @change=${(event) => choose(event.target.value)}>
    ${names.map((name) => html`<option .selected=${name === chosen}>${name}</option>`)}
  </select>`;
