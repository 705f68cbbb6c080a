// A flame graph, outermost frame on top. Only what is visible and wide enough is touched, so that 50,000 frames pan at full speed.
import { cut, surface } from "../lib/canvas";
import { mixed, type Colour } from "../lib/colour";
import type { Range } from "../lib/range";
import type { Theme } from "../lib/theme";
import { changeOf, height, visible, type Flame, type Found } from "../logic/flame";
import { colourText, PALETTES } from "./palette";

export const FRAME_PX = 18;
const NARROWEST_PX = 0.5;
const TEXT_FROM_PX = 26;
const SIGNS = ["ₖ", "", "ʲ", "", ""];

export interface FlameLook {
  zoom: Range;
  width: number;
  theme: Theme;
  found: Found | null;
  hovered: number | null;
  chosen: number | null;
  /** The part of the graph that is on the screen, from the top. */
  top_px: number;
  height_px: number;
}

export function drawFlame(canvas: HTMLCanvasElement, flame: Flame, look: FlameLook): void {
  const drawn = surface(canvas, look.width, look.height_px);
  if (!drawn) return;
  const { context } = drawn;
  context.font = "12px ui-monospace, Menlo, Consolas, monospace";
  context.textBaseline = "middle";
  const first = Math.max(0, Math.floor(look.top_px / FRAME_PX));
  const last = Math.min(height(flame), Math.ceil((look.top_px + look.height_px) / FRAME_PX));
  for (let depth = first; depth < last; depth += 1) drawRow(context, flame, depth, look);
}

function drawRow(context: CanvasRenderingContext2D, flame: Flame, depth: number, look: FlameLook): void {
  const [from, to] = visible(flame, depth, look.zoom[0], look.zoom[1]);
  const factor = look.width / (look.zoom[1] - look.zoom[0]);
  const y = depth * FRAME_PX - look.top_px;
  let drawnTo = -1;
  for (let node = from; node < to; node += 1) {
    const left = Math.max((flame.left[node]! - look.zoom[0]) * factor, 0);
    const right = Math.min((flame.right[node]! - look.zoom[0]) * factor, look.width);
    // Of many slivers in one pixel one is drawn.
    if (right - left < NARROWEST_PX && right <= drawnTo) continue;
    const width = Math.max(right - left - 0.6, NARROWEST_PX);
    context.fillStyle = fill(flame, node, look);
    context.fillRect(left, y + 0.5, width, FRAME_PX - 1);
    drawnTo = left + Math.max(width, 0.75);
    if (width > TEXT_FROM_PX) drawText(context, flame, node, left, y, width, look);
    if (node === look.hovered || node === look.chosen) drawEdge(context, left, y, width, look.theme);
  }
}

function fill(flame: Flame, node: number, look: FlameLook): string {
  const palette = PALETTES[look.theme];
  if (look.found) return look.found.names[flame.name[node]!] ? palette.match : palette.dimmed;
  if (!flame.change) return palette.frames[flame.kind[node]!]!;
  return changeColour(flame.change[node]!, palette);
}

const changeColours = new Map<string, string>();

/** Red grew, blue shrank; the square root makes changes of a few percent visible. */
function changeColour(change: number, palette: { grew: Colour; shrank: Colour; neutral: Colour }): string {
  const strength = Math.round(Math.min(Math.sqrt(Math.abs(change)), 1) * 32) * Math.sign(change);
  const key = `${strength},${palette.neutral[0]}`;
  let text = changeColours.get(key);
  if (!text) {
    text = colourText(mixed(palette.neutral, strength > 0 ? palette.grew : palette.shrank, Math.abs(strength) / 32));
    changeColours.set(key, text);
  }
  return text;
}

function drawText(
  context: CanvasRenderingContext2D, flame: Flame, node: number, left: number, y: number, width: number, look: FlameLook,
): void {
  const palette = PALETTES[look.theme];
  const isMatch = look.found?.names[flame.name[node]!];
  context.fillStyle = isMatch ? palette.matchText : look.found ? palette.faint : palette.frameText;
  context.fillText(cut(context, label(flame, node), width - 6), left + 3, y + FRAME_PX / 2 + 0.5);
}

/** Colour is not the only sign: kernel frames carry a small k, and a differential says what changed by how much. */
export function label(flame: Flame, node: number): string {
  const name = flame.names[flame.name[node]!]! + SIGNS[flame.kind[node]!]!;
  const change = changeOf(flame, node);
  return change ? `${change.sign}${Math.round(Math.abs(flame.change![node]!) * 100)}% ${name}` : name;
}

function drawEdge(context: CanvasRenderingContext2D, left: number, y: number, width: number, theme: Theme): void {
  context.strokeStyle = PALETTES[theme].text;
  context.lineWidth = 1.5;
  context.strokeRect(left + 0.75, y + 1, Math.max(width - 1.5, 1), FRAME_PX - 2);
}
