// I18: memory is bounded: no unbounded queue exists.
//
// Decides: no sample of a process's resident memory is above the bound that the run declared. Cannot see:
// what was between two samples, and queues that never grew because nothing stalled.

export const name = "I18";

export function decide(history, judge) {
  for (const { who, bytes, n } of history.kind("memory")) {
    const bound = history.run.memory_max_bytes;
    judge.holds(bytes <= bound, [n], () => `${who} holds ${bytes} bytes, more than the ${bound} of this run`);
  }
}
