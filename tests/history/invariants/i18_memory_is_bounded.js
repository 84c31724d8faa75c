// I18: memory is bounded: no unbounded queue exists.
//
// Decides: no sample of a process's resident memory is above the bound that it names, or else the run. Cannot see:
// what was between two samples, and queues that never grew because nothing stalled.

export const name = "I18";

export function decide(history, judge) {
  for (const { who, bytes, most = history.run.memory_max_bytes, n } of history.kind("memory")) {
    judge.holds(bytes <= most, [n], () => `${who} holds ${bytes} bytes; ${most} is its bound`);
  }
}
