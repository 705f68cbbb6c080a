// From a report to places in the page: which incident comes first, and where a piece of evidence leads.
import { length, within, type Range } from "../lib/range";
import type { Evidence, Incident } from "./answers";
import type { Clock } from "./moment";
import { viewAround, withWindow, type Mode, type State } from "./state";

const GRAVE = new Set(["nic_reset", "soft_lockup", "hard_lockup", "rcu_stall", "hung_task", "oom_kill", "ray_node_dead"]);
export const LANES = ["events", "cores", "waits", "cgroups", "counters", "heat", "flame", "tasks"] as const;
export type Lane = (typeof LANES)[number];
const LANE_OF_TABLE: Record<string, Lane> = {
  cores: "cores",
  softirqs: "cores",
  softirq_delay: "cores",
  runqueue: "cores",
  softnet: "cores",
  interrupts: "cores",
  events: "events",
  log: "events",
  nics: "events",
  cgroups: "cgroups",
  cgroup_ledger: "cgroups",
  units: "cgroups",
  containers: "cgroups",
  samples: "flame",
  tasks: "tasks",
  waits: "waits",
  run_delay: "waits",
  memory: "counters",
  network: "counters",
  pressure: "counters",
};
const BEFORE_EVENT_MS = 5000;
const AFTER_EVENT_MS = 1000;
const SHORT_SPAN_MS = 600_000;

/** A piece of advice, and the command at its end, if there is one. */
export function commandApart(advice: string): [string, string | null] {
  const found = /: (necroscope [^():]*(?::\d\d[^():]*)*)$/.exec(advice);
  return found ? [advice.slice(0, found.index + 1), found[1]!] : [advice, null];
}

/** Those first in which something broke, then the surest; by time what is equal. */
export function ranked(incidents: readonly Incident[]): Incident[] {
  const weight = (incident: Incident) =>
    (incident.events.some((event) => GRAVE.has(event.kind)) ? 2 : 0) + (incident.verdict.cause === "unknown" ? 0 : incident.verdict.confidence);
  return [...incidents].sort((a, b) => weight(b) - weight(a) || a.from.localeCompare(b.from));
}

/** The window of an incident to look at first: its longest episode on its core that is no mere wait, at most ten seconds of it. */
export function firstWindow(incident: Incident, at: Clock, span: Range): Range {
  const longest = incident.episodes
    .filter((episode) => episode.core === incident.core)
    .map((episode) => ({ range: [at.ofIso(episode.from), at.ofIso(episode.to)] as Range, isHeld: episode.kind === "saturated" }))
    .sort((a, b) => Number(b.isHeld) - Number(a.isHeld) || length(b.range) - length(a.range))[0]?.range;
  const [from, to] = longest ?? [at.ofIso(incident.from), at.ofIso(incident.to)];
  return within([from, Math.max(Math.min(to, from + 10_000), from + 1000)], span);
}

export function withIncident(state: State, incident: Incident, at: Clock, span: Range): State {
  const whole: Range = [at.ofIso(incident.from), at.ofIso(incident.to)];
  const window = firstWindow(incident, at, span);
  const view = length(span) <= SHORT_SPAN_MS ? span : viewAround(whole, span);
  const mode = modeOf(incident.mode, state.mode);
  return { ...state, view, window, cpu: incident.core, incident: incident.id, mode, baseline: null, pid: null, comm: "", cgroup: "", search: "" };
}

export function laneOf(evidence: Evidence): Lane {
  return LANE_OF_TABLE[evidence.table ?? ""] ?? "cores";
}

/** Moves the page to what the evidence speaks of: its time, its core, the mode in which it shows. */
export function withEvidence(state: State, evidence: Evidence, incident: Incident, at: Clock, span: Range): State {
  const [from, to] = [at.ofIso(evidence.from), at.ofIso(evidence.to)];
  const isMoment = to - from < 1;
  const window: Range = isMoment ? [from - BEFORE_EVENT_MS, to + AFTER_EVENT_MS] : [from, to];
  const wanted = evidence.table === "softirq_delay" ? "delay" : evidence.table === "cores" ? modeOf(incident.mode, state.mode) : state.mode;
  return { ...withWindow(state, window, span), cpu: evidence.core ?? state.cpu, mode: wanted, incident: incident.id };
}

/** The page at a moment that stands out although nothing was found. */
export function withMoment(state: State, moment: number, cpu: number, mode: Mode, span: Range): State {
  return { ...withWindow(state, within([moment - 2500, moment + 2500], span), span), cpu, mode };
}

function modeOf(text: string | null, otherwise: Mode): Mode {
  const known: Record<string, Mode> = { system: "system", user: "user", softirq: "softirq", irq: "irq", steal: "steal" };
  return known[text ?? ""] ?? otherwise;
}

export function confidenceText(confidence: number): string {
  const words = confidence >= 0.9 ? "very sure" : confidence >= 0.75 ? "sure" : confidence >= 0.5 ? "likely" : "not known";
  return `${words} (${Math.round(confidence * 100)} %)`;
}
