// FlameScope's picture of the minute around the window: each column a second, each row 20 ms of it. A drag chooses from cell to cell.
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { useAtom } from "../lib/atom";
import { startGesture, type Point } from "../lib/drag";
import { useLatest } from "../lib/latest";
import { useWidth } from "../lib/size";
import { theme } from "../lib/theme";
import { cellAt, HEAT_ROWS, minuteOf, stretch, type HeatGrid } from "../logic/heat";
import type { HeatAnswer } from "../logic/answers";
import { durationText, rangeText, timeText, type Clock } from "../logic/moment";
import { withWindow } from "../logic/state";
import { drawHeat, heatImage, type HeatCells } from "../draw/heat";
import { useApp } from "./app";
import { Lane } from "./lane";
import { hideTip, showTip } from "./tooltip";

const HEIGHT = 150;

interface Picture extends HeatCells {
  grid: HeatGrid;
}

export function HeatLane() {
  const app = useApp();
  const state = useAtom(app.state);
  const minute = state.window ? minuteOf(state.window, app.span()) : null;
  const choice = { cpu: state.cpu, pid: state.pid, comm: state.comm, cgroup: state.cgroup };
  const key = minute && `${minute.map(Math.floor).join()}/${Object.values(choice).join("/")}`;
  const answer = useLatest(key, (signal) => app.source.heat(minute!, choice, HEAT_ROWS, signal));
  const picture = useMemo(() => (answer.value ? pictureOf(answer.value, app.clock) : null), [answer.value]);
  const who = state.cpu === null ? "all cores" : `core ${state.cpu}`;
  const title = `Inside the minute, ${who}`;
  const note = answer.error?.message ?? (minute ? `${rangeText(app.clock, minute)} · a column is a second, read downwards` : undefined);
  return (
    <Lane id="heat" title={title} note={note} isAsking={answer.isAsking}>
      {minute ? <HeatSurface picture={picture} /> : <p class="empty">Drag over any lane above to choose a window; the minute around it appears here.</p>}
    </Lane>
  );
}

function pictureOf({ header, arrays }: HeatAnswer, clock: Clock): Picture {
  const known = arrays["known"] as Uint8Array;
  const columns = known.length / HEAT_ROWS;
  const grid = { start: clock.ofDigits(header.start), column_ms: header.column_ns / 1e6, columns, rows: HEAT_ROWS };
  return { grid, columns, rows: HEAT_ROWS, known, weights: arrays["weights"] as Uint32Array };
}

function HeatSurface({ picture }: { picture: Picture | null }) {
  const app = useApp();
  const state = useAtom(app.state);
  const look = useAtom(theme);
  const area = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(area);
  const image = useMemo(() => picture && heatImage(picture, look), [picture, look]);
  useLayoutEffect(() => {
    if (canvas.current && image && width) drawHeat(canvas.current, image, width, HEIGHT);
  }, [image, width]);
  const cell = (point: Point) => cellAt(picture!.grid, point.x, point.y, width, HEIGHT);
  const choose = (from: Point, to: Point) =>
    app.move(withWindow(app.state.get(), stretch(picture!.grid, cell(from), cell(to)), app.span()));
  const pressed = (event: PointerEvent) =>
    picture && startGesture(event, area.current!, { drop: choose, click: (at) => choose({ ...at, y: 0 }, { ...at, y: HEIGHT - 1 }) });
  const pointed = (event: PointerEvent) => {
    if (!picture) return;
    const box = area.current!.getBoundingClientRect();
    const { row, column } = cell({ x: event.clientX - box.left, y: event.clientY - box.top });
    const [from] = stretch(picture.grid, { row, column }, { row, column });
    app.cursor.set(from);
    const place = row * picture.columns + column;
    const text = picture.known[place] ? `${picture.weights[place]} samples` : "not recorded";
    showTip(event, [`${timeText(app.clock.date(from), 1)}: ${text} in ${durationText(picture.grid.column_ms / picture.rows)}`, "drag from cell to cell: choose a window"]);
  };
  const left = () => {
    app.cursor.set(null);
    hideTip();
  };
  return (
    <div class="surface-row">
      <div class="gutter" style={{ height: HEIGHT }}>
        <span style={{ top: 7 }}>0 ms</span>
        <span style={{ top: HEIGHT / 2 }}>500</span>
        <span style={{ top: HEIGHT - 7 }}>1 s</span>
      </div>
      <div ref={area} class="surface" style={{ height: HEIGHT }} role="img" aria-label="samples by offset within each second" id="heat-map"
        onPointerDown={pressed} onPointerMove={pointed} onPointerLeave={left}>
        <canvas ref={canvas} data-ready={picture ? "yes" : "no"} />
        {picture && state.window && width > 0 && <ChosenCells picture={picture} window={state.window} width={width} />}
      </div>
    </div>
  );
}

/** The window in the picture: a part of its first column, whole columns, a part of the last. */
function ChosenCells({ picture, window: [from, to], width }: { picture: Picture; window: readonly [number, number]; width: number }) {
  const { grid } = picture;
  const column_px = width / grid.columns;
  const [first, last] = [(from - grid.start) / grid.column_ms, (to - grid.start) / grid.column_ms];
  const boxes = [];
  for (let column = Math.max(Math.floor(first), 0); column < Math.min(last, grid.columns); column += 1) {
    const [top, bottom] = [Math.max(first - column, 0), Math.min(last - column, 1)];
    boxes.push(<div key={column} class="band window" style={{ left: column * column_px, width: column_px, top: top * HEIGHT, height: (bottom - top) * HEIGHT }} />);
  }
  return <>{boxes}</>;
}
