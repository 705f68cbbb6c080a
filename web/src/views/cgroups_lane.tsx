// Cgroups over time, dead ones apart, and restarts: who leaks.
import { useEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
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

const HEIGHT = 84;
const REST_MS = 180;
/** The core map is asked for first: it is what is looked at first. */
const FIRST_MS = 400;
type Series = uPlot.AlignedData;

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
    const lines = data ? nearest(data, moment) : [];
    const near = restarts.filter((each) => Math.abs(each.moment - moment) < (state.view[1] - state.view[0]) / 150).slice(0, 4);
    const told = near.map((each) => `${timeText(app.clock.date(each.moment), 1000)} ${kindText(each.kind)}: ${each.message}`);
    return lines.length || told.length ? [...lines, ...told] : null;
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
            <Plot data={data} view={state.view} width={width} />
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

function nearest(data: Series, moment: number): string[] {
  const times = data[0] as number[];
  let best = 0;
  times.forEach((time, place) => {
    if (Math.abs(time - moment) < Math.abs(times[best]! - moment)) best = place;
  });
  const told = NAMES.map((name, number) => [name, data[number + 1]?.[best]] as const).filter(([, value]) => value !== null && value !== undefined);
  return told.length ? [`cgroups: ${told.map(([name, value]) => `${value!.toLocaleString("en")} ${name}`).join(", ")}`] : [];
}

function most(data: Series | null): number {
  return (data ?? []).slice(1).reduce((high, values) => (values as (number | null)[]).reduce<number>((a, b) => Math.max(a, b ?? 0), high), 0);
}

function Most({ data }: { data: Series | null }) {
  const high = most(data);
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

function Plot({ data, view, width }: { data: Series | null; view: Range; width: number }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const look = useAtom(theme);
  useEffect(() => {
    if (!place.current || !data) return undefined;
    plot.current = new uPlot(options(width, view, most(data), look), data, place.current);
    return () => plot.current?.destroy();
  }, [data, look, width]);
  useEffect(() => plot.current?.setScale("x", { min: view[0], max: view[1] }), [view]);
  return <div class="plot" ref={place} />;
}

function options(width: number, view: Range, high: number, look: "dark" | "light"): uPlot.Options {
  const { faint, ranks, frames } = PALETTES[look];
  const line = (label: string, stroke: string, dash?: number[]): uPlot.Series => ({
    label, stroke, width: 1.5, points: { show: false }, spanGaps: false, paths: uPlot.paths.stepped!({ align: 1 }), ...(dash ? { dash } : {}),
  });
  return {
    width,
    height: HEIGHT,
    padding: [4, 0, 4, 0],
    cursor: { show: false },
    legend: { show: false },
    scales: { x: { time: false, auto: false, min: view[0], max: view[1] }, y: { range: [0, Math.max(high * 1.08, 1)] } },
    axes: [{ show: false }, { show: false }],
    series: [{}, line("tracked", faint, [4, 3]), line("visible", frames[1]!), line("dying", ranks[0]!)],
  };
}

function Restarts({ moments, view, width }: { moments: number[]; view: Range; width: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const look = useAtom(theme);
  useEffect(() => {
    if (canvas.current) drawRestarts(canvas.current, moments, view, { width, height: HEIGHT }, look);
  });
  return <canvas ref={canvas} class="plot" />;
}
