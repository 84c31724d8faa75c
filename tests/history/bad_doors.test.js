// As `bad.test.js`, of what comes by another door than push: what is pulled or addressed, what goes to a named feed, and
// what shields and the accounts that everyone follows change.

import { breaks } from "./breaks.js";

// --- authors who are pulled ----------------------------------------------------------------------

/** bob is pulled, and has posted once since. */
function pulled(story) {
  story.classify("bob", "pull");
  story.publish("bob", "pulled");
}
breaks("I4", "a pulled item is never taken", ({ story }) => {
  pulled(story);
  story.publish("bob", "lost", { to: [] });
});
breaks("I10", "the watermark moves past an item that was not taken", ({ story }) => {
  pulled(story);
  story.publish("bob", "passed over", { to: [] });
  story.publish("bob", "next");
});
breaks("I10", "after a crossing a pushed item is passed over", ({ story }) => {
  pulled(story);
  story.classify("bob", "push");
  story.publish("bob", "pushed");
  story.publish("bob", "passed over", { to: [] });
  story.publish("bob", "next");
});
breaks("I14", "pulled items are taken in another order", ({ story }) => {
  pulled(story);
  const late = story.publish("bob", "late", { to: [] });
  story.publish("bob", "next");
  story.append("ann", { op: "add", id: late });
});
breaks("I3", "after a crossing an item is both taken and pushed", ({ story }) => {
  pulled(story);
  const twice = story.publish("bob", "twice");
  story.classify("bob", "push");
  story.append("ann", { op: "add", id: twice });
});
breaks("I5", "an item is taken from an author unfollowed before", ({ story }) => {
  pulled(story);
  story.unfollow("ann", "bob");
  story.publish("bob", "later", { to: ["ann"] });
});
breaks("I11", "a delete takes another door than its add, and overtakes it", ({ story }) => {
  pulled(story);
  const late = story.publish("bob", "late", { to: [] });
  story.classify("bob", "push");
  story.append("ann", { op: "delete", id: late });
  story.append("ann", { op: "add", id: late });
});

// --- what is addressed to readers ----------------------------------------------------------------

const noted = (story, options) => story.publish("bob", "for ann", { readers: ["ann"], ...options });
breaks("I4", "an item that is addressed to a reader does not come", ({ story }) => {
  noted(story, { to: [] });
});
breaks("I4", "an unfollow takes away what is addressed to the reader", ({ story }) => {
  const note = noted(story);
  story.unfollow("ann", "bob");
  story.append("ann", { op: "delete", id: note });
});
breaks("I4", "an item that is addressed to the reader does not say so", ({ story }) => {
  const note = noted(story);
  const { show } = story;
  story.show = (item) => ({ ...show.call(story, item), direct: item.id !== note && item.readers !== undefined });
});
breaks("I5", "an item is pushed to somebody whom it is not addressed to", ({ story }) => {
  story.follow("eve", "bob");
  story.connect("eve", "ios");
  noted(story, { to: ["ann", "eve"] });
});
breaks("I5", "a page shows what is addressed to somebody else", ({ story }) => {
  const note = story.publish("bob", "for eve", { readers: ["eve"] });
  story.page("ann", { change: (page) => ({ ...page, items: [story.hydrate({ op: "add", id: note }).item, ...page.items] }) });
});
breaks("I6", "an item that is addressed to a reader is on the profile", ({ story }) => {
  const note = noted(story);
  story.items.get(note).readers = undefined;
});
breaks("I3", "an item that is addressed to the reader is added again behind a forget", ({ story }) => {
  const note = noted(story);
  story.unfollow("ann", "bob");
  story.append("ann", { op: "add", id: note });
});
breaks("I10", "the watermark moves past an item that is addressed to the reader", ({ story }) => {
  noted(story, { to: [] });
  noted(story);
});
breaks("I11", "the delete of what is addressed to the reader comes before it", ({ story }) => {
  const note = noted(story, { to: [] });
  story.append("ann", { op: "delete", id: note });
  story.append("ann", { op: "add", id: note });
});
breaks("I14", "what is addressed to the reader stands in another order", ({ story }) => {
  const late = noted(story, { to: [] });
  noted(story);
  story.append("ann", { op: "add", id: late });
});
breaks("I14", "an edit of what is addressed to the reader comes twice", ({ story }) => {
  const note = noted(story);
  story.edit(note);
  story.append("ann", { op: "update", id: note });
});

// --- what is narrowed to an audience -------------------------------------------------------------

/** A post for ann alone, of bob's two followers. */
const narrowed = (story, options) => {
  story.follow("eve", "bob");
  story.list("bob", "near", ["ann"]);
  return story.publish("bob", "for those who are near", { narrowed: { lists: ["near"] }, ...options });
};
breaks("I4", "a narrowed item does not come to whom it is for", ({ story }) => {
  narrowed(story, { to: [] });
});
breaks("I5", "a narrowed item is pushed to another follower", ({ story }) => {
  narrowed(story, { to: ["ann", "eve"] });
});
breaks("I5", "an item is pushed to a follower whom a list leaves out", ({ story }) => {
  narrowed(story);
  story.publish("bob", "for the others", { narrowed: { except_lists: ["near"] }, to: ["ann", "eve"] });
});
breaks("I5", "a later follow brings what was narrowed to others", ({ story }) => {
  const id = narrowed(story);
  story.unfollow("eve", "bob");
  story.follow("eve", "bob");
  story.append("eve", { op: "add", id });
});
breaks("I10", "the progress moves past a narrowed item of whom it is for", ({ story }) => {
  narrowed(story, { to: [] });
  story.publish("bob", "next");
});
breaks("I14", "a narrowed item overtakes one before it", ({ story }) => {
  const late = narrowed(story, { to: [] });
  story.publish("bob", "next");
  story.append("ann", { op: "add", id: late });
});

// --- a named feed --------------------------------------------------------------------------------

const LIKES = { feeds: { likes: ["like"] } };
const like = (story, options) => story.publish("bob", "a like", { kind: "like", ...options });
breaks("I4", "a like does not come", ({ story }) => {
  like(story, { to: [] });
}, LIKES);
breaks("I4", "a like stands in the main feed", ({ story }) => {
  story.append("ann", { op: "add", id: like(story, { to: [] }) }, "feed");
}, LIKES);
breaks("I5", "a like is pushed on the main channel", ({ story }) => {
  const id = like(story, { to: [] });
  story.append("ann", { op: "add", id }, "feed");
  story.delete(id);
}, LIKES);
breaks("I5", "a post is on a page of the likes", ({ story, first }) => {
  const post = story.hydrate({ op: "add", id: first }).item;
  story.page("ann", { feed: "likes", change: (page) => ({ ...page, items: [...page.items, post] }) });
}, LIKES);
breaks("I4", "likes keep a post out of what a follow brings", ({ story }) => {
  story.publish("cyd", "a post");
  for (let n = 0; n < 3; n += 1) story.publish("cyd", "a like", { kind: "like" });
  story.call("PUT", "/v1/users/ann/following/cyd", {}, () => {
    story.edges.set("ann cyd", { on: true, from: 4 });
    for (const { id, feed } of story.items.values()) if (feed === "likes") story.append("ann", { op: "add", id });
    return [204, null];
  });
  story.publish("cyd", "later");
}, { ...LIKES, backfill: 3 });
breaks("I5", "an unfollow leaves the author's likes", ({ story }) => {
  like(story);
  story.unfollow("ann", "bob", { forget: false });
  story.append("ann", { op: "forget", author: "bob" });
}, LIKES);
breaks("I6", "a like is on the main profile", ({ story }) => {
  story.items.get(like(story)).feed = "feed";
}, LIKES);
breaks("I1", "a push of the likes leaves an offset out", ({ story, phone }) => {
  story.also(phone, "likes");
  story.log("ann", "likes").next += 1;
  like(story);
}, LIKES);
breaks("I9", "the likes are not caught up, though the main feed is", ({ story, phone }) => {
  story.also(phone, "likes").at = undefined;
  like(story);
}, LIKES);
breaks("I10", "a like is passed over", ({ story }) => {
  like(story);
  like(story, { to: [] });
  like(story);
}, LIKES);
breaks("I12", "a position in the likes is stored as that of the main feed", ({ story, phone }) => {
  const likes = story.also(phone, "likes");
  like(story);
  story.ack(likes);
  story.stored.get("ann ios").position = { ...likes.feed.position };
  story.sessions("ann");
}, LIKES);
breaks("I15", "an unfollow and a follow have not reached the likes", ({ story }) => {
  const { append } = story;
  like(story);
  story.unfollow("ann", "bob");
  story.append = function (reader, change, feed) {
    if (this.items.get(change.id)?.feed !== "likes") append.call(this, reader, change, feed);
  };
  story.follow("ann", "bob");
}, LIKES);

// --- what stands between two, and whom everyone follows ------------------------------------------

breaks("I5", "an item of a muted author stays", ({ story }) => {
  story.shield("ann", "muted", "bob", { forget: false });
});
breaks("I5", "an author who hides is seen", ({ story }) => {
  story.shield("bob", "hidden", "ann");
  story.publish("bob", "later", { to: ["ann"] });
});
breaks("I5", "a block by the author is seen through", ({ story }) => {
  story.shield("bob", "blocked", "ann");
  story.publish("bob", "later", { to: ["ann"] });
});
breaks("I5", "an item is addressed through a block", ({ story }) => {
  story.shield("ann", "blocked", "bob");
  noted(story);
});
breaks("I4", "of two shields one is taken down, and the items come back", ({ story, first }) => {
  story.shield("ann", "muted", "bob");
  story.shield("bob", "hidden", "ann");
  story.shield("ann", "muted", "bob", { up: false });
  story.append("ann", { op: "add", id: first });
});
breaks("I4", "a mute takes away what was addressed to the reader", ({ story }) => {
  const note = noted(story);
  story.shield("ann", "muted", "bob");
  story.append("ann", { op: "delete", id: note });
});
breaks("I4", "the end of a mute does not bring the newest items back", ({ story }) => {
  story.shield("ann", "muted", "bob");
  story.call("DELETE", "/v1/users/ann/muted/bob", {}, () => {
    story.graph.shield("muted", "ann", "bob", false);
    story.edges.set("ann bob", { on: true, from: 2 });
    return [204, null];
  });
});
breaks("I4", "the end of a mute brings more than a follow does", ({ story }) => {
  for (let n = 0; n < 3; n += 1) story.publish("bob", "more");
  story.shield("ann", "muted", "bob");
  story.shield("ann", "muted", "bob", { up: false });
  story.append("ann", { op: "add", id: "1000" });
}, { backfill: 3 });
breaks("I15", "of a mute and its end only the first has reached the log", ({ story }) => {
  story.shield("ann", "muted", "bob");
  story.call("DELETE", "/v1/users/ann/muted/bob", {}, () => {
    story.graph.shield("muted", "ann", "bob", false);
    story.edges.set("ann bob", { on: true, from: 2 });
    return [204, null];
  });
});
breaks("I6", "a shield that was answered is in no list", ({ story }) => {
  story.call("PUT", "/v1/users/bob/hidden/ann", {}, () => [204, null]);
});
breaks("I6", "a mute takes the author out of the list of follows", ({ story }) => {
  story.shield("ann", "muted", "bob");
  story.edges.set("ann bob", { on: false, from: 0 });
});
breaks("I4", "an author whom everyone follows is not seen", ({ story }) => {
  story.classify("all", "everyone");
  story.publish("all", "lost", { to: [] });
});
breaks("I5", "an author whom everyone follows is seen after an unfollow", ({ story }) => {
  story.classify("all", "everyone");
  story.unfollow("ann", "all");
  story.publish("all", "later", { to: ["ann"] });
});
breaks("I4", "an author whom everyone follows brings what was before", ({ story }) => {
  const before = story.publish("all", "before");
  story.classify("all", "everyone");
  story.append("ann", { op: "add", id: before });
});
