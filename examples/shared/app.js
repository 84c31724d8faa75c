// What the backend of an example does for its page, whatever way the page asks: site.mjs answers by HTTP, and the console
// of Feedgate does it in the page itself.
//
//     const app = new App(world, { viewers, actions });
//     await app.session("ming")                            {user, token, viewers}
//     await app.act("post", { as: "ming", text: "hello" })

const TOKEN_SECS = 3600;

/** What each app may ask of its backend; an example may have more. */
const ACTIONS = {
  post: (world, { as, text, ref, audience, once }) => world.post({ author: as, text, ref, audience, once }),
  follow: (world, { as, author, on }) => world.call(on ? "PUT" : "DELETE", `/v1/users/${as}/following/${author}`),
};

/** A request that is refused; `status` is the one of an HTTP answer. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export class App {
  /** `viewers`: whom the page may be. `actions`: {name: (world, asked) => answer} beyond those of each app. */
  constructor(world, { viewers, actions = {} }) {
    Object.assign(this, { world, viewers, actions: { ...ACTIONS, ...actions } });
  }

  /**
   * A token of this user, or of the first viewer, and who all viewers are. A page stores no position, so it is no
   * device: of two pages with the same `device_id` the first would be ended.
   */
  async session(user = this.viewers[0]) {
    if (!this.viewers.includes(user)) throw new Refused(404, "there is no such viewer");
    const { token } = await this.world.call("POST", `/v1/users/${user}/token`, { ttl: TOKEN_SECS });
    const viewers = await Promise.all(this.viewers.map((viewer) => this.world.call("GET", `/v1/users/${viewer}`)));
    return { user, token, viewers };
  }

  /** What only a backend may do, since it takes the API key. `asked` has `as`, the viewer for whom it is done. */
  async act(action, asked) {
    if (!Object.hasOwn(this.actions, action) || !this.viewers.includes(asked.as)) throw new Refused(404, "there is no such action");
    return this.actions[action](this.world, asked);
  }
}
