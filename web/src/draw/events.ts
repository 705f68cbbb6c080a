// Marks of the events lane: a letter says the kind, place and size the rank, and a number how many fell together.
import { surface } from "../lib/canvas";
import type { Theme } from "../lib/theme";
import type { Mark } from "../logic/events";
import { PALETTES } from "./palette";

/** So far apart that a count of two digits fits below each. */
export const MARK_PX = 26;
export const EVENTS_PX = 34;

export function drawEvents(canvas: HTMLCanvasElement, marks: readonly Mark[], width: number, theme: Theme): void {
  const drawn = surface(canvas, width, EVENTS_PX);
  if (!drawn) return;
  const { context } = drawn;
  const palette = PALETTES[theme];
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const mark of marks) {
    const colour = palette.ranks[mark.rank]!;
    context.fillStyle = colour;
    context.fillRect(mark.pixel - 0.5, 0, 1.5, EVENTS_PX);
    shape(context, mark.pixel, mark.rank);
    context.fillStyle = palette.ground;
    context.font = "bold 11px system-ui, sans-serif";
    context.fillText(mark.mark, mark.pixel, 11);
    if (mark.events.length > 1) {
      context.fillStyle = palette.text;
      context.font = "10px system-ui, sans-serif";
      context.fillText(`×${mark.events.length}`, mark.pixel + 1, 27);
    }
  }
}

/** The gravest are diamonds, the rest boxes. */
function shape(context: CanvasRenderingContext2D, x: number, rank: number): void {
  context.beginPath();
  if (rank === 0) {
    context.moveTo(x, 1);
    context.lineTo(x + 10, 11);
    context.lineTo(x, 21);
    context.lineTo(x - 10, 11);
  } else {
    context.rect(x - 7, 4, 14, 14);
  }
  context.fill();
}
