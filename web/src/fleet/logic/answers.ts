// What a collector answers, as it comes. Moments are ISO 8601.
import type { Incident } from "../../logic/answers";

export interface Reader {
  /** `*`: every cluster. */
  cluster: string;
}

export interface Named {
  name: string;
  nodes: number;
}

export interface Choices {
  clusters: string[];
  events: Named[];
  causes: Named[];
  labels: { name: string; values: number }[];
}

export interface TimelineAnswer {
  from: string;
  to: string;
  by: string;
  bucket_s: number;
  starts: string[];
  /** Of each value of the label, null where nodes lack it: how often in each bucket, on how many nodes, and how many nodes have the value. */
  series: { value: string | null; times: number[]; affected: number[]; nodes: number }[];
}

export interface Predicate {
  kind: string;
  name: string;
  value: string | null;
  is_negated: boolean;
  text: string;
}

export interface Table {
  affected_with: number;
  well_with: number;
  affected_without: number;
  well_without: number;
}

export interface Deciding {
  affected: string[];
  well: string[];
}

export interface Leader {
  name: string;
  facts: Predicate[];
  places: Predicate[];
  table: Table;
  chance: number;
  relation: string;
  first_where_it_is: Table;
  first_elsewhere: Table;
  first_only: Deciding;
  this_only: Deciding;
  words: string;
}

export interface WhyAnswer {
  about: { what: string; name: string };
  from: string;
  to: string;
  outcome: string;
  doubt: string | null;
  summary: string;
  /** What the nodes' own verdicts say of the first difference; null if they do not name it. */
  mechanism: { text: string } | null;
  decided_by: "counts" | "mechanism" | null;
  /** From which size of a number on it happens; null where no size matters. */
  dose_summary: string | null;
  nodes: number;
  affected: number;
  times: number;
  differences: number;
  leaders: Leader[];
  experiments: string[];
  left_out: { facts: number; reason: string }[];
  notes: string[];
}

export interface NodeRow {
  cluster: string;
  node: string;
  labels: Record<string, string>;
  /** null: not heard of on the last day of the time. */
  last_seen: string | null;
  is_silent: boolean;
  /** The collector's clock minus the node's. */
  clock_offset_ns: number | null;
  is_clock_off: boolean;
  cpus: number | null;
  events: Record<string, number>;
  incidents: number;
  last_cause: string | null;
}

export interface NodesAnswer {
  from: string;
  to: string;
  count: number;
  silent: number;
  clocks_off: number;
  nodes: NodeRow[];
}

export interface WorstCore {
  cluster: string;
  node: string;
  core: number;
  mode: string;
  share: number;
  at: string;
}

export interface WorstCores {
  from: string;
  to: string;
  cores: WorstCore[];
}

export interface IncidentRow {
  cluster: string;
  node: string;
  id: string;
  from: string;
  to: string;
  core: number | null;
  mode: string | null;
  cause: string;
  confidence: number;
  title: string | null;
  summary: string | null;
  culprit_comm: string | null;
  culprit_cgroup: string | null;
  culprit_unit: string | null;
  culprit_container: string | null;
  origin_kind: string | null;
  origin_name: string | null;
  events: string[];
  bundle: string | null;
}

export interface IncidentsAnswer {
  count: number;
  incidents: IncidentRow[];
}

export interface IncidentAnswer {
  /** As `necroscope diagnose --json` has it. */
  report: Partial<Incident>;
}

export interface DiffValue {
  value: string | null;
  share: number;
}

export interface DiffRow {
  kind: string;
  name: string;
  a: DiffValue[];
  b: DiffValue[];
  rarity: number;
  is_place: boolean;
}

export interface DiffAnswer {
  a: { name: string; nodes: number };
  b: { name: string; nodes: number };
  nodes: number;
  count: number;
  differences: DiffRow[];
  same: number;
  left_out: { facts: number; reason: string }[];
}

export interface FlameRows {
  nodes: number;
  baseline_nodes: number;
  samples: number;
  baseline_samples: number;
  stacks: [comm: string, path: string, samples: number, baseline: number][];
  left_out: string[];
}

export interface Rates {
  nodes: number;
  before: { times: number; node_days: number; affected: number };
  after: { times: number; node_days: number; affected: number };
  /** Times after, had the rate of before gone on; null: nothing was observed before. */
  expected: number | null;
  ratio_low: number | null;
  /** null: without bound. */
  ratio_high: number | null;
  chance: number | null;
}

export interface Ends {
  success: number;
  runs: number;
  rate: number | null;
}

export interface JobRow {
  kind: string;
  /** null: all jobs of the kind. */
  name: string | null;
  before: Ends;
  after: Ends;
  chance: number;
}

export interface ChangeAnswer {
  first_change: string;
  last_change: string;
  summary: string;
  changed: Rates;
  others: Rates | null;
  jobs: JobRow[];
  notes: string[];
}

export interface EndedJob {
  cluster: string;
  job: string;
  kind: string;
  outcome: string;
  /** Of those that failed. */
  blame: string | null;
  /** Where the chain leads. */
  node: string | null;
  cause: string | null;
  from: string;
  to: string;
  nodes: string[];
}

export interface JobRate {
  /** null: nodes that lack it. */
  value: string | null;
  runs: number;
  success: number;
  by_machine: number;
  rate: number;
  low: number;
  high: number;
}

export interface JobsAnswer {
  by: string;
  count: number;
  outcomes: Record<string, number>;
  blames: Record<string, number>;
  rates: JobRate[];
  jobs: EndedJob[];
}

export interface JobStory {
  job: string;
  outcome: string;
  blame: string;
  blame_words: string;
  answer: string;
  is_order_known: boolean;
  nodes: string[];
  origin: string | null;
  chain: { time: string; error_ms: number; node: string; core: number | null; text: string }[];
  cost: { node_hours: number; gpu_hours: number | null; jobs_this_week: number | null; alike: { job: string; node: string }[] };
  members: unknown[];
  notes: string[];
}
