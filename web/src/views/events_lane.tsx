// The lane of events: what happened at a moment.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useAtom } from "../lib/atom";
import { useCovering } from "../lib/latest";
import { scale } from "../lib/range";
import { theme } from "../lib/theme";
import { kindRank, kindText, marks, type Mark } from "../logic/events";
import { timeText } from "../logic/moment";
import { withWindow } from "../logic/state";
import { drawEvents, EVENTS_PX, MARK_PX } from "../draw/events";
import { useApp } from "./app";
import { Lane, TimeSurface } from "./lane";

const REACH_PX = 11;
const REST_MS = 160;
/** The core map is asked for first: it is what is looked at first. */
const FIRST_MS = 400;
const MOST_TOLD = 6;

export function EventsLane() {
  const app = useApp();
  const state = useAtom(app.state);
  const recording = useAtom(app.recording);
  const kept = useRef(false);
  const end = recording.live ? (recording.to ?? "") : "";
  const answer = useCovering(state.view, end, (view, signal) => app.source.events(view, signal), (found) => !found.left_out.length, kept.current ? app.rest(REST_MS) : FIRST_MS);
  kept.current ||= answer.value !== null;
  const rows = useMemo(() => answer.value?.rows ?? [], [answer.value]);
  const moments = useMemo(() => rows.map((row) => app.clock.ofDigits(row.time)), [rows]);
  const shown = (width: number) => marks(rows, moments, scale(state.view, width), MARK_PX);
  const placed = useRef<Mark[]>([]);
  const near = (x: number) => placed.current.find((mark) => Math.abs(mark.pixel - x) <= REACH_PX);
  const click = (x: number) => {
    const event = gravest(near(x));
    if (!event) return;
    const moment = app.clock.ofDigits(event.time);
    const next = withWindow(state, [moment - 5000, moment + 1000], app.span());
    app.move({ ...next, cpu: event.cpu ?? next.cpu });
  };
  const leftOut = answer.value?.left_out.length ? `${answer.value.left_out.join(" · ")}: zoom in` : undefined;
  const note = answer.error?.message ?? leftOut ?? (answer.value && !rows.length ? "nothing happened here" : undefined);
  return (
    <Lane id="events" title="Events" note={note}>
      <TimeSurface
        height={EVENTS_PX}
        label={`${rows.length} events`}
        tables={["events", "log", "nics"]}
        draw={(width) => <EventsCanvas marks={(placed.current = shown(width))} width={width} />}
        tip={(_, point) => markTip(near(point.x), (time) => timeText(app.clock.date(app.clock.ofDigits(time)), 1))}
        click={(_, point) => click(point.x)}
      />
    </Lane>
  );
}

function gravest(mark: Mark | undefined) {
  return mark && [...mark.events].sort((a, b) => kindRank(a.kind) - kindRank(b.kind))[0];
}

function markTip(mark: Mark | undefined, time: (digits: string) => string): string[] | null {
  if (!mark) return null;
  const listed = mark.events.slice(0, MOST_TOLD).map((event) => {
    const core = event.cpu === null ? "" : ` · core ${event.cpu}`;
    return `${time(event.time)} ${kindText(event.kind)}${core}: ${event.message}`;
  });
  const more = mark.events.length - listed.length;
  return [`${mark.events.length} event${mark.events.length > 1 ? "s" : ""}`, ...listed, ...(more > 0 ? [`and ${more} more`] : [])];
}

function EventsCanvas({ marks: drawn, width }: { marks: Mark[]; width: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const look = useAtom(theme);
  useEffect(() => {
    if (canvas.current) drawEvents(canvas.current, drawn, width, look);
  });
  return <canvas ref={canvas} />;
}
