// PostgreSQL is taken back to a moment of its past, from a base backup and its archived WAL, in the steps of
// docs/operate.md. What was accepted until that moment is whole for every device, and nothing later is left.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Cluster } from "../actors/cluster.js";
import { isSound } from "../actors/doctor.js";
import { Phone } from "../actors/phone.js";
import { until } from "../actors/until.js";

const run = promisify(execFile);

const LAUNCHING = fileURLToPath(new URL("../engines/launching.sh", import.meta.url));

/**
 * Runs a line of a shell in the directory of the server, with the programs of PostgreSQL in its path. What it makes
 * belongs to the owner of that directory then.
 */
const shell = ({ directory }, line) =>
  run("bash", ["-euc", `source "$1"; find_postgres; cd "$2"; ${line}; [[ $EUID != 0 ]] || chown -R --reference=. .`, "bash", LAUNCHING, directory]);

/** Makes the server keep its WAL in a directory beside its data, from now on. */
async function archive(postgres) {
  const kept = join(postgres.directory, "wal");
  await mkdir(kept);
  await shell(postgres, "true");
  const settings = { archive_mode: "on", archive_command: `cp %p ${kept}/%f`, restore_command: `cp ${kept}/%f %p` };
  await postgres.psql("postgres", ...Object.entries(settings).map(([name, value]) => `ALTER SYSTEM SET ${name} = '${value}'`));
  await postgres.restart();
}

/** Recovers the server, which is stopped, from its base backup up to a restore point. */
async function recover(postgres, database, point) {
  await shell(postgres, "rm -r data; mv base data; touch data/recovery.signal");
  await shell(postgres, `printf "recovery_target_name = '${point}'\nrecovery_target_action = 'promote'\n" >>data/postgresql.auto.conf`);
  await postgres.restart();
  const recovers = () => postgres.psql(database, "SELECT pg_is_in_recovery()");
  await until("the recovery has ended", async () => (await recovers()) === "f", { seen: recovers });
}

test("i1_i5_postgresql_that_is_taken_back_to_a_moment_has_all_until_then_and_devices_are_reset_to_it", async (t) => {
  const home = await Cluster.start(t);
  const { postgres, database } = home;
  await archive(postgres);
  await home.follow("bob", "ann");
  await home.publish("ann", { text: "before the base backup" });
  await shell(postgres, `pg_basebackup --host=127.0.0.1 --port=${postgres.port} --username=feedgate --pgdata=base --checkpoint=fast`);
  await home.publish("ann", { text: "after the base backup" });
  const phone = await Phone.open(t, home, "bob");
  await phone.shows("both posts", (items) => items.length === 2);
  await home.drained();
  await postgres.psql(database, "SELECT pg_create_restore_point('good')");

  await home.publish("ann", { text: "after the moment" });
  await phone.shows("the third post", (items) => items.length === 3);
  await home.follow("eve", "ann");
  await home.drained();
  assert.equal((await home.feed("eve")).length, 3);
  await postgres.psql(database, "SELECT pg_switch_wal()");

  await home.takeBack(async () => {
    await postgres.stop();
    await recover(postgres, database, "good");
  });

  const texts = (items) => items.map(({ body }) => body.text);
  await phone.shows("what was there at the moment", (items) => texts(items).join() === "after the base backup,before the base backup");
  await home.follow("joe", "carl");
  await home.publish("ann", { text: "from now on" });
  await phone.shows("what comes next", (items) => texts(items)[0] === "from now on" && items.length === 3);
  await phone.agrees();
  await home.drained();
  assert.deepEqual(await home.feed("joe"), [], "the number of a user after the moment is given again");
  await isSound(home, "--inboxes", "all");
});
