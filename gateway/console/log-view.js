// Draws a log: its changes in a row, and below them how far each device has come.
//
//     ┌──┐┌──┐┌──┐┌──┐┌──┐
//     │ a││ b││ a││ a││ c│      changes; the newest is on the right
//     ━━━━━━━━━━━━━━━━━━━●      a device that has all of them
//     ━━━━━━━━●┄┄┄┄┄┄┄┄┄┄┄      a device without a network: it misses three
//
// The row moves left as the log grows. Positions are numbers that the style sheet turns into places.

import { html, nothing } from "./vendor/lit-html/lit-html.js";
import { repeat } from "./vendor/lit-html/directives/repeat.js";

/** The width of a change and its gap, in pixels; the style sheet has it too. */
const STEP = 36;

const SIGNS = { update: "✎", delete: "×", forget: "∅" };

export function logView(page, log) {
  const phones = page.phones.filter((phone) => phone.user === log.user);
  const first = log.changes[0]?.offset ?? 1;
  const shift = Math.max(0, log.head - first + 1 - seats());
  return html`
    <section class="log" aria-label="The log of ${log.user}'s inbox">
      <h2>${log.user}’s inbox <small>${log.head === 0 ? "is empty" : log.head === 1 ? "has 1 change" : `has ${log.head} changes`}</small></h2>
      <div class="lines" .style=${`--shift: ${shift}`}>
        <span class="line-name">log</span>
        <ol class="line">${repeat(log.changes, ({ offset }) => `${log.epoch}:${offset}`, (change) => changeView(change, first))}</ol>
        ${phones.map((phone) => laneView(page.phones.indexOf(phone), phone, log, first))}
      </div>
    </section>`;
}

/** How many changes fit into the row. */
const seats = () => Math.max(4, Math.floor((document.querySelector(".line")?.clientWidth ?? 600) / STEP));

const changeView = (change, first) => html`
  <li class="change ${change.op}" .style=${`--at: ${change.offset - first}`} title=${told(change)}>
    <b>${SIGNS[change.op] ?? change.item.author[0]}</b><small>${change.offset}</small>
  </li>`;

/** A change in words. */
function told({ op, item, item_id, author }) {
  if (op === "delete") return `item ${item_id} was deleted`;
  if (op === "forget") return `everything of ${author} has left the feed`;
  return `${op === "add" ? "a post" : "an edit"} of ${item.author}`;
}

function laneView(number, phone, log, first) {
  const position = phone.feed.position;
  const at = position?.epoch === log.epoch ? position.offset : null;
  const behind = at === null ? null : Math.max(0, log.head - at);
  return html`
    <span class="line-name device-${number}">${phone.device}</span>
    <div class="lane device-${number}" role="img" aria-label="${phone.device}: ${behindText(behind)}"
      .style=${`--at: ${at === null ? -1 : at - first}; --head: ${log.head - first}`}>
      ${at === null ? nothing : html`<i class="read"></i><i class="missed"></i><i class="marker ${phone.network.isUp ? "" : "cut"}"></i>`}
      ${behind > 0 ? html`<span class="behind">${behind} behind</span>` : nothing}
    </div>`;
}

const behindText = (behind) => (behind === null ? "not connected yet" : behind === 0 ? "has every change" : `${behind} behind`);
