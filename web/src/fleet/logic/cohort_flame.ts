// The folded minutes of two cohorts as one call tree. The cohorts take the place of two windows of a recording.
import type { FlameAnswer } from "../../logic/answers";
import { folded, type Samples } from "../../logic/folding";
import type { Group } from "../../logic/state";

/** Functions outermost first, joined by `;`; how often they were seen on the nodes, and on those of the baseline. */
export type FoldedRow = readonly [comm: string, path: string, samples: number, baseline: number];

const ALL = { cpu: null, pid: null, comm: "", cgroup: "" };
// What a node did not push by name; the answer says in words how much that is.
const LEFT_OUT = "(left out)";
const [KERNEL, USER] = [0, 1];
// The kernel is entered by these; whatever they call is the kernel's. The nodes push names only.
const ENTRY = /^(entry_|do_syscall_|asm_|el[01]t?_|ret_from_|common_interrupt|sysvec_|do_idle$|cpu_startup_entry$|start_secondary$|kthread$|__do_softirq$|handle_softirqs$)/;

export function cohortFlame(rows: readonly FoldedRow[], hasBaseline: boolean, group: Group, isTurned: boolean, leftOut: string[]): FlameAnswer {
  return folded(samplesOf(rows), [0, 1], hasBaseline ? [1, 2] : null, ALL, group, isTurned, leftOut);
}

/** As if the cohort were sampled at the moment 0 and the baseline at 1. */
function samplesOf(rows: readonly FoldedRow[]): Samples {
  const stacks = new Stacks();
  const who: Samples["who"] = [];
  const columns = { time: [] as number[], stack: [] as number[], weight: [] as number[] };
  for (const moment of [0, 1] as const) {
    for (const row of rows) {
      const weight = row[2 + moment] as number;
      if (!weight || row[1] === LEFT_OUT) continue;
      columns.time.push(moment);
      columns.stack.push(stacks.of(row[1]));
      columns.weight.push(weight);
      who.push([0, row[0] || null, null, 0]);
    }
  }
  return {
    time: Float64Array.from(columns.time),
    cpu: new Int32Array(columns.time.length),
    stack: Int32Array.from(columns.stack),
    weight: Int32Array.from(columns.weight),
    task: Int32Array.from(columns.time, (_, place) => place),
    parent: Int32Array.from(stacks.parent),
    frame: Int32Array.from(stacks.frame),
    kind: Uint8Array.from(stacks.kinds),
    names: stacks.names,
    who,
  };
}

/** Every path once, by its callers. */
class Stacks {
  readonly parent: number[] = [];
  readonly frame: number[] = [];
  readonly names: string[] = [];
  readonly kinds: number[] = [];
  private readonly numbers = new Map<string, number>();
  private readonly calls = new Map<string, number>();

  of(path: string): number {
    let stack = -1;
    let kind = USER!;
    for (const name of path.split(";")) {
      if (ENTRY.test(name)) kind = KERNEL!;
      const key = `${stack}/${name}`;
      let next = this.calls.get(key);
      if (next === undefined) {
        next = this.parent.push(stack) - 1;
        this.frame.push(this.number(name, kind));
        this.calls.set(key, next);
      }
      stack = next;
    }
    return stack;
  }

  private number(name: string, kind: number): number {
    let number = this.numbers.get(name);
    if (number === undefined) {
      number = this.names.push(name) - 1;
      this.kinds.push(kind);
      this.numbers.set(name, number);
    }
    return number;
  }
}
