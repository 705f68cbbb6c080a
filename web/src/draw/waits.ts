// The lane of waits: a row for waits alike, a bar for each wait. A pattern says the kind, so that colour is not the only sign.
import { surface } from "../lib/canvas";
import { scale, type Range } from "../lib/range";
import type { Theme } from "../lib/theme";
import { familyOf, WAIT_FAMILIES, type PlacedWait, type WaitFamily, type WaitLine } from "../logic/waits";
import { PALETTES } from "./palette";

export const LINE_PX = 33;
const BAR_TOP_PX = 18;
const BAR_PX = 12;
const NARROWEST_PX = 2;

export interface WaitsLook {
  view: Range;
  width: number;
  theme: Theme;
  chosen: PlacedWait | null;
}

export function drawWaits(canvas: HTMLCanvasElement, lines: readonly WaitLine[], look: WaitsLook): void {
  const drawn = surface(canvas, look.width, lines.length * LINE_PX);
  if (!drawn) return;
  const at = scale(look.view, look.width);
  lines.forEach((line, place) => {
    const top = place * LINE_PX + BAR_TOP_PX;
    drawn.context.fillStyle = patternOf(drawn.context, familyOf(line.group.kind), look.theme);
    for (const { range } of line.waits) {
      const [left, right] = [Math.max(at.pixel(range[0]), -1), Math.min(at.pixel(range[1]), look.width + 1)];
      if (right >= 0 && left <= look.width) drawBar(drawn.context, left, top, Math.max(right - left, NARROWEST_PX), look.theme);
    }
    if (look.chosen && line.waits.some(({ row }) => row === look.chosen!.row)) drawFrame(drawn.context, look.chosen.range, top, look);
  });
}

function drawBar(context: CanvasRenderingContext2D, left: number, top: number, width: number, theme: Theme): void {
  context.fillRect(left, top, width, BAR_PX);
  if (width < 5) return;
  // Where waits lie on each other their ends still show.
  context.save();
  context.strokeStyle = PALETTES[theme].edge;
  context.globalAlpha = 0.7;
  context.strokeRect(left + 0.5, top + 0.5, width - 1, BAR_PX - 1);
  context.restore();
}

function drawFrame(context: CanvasRenderingContext2D, range: Range, top: number, look: WaitsLook): void {
  const at = scale(look.view, look.width);
  const [left, right] = [Math.max(at.pixel(range[0]), -3), Math.min(at.pixel(range[1]), look.width + 3)];
  context.strokeStyle = PALETTES[look.theme].text;
  context.lineWidth = 2;
  context.strokeRect(left - 1, top - 2, Math.max(right - left, NARROWEST_PX) + 2, BAR_PX + 4);
}

const patterns = new Map<string, CanvasPattern | string>();

/** Wanted a core: slanted stripes. Slept in the kernel: solid. A lock of programs: dots. */
function patternOf(context: CanvasRenderingContext2D, family: WaitFamily, theme: Theme): CanvasPattern | string {
  const key = `${family} ${theme}`;
  const known = patterns.get(key);
  if (known) return known;
  const made = family === "blocked" ? colourOf(family, theme) : (context.createPattern(tile(family, theme), "repeat") ?? colourOf(family, theme));
  patterns.set(key, made);
  return made;
}

const TILE_PX = 6;

function tile(family: WaitFamily, theme: Theme): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [TILE_PX, TILE_PX];
  const context = canvas.getContext("2d")!;
  context.fillStyle = colourOf(family, theme);
  context.fillRect(0, 0, TILE_PX, TILE_PX);
  [context.fillStyle, context.strokeStyle] = [PALETTES[theme].ground, PALETTES[theme].ground];
  context.globalAlpha = 0.75;
  if (family === "futex") {
    context.fillRect(1, 1, 2, 2);
    context.fillRect(4, 4, 2, 2);
  } else {
    context.lineWidth = 1.6;
    for (const shift of [-TILE_PX, 0, TILE_PX]) {
      context.beginPath();
      context.moveTo(shift, TILE_PX);
      context.lineTo(shift + TILE_PX, 0);
      context.stroke();
    }
  }
  return canvas;
}

const colourOf = (family: WaitFamily, theme: Theme): string => PALETTES[theme].waits[WAIT_FAMILIES.indexOf(family)]!;
