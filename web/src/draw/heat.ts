// The sub-second heat map: cells by weight, holes left transparent for the hatched ground.
import { cellImage, surface } from "../lib/canvas";
import type { Theme } from "../lib/theme";
import { PALETTES } from "./palette";

export interface HeatCells {
  weights: Uint32Array;
  known: Uint8Array;
  columns: number;
  rows: number;
}

export function heatImage(cells: HeatCells, theme: Theme): HTMLCanvasElement {
  const { heat } = PALETTES[theme];
  const most = cells.weights.reduce((a, b) => Math.max(a, b), 1);
  return cellImage(cells.columns, cells.rows, (pixels) => {
    for (let cell = 0; cell < pixels.length; cell += 1) {
      if (cells.known[cell]) pixels[cell] = heat[Math.round((cells.weights[cell]! / most) * (heat.length - 1))]!;
    }
  });
}

export function drawHeat(canvas: HTMLCanvasElement, image: HTMLCanvasElement, width: number, height: number): void {
  const drawn = surface(canvas, width, height);
  if (!drawn) return;
  drawn.context.imageSmoothingEnabled = false;
  drawn.context.drawImage(image, 0, 0, width, height);
}
