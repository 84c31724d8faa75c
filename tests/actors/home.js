// Where a journey takes place: one process, or with FEEDGATE_HOME=cluster two gateways and two workers over
// PostgreSQL, Redis and NATS. Both are talked to in the same way.

import { Cluster } from "./cluster.js";
import { Server } from "./server.js";

const HOMES = { standalone: Server, cluster: Cluster };

const name = process.env.FEEDGATE_HOME ?? "standalone";
if (!(name in HOMES)) throw new Error(`FEEDGATE_HOME is one of ${Object.keys(HOMES).join(", ")}, not ${JSON.stringify(name)}`);

/** `Home.start(t, options)` starts what the environment names. */
export const Home = HOMES[name];
