// Nodes as squares, so that counts are seen and not only read: those with a difference in one box, the others in another.

export interface Waffle {
  cell_px: number;
  rows: number;
  boxes: { left: number; columns: number; nodes: number; affected: number }[];
  width: number;
  height: number;
}

const LARGEST_PX = 15;
const SMALLEST_PX = 4;
const BETWEEN_PX = 28;

/** The largest squares with which all groups fit side by side; null if they would be too small to see. */
export function waffle(groups: readonly { nodes: number; affected: number }[], width: number, height: number): Waffle | null {
  for (let cell = LARGEST_PX; cell >= SMALLEST_PX; cell -= 1) {
    const rows = Math.max(1, Math.floor(height / cell));
    const needed = groups.map(({ nodes }) => Math.max(1, Math.ceil(nodes / rows)));
    const total = needed.reduce((sum, columns) => sum + columns * cell, BETWEEN_PX * (groups.length - 1));
    if (total > width) continue;
    let left = 0;
    const boxes = groups.map(({ nodes, affected }, place) => {
      const box = { left, columns: needed[place]!, nodes, affected };
      left += box.columns * cell + BETWEEN_PX;
      return box;
    });
    const used = Math.min(rows, Math.max(...groups.map(({ nodes }) => nodes), 1));
    return { cell_px: cell, rows, boxes, width: total, height: used * cell };
  }
  return null;
}
