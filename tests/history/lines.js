// The lines of a history, read piece by piece: the file of a run of hours is longer than a string may be.

import { closeSync, openSync, readSync } from "node:fs";
import { StringDecoder } from "node:string_decoder";

const PIECE_BYTES = 1024 * 1024;

/** The lines of a file in order, without their ends; the last one is what stands behind the last end, which may be nothing. */
export function* linesOf(path) {
  const [file, piece, decoder] = [openSync(path), Buffer.alloc(PIECE_BYTES), new StringDecoder("utf8")];
  let rest = "";
  try {
    for (;;) {
      const length = readSync(file, piece);
      if (length === 0) break;
      const lines = (rest + decoder.write(piece.subarray(0, length))).split("\n");
      rest = lines.pop();
      yield* lines;
    }
    yield rest + decoder.end();
  } finally {
    closeSync(file);
  }
}

/** The lines of a file with these numbers, from 1: number → line. */
export function someLinesOf(path, numbers) {
  const [wanted, found] = [new Set(numbers), new Map()];
  let n = 0;
  for (const line of wanted.size > 0 ? linesOf(path) : []) {
    n += 1;
    if (wanted.has(n)) found.set(n, line);
  }
  return found;
}
