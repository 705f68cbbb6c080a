// A canvas as sharp as the screen.

export interface Surface {
  context: CanvasRenderingContext2D;
  width: number;
  height: number;
}

/** Sizes the canvas for the screen's density; drawing is then in CSS pixels. */
export function surface(canvas: HTMLCanvasElement, width: number, height: number): Surface | null {
  const density = window.devicePixelRatio || 1;
  const [wide, high] = [Math.max(1, Math.round(width * density)), Math.max(1, Math.round(height * density))];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  if (!context) return null;
  context.setTransform(density, 0, 0, density, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

/** An image of one pixel for each cell, to be drawn at any size. */
export function cellImage(columns: number, rows: number, paint: (pixels: Uint32Array) => void): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, columns);
  canvas.height = Math.max(1, rows);
  const context = canvas.getContext("2d");
  if (context && columns && rows) {
    const image = context.createImageData(columns, rows);
    paint(new Uint32Array(image.data.buffer));
    context.putImageData(image, 0, 0);
  }
  return canvas;
}

const measured = new Map<string, number>();

/** The text cut to a width, with an ellipsis; widths of characters of a monospaced font are the same. */
export function cut(context: CanvasRenderingContext2D, text: string, width: number): string {
  let character = measured.get(context.font);
  if (character === undefined) {
    character = context.measureText("mmmmmmmmmm").width / 10;
    measured.set(context.font, character);
  }
  const most = Math.floor(width / character);
  if (text.length <= most) return text;
  return most < 3 ? "" : `${text.slice(0, most - 1)}…`;
}
