// The sub-second heat map: a column is a second, a row an offset within it. Which minute it shows, and what a drag in it means.
import { clamp, length, middle, within, type Range } from "../lib/range";

export const HEAT_ROWS = 50;
const MINUTE_MS = 60_000;
const LONGEST_MS = 180_000;

/** The minute around the window; a longer window from its start, up to three minutes. */
export function minuteOf(window: Range, span: Range): Range {
  const size = clamp(length(window), MINUTE_MS, LONGEST_MS);
  const from = length(window) > MINUTE_MS ? window[0] : middle(window) - size / 2;
  return within([from, from + size], span);
}

export interface HeatGrid {
  start: number;
  column_ms: number;
  columns: number;
  rows: number;
}

export function cellAt(grid: HeatGrid, x: number, y: number, width: number, height: number): { row: number; column: number } {
  return {
    column: clamp(Math.floor((x / width) * grid.columns), 0, grid.columns - 1),
    row: clamp(Math.floor((y / height) * grid.rows), 0, grid.rows - 1),
  };
}

/** From the start of one cell to the end of the other, whichever comes first. */
export function stretch(grid: HeatGrid, a: { row: number; column: number }, b: { row: number; column: number }): Range {
  const start = ({ row, column }: typeof a) => grid.start + (column + row / grid.rows) * grid.column_ms;
  const [first, last] = start(a) <= start(b) ? [a, b] : [b, a];
  return [start(first), start(last) + grid.column_ms / grid.rows];
}
