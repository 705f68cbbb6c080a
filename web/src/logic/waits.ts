// The lane of waits: which rows it has, where each wait lies, and which wait a click, a key or a link means.
import { length, overlaps, within, type Range } from "../lib/range";
import type { Gap, WaitGroup, WaitKind, WaitRow, WaitsAnswer } from "./answers";
import { durationText, type Clock } from "./moment";
import { viewAround, type State } from "./state";

export const WAIT_KIND_TEXT: Record<WaitKind, string> = {
  runnable: "wanted a core",
  blocked: "slept in the kernel",
  futex: "lock of its own program",
  file_lock: "lock on a file",
  unread: "full pipe or socket",
  stopped: "was stopped",
  unanswered: "waited to read, others behind it",
  semaphore: "semaphore that processes share",
  unserved: "server that had not read its question",
  asleep: "slept, others behind it",
};

/** Kinds that are drawn alike: for a core, in the kernel for another, for a lock that programs share. */
export type WaitFamily = "runnable" | "blocked" | "futex";
export const WAIT_FAMILIES: readonly WaitFamily[] = ["runnable", "blocked", "futex"];
export const WAIT_FAMILY_TEXT: Record<WaitFamily, string> = {
  runnable: "wanted a core",
  blocked: "slept in the kernel, for another process, or was stopped",
  futex: "lock of its own program, or on a file",
};
export const familyOf = (kind: WaitKind): WaitFamily => (kind === "runnable" ? "runnable" : kind === "futex" || kind === "semaphore" || kind === "file_lock" ? "futex" : "blocked");

export interface PlacedWait {
  range: Range;
  row: WaitRow;
}

/** Waits alike in one row; the longest of them last, so that it is drawn on top. */
export interface WaitLine {
  group: WaitGroup;
  waits: PlacedWait[];
  longest: PlacedWait | null;
}

export const placed = (row: WaitRow, at: Clock): PlacedWait => {
  const end = at.ofDigits(row.time);
  return { row, range: [end - row.waited_ms, end] };
};

const keyOf = ({ kind, comm, by_comm }: Pick<WaitRow, "kind" | "comm" | "by_comm">) => `${kind}\n${comm}\n${by_comm ?? ""}`;

export function lines(answer: WaitsAnswer, at: Clock): WaitLine[] {
  const byKey = new Map(answer.groups.map((group) => [keyOf(group), { group, waits: [], longest: null } as WaitLine]));
  for (const row of answer.waits) byKey.get(keyOf(row))?.waits.push(placed(row, at));
  for (const line of byKey.values()) {
    line.waits.sort((a, b) => a.row.waited_ms - b.row.waited_ms);
    line.longest = line.waits[line.waits.length - 1] ?? null;
  }
  return [...byKey.values()].filter((line) => line.longest);
}

/** What the other task did: had the core, has what is still waited for, or ended the wait. */
export const inTheWay = ({ kind, is_open }: WaitRow): string => (kind === "runnable" ? "behind" : is_open ? "held by" : "ended by");

/** In the words of a person: who waited, for what, behind whom, how often, how long. */
export function lineText({ group, longest }: WaitLine): string {
  const lock = group.kind === "blocked" && longest?.row.lock ? ` (${longest.row.lock})` : "";
  const behind = group.by_comm ? `${group.kind === "runnable" ? "" : ","} ${longest ? inTheWay(longest.row) : "behind"} ${group.by_comm}` : "";
  const count = group.count === 1 ? "once" : `${group.count.toLocaleString("en")} times`;
  return `${group.comm} ${WAIT_KIND_TEXT[group.kind]}${lock}${behind} · ${count}, longest ${durationText(group.worst_ms)}`;
}

/** The longest wait of a row that lies under the pointer, or near it. */
export function waitAt(line: WaitLine | undefined, moment: number, slack_ms: number): PlacedWait | null {
  const near: Range = [moment - slack_ms, moment + slack_ms];
  return [...(line?.waits ?? [])].reverse().find(({ range }) => overlaps(range, near)) ?? null;
}

export const waitId = ({ row }: PlacedWait, at: Clock): string => `${row.tid}-${at.micros(at.ofDigits(row.time))}`;

/** A link may name a wait by a row of it that another has replaced since: the same thread around that time. */
export function waitOf(answer: WaitsAnswer, id: string | null, at: Clock): PlacedWait | null {
  if (!id) return null;
  const [tid, micros] = id.split("-").map(Number);
  const moment = at.ofMicros(micros!);
  const own = answer.waits.filter((row) => row.tid === tid).map((row) => placed(row, at));
  return own.find(({ range }) => moment >= range[0] - 0.01 && moment <= range[1] + 0.01) ?? null;
}

/** All waits of the lane, the longest first: the order in which keys go through them. */
export function byLength(answer: WaitsAnswer, at: Clock): PlacedWait[] {
  return answer.waits.map((row) => placed(row, at)).sort((a, b) => b.row.waited_ms - a.row.waited_ms || a.range[0] - b.range[0]);
}

/** The page at a wait: its time, its core, and the wait itself. The view moves only if the wait could not be seen in it. */
export function withWait(state: State, wait: PlacedWait, at: Clock, span: Range): State {
  const window = within([wait.range[0], Math.max(wait.range[1], wait.range[0] + 1)], span);
  const isSeen = overlaps(state.view, window) && length(window) >= length(state.view) / 200 && length(window) <= length(state.view);
  return { ...state, window, view: isSeen ? state.view : viewAround(window, span), cpu: wait.row.cpu, wait: waitId(wait, at), baseline: null };
}

/** Why the lane shows nothing: waits were not recorded, with less detail, or there was none that long. */
export function emptyText(tables: Record<string, number>, gaps: readonly Gap[]): string {
  const cause = gaps.find((gap) => gap.table === "waits")?.cause;
  if (cause) return `No wait is known here, and waits were not fully recorded: ${cause}.`;
  if (tables["run_delay"] || tables["waits"]) return "No task waited longer than the recorder's threshold here (setting `waits`, 20 ms unless it was changed).";
  return "Waits were not recorded: an import, an older version, no root, no BTF, or waits = 0s.";
}
