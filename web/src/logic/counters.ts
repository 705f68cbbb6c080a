// The kernel's counters in words: a value with its unit, short enough for the edge of a lane.
import type { CounterSeries, CounterUnit } from "./answers";

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB"];

export function valueText(value: number, unit: CounterUnit): string {
  if (unit === "share") return `${(100 * value).toFixed(value < 0.1 ? 1 : 0)} %`;
  if (unit === "bytes") return bytesText(value);
  return unit === "objects" ? countText(value) : `${countText(value)}/s`;
}

function bytesText(bytes: number): string {
  let [value, place] = [bytes, 0];
  while (value >= 1024 && place < BYTES.length - 1) [value, place] = [value / 1024, place + 1];
  return `${value < 10 && place ? value.toFixed(1) : Math.round(value)} ${BYTES[place]}`;
}

function countText(count: number): string {
  if (count >= 1e6) return `${(count / 1e6).toFixed(1)}M`;
  if (count >= 1e4) return `${Math.round(count / 1e3)}k`;
  return count < 10 && count !== Math.round(count) ? count.toFixed(1) : Math.round(count).toLocaleString("en");
}

/** The one that was chosen, if it is still among them; else the one that moved most. */
export function shownSeries(series: readonly CounterSeries[], chosen: string | null): CounterSeries | null {
  return series.find(({ name }) => name === chosen) ?? series[0] ?? null;
}
