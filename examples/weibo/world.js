// The world of the example Weibo: its people, posts, likes and comments. It runs in Node and in a page.

import { fans } from "../shared/world.js";

const PEOPLE = {
  xia: { name: "林夏", attrs: { about: "插画师，住在西湖边" } },
  ming: { name: "王小明", avatar: "/faces/ming-5.svg", attrs: { about: "摄影师，凌晨四点的人" } },
  news: { name: "钱塘日报", avatar: "/signs/paper.svg", attrs: { about: "每天早上七点", verified: true } },
  chef: { name: "陈师傅的面馆", attrs: { about: "片儿川，只卖到下午两点" } },
  lan: { name: "苏兰", avatar: "/faces/lan-5.svg", attrs: { about: "读研中，猫一只" } },
  zhou: { name: "码农老周", avatar: "/faces/zhou-3.svg", attrs: { about: "写代码，也写代码以外的事" } },
  fu: { name: "橘猫大福", avatar: "/cats/dafu.svg", attrs: { about: "喵" } },
  tang: { name: "唐小月", avatar: "/faces/tang-3.svg", attrs: { about: "骑行，徒步，露营" } },
  staff: { name: "站务公告", avatar: "/signs/horn.svg", attrs: { about: "这里的公告，人人都收到", verified: true } },
};

/** One-way: nobody has to follow back. The newspaper has more followers than `pull_above`. */
const FOLLOWS = {
  xia: ["ming", "news", "chef", "lan", "fu"],
  ming: ["xia", "news", "tang", "staff"],
  chef: ["news", "fu"],
  lan: ["fu", "xia", "news", "ming"],
  zhou: ["news", "chef", "xia"],
  fu: ["lan"],
  tang: ["ming", "news", "zhou"],
};

/** A post without a text of its own says nothing more than what it reposts. */
const POSTS = [
  { id: "101", author: "news", hours: 30, text: "今日入梅，未来一周有雨。出门记得带伞，也记得抬头看看云。" },
  { id: "102", author: "tang", hours: 27, text: "环湖一圈，32 公里。风很大，腿很酸，人很快乐。", pictures: ["lakeside"] },
  { id: "103", author: "chef", hours: 25, text: "今天的笋是凌晨挖的，片儿川加量不加价，卖完为止。" },
  { id: "104", author: "ming", hours: 22, text: "凌晨四点的断桥，只有我和一只白鹭。", pictures: ["broken-bridge", "dawn-2", "heron"] },
  { id: "105", author: "fu", hours: 20, text: "今天也成功把杯子推下了桌子。喵。" },
  { id: "106", author: "lan", hours: 19, text: "杯子是我的。已经是第三个了。", ref: "105" },
  { id: "107", author: "news", hours: 14, text: "摄影师王小明的《四点钟》今日在浙江美术馆开展，免费参观到月底。", pictures: ["museum"] },
  { id: "108", author: "xia", hours: 13, text: "小明的展我去过了，第二个厅的雨景看了半个小时，谁都不想走。", ref: "107" },
  { id: "109", author: "zhou", hours: 9, text: "把周末的脚本从 400 行删到 60 行，比写出来的时候开心多了。" },
  { id: "110", author: "chef", hours: 6, text: "下雨天，里面坐不下的客人，屋檐下也有凳子。" },
  { id: "111", author: "ming", hours: 4, text: "谢谢大家来看展！明天下午三点我在门口，可以一起走一圈。" },
  { id: "112", author: "lan", hours: 3, text: "论文交了。今晚要吃两碗面。" },
  { id: "113", author: "chef", hours: 2, text: "给你留着。", ref: "112" },
  { id: "114", author: "news", hours: 1, text: "傍晚雨停，宝石山上可见晚霞，最佳时间是六点一刻。", pictures: ["sunset-hill"] },
  { id: "115", author: "fu", hours: 0.3, text: "喵喵喵。（翻译：窗台是我的。）" },
];

const LIKES = {
  104: ["xia", "lan", "tang", "news", ...fans(46)],
  105: ["chef", "tang", ...fans(68)],
  106: ["xia", "chef", ...fans(14)],
  107: ["xia", "lan", "ming", ...fans(23)],
  108: ["ming", "lan", ...fans(7)],
  111: ["xia", "news", "tang", ...fans(28)],
  112: ["xia", "fu", ...fans(9)],
  113: ["lan", ...fans(31)],
  114: ["ming", "tang", "zhou", ...fans(34)],
  115: ["lan", "xia", ...fans(22)],
};

const COMMENTS = [
  ["104", "501", "tang", "白鹭同意出镜了吗"],
  ["104", "502", "ming", "它收了一条小鱼当片酬", "501"],
  ["104", "503", "lan", "第三张可以当壁纸！"],
  ["107", "504", "zhou", "周六去，有人一起吗"],
  ["107", "505", "tang", "我骑车去，门口见", "504"],
  ["111", "506", "xia", "我带上速写本"],
  ["112", "507", "fu", "喵（恭喜）"],
  ["114", "508", "ming", "相机已经在路上了"],
];

export async function fill(world) {
  await world.people(PEOPLE);
  // All readers get what this account posts from now on, and no edge is stored for that.
  await world.call("PUT", "/v1/authors/staff", { class: "everyone" });
  await world.follows(FOLLOWS);
  await world.posts([{ id: "100", author: "staff", hours: 40, text: "欢迎来到这里。点赞、转发、评论都会马上动起来，不用刷新。" }]);
  await world.posts(POSTS);
  for (const [item, users] of Object.entries(LIKES)) await world.likes(item, users);
  await world.comments(COMMENTS);
}

/** Whom the page may be. */
export const viewers = ["xia", "ming", "lan", "tang"];
