// The people whom the page knows, and what one reader has to do with them: follow, mute. And who is a big account.

import { chooser } from "./chooser.js";
import { html, nothing } from "./vendor/lit-html/lit-html.js";

const LIST = "limit=100";

export class People {
  names = ["ann", "bob"];
  /** Whose follows are shown. */
  reader = "bob";
  following = new Set();
  muted = new Set();
  /** By name: what the gateway knows of an author. */
  authors = new Map();

  constructor(backend) {
    this.backend = backend;
  }

  /** Reads everything that is shown of the people, and learns of those whom the reader follows or has muted. */
  async read() {
    const list = async (path) => (await this.backend.call("GET", `/v1/users/${this.reader}/${path}?${LIST}`)).users.map(({ user }) => user);
    const [following, muted] = await Promise.all([list("following"), list("muted")]);
    [this.following, this.muted] = [new Set(following), new Set(muted)];
    this.learn([...following, ...muted]);
    const about = await Promise.all(this.names.map((name) => this.backend.call("GET", `/v1/authors/${name}`)));
    this.authors = new Map(about.map((author) => [author.author, author]));
  }

  learn(names) {
    this.names = [...new Set([...this.names, ...names])].sort();
  }
}

/** Draws the people; `page` carries out what is clicked. */
export const peopleView = (page, people) => html`
  <h2>${chooser("Reader", people.names, people.reader, (name) => page.about(name))} <small>and the others</small></h2>
  <ul class="people">
    ${people.names.filter((name) => name !== people.reader).map((name) => personView(page, people, name))}
  </ul>
  <form class="line-form" @submit=${(event) => added(page, event)}>
    <input name="name" aria-label="Name of a person" placeholder="another name" pattern="[A-Za-z0-9._:@\\-]+" maxlength="64" autocomplete="off" required />
    <button>Add</button>
  </form>`;

function personView(page, people, name) {
  const { class: kind = "auto", followers = 0 } = people.authors.get(name) ?? {};
  const edge = (list) => `/v1/users/${people.reader}/${list}/${name}`;
  const isBig = kind === "pull" || kind === "everyone";
  return html`
    <li>
      <span><b>${name}</b><br /><small>${followers === 1 ? "1 follower" : `${followers} followers`}</small></span>
      ${toggle("Follow", "Follows", people.following.has(name), `${people.reader} follows ${name}`, (on) => page.change(on ? "PUT" : "DELETE", edge("following")))}
      ${toggle("Mute", "Muted", people.muted.has(name), `${people.reader} has muted ${name}`, (on) => page.change(on ? "PUT" : "DELETE", edge("muted")))}
      ${kind === "everyone" ? nothing : toggle("Big", "Big", isBig, `${name} is a big account, which readers pull`, (on) => page.change("PUT", `/v1/authors/${name}`, { class: on ? "pull" : "auto" }))}
    </li>`;
}

/** A button that is on or off: `off` and `on` are what it says, `means` is what being on means. */
const toggle = (off, on, isOn, means, set) => html`
  <button class="toggle" aria-pressed=${isOn} aria-label=${means} @click=${() => set(!isOn)}>${isOn ? on : off}</button>`;

function added(page, event) {
  event.preventDefault();
  const { name } = event.target.elements;
  page.meet(name.value);
  name.value = "";
}
