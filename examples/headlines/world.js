// The world of the example Headlines: news that people like, ranked for three readers. It runs in Node and in a page.
//
// While there is a page there is a recommender, too: it ranks every second, and at once after what the page does.

import { run as recommend } from "../ranker/rank.js";
import { between } from "../shared/random.js";
import { fans, pause } from "../shared/world.js";

const FEED = "headlines";

/** How long the recommender rests, in ms. */
const REST_MS = 1000;

const PEOPLE = {
  news: { name: "钱塘日报", avatar: "/signs/paper.svg" },
  tech: { name: "前沿科技", avatar: "/faces/zhou-3.svg" },
  sport: { name: "湖边体育", avatar: "/faces/tang-3.svg" },
  food: { name: "陈师傅的面馆", avatar: "/faces/chef.svg" },
  cats: { name: "橘猫大福", avatar: "/cats/dafu.svg" },
  health: { name: "早安健康", avatar: "/faces/lan-5.svg" },
  xia: { name: "林夏" },
  zhou: { name: "码农老周", avatar: "/faces/zhou-3.svg" },
  mama: { name: "妈妈" },
};

/** Which authors a reader may be recommended. A real recommender would learn it. */
const INTERESTS = {
  xia: ["news", "tech", "sport", "food", "cats", "health"],
  zhou: ["news", "tech", "sport"],
  mama: ["news", "food", "cats", "health"],
};

/** What is published, and how many like it. */
const POSTS = [
  { id: "401", likes: 60, author: "news", hours: 20, text: "钱江大潮今晚十一点到盐官，沿江三处观潮点免费开放", pictures: ["tide"] },
  { id: "402", likes: 40, author: "tech", hours: 8, text: "新电池把充电时间缩短到九分钟，明年装车" },
  { id: "403", likes: 28, author: "sport", hours: 5, text: "补时绝杀！湖边队二十年来第一次打进决赛", pictures: ["final"] },
  { id: "404", likes: 12, author: "food", hours: 3, text: "一碗片儿川的秘密：笋要凌晨挖，面要当天擀", pictures: ["bamboo"] },
  { id: "405", likes: 49, author: "cats", hours: 11, text: "橘猫第四次爬上屋顶，消防员说：它只是来看日落的", pictures: ["sunset-hill"] },
  { id: "406", likes: 4, author: "news", hours: 2, text: "地铁五号线今起延长运营，末班车开到凌晨一点" },
  { id: "407", likes: 25, author: "health", hours: 6, text: "每天一定要走一万步？医生说：六千步已经很好" },
  { id: "408", likes: 2, author: "tech", hours: 1, text: "一位老师用三百行代码，让山里的孩子听见了星星", pictures: ["meadow"] },
  { id: "409", likes: 24, author: "sport", hours: 14, text: "五千人雨中跑完西湖半程，最后一名七十八岁" },
  { id: "410", likes: 1, author: "food", hours: 0.4, text: "街角的豆浆摊搬回来了，还是两块钱一碗" },
  { id: "411", likes: 40, author: "cats", hours: 26, text: "领养日：十二只小猫都找到了家" },
  { id: "412", likes: 8, author: "health", hours: 16, text: "秋天的第一声咳嗽，该喝梨汤还是该去医院？" },
  { id: "413", likes: 0, author: "news", hours: 0.2, text: "西湖边新添三百张长椅，都朝着水" },
];

const COMMENTS = [
  ["403", "801", "zhou", "最后一分钟我已经关了电视……"],
  ["403", "802", "xia", "全楼都在喊"],
  ["403", "803", "tech", "数据也没想到"],
];

/** What is published when a button of the page asks for it. */
const BREAKING = ["快讯：雷峰塔上空出现双彩虹", "快讯：今晚的月亮是今年最大的一次", "快讯：断桥边的第一朵荷花开了"];

export async function fill(world) {
  await world.people(PEOPLE);
  await world.posts(POSTS.map(({ likes, ...post }) => post));
  for (const { id, likes } of POSTS) await world.likes(id, fans(likes));
  await world.comments(COMMENTS);
  await rank(world);
}

async function recommendToAll(world) {
  for (const [reader, authors] of Object.entries(INTERESTS)) await recommend(world.call, authors, [reader], FEED);
}

/** The last run of the recommender. */
let last = Promise.resolve();

/** Ranks after the run that is under way: two at a time might leave the older ranking. */
function rank(world) {
  last = last.catch(() => {}).then(() => recommendToAll(world));
  return last;
}

/** Ranks again and again. Says what is wrong once, not every second. */
export async function served(world) {
  for (let said; ; await pause(REST_MS)) {
    const wrong = await rank(world).then(() => null, ({ message }) => message);
    if (wrong && wrong !== said) console.error(`no ranking: ${wrong}`);
    said = wrong;
  }
}

/** What the page may ask for; the recommender looks at it at once. */
export const actions = {
  rank,
  likes: async (world, { item }) => {
    await world.likes(item, fans(10, between(1000, 1_000_000)));
    await rank(world);
  },
  breaking: async (world) => {
    await world.post({ author: "news", text: BREAKING[between(0, BREAKING.length)] });
    await rank(world);
  },
};

/** Whom the page may be. */
export const viewers = Object.keys(INTERESTS);
