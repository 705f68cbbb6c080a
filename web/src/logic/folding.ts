// Samples to call trees in the browser, for an exported page: the same answers as the server's, from the samples in the file.
import type { FlameAnswer, HeatAnswer } from "./answers";
import type { Range } from "../lib/range";
import type { Group } from "./state";

export interface Samples {
  /** Milliseconds since the page's origin, in order. */
  time: Float64Array;
  cpu: Int32Array;
  stack: Int32Array;
  weight: Int32Array;
  task: Int32Array;
  parent: Int32Array;
  frame: Int32Array;
  kind: Uint8Array;
  names: string[];
  who: [pid: number, comm: string | null, cgroup: string | null, tid: number][];
}

export interface Wanted {
  cpu: number | null;
  pid: number | null;
  comm: string;
  cgroup: string;
}

const GROUP_KIND = 3;

/** Numbers of the samples in a window that pass the filter. */
export function chosen(samples: Samples, window: Range, wanted: Wanted): number[] {
  const passes = samples.who.map(([pid, comm, cgroup]) => isWanted(pid, comm, wanted) && isBelow(cgroup, wanted.cgroup));
  const found: number[] = [];
  for (let place = firstFrom(samples.time, window[0]); place < samples.time.length && samples.time[place]! < window[1]; place += 1) {
    if ((wanted.cpu === null || samples.cpu[place] === wanted.cpu) && passes[samples.task[place]!]) found.push(place);
  }
  return found;
}

const isWanted = (pid: number, comm: string | null, wanted: Wanted): boolean =>
  (wanted.pid === null || pid === wanted.pid) && (!wanted.comm || comm === wanted.comm);

function isBelow(cgroup: string | null, wanted: string): boolean {
  const top = wanted.replace(/\/+$/, "");
  return !wanted || cgroup === top || (cgroup ?? "").startsWith(`${top}/`);
}

function firstFrom(times: Float64Array, moment: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const half = (low + high) >> 1;
    if (times[half]! < moment) low = half + 1;
    else high = half;
  }
  return low;
}

interface Node {
  name: number;
  totals: [number, number];
  selves: [number, number];
  calls: Map<number, Node>;
}

const makeNode = (name: number): Node => ({ name, totals: [0, 0], selves: [0, 0], calls: new Map() });

/** A tree of names. The second weight is the baseline's. */
class Tree {
  readonly root = makeNode(-1);
  readonly names: string[];
  readonly kinds: number[];
  private readonly groups = new Map<string, number>();

  constructor(private readonly samples: Samples, private readonly group: Group, private readonly isTurned: boolean) {
    this.names = [...samples.names];
    this.kinds = [...samples.kind];
  }

  add(places: readonly number[], side: 0 | 1): number {
    let weight = 0;
    for (const place of places) {
      this.addOne(this.path(place), this.samples.weight[place]!, side);
      weight += this.samples.weight[place]!;
    }
    return weight;
  }

  private path(place: number): number[] {
    const frames: number[] = [];
    for (let stack = this.samples.stack[place]!; stack >= 0; stack = this.samples.parent[stack]!) frames.push(this.samples.frame[stack]!);
    if (!this.isTurned) frames.reverse();
    return [...this.group.split(",").filter(Boolean).map((group) => this.groupName(place, group)), ...frames];
  }

  private groupName(place: number, group: string): number {
    const [pid, comm, cgroup, tid] = this.samples.who[this.samples.task[place]!]!;
    const texts: Record<string, string> = {
      process: `${comm} (${pid})`, thread: `${comm} (${tid})`, name: comm ?? "no name", cgroup: cgroup ?? "no cgroup", core: `core ${this.samples.cpu[place]}`,
    };
    const text = texts[group] ?? `no ${group} in this file`;
    let number = this.groups.get(text);
    if (number === undefined) {
      number = this.names.push(text) - 1;
      this.kinds.push(GROUP_KIND);
      this.groups.set(text, number);
    }
    return number;
  }

  private addOne(path: readonly number[], weight: number, side: 0 | 1): void {
    let node = this.root;
    for (const name of path) {
      let next = node.calls.get(name);
      if (!next) node.calls.set(name, (next = makeNode(name)));
      next.totals[side] += weight;
      node = next;
    }
    node.selves[side] += weight;
  }

  /** Nodes by depth, and below one parent by name, as the server orders them. */
  flattened(): { node: Node; parent: number }[] {
    const found: { node: Node; parent: number }[] = [];
    let level = [{ node: this.root, place: -1 }];
    while (level.length) {
      const next: typeof level = [];
      for (const { node, place } of level) {
        const calls = [...node.calls.values()].sort((a, b) => (this.names[a.name]! < this.names[b.name]! ? -1 : 1));
        for (const call of calls) next.push({ node: call, place: found.push({ node: call, parent: place }) - 1 });
      }
      level = next;
    }
    return found;
  }
}

export function folded(
  samples: Samples, window: Range, baseline: Range | null, wanted: Wanted, group: Group, isTurned: boolean, leftOut: string[],
): FlameAnswer {
  const tree = new Tree(samples, group, isTurned);
  const weight = tree.add(chosen(samples, window, wanted), 0);
  const before = baseline ? tree.add(chosen(samples, baseline, wanted), 1) : 0;
  const nodes = tree.flattened();
  const numbers = (value: (node: Node) => number) => Float64Array.from(nodes, ({ node }) => value(node));
  const arrays: FlameAnswer["arrays"] = {
    parent: Int32Array.from(nodes, ({ parent }) => parent),
    name: Int32Array.from(nodes, ({ node }) => node.name),
    kind: Uint8Array.from(tree.kinds),
    total: numbers((node) => node.totals[0]),
    self: numbers((node) => node.selves[0]),
  };
  if (baseline) {
    arrays["share"] = numbers((node) => node.totals[0] / (weight || 1));
    arrays["baseline_share"] = numbers((node) => node.totals[1] / (before || 1));
  }
  const header = { names: tree.names, samples: weight, baseline_samples: before, from: "0", to: "0", left_out: leftOut };
  return { header, arrays };
}

const SECOND_MS = 1000;

/** The sub-second heat map; columns begin at whole seconds since `origin_ms`, which is the time of day of the page's origin. */
export function heat(samples: Samples, known: readonly Range[], minute: Range, wanted: Wanted, rows: number, origin_ms: number) {
  const start = Math.floor((minute[0] + origin_ms) / SECOND_MS) * SECOND_MS - origin_ms;
  const columns = Math.max(1, Math.ceil((minute[1] - start) / SECOND_MS));
  const weights = new Uint32Array(rows * columns);
  const cell_ms = SECOND_MS / rows;
  for (const place of chosen(samples, [start, start + columns * SECOND_MS], wanted)) {
    const cell = Math.floor((samples.time[place]! - start) / cell_ms);
    weights[(cell % rows) * columns + Math.floor(cell / rows)]! += samples.weight[place]!;
  }
  const isKnown = Uint8Array.from(weights, (_, at) => {
    const moment = start + ((at % columns) * rows + Math.floor(at / columns) + 0.5) * cell_ms;
    return Number(known.some(([from, to]) => moment >= from && moment < to));
  });
  return { start, columns, arrays: { weights, known: isKnown } satisfies HeatAnswer["arrays"] };
}
