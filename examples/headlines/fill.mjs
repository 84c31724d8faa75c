// Fills a server with news that people like, ranks it for three readers, and serves the page that shows the ranking.
//
//     cargo run --release -- --config examples/headlines/feedgate.toml
//     node examples/headlines/fill.mjs
//
// While it serves the page it is the recommender, too: it ranks every second, and at once after what the page does.

import { run } from "../shared/site.mjs";
import * as world from "./world.js";

await run(import.meta.url, world);
