// A square a node: full are those that were affected, empty those that were well.
import { surface } from "../../lib/canvas";
import type { Theme } from "../../lib/theme";
import { PALETTES } from "../../draw/palette";
import type { Waffle } from "../logic/waffle";

export function drawWaffle(canvas: HTMLCanvasElement, picture: Waffle, theme: Theme): void {
  const drawn = surface(canvas, picture.width, picture.height);
  if (!drawn) return;
  const { context } = drawn;
  const palette = PALETTES[theme];
  const size = picture.cell_px - Math.max(1, Math.round(picture.cell_px / 5));
  context.lineWidth = 1;
  for (const box of picture.boxes) {
    for (let node = 0; node < box.nodes; node += 1) {
      const x = box.left + Math.floor(node / picture.rows) * picture.cell_px;
      const y = (node % picture.rows) * picture.cell_px;
      if (node < box.affected) {
        context.fillStyle = palette.ranks[0]!;
        context.fillRect(x, y, size, size);
      } else {
        context.strokeStyle = palette.faint;
        context.globalAlpha = 0.6;
        context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
        context.globalAlpha = 1;
      }
    }
  }
}
