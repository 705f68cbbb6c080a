// A stretch on a line, and a scale that maps it to pixels.

export type Range = readonly [from: number, to: number];

export const length = ([from, to]: Range): number => to - from;
export const middle = ([from, to]: Range): number => (from + to) / 2;
export const contains = (outer: Range, inner: Range): boolean => outer[0] <= inner[0] && inner[1] <= outer[1];
export const overlaps = (a: Range, b: Range): boolean => a[0] < b[1] && b[0] < a[1];
export const same = (a: Range | null, b: Range | null): boolean => a === b || (!!a && !!b && a[0] === b[0] && a[1] === b[1]);

export function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}

/** The range moved, and cut only if it is too long, so that it lies within the limits. */
export function within(range: Range, limits: Range): Range {
  if (length(range) >= length(limits)) return limits;
  const shift = clamp(0, limits[0] - range[0], limits[1] - range[1]);
  return [range[0] + shift, range[1] + shift];
}

/** Larger or smaller by a factor while the value at `around` stays in its place. */
export function scaled(range: Range, factor: number, around: number): Range {
  return [around - (around - range[0]) * factor, around + (range[1] - around) * factor];
}

export function moved(range: Range, by: number): Range {
  return [range[0] + by, range[1] + by];
}

export interface Scale {
  pixel(value: number): number;
  value(pixel: number): number;
}

export function scale(range: Range, width: number): Scale {
  const factor = width / (length(range) || 1);
  return { pixel: (value) => (value - range[0]) * factor, value: (pixel) => range[0] + pixel / factor };
}

/** The smallest of the steps that leaves at most `most` of them in the range. */
export function chosenStep(range: Range, steps: readonly number[], most: number): number {
  return steps.find((step) => length(range) / step <= most) ?? steps[steps.length - 1]!;
}
