// What the server answers, as it comes. Moments are digits of nanoseconds UTC, those of a report are ISO 8601.
import type { Packed } from "../lib/packed";

export interface Gap {
  table: string;
  from: string;
  to: string;
  cause: string;
  cpu: number | null;
}

/** Of a stretch; where they are very many they are joined as far as a screen can tell them apart. */
export interface GapsAnswer {
  gaps: Gap[];
  is_exact: boolean;
  left_out: string[];
}

export interface RecordingAnswer {
  node: string;
  labels: Record<string, string>;
  from: string | null;
  to: string | null;
  cpus: number[];
  live: boolean;
  tables: Record<string, number>;
  bytes: number;
  lost_samples: number;
  pins: { from: string; to: string; reason: string }[];
  generated: boolean;
  version: string;
}

export interface EventRow {
  time: string;
  kind: string;
  cpu: number | null;
  device: string | null;
  severity: number;
  by_kernel: boolean;
  message: string;
  lines: string | null;
}

export interface TaskRow {
  time: string;
  cpu: number;
  trigger: string;
  pid: number;
  tid: number;
  comm: string;
  samples: number;
  argv0: string | null;
  cgroup: string | null;
  state: string | null;
  policy: string | null;
  priority: number | null;
  cpus_allowed: string | null;
  syscall: string | null;
  file: string | null;
  stack: string | null;
  python_stack: string | null;
}

export interface Rows<Row> {
  rows: Row[];
  left_out: string[];
}

export interface CgroupsAnswer {
  series: { time: string[]; tracked: (number | null)[]; visible: (number | null)[]; dying: (number | null)[] };
  restarts: { time: string; kind: string; message: string }[];
  left_out: string[];
}

export type CounterUnit = "per second" | "bytes" | "objects" | "share";

export interface CounterSeries {
  name: string;
  meaning: string;
  unit: CounterUnit;
  time: string[];
  value: (number | null)[];
}

/** The series that moved most in the window come first; `calm` are not among them. */
export interface CountersAnswer {
  series: CounterSeries[];
  calm: number;
  left_out: string[];
}

export type WaitKind = "runnable" | "blocked" | "futex" | "file_lock" | "unread" | "stopped" | "unanswered" | "semaphore" | "unserved" | "asleep";

/** Waits of one kind of the tasks of one name, with tasks of one name in the way; of all waits, not only of those listed. */
export interface WaitGroup {
  kind: WaitKind;
  comm: string;
  by_comm: string | null;
  count: number;
  total_ms: number;
  worst_ms: number;
}

/** One wait. It ended at `time`, or was seen to go on then; stacks are numbers of the answer's stacks. */
export interface WaitRow {
  kind: WaitKind;
  time: string;
  waited_ms: number;
  is_open: boolean;
  cpu: number;
  pid: number;
  tid: number;
  comm: string;
  cgroup: string | null;
  policy: string | null;
  priority: number;
  cores_allowed: number | null;
  what: string;
  lock: string | null;
  is_given_back: boolean;
  stack: number | null;
  user_stack?: number | null;
  by_pid: number | null;
  by_tid: number | null;
  by_comm: string | null;
  by_cgroup: string | null;
  by_policy: string | null;
  by_ran_ms: number | null;
  by_stack: number | null;
}

/** The longest waits, some of every part of the view; groups cost most first. */
export interface WaitsAnswer {
  groups: WaitGroup[];
  more_groups: number;
  waits: WaitRow[];
  stacks: string[][];
  count: number;
  left_out: string[];
}

export interface Evidence {
  text: string;
  from: string;
  to: string;
  core: number | null;
  table: string | null;
}

export interface Culprit {
  comm: string | null;
  pid: number | null;
  cgroup: string | null;
  unit: string | null;
  container: string | null;
  path: string[];
}

export interface Verdict {
  cause: string;
  title?: string;
  confidence: number;
  summary: string;
  culprit: Culprit | null;
  origin: { kind: string; name: string } | null;
  evidence: Evidence[];
  against: Evidence[];
  fix: string[];
  verify: string[];
  will_not_help: { what: string; why: string }[];
}

export interface Incident {
  id: string;
  from: string;
  to: string;
  core: number | null;
  mode: string | null;
  events: { time: string; kind: string; core: number | null; device: string | null; message: string }[];
  episodes: { kind: string; core: number; mode: string | null; from: string; to: string; text: string; table: string }[];
  verdict: Verdict;
  alternatives: { cause: string; confidence: number; why_not: string }[];
}

export interface ReportAnswer {
  incidents: Incident[];
  notes: string[];
  /** Stretches that could not be looked at, and why. */
  failed: { from_ns: string; to_ns: string; error: string }[];
  /** A long recording is gone through while the page is open. */
  is_complete: boolean;
  progress: number;
}

export interface CoresHeader {
  from: string;
  column_ns: number;
  cpus: number[];
  left_out: string[];
  is_complete?: boolean;
}

export interface HeatHeader {
  start: string;
  column_ns: number;
  samples: number;
  left_out: string[];
}

export interface FlameHeader {
  names: string[];
  samples: number;
  baseline_samples?: number;
  from: string;
  to: string;
  /** How many there are; those too narrow to be seen are not sent. */
  frames?: number;
  left_out: string[];
}

export type CoresAnswer = Packed<CoresHeader>;
export type HeatAnswer = Packed<HeatHeader>;
export type FlameAnswer = Packed<FlameHeader>;
