// A lane: a name, a gutter, and a surface on which time runs. All lanes brush, zoom, point and show gaps in the same way.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useAtom } from "../lib/atom";
import { startGesture, type Point } from "../lib/drag";
import { scale, type Range } from "../lib/range";
import { useWidth } from "../lib/size";
import { panned, withWindow, zoomed, type State } from "../logic/state";
import { useApp } from "./app";
import { hideTip, showTip } from "./tooltip";

interface LaneProps {
  id: string;
  title: string;
  note?: string | undefined;
  tools?: ComponentChildren;
  children: ComponentChildren;
  isAsking?: boolean;
}

export function Lane({ id, title, note, tools, children, isAsking }: LaneProps) {
  const lit = useAtom(useApp().lit);
  return (
    <section id={`lane-${id}`} class={`lane ${lit === id ? "lit" : ""}`} aria-label={title}>
      <header>
        <h2>{title}</h2>
        {isAsking && <span class="spinner" role="status" aria-label="loading" />}
        {note && <span class="note">{note}</span>}
        <span class="tools">{tools}</span>
      </header>
      {children}
    </section>
  );
}

interface TimeSurfaceProps {
  height: number;
  gutter?: ComponentChildren;
  label: string;
  /** Tables whose gaps are drawn here. */
  tables: readonly string[];
  draw(width: number): ComponentChildren;
  /** Lies over the picture and can be tabbed to. */
  over?: ComponentChildren;
  tip?(moment: number, point: Point): string[] | null;
  click?(moment: number, point: Point, width: number): void;
}

/** The part of a lane on which time runs from left to right. */
export function TimeSurface(props: TimeSurfaceProps) {
  const app = useApp();
  const state = useAtom(app.state);
  const area = useRef<HTMLDivElement>(null);
  const width = useWidth(area);
  const at = scale(state.view, width);
  useWheel(area, width);
  const pointed = (event: PointerEvent) => {
    const point = pointIn(event, area.current!);
    const moment = at.value(point.x);
    app.cursor.set(moment);
    const lines = event.buttons ? null : props.tip?.(moment, point);
    if (lines) showTip(event, lines);
    else hideTip();
  };
  const pressed = (event: PointerEvent) => {
    const isBaseline = event.shiftKey;
    const range = (a: Point, b: Point): Range => [at.value(Math.min(a.x, b.x)), at.value(Math.max(a.x, b.x))];
    startGesture(event, area.current!, {
      move: (from, to) => preview(area.current!, from, to),
      drop: (from, to) => {
        preview(area.current!, null, null);
        brush(isBaseline, range(from, to));
      },
      click: (point) => props.click?.(at.value(point.x), point, width),
    });
  };
  const brush = (isBaseline: boolean, range: Range) => {
    const now = app.state.get();
    app.move(isBaseline ? { ...now, baseline: range } : withWindow(now, range, app.span()));
  };
  const left = () => {
    app.cursor.set(null);
    hideTip();
  };
  return (
    <div class="surface-row">
      <div class="gutter" style={{ height: props.height }}>
        {props.gutter}
      </div>
      <div class="stacked">
      <div
        ref={area}
        class="surface"
        style={{ height: props.height }}
        role="img"
        aria-label={props.label}
        onPointerMove={pointed}
        onPointerLeave={left}
        onPointerDown={pressed}
        onDblClick={() => state.window && app.move({ ...state, view: state.window })}
      >
        {width > 0 && props.draw(width)}
        {width > 0 && <Marks state={state} width={width} tables={props.tables} />}
        <div class="band preview" hidden />
        <CursorLine view={state.view} width={width} />
      </div>
      {props.over}
      </div>
    </div>
  );
}

function pointIn(event: PointerEvent, element: HTMLElement): Point {
  const box = element.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

function preview(area: HTMLElement, from: Point | null, to: Point | null): void {
  const band = area.querySelector<HTMLElement>(".preview")!;
  band.hidden = !from || !to;
  if (!from || !to) return;
  band.style.left = `${Math.min(from.x, to.x)}px`;
  band.style.width = `${Math.abs(to.x - from.x)}px`;
}

/** Wheel zooms with Ctrl or Alt held, pans sideways; alone it scrolls the page as everywhere. */
function useWheel(area: { current: HTMLDivElement | null }, width: number): void {
  const app = useApp();
  useEffect(() => {
    const element = area.current;
    if (!element) return undefined;
    const turned = (event: WheelEvent) => {
      const state = app.state.get();
      const isZoom = event.ctrlKey || event.altKey || event.metaKey;
      const sideways = event.shiftKey ? event.deltaY : event.deltaX;
      if (!isZoom && Math.abs(sideways) <= Math.abs(event.deltaY) && !event.shiftKey) return;
      event.preventDefault();
      app.follows.set(false);
      const moment = scale(state.view, width).value(pointIn(event as unknown as PointerEvent, element).x);
      app.move(isZoom ? zoomed(state, Math.exp(event.deltaY / 300), moment, app.span()) : panned(state, sideways / (width || 1), app.span()));
    };
    element.addEventListener("wheel", turned, { passive: false });
    return () => element.removeEventListener("wheel", turned);
  }, [width]);
}

function Band({ range, view, width, name }: { range: Range; view: Range; width: number; name: string }) {
  const at = scale(view, width);
  const [left, right] = [Math.max(at.pixel(range[0]), -2), Math.min(at.pixel(range[1]), width + 2)];
  if (right < 0 || left > width) return null;
  return <div class={`band ${name}`} style={{ left, width: Math.max(right - left, 2) }} />;
}

/** The window, the baseline, and the stretches that were not recorded. */
function Marks({ state, width, tables }: { state: State; width: number; tables: readonly string[] }) {
  const app = useApp();
  const gaps = useAtom(app.gaps)?.gaps ?? [];
  const shown = gaps.filter((gap) => (tables.includes(gap.table) || gap.table === "*") && gap.cpu === null);
  return (
    <>
      {shown.map((gap, number) => (
        <Band key={`gap${number}`} range={[app.clock.ofDigits(gap.from), app.clock.ofDigits(gap.to)]} view={state.view} width={width} name="gap" />
      ))}
      {state.baseline && <Band range={state.baseline} view={state.view} width={width} name="baseline" />}
      {state.window && <Band range={state.window} view={state.view} width={width} name="window" />}
    </>
  );
}

/** Moved without rendering: it follows the pointer in all lanes at once. */
function CursorLine({ view, width }: { view: Range; width: number }) {
  const app = useApp();
  const line = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const place = (moment: number | null) => {
      const element = line.current;
      if (!element) return;
      element.hidden = moment === null || moment < view[0] || moment > view[1];
      if (moment !== null) element.style.transform = `translateX(${scale(view, width).pixel(moment)}px)`;
    };
    place(app.cursor.get());
    return app.cursor.watch(place);
  }, [view, width]);
  return <div class="cursor" ref={line} hidden />;
}
