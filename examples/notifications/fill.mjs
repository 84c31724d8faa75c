// Fills a server with posts of one user and what two hundred others did, and serves the page of her phone.
//
//     cargo run --release -- --config examples/notifications/feedgate.toml
//     node examples/notifications/fill.mjs

import { run } from "../shared/site.mjs";
import * as world from "./world.js";

await run(import.meta.url, world);
