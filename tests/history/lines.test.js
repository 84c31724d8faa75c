// A history is read line by line, however long the file is and wherever a piece of it ends.

import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { linesOf, someLinesOf } from "./lines.js";

function fileOf(text) {
  const path = join(mkdtempSync(join(tmpdir(), "lines-")), "history.jsonl");
  writeFileSync(path, text);
  return path;
}

test("the lines are those of the whole text, also where a piece ends within a line or a character", () => {
  const long = "ä€😀".repeat(300_000);
  for (const text of ["", "one", "one\n", "one\n\ntwo", `${long}\n${long}x\n${long}`, `${"short\n".repeat(500_000)}torn`]) {
    assert.deepEqual([...linesOf(fileOf(text))], text.split("\n"));
  }
});

test("some lines are given by their numbers", () => {
  const path = fileOf("one\ntwo\nthree\n");
  assert.deepEqual(someLinesOf(path, [3, 1, 3, 9]), new Map([[1, "one"], [3, "three"]]));
  assert.deepEqual(someLinesOf(path, []), new Map());
});
