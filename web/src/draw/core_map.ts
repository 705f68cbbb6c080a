// Cores x time: one image pixel for each cell, drawn stretched, so that panning and zooming only move the image.
import { cellImage, surface } from "../lib/canvas";
import { scale, type Range } from "../lib/range";
import type { Theme } from "../lib/theme";
import { FULL, NOT_READ_YET, type CoreMap } from "../logic/core_map";
import type { Mode } from "../logic/state";
import { PALETTES } from "./palette";

// Delays: nothing below 100 us is worth a colour, a second is the end of the ramp.
const DELAY_LOW = 8 * Math.log2(101);
const DELAY_HIGH = 8 * Math.log2(1_000_001);

export function coreImage(map: CoreMap, mode: Mode, theme: Theme): HTMLCanvasElement {
  const values = map.arrays[mode];
  const known = map.arrays["busy"];
  const colours = colourTable(mode, theme);
  return cellImage(map.columns, map.cpus.length, (pixels) => {
    if (!values) return;
    for (let cell = 0; cell < pixels.length; cell += 1) {
      // A delay of nothing where nothing was recorded is a hole too.
      const isHole = mode === "delay" && values[cell] === 0 && known !== undefined && known[cell]! > FULL;
      pixels[cell] = colours[isHole ? known[cell]! : values[cell]!]!;
    }
  });
}

/** What was not recorded stays transparent: the lane's hatched ground shows through. */
function colourTable(mode: Mode, theme: Theme): Uint32Array {
  const { heat, notRead } = PALETTES[theme];
  const table = new Uint32Array(256);
  for (let value = 0; value <= FULL; value += 1) {
    const share = mode === "delay" ? (value - DELAY_LOW) / (DELAY_HIGH - DELAY_LOW) : value / FULL;
    table[value] = heat[Math.round(Math.min(Math.max(share, 0), 1) * FULL)]!;
  }
  table[NOT_READ_YET] = notRead;
  return table;
}

export interface CoreMapLook {
  view: Range;
  width: number;
  row_px: number;
  cpu: number | null;
  theme: Theme;
}

export function drawCoreMap(canvas: HTMLCanvasElement, image: HTMLCanvasElement | null, map: CoreMap | null, look: CoreMapLook): void {
  const cores = map?.cpus.length ?? 1;
  const drawn = surface(canvas, look.width, cores * look.row_px);
  if (!drawn || !image || !map) return;
  const { context, height } = drawn;
  const at = scale(look.view, look.width);
  const [left, right] = [at.pixel(map.range[0]), at.pixel(map.range[1])];
  context.imageSmoothingEnabled = false;
  context.drawImage(image, left, 0, right - left, height);
  if (look.row_px >= 8) drawRules(context, cores, look);
  const row = look.cpu === null ? -1 : map.cpus.indexOf(look.cpu);
  if (row >= 0) drawFrame(context, row, look);
}

function drawRules(context: CanvasRenderingContext2D, cores: number, look: CoreMapLook): void {
  context.fillStyle = PALETTES[look.theme].edge;
  for (let row = 1; row < cores; row += 1) context.fillRect(0, row * look.row_px - 0.5, look.width, 1);
}

function drawFrame(context: CanvasRenderingContext2D, row: number, look: CoreMapLook): void {
  context.strokeStyle = PALETTES[look.theme].text;
  context.lineWidth = 1.5;
  context.strokeRect(-2, row * look.row_px - 1, look.width + 4, look.row_px + 2);
}
