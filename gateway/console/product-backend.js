// How a page of examples/ asks the backend of its app when the console serves it. There is no such backend, so this file
// stands for it: it does with the key of the session what examples/shared/site.mjs does with the API key. The server has
// it at /console/products/shared/backend.js, where the page looks for examples/shared/backend.js.
//
// Without a session the page is told so, and nothing of it runs.

import { Backend } from "../../backend.js";
import { App } from "./app.js";
import { el } from "./draw.js";
import { World } from "./world.js";

const UNAUTHORIZED = 401;

/** Waits for what never comes: who awaits this does nothing more. */
const forever = () => new Promise(() => {});

document.head.append(el("link", { rel: "stylesheet", href: "/console/products/frame.css" }));

/** Shows why there is nothing to show, in place of the page. */
function locked(why) {
  document.body.replaceChildren(el("main", { class: "locked" },
    el("h1", {}, document.title),
    el("p", {}, why),
    el("p", {}, "Run ", el("code", {}, "feedgate console"), " beside the server. It prints a link that opens the console once.")));
  return forever();
}

/** The session of the console; what it is asked is answered, or the session has ended and the page begins anew. */
async function enter() {
  const backend = await Backend.enter();
  if (backend === null) return locked("This page shows nothing without a session of the console.");
  return async (...request) => {
    try {
      return await backend.call(...request);
    } catch (error) {
      if (error.status !== UNAUTHORIZED) throw error;
      Backend.leave();
      location.reload();
      return forever();
    }
  };
}

const call = await enter().catch((error) => locked(error.message));
const product = await import(`../${location.pathname.split("/").at(-2)}/world.js`);
const world = new World(call);
const app = new App(world, product);

document.body.prepend(el("nav", { class: "frame" }, el("a", { href: "/" }, "← Console"), el("span", {}, `${document.title}: an example, with the data of this server`)));

// What the backend does while its page is served, such as to rank.
product.served?.(world);

/** A session of this user; without one, of the first user whom the product offers: {user, token, server, viewers}. */
export const session = async (user) => ({ ...(await app.session(user ?? undefined)), server: location.origin });

/** What only a backend may do, such as to publish. `asked` has `as`, the user for whom it is done. */
export const act = (action, asked) => app.act(action, asked);

/** No page can take the calls of the webhook: says what does. */
export const pushes = () =>
  "A phone that is locked gets a push through push.webhook_url. To see one, run node examples/notifications/fill.mjs beside the server: it takes the calls, and serves this page with a lock.";
