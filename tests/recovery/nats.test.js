// NATS is killed, or hangs, and comes back.

import { wasAway } from "./outages.js";

wasAway("nats");
