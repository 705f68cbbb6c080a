// Colour ramps as tables of packed pixels (ABGR, as canvas image data has it on little-endian machines).

export type Colour = readonly [red: number, green: number, blue: number];

export const packedColour = ([red, green, blue]: Colour, alpha = 255): number =>
  ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0;

export const css = ([red, green, blue]: Colour): string => `rgb(${red},${green},${blue})`;

export function mixed(a: Colour, b: Colour, share: number): Colour {
  const part = (x: number, y: number) => Math.round(x + (y - x) * share);
  return [part(a[0], b[0]), part(a[1], b[1]), part(a[2], b[2])];
}

/** `size` colours along the stops, which lie at equal distances. */
export function ramp(stops: readonly Colour[], size: number): Uint32Array {
  return Uint32Array.from({ length: size }, (_, place) => {
    const at = (place / Math.max(size - 1, 1)) * (stops.length - 1);
    const stop = Math.min(Math.floor(at), stops.length - 2);
    return packedColour(mixed(stops[stop]!, stops[stop + 1]!, at - stop));
  });
}
