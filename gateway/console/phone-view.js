// Draws a phone: whose it is, the switch of its network, and the list that it shows.

import { chooser } from "./chooser.js";
import { html, nothing } from "./vendor/lit-html/lit-html.js";
import { repeat } from "./vendor/lit-html/directives/repeat.js";

export function phoneView(page, phone) {
  const [items, unread] = [phone.feed.items(), phone.unread];
  return html`
    <article class="phone device-${page.phones.indexOf(phone)} ${phone.network.isUp ? "" : "cut"}" aria-label="${phone.user}'s ${phone.device}">
      <header>
        <div class="owner">
          ${chooser(`Reader of the ${phone.device}`, page.people.names, phone.user, (user) => page.show(phone, user))}
          <small>${phone.device}</small>
        </div>
        <button class="unread" ?hidden=${unread === 0} @click=${() => phone.look()}
          aria-label="${unread} unread on the ${phone.device}: mark as read">${unread}</button>
        <label class="switch">
          <input type="checkbox" role="switch" aria-label="Network of the ${phone.device}" .checked=${phone.network.isUp}
            @change=${() => (phone.network.isUp ? phone.cut() : phone.restore())} />
          <span aria-hidden="true">${phone.network.isUp ? (phone.isLive ? "online" : "connecting") : "no network"}</span>
        </label>
      </header>
      <p class="trouble">${phone.network.isUp ? phone.trouble : nothing}</p>
      <ol class="items" @click=${() => unread > 0 && phone.look()}>
        ${repeat(items, ({ id }) => id, (item) => itemView(page, phone, item))}
      </ol>
      ${items.length === 0 && phone.feed.position ? html`<p class="empty">Nothing yet. Follow somebody, or post.</p>` : nothing}
    </article>`;
}

function itemView(page, phone, item) {
  const { id, author, published_at, version } = item;
  const isEdited = page.editing?.device === phone.device && page.editing.id === id;
  return html`
    <li class="item ${phone.isUnread(item) ? "new" : ""}">
      <p class="by">
        <b>${author}</b>
        <time datetime=${new Date(published_at).toISOString()}>${clock(published_at)}</time>
        ${version > 1 ? html`<span>edited</span>` : nothing}
        <span class="acts">
          <button aria-label="Edit" title="Edit" @click=${() => page.begin(phone, id)}>✎</button>
          <button aria-label="Delete" title="Delete" @click=${() => page.delete(id)}>×</button>
        </span>
      </p>
      ${isEdited ? editor(page, item) : html`<p class="text">${text(item)}</p>`}
    </li>`;
}

const editor = (page, item) => html`
  <form class="editor" @submit=${(event) => { event.preventDefault(); page.edit(item.id, event.target.elements.text.value); }}
    @keydown=${(event) => event.key === "Escape" && page.begin(null)}>
    <input name="text" aria-label="New text" .value=${text(item)} autofocus required /><button>Save</button>
  </form>`;

/** What an item says: its text, or all of its body. */
export const text = ({ body }) => (typeof body?.text === "string" ? body.text : JSON.stringify(body));

const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
