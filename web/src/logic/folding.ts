// Samples to call trees in the browser, for an exported page: the same answers as the server's, from the samples in the file.
import type { FlameAnswer, HeatAnswer } from "./answers";
import type { Range } from "../lib/range";
import { PathTree, type Side } from "./path_tree";
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

export const GROUP_KIND = 3;

/** Numbers of the samples in a window that pass the filter. */
export function chosen(samples: Samples, window: Range, wanted: Wanted): number[] {
  const passes = samples.who.map(([pid, comm, cgroup]) => isWanted(pid, comm, wanted) && isBelow(cgroup, wanted.cgroup));
  const found: number[] = [];
  for (let place = firstFrom(samples.time, window[0]); place < samples.time.length && samples.time[place]! < window[1]; place += 1) {
    if ((wanted.cpu === null || samples.cpu[place] === wanted.cpu) && passes[samples.task[place]!]) found.push(place);
  }
  return found;
}

export const isWanted = (pid: number, comm: string | null, wanted: Wanted): boolean =>
  (wanted.pid === null || pid === wanted.pid) && (!wanted.comm || comm === wanted.comm);

export function isBelow(cgroup: string | null, wanted: string): boolean {
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

/** Numbers the names of groups, and puts them above the frames of a sample. */
class SamplePaths {
  constructor(private readonly samples: Samples, private readonly tree: PathTree, private readonly group: Group, private readonly isTurned: boolean) {}

  add(places: readonly number[], side: Side): void {
    for (const place of places) this.tree.add(this.path(place), this.samples.weight[place]!, side);
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
    return this.tree.number(texts[group] ?? `no ${group} in this file`, GROUP_KIND);
  }
}

export function folded(
  samples: Samples, window: Range, baseline: Range | null, wanted: Wanted, group: Group, isTurned: boolean, leftOut: string[],
): FlameAnswer {
  const tree = new PathTree([...samples.names], [...samples.kind]);
  const paths = new SamplePaths(samples, tree, group, isTurned);
  paths.add(chosen(samples, window, wanted), 0);
  if (baseline) paths.add(chosen(samples, baseline, wanted), 1);
  return tree.answer(baseline !== null, leftOut);
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
