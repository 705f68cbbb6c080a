// Answers from the data within an exported page: gzip, then arrays behind a header, as the server packs them.
import { unpack, type Packed } from "../lib/packed";
import { contains, type Range } from "../lib/range";
import type {
  CgroupsAnswer, CoresHeader, CountersAnswer, EventRow, FlameHeader, GapsAnswer, RecordingAnswer, ReportAnswer, Rows, TaskRow, WaitsAnswer,
} from "./answers";
import { folded, heat, type Samples } from "./folding";
import { foldedWaits } from "./wait_folding";
import type { Clock } from "./moment";
import { ServerError } from "./server_source";
import type { FlameQuestion, Source } from "./source";
import { initialState, ofHash } from "./state";

interface EmbeddedHeader {
  state: string;
  recording: RecordingAnswer;
  gaps: GapsAnswer;
  /** Null: nothing was diagnosed for this file. */
  report: ReportAnswer | null;
  /** The graph that the file opens with, of all samples: those in the file may be fewer. */
  flame: FlameHeader | null;
  events: Rows<EventRow>;
  tasks: Rows<TaskRow>;
  cgroups: CgroupsAnswer;
  counters: CountersAnswer;
  waits: WaitsAnswer;
  cores: CoresHeader;
  samples: { spans: [from: string, to: string][]; left_out: string[] };
  names: string[];
  who: Samples["who"];
}

export function embeddedSource(data: ArrayBuffer, at: () => Clock): Source {
  const { header, arrays }: Packed<EmbeddedHeader> = unpack(data);
  const kept = (): Range[] => header.samples.spans.map(([from, to]) => [at().ofDigits(from), at().ofDigits(to)]);
  let placed: Samples | null = null;
  const samples = () => (placed ??= samplesOf(header, arrays, kept()[0]?.[0] ?? 0));
  const inside = <Row extends { time: string }>(rows: Row[], [from, to]: Range) =>
    rows.filter(({ time }) => at().ofDigits(time) >= from && at().ofDigits(time) < to);
  const missing = (window: Range | null): string[] =>
    window && !kept().some(([from, to]) => contains([from - 1, to + 1], window)) ? ["this file holds samples of a part of this window only"] : [];
  const isFirst = (question: FlameQuestion) => keyOf(ofHash(header.state, at(), initialState([0, 1]), header.recording.cpus)) === keyOf(question);
  return {
    isEmbedded: true,
    firstState: header.state,
    recording: async () => header.recording,
    report: async () => {
      if (header.report) return header.report;
      throw new ServerError("this file was written without a diagnosis: `necroscope diagnose --html` writes one with it", "");
    },
    cores: async () => ({ header: header.cores, arrays: named(arrays, "cores_") }),
    heat: async (minute, choice, rows) => {
      const found = heat(samples(), kept(), minute, choice, rows, at().date(0).getTime() % 1000);
      return { header: { start: at().digits(found.start), column_ns: 1e9, samples: 0, left_out: [] }, arrays: found.arrays };
    },
    flame: async (question) => {
      if (header.flame && isFirst(question)) return { header: header.flame, arrays: named(arrays, "flame_") };
      const { window, baseline, group, isTurned, ...choice } = question;
      if (question.of === "waits") return foldedWaits(header.waits, window, baseline, choice, at());
      const leftOut = [...header.samples.left_out, ...missing(window), ...missing(baseline)];
      return folded(samples(), window, baseline, choice, group, isTurned, [...new Set(leftOut)]);
    },
    events: async (view) => ({ rows: inside(header.events.rows, view), left_out: header.events.left_out }),
    tasks: async (window, cpu) => ({
      rows: inside(header.tasks.rows, window).filter((row) => cpu === null || row.cpu === cpu),
      left_out: header.tasks.left_out,
    }),
    cgroups: async () => header.cgroups,
    counters: async () => header.counters,
    waits: async () => header.waits,
    gaps: async () => header.gaps,
  };
}

/** Which graph a question asks for; a state has the same words. */
function keyOf(question: { [name in Exclude<keyof FlameQuestion, "least">]: FlameQuestion[name] | null }): string {
  const { window, baseline, cpu, pid, comm, cgroup, group, isTurned, of } = question;
  return [window, baseline, cpu, pid, comm, cgroup, group, isTurned, of].join("/");
}

function named(arrays: Packed<unknown>["arrays"], prefix: string): Packed<unknown>["arrays"] {
  const wanted = Object.entries(arrays).filter(([name]) => name.startsWith(prefix));
  return Object.fromEntries(wanted.map(([name, values]) => [name.slice(prefix.length), values]));
}

function samplesOf(header: EmbeddedHeader, arrays: Packed<unknown>["arrays"], from: number): Samples {
  const numbers = (name: string) => arrays[name] as Int32Array;
  return {
    time: (arrays["time"] as Float64Array).map((moment) => moment + from),
    cpu: numbers("cpu"),
    stack: numbers("stack"),
    weight: numbers("weight"),
    task: numbers("task"),
    parent: numbers("parent"),
    frame: numbers("frame"),
    kind: arrays["kind"] as Uint8Array,
    names: header.names,
    who: header.who,
  };
}
