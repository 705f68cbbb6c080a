// Lines over time in a lane: steps, because a count holds until it is read again.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { useAtom } from "../lib/atom";
import type { Range } from "../lib/range";
import { theme, type Theme } from "../lib/theme";

/** Moments first, then the values of each line. */
export type Lines = uPlot.AlignedData;

export interface LineStyle {
  stroke: (look: Theme) => string;
  dash?: number[];
}

interface LinePlotProps {
  lines: Lines | null;
  styles: readonly LineStyle[];
  view: Range;
  width: number;
  height: number;
}

export function LinePlot({ lines, styles, view, width, height }: LinePlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const look = useAtom(theme);
  useEffect(() => {
    if (!place.current || !lines) return undefined;
    plot.current = new uPlot(options(styles, look, view, { width, height, high: highest(lines) }), lines, place.current);
    return () => plot.current?.destroy();
  }, [lines, look, width]);
  useEffect(() => plot.current?.setScale("x", { min: view[0], max: view[1] }), [view]);
  return <div class="plot" ref={place} />;
}

export function highest(lines: Lines | null): number {
  return (lines ?? []).slice(1).reduce((high, values) => (values as (number | null)[]).reduce<number>((a, b) => Math.max(a, b ?? 0), high), 0);
}

/** The place of the moment that is nearest. */
export function nearest(lines: Lines, moment: number): number {
  const times = lines[0] as number[];
  let best = 0;
  times.forEach((time, place) => {
    if (Math.abs(time - moment) < Math.abs(times[best]! - moment)) best = place;
  });
  return best;
}

function options(styles: readonly LineStyle[], look: Theme, view: Range, size: { width: number; height: number; high: number }): uPlot.Options {
  const line = ({ stroke, dash }: LineStyle): uPlot.Series => ({
    stroke: stroke(look), width: 1.5, points: { show: false }, spanGaps: false, paths: uPlot.paths.stepped!({ align: 1 }), ...(dash ? { dash } : {}),
  });
  return {
    width: size.width,
    height: size.height,
    padding: [4, 0, 4, 0],
    cursor: { show: false },
    legend: { show: false },
    scales: { x: { time: false, auto: false, min: view[0], max: view[1] }, y: { range: [0, Math.max(size.high * 1.08, Number.MIN_VALUE)] } },
    axes: [{ show: false }, { show: false }],
    series: [{}, ...styles.map(line)],
  };
}
