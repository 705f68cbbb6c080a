// The core map's numbers: where the rows lie, what stands in a cell, and the busiest moment.
import type { Range } from "../lib/range";
import type { CoresAnswer } from "./answers";
import type { Clock } from "./moment";
import type { Mode } from "./state";

export const NOT_RECORDED = 255;
export const NOT_READ_YET = 254;
export const FULL = 250;

export interface CoreMap {
  range: Range;
  column_ms: number;
  columns: number;
  cpus: number[];
  arrays: Record<string, Uint8Array>;
  leftOut: string[];
  isComplete: boolean;
}

export function coreMap(answer: CoresAnswer, at: Clock): CoreMap {
  const { header, arrays } = answer;
  const column_ms = header.column_ns / 1e6;
  const from = at.ofDigits(header.from);
  const columns = header.cpus.length ? (arrays["busy"]?.length ?? 0) / header.cpus.length : 0;
  return {
    range: [from, from + columns * column_ms],
    column_ms,
    columns,
    cpus: header.cpus,
    arrays: arrays as Record<string, Uint8Array>,
    leftOut: header.left_out,
    isComplete: header.is_complete ?? true,
  };
}

/** Tall rows for few cores, so that a name fits; thin ones for many, so that all are on the screen. */
export function rowHeight(cores: number, most_px: number): number {
  return Math.max(2, Math.min(26, Math.floor(most_px / Math.max(cores, 1))));
}

/** Which rows can carry their number without touching the one above. */
export function labelledRows(cores: number, row_px: number): number[] {
  const steps = [1, 2, 4, 8, 16, 32, 64];
  const step = steps.find((each) => each * row_px >= 12) ?? 64;
  return Array.from({ length: Math.ceil(cores / step) }, (_, place) => place * step);
}

/** A share from 0 to 1 (a delay in ms for the mode `delay`); null where nothing was recorded or read. */
export function cellValue(map: CoreMap, mode: Mode, row: number, column: number): number | null {
  const value = map.arrays[mode]?.[row * map.columns + column];
  if (value === undefined || value === NOT_RECORDED || value === NOT_READ_YET) return null;
  return mode === "delay" ? (2 ** (value / 8) - 1) / 1000 : value / FULL;
}

const TELLING_SHARE = 0.5;

/** The mode to open with: time in the kernel if a core was held there, else what filled a core most. */
export function tellingMode(map: CoreMap): Mode {
  const peaks = (["system", "softirq", "irq", "steal", "user"] as const).map((mode) => ({ mode, share: busiest(map, mode)?.share ?? 0 }));
  const held = peaks.find(({ mode, share }) => mode !== "user" && share >= TELLING_SHARE);
  return (held ?? peaks.reduce((a, b) => (b.share > a.share ? b : a))).mode;
}

/** The moment with the highest share of a mode, and its core; of equal ones the first. */
export function busiest(map: CoreMap, mode: Mode): { moment: number; cpu: number; share: number } | null {
  const values = map.arrays[mode];
  let best = -1;
  let place = -1;
  for (let cell = 0; values && cell < values.length; cell += 1) {
    if (values[cell]! <= FULL && values[cell]! > best) [best, place] = [values[cell]!, cell];
  }
  if (place < 0) return null;
  const [row, column] = [Math.floor(place / map.columns), place % map.columns];
  return { moment: map.range[0] + (column + 0.5) * map.column_ms, cpu: map.cpus[row]!, share: best / FULL };
}
