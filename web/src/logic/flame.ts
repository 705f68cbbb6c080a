// The flame graph's geometry: a tree laid out by depth, so that what is visible at any zoom is found by bisection.
import type { FlameAnswer } from "./answers";

const NARROWEST_SENT = 2400;
export const KINDS = ["kernel", "user", "jit", "group", "other"] as const;

/** Nodes are ordered by depth, then from left to right. `left` and `right` are shares of the whole, `first` is each depth's first node. */
export interface Flame {
  names: string[];
  parent: Int32Array;
  name: Int32Array;
  kind: Uint8Array;
  left: Float64Array;
  right: Float64Array;
  own: Float64Array;
  depth: Int32Array;
  first: number[];
  total: number;
  samples: number;
  /** Frames that are too narrow to be seen at this zoom, and were not sent. */
  unsent: number;
  /** Share in the window minus share in the baseline, for a differential. */
  change: Float64Array | null;
  shares: { window: Float64Array; baseline: Float64Array } | null;
  leftOut: string[];
}

export function layout(answer: FlameAnswer): Flame {
  const { header, arrays } = answer;
  const parent = arrays["parent"] as Int32Array;
  const own = arrays["self"] as Float64Array;
  const [share, baseline] = [arrays["share"], arrays["baseline_share"]] as (Float64Array | undefined)[];
  const { depth, first } = depths(parent);
  const { left, right, total } = edges(answer, depth);
  const kinds = arrays["kind"] as Uint8Array;
  const name = arrays["name"] as Int32Array;
  return {
    names: header.names,
    parent,
    name,
    kind: Uint8Array.from(name, (number) => kinds[number] ?? 4),
    left,
    right,
    own,
    depth,
    first,
    total,
    samples: header.samples,
    unsent: (header.frames ?? parent.length) - parent.length,
    shares: share && baseline ? { window: share, baseline } : null,
    change: share && baseline ? share.map((value, node) => value - baseline[node]!) : null,
    leftOut: header.left_out,
  };
}

/** The server says where each frame lies, because it sends only those that can be seen; a file's frames are all there. */
function edges({ header, arrays }: FlameAnswer, depth: Int32Array) {
  const [total, share, baseline] = [arrays["total"], arrays["share"], arrays["baseline_share"]] as (Float64Array | undefined)[];
  const [left, width] = [arrays["left"], arrays["width"]] as (Float64Array | undefined)[];
  if (left && width) return { left, right: left.map((edge, node) => edge + width[node]!), total: share ? 1 : header.samples };
  return spread(arrays["parent"] as Int32Array, widths(total!, share, baseline), depth);
}

/** A frame is as wide as its mean share of both windows, so that what vanished is seen as well as what appeared. */
function widths(total: Float64Array, share: Float64Array | undefined, baseline: Float64Array | undefined): Float64Array {
  return share && baseline ? share.map((value, node) => (value + baseline[node]!) / 2) : total;
}

function depths(parent: Int32Array): { depth: Int32Array; first: number[] } {
  const depth = new Int32Array(parent.length);
  const first: number[] = [];
  for (let node = 0; node < parent.length; node += 1) {
    depth[node] = parent[node]! < 0 ? 0 : depth[parent[node]!]! + 1;
    if (depth[node] === first.length) first.push(node);
  }
  first.push(parent.length);
  return { depth, first };
}

function spread(parent: Int32Array, weights: Float64Array, depth: Int32Array) {
  const count = parent.length;
  let total = 0;
  for (let node = 0; node < count && depth[node] === 0; node += 1) total += weights[node]!;
  const left = new Float64Array(count);
  const right = new Float64Array(count);
  const used = new Float64Array(count);
  let usedByRoots = 0;
  for (let node = 0; node < count; node += 1) {
    const above = parent[node]!;
    const width = weights[node]! / (total || 1);
    left[node] = above < 0 ? usedByRoots : left[above]! + used[above]!;
    right[node] = left[node]! + width;
    if (above < 0) usedByRoots += width;
    else used[above]! += width;
  }
  return { left, right, total };
}

/** The nodes of a depth that touch the stretch, as a range of numbers. */
export function visible(flame: Flame, depth: number, from: number, to: number): [number, number] {
  const low = flame.first[depth] ?? 0;
  const high = flame.first[depth + 1] ?? low;
  return [bisect(flame.right, low, high, from), bisect(flame.left, low, high, to)];
}

/** The first place in [low, high) whose value is above the wanted one. */
function bisect(values: Float64Array, low: number, high: number, wanted: number): number {
  while (low < high) {
    const half = (low + high) >> 1;
    if (values[half]! <= wanted) low = half + 1;
    else high = half;
  }
  return low;
}

export function nodeAt(flame: Flame, depth: number, share: number): number | null {
  if (depth < 0 || depth >= flame.first.length - 1) return null;
  const [from, to] = visible(flame, depth, share, share);
  return from < to && flame.left[from]! <= share ? from : null;
}

export function path(flame: Flame, node: number): string[] {
  const found: string[] = [];
  for (let at = node; at >= 0; at = flame.parent[at]!) found.unshift(flame.names[flame.name[at]!]!);
  return found;
}

const LEAST_CHANGE = 0.005;

/** What a differential says of a frame besides its colour; null: it is not compared, or hardly changed. */
export function changeOf(flame: Flame, node: number): { sign: string; word: string } | null {
  if (!flame.shares || !flame.change) return null;
  if (!flame.shares.baseline[node]) return { sign: "✚", word: "new" };
  if (!flame.shares.window[node]) return { sign: "✖", word: "gone" };
  if (Math.abs(flame.change[node]!) < LEAST_CHANGE) return null;
  return flame.change[node]! > 0 ? { sign: "▲", word: "grew" } : { sign: "▼", word: "shrank" };
}

export const height = (flame: Flame): number => flame.first.length - 1;

export interface Found {
  names: Uint8Array;
  /** Share of all samples that pass through a match. */
  share: number;
  count: number;
}

/** Matches words anywhere in a name, or a regular expression between slashes. An expression that is not valid matches nothing. */
export function search(flame: Flame, wanted: string): Found | null {
  if (!wanted) return null;
  const matches = matcher(wanted);
  const names = Uint8Array.from(flame.names, (name) => Number(matches(name)));
  const covered = new Uint8Array(flame.parent.length);
  let share = 0;
  let count = 0;
  for (let node = 0; node < flame.parent.length; node += 1) {
    const above = flame.parent[node]!;
    const isMatch = names[flame.name[node]!]! === 1;
    const isCovered = above >= 0 && covered[above] === 1;
    if (isMatch && !isCovered) share += flame.right[node]! - flame.left[node]!;
    covered[node] = Number(isMatch || isCovered);
    count += Number(isMatch);
  }
  return { names, share, count };
}

function matcher(wanted: string): (name: string) => boolean {
  const expression = /^\/(.+)\/$/.exec(wanted)?.[1];
  if (expression === undefined) {
    const lower = wanted.toLowerCase();
    return (name) => name.toLowerCase().includes(lower);
  }
  try {
    const compiled = new RegExp(expression, "i");
    return (name) => compiled.test(name);
  } catch {
    return () => false;
  }
}

/** The path that most of the weight takes, as far as it has half of its caller's, outermost frame first. */
export function heaviestPath(flame: Flame): string[] {
  const widthOf = (node: number) => flame.right[node]! - flame.left[node]!;
  let best: number | null = null;
  for (let depth = 0; depth < height(flame); depth += 1) {
    let next: number | null = null;
    for (let node = flame.first[depth]!; node < flame.first[depth + 1]!; node += 1) {
      if (flame.parent[node] === (best ?? -1) && (next === null || widthOf(node) > widthOf(next))) next = node;
    }
    if (next === null || (best !== null && widthOf(next) < widthOf(best) / 2)) break;
    best = next;
  }
  return best === null ? [] : path(flame, best);
}

/** How narrow a frame may be at a zoom: half a pixel of a wide screen. A search needs them all. */
export function leastShare(zoomed: number, isSearched: boolean): number {
  return isSearched ? 0 : 8 ** Math.floor(Math.log(Math.max(zoomed, 1e-9)) / Math.log(8)) / NARROWEST_SENT;
}

/** The outermost frames by name, the widest first. */
export function groups(flame: Flame): string[] {
  const roots = Array.from({ length: flame.first[1] ?? 0 }, (_, node) => node);
  const width = (node: number) => flame.right[node]! - flame.left[node]!;
  return roots.sort((a, b) => width(b) - width(a)).map((node) => flame.names[flame.name[node]!]!);
}
