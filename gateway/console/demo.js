// People and posts for a store that is empty: a day at a small harbour.

const HOUR_MS = 3_600_000;

const FOLLOWS = {
  bob: ["ann", "carol", "dave", "harbour"],
  ann: ["bob", "carol", "harbour"],
  carol: ["ann", "bob", "dave"],
  dave: ["harbour", "ann"],
  eve: ["ann", "bob", "carol", "dave", "harbour"],
};

/** Who says what, oldest first. */
const POSTS = [
  ["harbour", "High water at 06:12. Pilot boat leaves at five."],
  ["ann", "Good morning from the pier"],
  ["dave", "Nets are mended. Finally."],
  ["carol", "Fog until ten, they say"],
  ["bob", "Coffee is on at the slip"],
  ["harbour", "Berth 4 is closed until noon"],
  ["ann", "First boat is in: mackerel, and a lot of it"],
  ["carol", "The fog is gone. Look at that light."],
  ["eve", "Does anybody have a spare fender?"],
  ["dave", "Two fenders on my deck, take them"],
  ["harbour", "Wind turning west, five, later six"],
  ["ann", "Three boats in, one to come"],
  ["carol", "Market opens at nine tomorrow"],
  ["bob", "Soup for everyone who helps with the crates"],
  ["ann", "Last boat is in. Good night!"],
];

/** Lets people follow each other, then publishes their posts, dated over the last hours. Answers the names of all. */
export async function load(backend) {
  const follows = Object.entries(FOLLOWS).flatMap(([user, authors]) => authors.map((author) => ({ op: "follow", user, author })));
  await backend.call("POST", "/v1/follows/batch", { ops: follows });
  const start = Date.now() - POSTS.length * HOUR_MS;
  const posts = POSTS.map(([author, text], n) => ({ author, body: { text }, published_at: start + n * HOUR_MS }));
  await backend.call("POST", "/v1/items/batch", { ops: posts });
  return [...new Set([...Object.keys(FOLLOWS), ...POSTS.map(([author]) => author)])];
}
