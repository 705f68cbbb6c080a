// Restarts in the lane of cgroups: triangles at its foot, one where several fall together.
import { surface } from "../lib/canvas";
import { scale, type Range } from "../lib/range";
import type { Theme } from "../lib/theme";
import { PALETTES } from "./palette";

const STEP_PX = 9;
const HALF_PX = 4;
const TALL_PX = 7;

export function drawRestarts(canvas: HTMLCanvasElement, moments: readonly number[], view: Range, size: { width: number; height: number }, theme: Theme): void {
  const drawn = surface(canvas, size.width, size.height);
  if (!drawn) return;
  const { context, height } = drawn;
  const at = scale(view, size.width);
  const shown = moments.filter((moment) => moment >= view[0] && moment <= view[1]);
  context.fillStyle = PALETTES[theme].text;
  context.beginPath();
  for (const pixel of new Set(shown.map((moment) => Math.round(at.pixel(moment) / STEP_PX) * STEP_PX))) {
    context.moveTo(pixel - HALF_PX, height);
    context.lineTo(pixel + HALF_PX, height);
    context.lineTo(pixel, height - TALL_PX);
  }
  context.fill();
}
