// Moments inside the page are milliseconds since its origin: a double of absolute time would lose microseconds.
import type { Range } from "../lib/range";

export interface Clock {
  /** Nanoseconds UTC as digits, from milliseconds since the origin. */
  digits(moment_ms: number): string;
  ofDigits(digits: string): number;
  ofIso(text: string): number;
  /** Whole microseconds UTC, as they stand in a link. */
  micros(moment_ms: number): number;
  ofMicros(micros: number): number;
  date(moment_ms: number): Date;
}

export function clock(origin_digits: string): Clock {
  const origin_ns = BigInt(origin_digits);
  const origin_us = Number(origin_ns / 1000n);
  const rest_us = Number(origin_ns % 1000n) / 1000;
  const epoch_ms = Number(origin_ns / 1000000n) + Number(origin_ns % 1000000n) / 1e6;
  return {
    digits: (moment) => (origin_ns + BigInt(Math.round(moment * 1e6))).toString(),
    ofDigits: (digits) => Number(BigInt(digits) - origin_ns) / 1e6,
    ofIso: (text) => Date.parse(text) - epoch_ms,
    micros: (moment) => Math.round(origin_us + rest_us + moment * 1000),
    ofMicros: (micros) => (micros - origin_us - rest_us) / 1000,
    date: (moment) => new Date(epoch_ms + moment),
  };
}

const two = (value: number): string => String(value).padStart(2, "0");

/** Time of day in UTC with as many decimals as the step needs. */
export function timeText(date: Date, step_ms: number): string {
  const whole = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`;
  if (step_ms >= 60_000) return whole;
  const seconds = `${whole}:${two(date.getUTCSeconds())}`;
  return step_ms >= 1000 ? seconds : `${seconds}.${String(date.getUTCMilliseconds()).padStart(3, "0")}`;
}

export const dayText = (date: Date): string => date.toISOString().slice(0, 10);

export function durationText(ms: number): string {
  const units: [string, number][] = [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["min", 60_000],
    ["s", 1000],
    ["ms", 1],
  ];
  for (const [unit, size] of units) {
    // Two minutes and less are easier to grasp in seconds.
    if (ms >= size && !(unit === "min" && ms < 120_000)) return `${Number((ms / size).toPrecision(3))} ${unit}`;
  }
  return `${Number((ms * 1000).toPrecision(3))} µs`;
}

export function rangeText(at: Clock, range: Range): string {
  const step = range[1] - range[0] < 10_000 ? 1 : 1000;
  return `${timeText(at.date(range[0]), step)} – ${timeText(at.date(range[1]), step)}`;
}

export const AXIS_STEPS_MS: readonly number[] = [
  0.001, 0.01, 0.1, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000,
  1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000,
];
