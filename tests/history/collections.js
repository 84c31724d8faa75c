// Ways to find things in long lists, so that the time of a check grows as the history does and not as its square.

/** The elements by name, in order: name → [element]. */
export function grouped(list, nameOf) {
  const groups = new Map();
  for (const element of list) {
    const name = nameOf(element);
    if (groups.has(name)) groups.get(name).push(element);
    else groups.set(name, [element]);
  }
  return groups;
}

/** How many elements come first for which `isBefore` holds. It must not hold for any after one for which it does not. */
export function partitionPoint(sorted, isBefore) {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBefore(sorted[middle])) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The greatest number of a list that may be too long to be the arguments of a call. */
export const greatest = (numbers, least = 0) => numbers.reduce((most, number) => Math.max(most, number), least);
