// Answers from the data within an exported page: gzip, then arrays behind a header, as the server packs them.
import { unpack, type Packed } from "../lib/packed";
import type { Range } from "../lib/range";
import type { CgroupsAnswer, CoresHeader, EventRow, GapsAnswer, RecordingAnswer, ReportAnswer, Rows, TaskRow } from "./answers";
import { folded, heat, type Samples } from "./folding";
import type { Clock } from "./moment";
import type { Source } from "./source";

interface EmbeddedHeader {
  state: string;
  recording: RecordingAnswer;
  gaps: GapsAnswer;
  report: ReportAnswer;
  events: Rows<EventRow>;
  tasks: Rows<TaskRow>;
  cgroups: CgroupsAnswer;
  cores: CoresHeader;
  samples: { from: string; to: string; left_out: string[] };
  names: string[];
  who: Samples["who"];
}

export async function unzipped(base64: string): Promise<ArrayBuffer> {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

export function embeddedSource(data: ArrayBuffer, at: () => Clock): Source {
  const { header, arrays }: Packed<EmbeddedHeader> = unpack(data);
  const kept = (): Range => [at().ofDigits(header.samples.from), at().ofDigits(header.samples.to)];
  let placed: Samples | null = null;
  const samples = () => (placed ??= samplesOf(header, arrays, kept()[0]));
  const inside = <Row extends { time: string }>(rows: Row[], [from, to]: Range) =>
    rows.filter(({ time }) => at().ofDigits(time) >= from && at().ofDigits(time) < to);
  const missing = (window: Range): string[] =>
    window[0] < kept()[0] - 1 || window[1] > kept()[1] + 1 ? ["this file holds samples of a part of this window only"] : [];
  return {
    isEmbedded: true,
    firstState: header.state,
    recording: async () => header.recording,
    report: async () => header.report,
    cores: async () => ({ header: header.cores, arrays: named(arrays, "cores_") }),
    heat: async (minute, choice, rows) => {
      const found = heat(samples(), kept(), minute, choice, rows, at().date(0).getTime() % 1000);
      return { header: { start: at().digits(found.start), column_ns: 1e9, samples: 0, left_out: [] }, arrays: found.arrays };
    },
    flame: async ({ window, baseline, group, isTurned, ...choice }) =>
      folded(samples(), window, baseline, choice, group, isTurned, [...header.samples.left_out, ...missing(window)]),
    events: async (view) => ({ rows: inside(header.events.rows, view), left_out: header.events.left_out }),
    tasks: async (window, cpu) => ({
      rows: inside(header.tasks.rows, window).filter((row) => cpu === null || row.cpu === cpu),
      left_out: header.tasks.left_out,
    }),
    cgroups: async () => header.cgroups,
    gaps: async () => header.gaps,
  };
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
