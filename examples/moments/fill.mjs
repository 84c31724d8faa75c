// Fills a server with a circle of friends, and serves the page that shows who of them sees what.
//
//     cargo run --release -- --config examples/moments/feedgate.toml
//     node examples/moments/fill.mjs

import { run } from "../shared/site.mjs";
import * as world from "./world.js";

await run(import.meta.url, world);
