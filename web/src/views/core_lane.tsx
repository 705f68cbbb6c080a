// The lane of all cores: the worst tick of a mode in each column, for two cores or for two hundred.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useAtom } from "../lib/atom";
import { useLatest } from "../lib/latest";
import { length, type Range } from "../lib/range";
import { theme } from "../lib/theme";
import { cellValue, coreMap, labelledRows, rowHeight, type CoreMap } from "../logic/core_map";
import { durationText, timeText } from "../logic/moment";
import { MODE_TEXT, MODES, withWindow, type Mode, type State } from "../logic/state";
import { coreImage, drawCoreMap } from "../draw/core_map";
import { useApp } from "./app";
import { Lane, TimeSurface } from "./lane";

const SHORTEST_CLICK_MS = 5000;
const REST_MS = 120;
const AGAIN_MS = 350;
/** A held second must be seen in a picture of a week: a cell is never a speck. */
const CELL_PX = 3;
const LONGEST_TICK_MS = 1500;

export function CoreLane() {
  const app = useApp();
  const state = useAtom(app.state);
  const recording = useAtom(app.recording);
  const { map, isAsking, error } = useCoreMap(state);
  const row_px = rowHeight(recording.cpus.length, Math.max(288, Math.min(window.innerHeight * 0.48, 900)));
  const height = Math.max(recording.cpus.length, 1) * row_px;
  const rowOf = (y: number) => Math.min(Math.max(Math.floor(y / row_px), 0), recording.cpus.length - 1);
  const click = (moment: number, y: number) => {
    const size = Math.max(map?.column_ms ?? 0, SHORTEST_CLICK_MS);
    const next = withWindow(state, [moment - size / 2, moment + size / 2], app.span());
    app.move({ ...next, cpu: recording.cpus[rowOf(y)] ?? null });
  };
  const gaps = useAtom(app.gaps);
  const note = error?.message ?? laneNote(map, state.mode, recording.tables, gaps?.left_out[0]);
  return (
    <Lane id="cores" title={`${recording.cpus.length} cores`} note={note} isAsking={isAsking || map?.isComplete === false} tools={<Tools />}>
      <TimeSurface
        height={height}
        label={`cores by time, ${MODE_TEXT[state.mode]}`}
        tables={["cores"]}
        gutter={<CoreNumbers cpus={recording.cpus} row_px={row_px} chosen={state.cpu} />}
        draw={(width) => <CoreCanvas map={map} state={state} width={width} row_px={row_px} />}
        tip={(moment, point) => map && cellTip(app.clock.date(moment), map, state.mode, rowOf(point.y), moment)}
        click={(moment, point) => click(moment, point.y)}
      />
    </Lane>
  );
}

/** Asks for the view at the resolution of the screen; asks again while the server is still reading a long stretch. */
function useCoreMap(state: State) {
  const app = useApp();
  const recording = useAtom(app.recording);
  const [round, setRound] = useState(0);
  const columns = Math.round((Math.min(Math.max(window.innerWidth * 0.72, 600), 2800) * 1.2) / CELL_PX);
  const withDelay = state.mode === "delay";
  const end = recording.live ? recording.to : "";
  const key = `${state.view.join()}/${columns}/${withDelay}/${round}/${end}`;
  const isFirst = useRef(true);
  const ask = (signal: AbortSignal) => {
    isFirst.current = false;
    return app.source.cores(widened(state.view, app.span()), columns, withDelay, signal);
  };
  const answer = useLatest(key, ask, isFirst.current ? 0 : app.rest(REST_MS));
  const map = useMemo(() => (answer.value ? coreMap(answer.value, app.clock) : null), [answer.value]);
  useEffect(() => app.coreMap.set(map), [map]);
  useEffect(() => {
    if (!map || map.isComplete) return undefined;
    const timer = setTimeout(() => setRound((before) => before + 1), AGAIN_MS);
    return () => clearTimeout(timer);
  }, [map]);
  return { map, isAsking: answer.isAsking, error: answer.error };
}

/** A little more than is seen, so that panning shows no empty edge. */
function widened(view: Range, span: Range): Range {
  const more = length(view) * 0.1;
  return [Math.max(view[0] - more, span[0]), Math.min(view[1] + more, span[1])];
}

function laneNote(map: CoreMap | null, mode: Mode, tables: Record<string, number>, notHatched: string | undefined): string | undefined {
  if (!(mode === "delay" ? tables["softirq_delay"] : tables["cores"])) return "not recorded";
  if (!map) return undefined;
  const left = map.leftOut[0] ?? notHatched;
  if (!map.isComplete) return "reading the rest of the recording …";
  return left ?? (map.column_ms > LONGEST_TICK_MS ? `each cell: the worst tick in ${durationText(map.column_ms)}` : undefined);
}

function CoreCanvas({ map, state, width, row_px }: { map: CoreMap | null; state: State; width: number; row_px: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const look = useAtom(theme);
  const image = useMemo(() => map && coreImage(map, state.mode, look), [map, state.mode, look]);
  useEffect(() => {
    if (canvas.current) drawCoreMap(canvas.current, image, map, { view: state.view, width, row_px, cpu: state.cpu, theme: look });
  });
  return <canvas ref={canvas} data-ready={map ? "yes" : "no"} data-complete={map?.isComplete ? "yes" : "no"} id="core-map" />;
}

function CoreNumbers({ cpus, row_px, chosen }: { cpus: number[]; row_px: number; chosen: number | null }) {
  const rows = labelledRows(cpus.length, row_px);
  const place = chosen === null ? -1 : cpus.indexOf(chosen);
  const shown = place >= 0 ? [...rows.filter((row) => Math.abs(row - place) * row_px >= 12), place] : rows;
  return (
    <>
      {shown.map((row) => (
        <CoreNumber key={row} cpu={cpus[row]!} top={row * row_px + row_px / 2} isChosen={row === place} />
      ))}
    </>
  );
}

function CoreNumber({ cpu, top, isChosen }: { cpu: number; top: number; isChosen: boolean }) {
  const app = useApp();
  const choose = () => app.move({ ...app.state.get(), cpu: isChosen ? null : cpu });
  return (
    <button type="button" class={`core-number ${isChosen ? "chosen" : ""}`} style={{ top }} onClick={choose} title={`core ${cpu}`} tabIndex={-1}>
      {isChosen ? `core ${cpu}` : cpu}
    </button>
  );
}

function cellTip(date: Date, map: CoreMap, mode: Mode, row: number, moment: number): string[] | null {
  const column = Math.floor((moment - map.range[0]) / map.column_ms);
  if (column < 0 || column >= map.columns || map.cpus[row] === undefined) return null;
  const value = cellValue(map, mode, row, column);
  const text = value === null ? "not recorded" : mode === "delay" ? durationText(value) : `${Math.round(value * 100)} %`;
  const others = MODES.filter((other) => other !== mode && other !== "delay")
    .map((other) => [other, cellValue(map, other, row, column)] as const)
    .filter(([, share]) => share !== null && share >= 0.005)
    .map(([other, share]) => `${other} ${Math.round(share! * 100)} %`);
  return [`core ${map.cpus[row]} · ${timeText(date, 1)} · ${MODE_TEXT[mode]}: ${text}`, others.join(", "), "click: look here · drag: choose a window"].filter(Boolean);
}

function Tools() {
  const app = useApp();
  const state = useAtom(app.state);
  const { cpus } = useAtom(app.recording);
  return (
    <>
      <label>
        show{" "}
        <select id="mode" value={state.mode} onChange={(event) => app.move({ ...state, mode: event.currentTarget.value as Mode })}>
          {MODES.map((mode) => (
            <option key={mode} value={mode}>
              {MODE_TEXT[mode]}
            </option>
          ))}
        </select>
      </label>
      <Legend isDelay={state.mode === "delay"} />
      <label>
        core{" "}
        <select
          id="core"
          value={state.cpu ?? "all"}
          onChange={(event) => app.move({ ...state, cpu: event.currentTarget.value === "all" ? null : Number(event.currentTarget.value) })}
        >
          <option value="all">all</option>
          {cpus.map((cpu) => (
            <option key={cpu} value={cpu}>
              {cpu}
            </option>
          ))}
        </select>
      </label>
    </>
  );
}

function Legend({ isDelay }: { isDelay: boolean }) {
  return (
    <span class="legend" aria-hidden="true">
      {isDelay ? "0.1 ms" : "0"}
      <i class="ramp" />
      {isDelay ? "1 s" : "100 %"}
      <i class="hole" /> no data
    </span>
  );
}
