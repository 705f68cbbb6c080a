// The lane of waits: who did not run, how long, and behind whom. A click opens both sides of a wait.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useAtom } from "../lib/atom";
import { useCovering } from "../lib/latest";
import { length } from "../lib/range";
import { theme } from "../lib/theme";
import type { WaitsAnswer } from "../logic/answers";
import { durationText, rangeText, type Clock } from "../logic/moment";
import { emptyText, inTheWay, lines, lineText, WAIT_FAMILIES, WAIT_FAMILY_TEXT, waitAt, waitOf, type PlacedWait, type WaitLine } from "../logic/waits";
import { drawWaits, LINE_PX, type WaitsLook } from "../draw/waits";
import { useApp } from "./app";
import { Lane, TimeSurface } from "./lane";
import { WaitDetail } from "./wait_detail";
import { goToWait } from "./wait_steps";

const REST_MS = 170;
/** The core map is asked for first: it is what is looked at first. */
const FIRST_MS = 300;
const REACH_PX = 4;

export function WaitsLane() {
  const app = useApp();
  const state = useAtom(app.state);
  const { answer, error, isAsking } = useWaits();
  const shown = useMemo(() => (answer ? lines(answer, app.clock) : []), [answer]);
  const chosen = answer && waitOf(answer, state.wait, app.clock);
  return (
    <Lane id="waits" title="Waits" note={error?.message ?? (answer ? noteOf(answer) : undefined)} isAsking={isAsking} tools={shown.length > 0 && <Key />}>
      {shown.length ? <Picture shown={shown} chosen={chosen} /> : <Empty isAsking={isAsking} />}
      {answer && chosen && <WaitDetail answer={answer} wait={chosen} />}
    </Lane>
  );
}

/** Kept for the keys, which go from wait to wait. */
function useWaits() {
  const app = useApp();
  const state = useAtom(app.state);
  const recording = useAtom(app.recording);
  const kept = useRef(false);
  const end = recording.live ? (recording.to ?? "") : "";
  const isWhole = (found: WaitsAnswer) => found.count <= found.waits.length && !found.left_out.length;
  const answer = useCovering(state.view, end, (view, signal) => app.source.waits(view, signal), isWhole, kept.current ? app.rest(REST_MS) : FIRST_MS);
  kept.current ||= answer.value !== null;
  useEffect(() => app.waits.set(answer.value), [answer.value]);
  return { answer: answer.value, error: answer.error, isAsking: answer.isAsking };
}

function noteOf({ count, waits, more_groups, left_out }: WaitsAnswer): string | undefined {
  if (!count) return left_out[0];
  const all = count > waits.length ? `the longest ${waits.length.toLocaleString("en")} of ${count.toLocaleString("en")}` : count.toLocaleString("en");
  return [all, ...(more_groups ? [`${more_groups} more rows are shorter`] : []), ...left_out].join(" · ");
}

function Empty({ isAsking }: { isAsking: boolean }) {
  const app = useApp();
  const { tables } = useAtom(app.recording);
  const gaps = useAtom(app.gaps);
  return <p class="empty">{isAsking ? "reading waits …" : emptyText(tables, gaps?.gaps ?? [])}</p>;
}

function Picture({ shown, chosen }: { shown: WaitLine[]; chosen: PlacedWait | null }) {
  const app = useApp();
  const state = useAtom(app.state);
  const width = useRef(1);
  const near = (moment: number, y: number) =>
    waitAt(shown[Math.floor(y / LINE_PX)], moment, (REACH_PX / width.current) * length(state.view));
  return (
    <TimeSurface
      height={shown.length * LINE_PX}
      label={`waits of tasks over time: ${shown.map(lineText).join("; ")}`}
      tables={["waits"]}
      draw={(wide) => {
        width.current = wide;
        return <WaitsCanvas shown={shown} look={{ view: state.view, width: wide, chosen }} />;
      }}
      tip={(moment, point) => {
        const wait = near(moment, point.y);
        return wait && waitTip(wait, app.clock);
      }}
      click={(moment, point) => {
        const wait = near(moment, point.y);
        if (wait) goToWait(app, wait);
      }}
      over={<Labels shown={shown} />}
    />
  );
}

/** Buttons over the picture, so that each row is read and reached without a mouse. */
function Labels({ shown }: { shown: WaitLine[] }) {
  const app = useApp();
  return (
    <div class="wait-labels">
      {shown.map((line, place) => (
        <button key={place} type="button" class="wait-label" style={{ top: place * LINE_PX + 1 }} onClick={() => goToWait(app, line.longest!)} title="look at the longest of them">
          {lineText(line)}
        </button>
      ))}
    </div>
  );
}

function WaitsCanvas({ shown, look }: { shown: WaitLine[]; look: Omit<WaitsLook, "theme"> }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const colours = useAtom(theme);
  useEffect(() => {
    if (canvas.current) drawWaits(canvas.current, shown, { ...look, theme: colours });
  });
  return <canvas ref={canvas} id="waits-map" />;
}

function waitTip({ row, range }: PlacedWait, clock: Clock): string[] {
  const behind = row.by_comm ? [`${inTheWay(row)} ${row.by_comm}[${row.by_tid}]`] : [];
  const goesOn = row.is_open ? ", and still waited" : "";
  return [`${row.comm}[${row.tid}] waited ${durationText(row.waited_ms)} ${row.what}${goesOn}`, ...behind, rangeText(clock, range), "click: both stacks, and the core at that time"];
}

function Key() {
  return (
    <span class="legend">
      {WAIT_FAMILIES.map((family) => (
        <span key={family}>
          <i class={`wait-kind ${family}`} /> {WAIT_FAMILY_TEXT[family]}{" "}
        </span>
      ))}
    </span>
  );
}
