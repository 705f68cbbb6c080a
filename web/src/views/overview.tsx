// The whole recording as a thin strip: where the view lies in it, and where the incidents are. And the time axis below it.
import { useEffect, useRef } from "preact/hooks";
import { useAtom } from "../lib/atom";
import { startGesture } from "../lib/drag";
import { length, scale, within, type Range } from "../lib/range";
import { useWidth } from "../lib/size";
import { theme } from "../lib/theme";
import { dayText, durationText, timeText } from "../logic/moment";
import { AXIS_PX, drawAxis } from "../draw/axis";
import { useApp } from "./app";

export function Overview() {
  const app = useApp();
  const state = useAtom(app.state);
  useAtom(app.recording);
  const report = useAtom(app.report);
  const area = useRef<HTMLDivElement>(null);
  const width = useWidth(area);
  const span = app.span();
  const at = scale(span, width);
  const band = ([from, to]: Range) => ({ left: at.pixel(from), width: Math.max(at.pixel(to) - at.pixel(from), 3) });
  const centre = (x: number) => {
    const half = length(app.state.get().view) / 2;
    app.follows.set(false);
    app.move({ ...app.state.get(), view: within([at.value(x) - half, at.value(x) + half], span) });
  };
  const pressed = (event: PointerEvent) => startGesture(event, area.current!, { move: (_, to) => centre(to.x), click: ({ x }) => centre(x) });
  return (
    <div class="surface-row overview">
      <div class="gutter">
        <span style={{ top: 8 }}>{durationText(length(span))}</span>
      </div>
      <div ref={area} class="strip" onPointerDown={pressed} role="img" aria-label="the whole recording">
        {(report?.incidents ?? []).map((incident) => (
          <i key={incident.id} class="incident" style={band([app.clock.ofIso(incident.from), app.clock.ofIso(incident.to)])} />
        ))}
        <i class="seen" style={band(state.view)} />
        {state.window && <i class="window" style={band(state.window)} />}
      </div>
    </div>
  );
}

export function Axis() {
  const app = useApp();
  const state = useAtom(app.state);
  const look = useAtom(theme);
  const area = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const label = useRef<HTMLSpanElement>(null);
  const width = useWidth(area);
  useEffect(() => {
    if (canvas.current && width) drawAxis(canvas.current, state.view, app.clock, width, look);
  });
  useEffect(
    () =>
      app.cursor.watch((moment) => {
        if (label.current) label.current.textContent = moment === null ? "UTC" : timeText(app.clock.date(moment), 1);
      }),
    [],
  );
  return (
    <div class="surface-row axis" title={dayText(app.clock.date(state.view[0]))}>
      <div class="gutter">
        <span style={{ top: 10 }} ref={label}>
          UTC
        </span>
      </div>
      <div ref={area} class="plain" style={{ height: AXIS_PX }}>
        <canvas ref={canvas} />
      </div>
    </div>
  );
}
