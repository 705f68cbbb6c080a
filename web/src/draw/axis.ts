// The time axis above the lanes.
import { surface } from "../lib/canvas";
import { chosenStep, scale, type Range } from "../lib/range";
import type { Theme } from "../lib/theme";
import { AXIS_STEPS_MS, dayText, timeText, type Clock } from "../logic/moment";
import { PALETTES } from "./palette";

export const AXIS_PX = 22;
const LABEL_PX = 92;

export function drawAxis(canvas: HTMLCanvasElement, view: Range, at: Clock, width: number, theme: Theme): void {
  const drawn = surface(canvas, width, AXIS_PX);
  if (!drawn) return;
  const { context } = drawn;
  const palette = PALETTES[theme];
  const step = chosenStep(view, AXIS_STEPS_MS, Math.max(2, Math.floor(width / LABEL_PX)));
  const place = scale(view, width);
  const origin = at.date(0).getTime();
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  let day = "";
  for (let tick = Math.ceil((view[0] + origin) / step) * step - origin; tick <= view[1]; tick += step) {
    const date = at.date(tick);
    const isNewDay = day !== dayText(date) && step >= 60_000;
    day = dayText(date);
    const pixel = place.pixel(tick);
    context.fillStyle = palette.faint;
    context.fillRect(pixel, AXIS_PX - 5, 1, 5);
    context.fillStyle = isNewDay ? palette.text : palette.faint;
    if (pixel < width - 50) context.fillText(isNewDay && step >= 3_600_000 ? `${day.slice(5)} ${timeText(date, step)}` : timeText(date, step), pixel + 3, 9);
  }
}
