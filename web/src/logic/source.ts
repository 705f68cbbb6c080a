// Where the page's answers come from: the server, or the data embedded in an exported page. The views know no difference.
import type {
  CgroupsAnswer, CoresAnswer, CountersAnswer, EventRow, FlameAnswer, GapsAnswer, HeatAnswer, RecordingAnswer, ReportAnswer, Rows, TaskRow, WaitsAnswer,
} from "./answers";
import type { Range } from "../lib/range";
import type { FlameOf, Group } from "./state";

export interface Choice {
  cpu: number | null;
  pid: number | null;
  comm: string;
  cgroup: string;
}

export interface FlameQuestion extends Choice {
  window: Range;
  baseline: Range | null;
  group: Group;
  isTurned: boolean;
  of: FlameOf;
  /** Frames narrower than this share of the whole need not be there. */
  least: number;
}

export interface Source {
  readonly isEmbedded: boolean;
  /** Where an exported page opens: the address of the page that it was made of. */
  readonly firstState: string;
  recording(signal?: AbortSignal): Promise<RecordingAnswer>;
  report(signal?: AbortSignal): Promise<ReportAnswer>;
  cores(view: Range, columns: number, withDelay: boolean, signal?: AbortSignal): Promise<CoresAnswer>;
  heat(minute: Range, choice: Choice, rows: number, signal?: AbortSignal): Promise<HeatAnswer>;
  flame(question: FlameQuestion, signal?: AbortSignal): Promise<FlameAnswer>;
  events(view: Range, signal?: AbortSignal): Promise<Rows<EventRow>>;
  tasks(window: Range, cpu: number | null, signal?: AbortSignal): Promise<Rows<TaskRow>>;
  cgroups(view: Range, signal?: AbortSignal): Promise<CgroupsAnswer>;
  counters(view: Range, signal?: AbortSignal): Promise<CountersAnswer>;
  waits(view: Range, signal?: AbortSignal): Promise<WaitsAnswer>;
  gaps(view: Range, signal?: AbortSignal): Promise<GapsAnswer>;
}
