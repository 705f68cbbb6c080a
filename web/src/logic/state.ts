// The whole state of the page, as it stands in a link, and the moves that change it.
import { clamp, contains, length, middle, moved, same, scaled, within, type Range } from "../lib/range";
import type { Clock } from "./moment";

export const MODES = ["system", "busy", "softirq", "steal", "user", "irq", "delay"] as const;
export type Mode = (typeof MODES)[number];
/** What samples can be grouped by; several joined by commas are one within the other. */
export const GROUPS = ["", "process", "thread", "name", "core", "cgroup"] as const;
export type Group = string;
/** What the flame graph is of: who ran, or who waited. */
export const FLAMES = ["samples", "waits"] as const;
export type FlameOf = (typeof FLAMES)[number];
// Told from the stacks by the server; a file knows it of the graph that it opens with.
const STATE_GROUP = "state";

export interface State {
  /** What the lanes show. */
  view: Range;
  /** What the flame graph and the tasks are of. */
  window: Range | null;
  baseline: Range | null;
  cpu: number | null;
  mode: Mode;
  incident: string | null;
  search: string;
  /** One process, or all of one name; at most one of the two is given. */
  pid: number | null;
  comm: string;
  cgroup: string;
  group: Group;
  isTurned: boolean;
  of: FlameOf;
  /** The wait that is looked at, by its thread and the microsecond of its last row. */
  wait: string | null;
  /** The part of the flame graph that fills the width, in shares of the whole; null is all of it. */
  zoom: Range | null;
}

export const MODE_TEXT: Record<Mode, string> = {
  busy: "busy",
  system: "in the kernel (system)",
  softirq: "softirq",
  steal: "stolen by the host",
  user: "user",
  irq: "hard interrupts",
  delay: "softirq delay",
};

const PID = /^\d{1,9}$/;
const WAIT = /^\d{1,9}-\d{1,16}$/;
const SHARE_DIGITS = 8;
const GROWS_TO_MS = 120_000;
const SHORTEST_FOLLOWED_MS = 10_000;
const FOLLOWED_WINDOW_MS = 5000;
const SHORTEST_VIEW_MS = 1;
const SHORTEST_WINDOW_MS = 0.1;

export function initialState(span: Range): State {
  return {
    view: span,
    window: null,
    baseline: null,
    cpu: null,
    mode: "system",
    incident: null,
    search: "",
    pid: null,
    comm: "",
    cgroup: "",
    group: "",
    isTurned: false,
    of: "samples",
    wait: null,
    zoom: null,
  };
}

export function toHash(state: State, at: Clock): string {
  const words = new URLSearchParams();
  const range = (name: string, value: Range | null) => value && words.set(name, value.map((ms) => at.micros(ms)).join("-"));
  range("view", state.view);
  range("window", state.window);
  range("baseline", state.baseline);
  if (state.cpu !== null) words.set("core", String(state.cpu));
  if (state.pid !== null) words.set("pid", String(state.pid));
  words.set("mode", state.mode);
  if (state.of !== "samples") words.set("of", state.of);
  for (const name of ["incident", "search", "comm", "cgroup", "group", "wait"] as const) {
    if (state[name]) words.set(name, state[name]);
  }
  if (state.isTurned) words.set("turned", "1");
  if (state.zoom) words.set("zoom", state.zoom.map((share) => share.toFixed(SHARE_DIGITS)).join("-"));
  return `#${words.toString()}`;
}

/** A link may be old, cut or made by hand: what does not make sense is left as it is in `otherwise`. */
export function ofHash(hash: string, at: Clock, otherwise: State, cpus: readonly number[]): State {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const numbers = (name: string): Range | null => {
    const parts = (words.get(name) ?? "").split("-").map(Number);
    const [from, to] = parts;
    return parts.length === 2 && Number.isFinite(from) && Number.isFinite(to) && from! < to! ? [from!, to!] : null;
  };
  const range = (name: string): Range | null => {
    const micros = numbers(name);
    return micros && [at.ofMicros(micros[0]), at.ofMicros(micros[1])];
  };
  const zoom = numbers("zoom");
  const core = words.has("core") ? Number(words.get("core")) : null;
  const pid = words.get("pid") ?? "";
  const mode = words.get("mode") as Mode;
  const group = words.get("group") ?? "";
  return {
    view: range("view") ?? otherwise.view,
    window: range("window"),
    baseline: range("baseline"),
    cpu: core !== null && cpus.includes(core) ? core : null,
    mode: MODES.includes(mode) ? mode : otherwise.mode,
    incident: words.get("incident"),
    search: words.get("search") ?? "",
    pid: PID.test(pid) ? Number(pid) : null,
    comm: PID.test(pid) ? "" : (words.get("comm") ?? ""),
    cgroup: words.get("cgroup") ?? "",
    group: isGroup(group) ? group : "",
    isTurned: words.get("turned") === "1",
    of: words.get("of") === "waits" ? "waits" : "samples",
    wait: WAIT.test(words.get("wait") ?? "") ? words.get("wait") : null,
    zoom: zoom && contains([0, 1], zoom) ? zoom : null,
  };
}

const isGroup = (text: string): boolean => text.split(",").every((part) => part === STATE_GROUP || (GROUPS as readonly string[]).includes(part));

/** What was typed or chosen from the list: `worker`, `12`, `pid 12`, or `worker (12)` as the graph by process has it. */
export function withProcess(state: State, text: string): State {
  const pid = /^(?:pid )?(\d{1,9})$/.exec(text) ?? /\((\d{1,9})\)$/.exec(text);
  return pid ? { ...state, pid: Number(pid[1]), comm: "" } : { ...state, pid: null, comm: text };
}

export const processText = ({ pid, comm }: State): string => (pid === null ? comm : `pid ${pid}`);

export function zoomed(state: State, factor: number, around: number, span: Range): State {
  const wanted = clamp(length(state.view) * factor, Math.min(SHORTEST_VIEW_MS, length(span)), length(span));
  return { ...state, view: within(scaled(state.view, wanted / length(state.view), around), span) };
}

export function panned(state: State, share: number, span: Range): State {
  return { ...state, view: within(moved(state.view, length(state.view) * share), span) };
}

/** Selects a window; the view follows only if the window lies outside of it or would be too small to see. */
export function withWindow(state: State, wanted: Range, span: Range): State {
  const size = Math.max(length(wanted), SHORTEST_WINDOW_MS);
  const window: Range = within([wanted[0], wanted[0] + size], span);
  const isVisible = contains(state.view, window) && length(window) >= length(state.view) / 200;
  return { ...state, window, view: isVisible ? state.view : viewAround(window, span) };
}

export function viewAround(window: Range, span: Range): Range {
  const size = clamp(length(window) * 6, 10_000, Math.max(length(span), 10_000));
  return within([middle(window) - size / 2, middle(window) + size / 2], span);
}

export function movedWindow(state: State, share: number, span: Range): State {
  if (!state.window) return state;
  return withWindow(state, within(moved(state.window, length(state.window) * share), span), span);
}

export function resizedWindow(state: State, factor: number, span: Range): State {
  if (!state.window) return state;
  const size = clamp(length(state.window) * factor, SHORTEST_WINDOW_MS, length(span));
  const at = middle(state.window);
  return withWindow(state, [at - size / 2, at + size / 2], span);
}

/** The next core in the list; before the first comes "all". */
export function steppedCpu(state: State, cpus: readonly number[], step: 1 | -1): State {
  const order: (number | null)[] = [null, ...cpus];
  const place = order.indexOf(state.cpu) + step;
  return { ...state, cpu: order[(place + order.length) % order.length] ?? null };
}

export function steppedMode(state: State): State {
  return { ...state, mode: MODES[(MODES.indexOf(state.mode) + 1) % MODES.length]! };
}

/** The stretch of the same length that lies before the window, or after it where nothing lies before. */
export function baselineBefore(window: Range, span: Range): Range | null {
  const size = length(window);
  if (window[0] - size >= span[0]) return moved(window, -size);
  if (window[0] - span[0] >= size / 4) return [span[0], window[0]];
  return window[1] + size <= span[1] ? moved(window, size) : null;
}

/** A live recording grew: the window and the view end where it does. What showed all of a short one shows all of it still. */
export function followed(state: State, before: Range, now: Range): State {
  const isWhole = contains(state.view, before) && length(now) <= GROWS_TO_MS;
  const size = clamp(length(state.view), SHORTEST_FOLLOWED_MS, length(now));
  const last = length(state.window ?? [0, FOLLOWED_WINDOW_MS]);
  return { ...state, view: isWhole ? now : within([now[1] - size, now[1]], now), window: within([now[1] - last, now[1]], now), zoom: null };
}

/** Is it another place, worth a step in the browser's history, or only another look at the same? */
export function isAnotherPlace(before: State, after: State): boolean {
  return isAnotherFlame(before, after) || before.mode !== after.mode || before.incident !== after.incident || before.wait !== after.wait;
}

/** A zoom is of one flame graph: another one begins whole. */
export function withFittingZoom(before: State, after: State): State {
  return after.zoom && isAnotherFlame(before, after) ? { ...after, zoom: null } : after;
}

function isAnotherFlame(before: State, after: State): boolean {
  const names = ["cpu", "pid", "comm", "cgroup", "group", "isTurned", "of"] as const;
  return (
    !same(before.window, after.window) || !same(before.baseline, after.baseline) || names.some((name) => before[name] !== after[name])
  );
}
