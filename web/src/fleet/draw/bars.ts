// Stacked bars over time. Stacks differ in colour and in hatching, because colour is not the only sign.
import { surface } from "../../lib/canvas";
import { chosenStep, scale, type Range } from "../../lib/range";
import type { Theme } from "../../lib/theme";
import { PALETTES } from "../../draw/palette";
import { AXIS_STEPS_MS, dayText, timeText } from "../../logic/moment";
import { ceiling, tallest, type Stack } from "../logic/timeline";

export const BARS_PX = 130;
const AXIS_PX = 20;
const LABEL_PX = 96;
export const STACK_COLOURS: Record<Theme, readonly string[]> = {
  dark: ["#ff6b61", "#6ea8ff", "#ffb84d", "#5fd0a5", "#c792ea", "#e3d26f", "#8d95a3"],
  light: ["#d03a31", "#2f6fde", "#c77700", "#13866b", "#8a44c8", "#8f7a00", "#7b8494"],
};

export interface BarsLook {
  span: Range;
  width: number;
  theme: Theme;
  hovered: number | null;
}

export const plotHeight = (): number => BARS_PX - AXIS_PX;

export function drawBars(canvas: HTMLCanvasElement, shown: readonly Stack[], look: BarsLook): void {
  const drawn = surface(canvas, look.width, BARS_PX);
  if (!drawn) return;
  const { context } = drawn;
  const most = ceiling(tallest(shown));
  drawGrid(context, most, look);
  const columns = shown[0]?.counts.length ?? 0;
  const wide = look.width / Math.max(columns, 1);
  for (let column = 0; column < columns; column += 1) {
    let under = 0;
    shown.forEach((stack, place) => {
      const count = stack.counts[column]!;
      if (!count) return;
      const size = (count / most) * (plotHeight() - 6);
      const top = plotHeight() - under - size;
      context.fillStyle = STACK_COLOURS[look.theme][place % 7]!;
      context.globalAlpha = look.hovered === null || look.hovered === column ? 1 : 0.55;
      context.fillRect(column * wide + 0.5, top, Math.max(wide - 1, 1), Math.max(size - 0.5, 1));
      hatch(context, place, column * wide + 0.5, top, Math.max(wide - 1, 1), size, look.theme);
      under += size;
    });
  }
  context.globalAlpha = 1;
}

/** Every second stack has lines in it. */
function hatch(context: CanvasRenderingContext2D, place: number, x: number, y: number, width: number, height: number, theme: Theme): void {
  if (place % 2 === 0 || width < 3) return;
  context.fillStyle = PALETTES[theme].ground;
  for (let line = 3; line < height - 1; line += 5) context.fillRect(x, y + line, width, 1);
}

function drawGrid(context: CanvasRenderingContext2D, most: number, look: BarsLook): void {
  const palette = PALETTES[look.theme];
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = palette.faint;
  context.globalAlpha = 0.25;
  for (const share of [0, 0.5, 1]) context.fillRect(0, plotHeight() - share * (plotHeight() - 6), look.width, 1);
  context.globalAlpha = 1;
  context.fillText(most.toLocaleString("en"), 3, 14);
  const step = chosenStep([0, look.span[1] - look.span[0]], AXIS_STEPS_MS, Math.max(2, Math.floor(look.width / LABEL_PX)));
  const place = scale(look.span, look.width);
  for (let tick = Math.ceil(look.span[0] / step) * step; tick <= look.span[1]; tick += step) {
    const date = new Date(tick);
    const pixel = place.pixel(tick);
    if (pixel > look.width - 46) continue;
    context.fillRect(pixel, plotHeight(), 1, 4);
    const isDay = step >= 86_400_000 || timeText(date, 60_000) === "00:00";
    context.fillText(isDay ? dayText(date).slice(5) : timeText(date, step), pixel + 3, BARS_PX - 8);
  }
}
