// The world of the example Moments: a circle of friends, and what they post for whom. It runs in Node and in a page.

const PEOPLE = {
  ming: { name: "小明", avatar: "/faces/ming-5.svg" },
  mama: { name: "妈妈", avatar: "/faces/mama-4.svg" },
  hong: { name: "小红", avatar: "/faces/hong-2.svg" },
  wang: { name: "王总", avatar: "/faces/wang-2.svg" },
  qiang: { name: "阿强" },
  zhang: { name: "张伟", avatar: "/faces/zhang-6.svg" },
  shop: { name: "代购小李", avatar: "/faces/shop-6.svg" },
};

/** Friends, each pair once. */
const FRIENDS = [
  ["ming", "mama"], ["ming", "hong"], ["ming", "wang"], ["ming", "qiang"], ["ming", "zhang"],
  ["mama", "hong"], ["wang", "qiang"], ["hong", "qiang"], ["qiang", "zhang"],
];

/** A friend for one side alone: ming has never added the shop. */
const ONE_SIDED = [["shop", "ming"]];

const LISTS = { ming: { family: ["mama", "hong"], work: ["wang", "qiang"] } };

/** Every post is for friends on both sides. Some of them are for fewer. */
const friends = { mutual: true };
const family = { mutual: true, lists: ["family"] };
const notWork = { mutual: true, except_lists: ["work"] };

const POSTS = [
  { id: "201", author: "wang", hours: 50, text: "季度复盘完成。感谢团队，下周一九点开会。", audience: friends },
  { id: "202", author: "mama", hours: 30, text: "今天包了荠菜馅的，冰箱里还有三盒，等你们回来。", pictures: ["kitchen-window"], audience: friends },
  { id: "203", author: "ming", hours: 26, text: "新版本上线，一次过。今晚可以早点睡了。", audience: friends },
  { id: "204", author: "hong", hours: 20, text: "植物园的海棠开了，香得像假的一样。", pictures: ["garden", "begonia", "path"], audience: friends },
  { id: "205", author: "ming", hours: 8, text: "「身体不适，在家休息」的一天，风景真好。", pictures: ["west-lake", "boat"], audience: notWork },
  { id: "206", author: "qiang", hours: 6, text: "有人看见小明了吗？工位空了一天。", audience: friends },
  { id: "207", author: "ming", hours: 2, text: "妈，下个月带小红回家吃饭，别告诉别人。", audience: family },
  { id: "208", author: "hong", hours: 1, text: "在学织围巾，第七次拆掉重来。", audience: friends },
];

const LIKES = {
  202: ["ming", "hong"],
  203: ["wang", "qiang", "mama"],
  204: ["ming", "mama", "qiang"],
  205: ["hong", "mama", "zhang"],
  207: ["mama"],
  208: ["ming"],
};

/** Who is no friend of wang reads of 603 and 604 only what ming answers. */
const COMMENTS = [
  ["202", "601", "hong", "给我留一盒！"],
  ["202", "602", "mama", "都是你们的", "601"],
  ["203", "603", "wang", "辛苦。明天再上一个。"],
  ["203", "604", "ming", "……", "603"],
  ["205", "605", "hong", "照片里我怎么在闭眼"],
  ["205", "606", "ming", "那张没发，放心", "605"],
  ["205", "607", "zhang", "病得很有品位"],
  ["207", "608", "mama", "好好好，想吃什么？"],
];

export async function fill(world) {
  const both = FRIENDS.flatMap(([one, other]) => [[one, other], [other, one]]);
  await world.people(PEOPLE);
  for (const [reader, author] of [...both, ...ONE_SIDED]) await world.follows({ [reader]: [author] });
  await world.lists(LISTS);
  // A block hides comments too: neither sees what the other writes under the post of a friend of both.
  await world.call("PUT", "/v1/users/hong/blocked/zhang");
  await world.posts(POSTS);
  for (const [item, users] of Object.entries(LIKES)) await world.likes(item, users);
  await world.comments(COMMENTS);
}

/** Whom the page may be. */
export const viewers = Object.keys(PEOPLE);
