// The flame graph of waits in an exported page, as store/wait_flame.py makes it of a recording, from the waits in the file.
import { overlaps, type Range } from "../lib/range";
import type { FlameAnswer, WaitKind, WaitRow, WaitsAnswer } from "./answers";
import { GROUP_KIND, isBelow, isWanted, type Wanted } from "./folding";
import type { Clock } from "./moment";
import { PathTree } from "./path_tree";
import { placed } from "./waits";

const KERNEL_KIND = 0;
const KIND_FRAME: Record<WaitKind, string> = {
  runnable: "[waits for a core]",
  blocked: "[sleeps in the kernel]",
  futex: "[waits for a lock of its own]",
  file_lock: "[waits for a lock on a file]",
  unread: "[waits until the other end reads]",
  stopped: "[is stopped]",
  unanswered: "[waits to read, others behind it]",
  semaphore: "[waits for a semaphore]",
  unserved: "[waits for an answer]",
  asleep: "[sleeps, others behind it]",
};

/** Below each program the kind of wait, then who had the core, or the kernel's functions; widths are milliseconds. */
export function foldedWaits(answer: WaitsAnswer, window: Range, baseline: Range | null, wanted: Wanted, at: Clock): FlameAnswer {
  const tree = new PathTree();
  for (const [side, range] of [[0, window], [1, baseline]] as const) {
    for (const wait of range ? answer.waits.filter((each) => isChosen(each, range, wanted, at)) : []) {
      const [from, to] = placed(wait, at).range;
      tree.add(pathOf(wait, answer, tree), Math.max(1, Math.round(Math.min(to, range![1]) - Math.max(from, range![0]))), side);
    }
  }
  const cut = answer.count > answer.waits.length ? [`of the longest ${answer.waits.length} of ${answer.count} waits`] : [];
  return tree.answer(baseline !== null, cut);
}

function isChosen(wait: WaitRow, range: Range, wanted: Wanted, at: Clock): boolean {
  const isThere = wanted.cpu === null || wait.cpu === wanted.cpu;
  return overlaps(placed(wait, at).range, range) && isThere && isWanted(wait.pid, wait.comm, wanted) && isBelow(wait.cgroup, wanted.cgroup);
}

function pathOf(wait: WaitRow, { stacks }: WaitsAnswer, tree: PathTree): number[] {
  const behind = wait.kind === "runnable" && wait.by_comm ? [`[behind ${wait.by_comm}]`] : [];
  const groups = [wait.comm, KIND_FRAME[wait.kind], ...behind].map((name) => tree.number(name, GROUP_KIND));
  const functions = wait.stack === null ? [] : [...stacks[wait.stack]!].reverse();
  return [...groups, ...functions.map((name) => tree.number(name, KERNEL_KIND))];
}
