// Cgroups over time, dead ones apart, and restarts: who leaks.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useAtom } from "../lib/atom";
import { useCovering } from "../lib/latest";
import type { Range } from "../lib/range";
import { theme } from "../lib/theme";
import type { CgroupsAnswer } from "../logic/answers";
import { kindText } from "../logic/events";
import { timeText } from "../logic/moment";
import { PALETTES } from "../draw/palette";
import { drawRestarts } from "../draw/restarts";
import { useApp } from "./app";
import { Lane, TimeSurface } from "./lane";
import { highest, LinePlot, nearest, type Lines, type LineStyle } from "./line_plot";

const HEIGHT = 84;
const REST_MS = 180;
/** The core map is asked for first: it is what is looked at first. */
const FIRST_MS = 400;
type Series = Lines;
const STYLES: LineStyle[] = [
  { stroke: (look) => PALETTES[look].faint, dash: [4, 3] },
  { stroke: (look) => PALETTES[look].frames[1]! },
  { stroke: (look) => PALETTES[look].ranks[0]! },
];

export function CgroupsLane() {
  const app = useApp();
  const state = useAtom(app.state);
  const recording = useAtom(app.recording);
  const kept = useRef(false);
  const end = recording.live ? (recording.to ?? "") : "";
  const answer = useCovering(state.view, end, (view, signal) => app.source.cgroups(view, signal), (found) => !found.left_out.length, kept.current ? app.rest(REST_MS) : FIRST_MS);
  kept.current ||= answer.value !== null;
  const data = useMemo(() => (answer.value ? seriesOf(answer.value, app.clock.ofDigits) : null), [answer.value]);
  const restarts = useMemo(() => (answer.value?.restarts ?? []).map((each) => ({ ...each, moment: app.clock.ofDigits(each.time) })), [answer.value]);
  const moments = useMemo(() => restarts.map((each) => each.moment), [restarts]);
  const tip = (moment: number) => {
    const lines = data ? describe(data, moment) : [];
    const near = restarts.filter((each) => Math.abs(each.moment - moment) < (state.view[1] - state.view[0]) / 150).slice(0, 4);
    const restarted = near.map((each) => `${timeText(app.clock.date(each.moment), 1000)} ${kindText(each.kind)}: ${each.message}`);
    return lines.length || restarted.length ? [...lines, ...restarted] : null;
  };
  const key = useMemo(() => <Key data={data} />, [data]);
  const high = useMemo(() => <Most data={data} />, [data]);
  const count = restarts.length ? [`${restarts.length} restart${restarts.length > 1 ? "s" : ""}`] : [];
  const note = [...count, ...(answer.value?.left_out ?? [])].join(" · ");
  return (
    <Lane id="cgroups" title="Cgroups and restarts" note={answer.error?.message ?? note} isAsking={answer.isAsking} tools={key}>
      <TimeSurface
        height={HEIGHT} label="cgroups over time" tables={["cgroups", "units", "containers"]} tip={tip} gutter={high}
        draw={(width) => (
          <>
            <LinePlot lines={data} styles={STYLES} view={state.view} width={width} height={HEIGHT} />
            <Restarts moments={moments} view={state.view} width={width} />
          </>
        )}
      />
    </Lane>
  );
}

function seriesOf({ series }: CgroupsAnswer, ofDigits: (digits: string) => number): Series {
  return [series.time.map(ofDigits), series.tracked, series.visible, series.dying] as Series;
}

const NAMES = ["tracked by the kernel", "visible", "dying (zombies)"];

function describe(data: Series, moment: number): string[] {
  const best = nearest(data, moment);
  const known = NAMES.map((name, number) => [name, data[number + 1]?.[best]] as const).filter(([, value]) => value !== null && value !== undefined);
  return known.length ? [`cgroups: ${known.map(([name, value]) => `${value!.toLocaleString("en")} ${name}`).join(", ")}`] : [];
}

function Most({ data }: { data: Series | null }) {
  const high = highest(data);
  return high ? (
    <>
      <span style={{ top: 8 }}>{high >= 10_000 ? `${Math.round(high / 1000)}k` : high}</span>
      <span style={{ top: HEIGHT - 8 }}>0</span>
    </>
  ) : null;
}

function Key({ data }: { data: Series | null }) {
  const has = (number: number) => ((data?.[number] ?? []) as (number | null)[]).some((value) => value !== null);
  return (
    <span class="legend">
      {NAMES.map((name, number) => has(number + 1) && <span key={name}><i class={`line line${number}`} /> {name} </span>)}
      <span>▲ restart</span>
    </span>
  );
}

function Restarts({ moments, view, width }: { moments: number[]; view: Range; width: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const look = useAtom(theme);
  useEffect(() => {
    if (canvas.current) drawRestarts(canvas.current, moments, view, { width, height: HEIGHT }, look);
  });
  return <canvas ref={canvas} class="plot" />;
}
