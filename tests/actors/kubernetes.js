// The manifests of a folder, as a parser and the schemas of Kubernetes see them (kubernetes.py), and a directory as a pod
// sees it.

import { spawnSync } from "node:child_process";
import { chmod, mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { TOOLS } from "./process.js";

const READER = fileURLToPath(new URL("kubernetes.py", import.meta.url));

/** {kustomization, objects, settings}, or an error that names what is wrong with the manifests by these versions. */
export function manifests(folder, versions) {
  const read = spawnSync(join(TOOLS, "python", "bin", "python"), [READER, folder, ...versions], { encoding: "utf8" });
  if (read.status !== 0) throw new Error(`${read.error ?? read.stderr}`);
  return JSON.parse(read.stdout);
}

/**
 * Puts {name: text} into a directory as a kubelet mounts a Secret: files of one state in a directory of its own, and links to
 * them. They belong to root and its group and have the mode 0440; if the test is not root, only their owner may read them.
 */
export async function mounted(directory, files) {
  const state = join(directory, "..2026_11_25_12_00_00.1");
  await mkdir(state, { recursive: true });
  await symlink("..2026_11_25_12_00_00.1", join(directory, "..data"));
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(state, name), text);
    await chmod(join(state, name), process.getuid() === 0 ? 0o440 : 0o400);
    await symlink(join("..data", name), join(directory, name));
  }
  return directory;
}
