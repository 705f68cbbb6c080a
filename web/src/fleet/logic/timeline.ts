// Counts over time by a label, as stacked bars: a few values that matter, and the rest as one.

export interface Series {
  /** null: nodes without the label. */
  value: string | null;
  times: readonly number[];
  /** How many nodes have this value at all. */
  nodes: number;
}

export interface Stack {
  name: string;
  /** What chooses these nodes; null for the rest, which is many values. */
  value: string | null;
  isRest: boolean;
  total: number;
  counts: number[];
  nodes: number;
}

/** As a collector calls what it has put together itself. */
const OTHERS = "(others)";

export const MOST_STACKS = 7;
const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);

/** The largest first, and those that had none too: that is what tells. What is beyond `most` becomes one. */
export function stacks(series: readonly Series[], most = MOST_STACKS): Stack[] {
  const known: Stack[] = series
    .map(({ value, times, nodes }) => ({ name: value ?? "without it", value, isRest: value === OTHERS, total: sum(times), counts: [...times], nodes }))
    .filter(({ total, nodes }) => total > 0 || nodes > 0)
    .sort((a, b) => Number(a.isRest) - Number(b.isRest) || b.total - a.total || a.name.localeCompare(b.name));
  if (known.length <= most) return known;
  const rest = known.slice(most - 1);
  const counts = rest[0]!.counts.map((_, column) => rest.reduce((total, each) => total + each.counts[column]!, 0));
  return [...known.slice(0, most - 1), { name: OTHERS, value: null, isRest: true, total: sum(counts), counts, nodes: rest.reduce((all, { nodes }) => all + nodes, 0) }];
}

export function tallest(shown: readonly Stack[]): number {
  const columns = shown[0]?.counts.length ?? 0;
  let most = 0;
  for (let column = 0; column < columns; column += 1) most = Math.max(most, shown.reduce((total, { counts }) => total + counts[column]!, 0));
  return most;
}

/** A round number at or above the tallest bar. */
export function ceiling(most: number): number {
  if (most <= 4) return Math.max(most, 1);
  const size = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 2.5, 5, 10].map((step) => step * size).find((round) => round >= most && Number.isInteger(round)) ?? 10 * size;
}

export function stackAt(shown: readonly Stack[], column: number, height: number): Stack | null {
  let under = 0;
  for (const stack of shown) {
    under += stack.counts[column] ?? 0;
    if (height <= under) return stack;
  }
  return null;
}
