// Fault 36: a master of a Redis Cluster is killed and comes back at another address, under load.

import { mastersAreLost } from "./redis_cluster.js";

mastersAreLost("i4_i16_a_master_of_a_redis_cluster_comes_back_at_another_address", "start elsewhere", "move");
