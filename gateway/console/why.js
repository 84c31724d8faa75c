// Why a reader sees a post, or does not: the gateway's answer, rule by rule.

import { chooser } from "./chooser.js";
import { text } from "./phone-view.js";
import { html, nothing } from "./vendor/lit-html/lit-html.js";

const VERDICTS = { shown: "sees it", waits: "will see it", hidden: "does not see it" };

export class Why {
  reader = "bob";
  author = "ann";
  /** The newest posts of the author, and the id of the one that is asked about. */
  posts = [];
  item = null;
  answer = null;

  constructor(backend) {
    this.backend = backend;
  }

  /** Asks again: what is stored may have changed. */
  async read() {
    const { items } = await this.backend.call("GET", `/v1/users/${this.author}/outbox?limit=20`);
    this.posts = items;
    if (!items.some(({ id }) => id === this.item)) this.item = items[0]?.id ?? null;
    this.answer = this.item && (await this.backend.call("GET", `/v1/explain?reader=${this.reader}&item=${this.item}`));
  }
}

export const whyView = (page, why) => {
  const ask = (key) => (value) => page.ask({ [key]: value });
  return html`
    <h2>Why does a reader see a post?</h2>
    <div class="question">
      <label>reader ${chooser("Reader who is asked about", page.people.names, why.reader, ask("reader"))}</label>
      <label>author ${chooser("Author of the post", page.people.names, why.author, ask("author"))}</label>
      <label>post <select aria-label="Post" @change=${(event) => page.ask({ item: event.target.value })}>
        ${why.posts.map((post) => html`<option value=${post.id} .selected=${post.id === why.item}>${text(post)}</option>`)}
      </select></label>
    </div>
    ${why.answer ? answerView(why.answer) : html`<p class="empty">${why.author} has not posted.</p>`}`;
};

const answerView = ({ reader, verdict, findings, rankings = [] }) => html`
  <p class="verdict" role="status">${reader} ${VERDICTS[verdict]}</p>
  <ol class="findings">${[...findings, ...rankings].map(({ rule, holds, detail }) => html`
    <li class=${holds ? nothing : "stops"}><b aria-label=${holds ? "holds" : "does not hold"}>${holds ? "✓" : "✗"}</b> <span><small>${rule}</small><br />${detail}</span></li>`)}
  </ol>`;
