// The world of the example Notifications: posts of one user, and what two hundred others did. It runs in Node and in a
// page.

import { between } from "../shared/random.js";
import { fans, named } from "../shared/world.js";

const PEOPLE = {
  yue: { name: "唐小月", avatar: "/faces/tang-3.svg" },
  ming: { name: "王小明", avatar: "/faces/ming-5.svg" },
  xia: { name: "林夏" },
  lan: { name: "苏兰", avatar: "/faces/lan-5.svg" },
  zhou: { name: "码农老周", avatar: "/faces/zhou-3.svg" },
  chef: { name: "陈师傅" },
};

const POSTS = [
  { id: "301", author: "yue", hours: 30, text: "第一次骑完环太湖，298 公里。", pictures: ["tai-lake"] },
  { id: "302", author: "yue", hours: 9, text: "周日早上六点，断桥集合，骑到梅家坞喝茶。有人来吗？", pictures: ["tea-hills"] },
  { id: "303", author: "yue", hours: 3, text: "修好了 1998 年的老车，换的只有内胎。" },
];

/** What was done before she looked at the list, and after. */
const BEFORE = [
  ["302", "701", "zhou", "我来！带备用内胎。"],
  ["302", "702", "yue", "太好了，六点准时", "701"],
];
const AFTER = [
  ["302", "703", "zhou", "那我五点半起床", "702"],
  ["303", "704", "chef", "来面馆，给老车和你各加一碗。"],
];

export async function fill(world) {
  await world.people({ ...PEOPLE, ...named(fans(200)) });
  await world.posts(POSTS);
  // The phone of the user, which the push service reaches when no app of hers is open.
  const phone = { platform: "demo", push_token: "yue's phone", feeds: ["notifications"] };
  await world.call("PUT", "/v1/users/yue/devices/phone", phone);
  await world.follows({ lan: ["yue"], zhou: ["yue"], ming: ["yue"] });
  await world.likes("301", [...fans(41), "lan", "xia", "zhou"]);
  await world.comments(BEFORE);
  await look(world);
  await world.comments(AFTER);
  await world.posts([{ id: "304", author: "ming", hours: 1, text: "带上相机，我也来。", ref: "302" }]);
  await world.likes("303", ["ming", "chef"]);
  await world.likes("302", [...fans(197), "lan", "ming", "xia"]);
}

/** She looks at her notifications, unless she has done so before. */
async function look(world) {
  await world.settled();
  const { seen, position } = await world.call("GET", "/v1/users/yue/seen?name=notifications");
  if (seen === null) await world.call("PUT", "/v1/users/yue/seen", { feed: "notifications", position });
}

/** Users who have not been here before. */
async function strangers(world, count) {
  const users = fans(count, between(1000, 1_000_000));
  await world.people(named(users));
  return users;
}

/** What others do when a button of the page asks for it. */
const DEEDS = {
  like: async (world) => world.likes("303", await strangers(world, 1)),
  likes: async (world) => world.likes("303", await strangers(world, 50)),
  comment: (world) => world.call("POST", "/v1/items/303/comments", { author: "chef", body: { text: "面已经下锅了！" } }),
  follow: async (world) => {
    const [stranger] = await strangers(world, 1);
    await world.follows({ [stranger]: ["yue"] });
  },
};

/** What the page may ask for. */
const others = (world, { deed }) => {
  if (!Object.hasOwn(DEEDS, deed)) throw new Error(`there is no deed ${deed}`);
  return DEEDS[deed](world);
};

/** Whom the page may be. */
export const viewers = ["yue"];

export const actions = { others };
