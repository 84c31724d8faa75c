// Reads what `strace -f -y` wrote, and judges from it whether an answer waited for the disk.
//
//     request read ──▶ write to the archive ──▶ sync begins ──▶ sync ends ──▶ answer written
//
// Exactly this order, on one file of the archive. A sync that began before the write, or ended
// after the answer began, proves nothing.

/** The calls of a trace: {name, args, begun, ended, result}, where `begun` and `ended` are line numbers. */
export function calls(text) {
  const pending = new Map(); // pid → the call it is in
  const found = [];
  text.split("\n").forEach((line, at) => {
    const [, pid, rest] = line.match(/^(\d+)\s+(.*)$/) ?? [];
    if (!rest) return;
    const resumed = rest.match(/^<\.\.\. (\w+) resumed>(.*)$/);
    if (resumed) {
      const call = pending.get(pid);
      pending.delete(pid);
      if (call) found.push(finish({ ...call, args: call.args + resumed[2] }, at));
      return;
    }
    const begun = rest.match(/^(\w+)\((.*)$/);
    if (!begun) return;
    const call = { name: begun[1], args: begun[2], begun: at };
    if (call.args.endsWith("<unfinished ...>")) pending.set(pid, call);
    else found.push(finish(call, at));
  });
  // A call that never returned has begun all the same.
  for (const call of pending.values()) found.push({ ...call, ended: Infinity, result: NaN });
  return found.sort((a, b) => a.begun - b.begun);
}

function finish(call, at) {
  return { ...call, ended: at, result: Number(call.args.match(/\) += (-?\d+)/)?.[1] ?? NaN) };
}

const fileOf = ({ args }) => args.match(/^\d+<([^>]*)>/)?.[1];
const READS = ["read", "readv", "recvfrom", "recvmsg"];
const WRITES = ["write", "writev", "pwrite64", "pwritev", "pwritev2", "sendto", "sendmsg"];
const SYNCS = ["fsync", "fdatasync"];

/** What is wrong with the answer to the last request that begins with `request`, or null if it waited for the disk. */
export function notDurableBecause(trace, { request, answer, directory }) {
  const all = calls(trace);
  const asked = all.findLast((call) => READS.includes(call.name) && call.args.includes(request));
  if (!asked) return `no read of "${request}"`;
  const answered = all.find((call) => WRITES.includes(call.name) && call.begun > asked.ended && call.args.includes(answer));
  if (!answered) return `no write of "${answer}" after it`;
  const within = all.filter((call) => call.begun > asked.ended && call.ended < answered.begun && fileOf(call)?.startsWith(directory));
  const writes = within.filter((call) => WRITES.includes(call.name) && call.result > 0);
  if (writes.length === 0) return `nothing was written below ${directory} before the answer`;
  const synced = within.some(
    (sync) => SYNCS.includes(sync.name) && sync.result === 0 && writes.some((w) => fileOf(w) === fileOf(sync) && w.ended < sync.begun),
  );
  return synced ? null : "no sync of what was written ended before the answer began";
}
