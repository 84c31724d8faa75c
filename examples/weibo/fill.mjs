// Fills a server with the people and posts of a small Weibo, and serves the page that shows it.
//
//     cargo run --release -- --config examples/weibo/feedgate.toml
//     node examples/weibo/fill.mjs

import { run } from "../shared/site.mjs";
import * as world from "./world.js";

await run(import.meta.url, world);
