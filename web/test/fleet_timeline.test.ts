import { describe, expect, test } from "vitest";
import { ceiling, stackAt, stacks, tallest } from "../src/fleet/logic/timeline";
import { waffle } from "../src/fleet/logic/waffle";

describe("bars over time", () => {
  const one = (value: string | null, times: number[]) => ({ value, times, nodes: 10 });
  const series = [one("a", [1, 2]), one(null, [5, 0]), one("none", [0, 0]), one("b", [3, 0])];

  test("stack the largest first, and tell of those that had none", () => {
    expect(stacks(series).map(({ name, total }) => [name, total])).toEqual([["without it", 5], ["a", 3], ["b", 3], ["none", 0]]);
    expect(tallest(stacks(series))).toBe(9);
  });

  test("make one of many small ones, and lose none", () => {
    const many = Array.from({ length: 30 }, (_, number) => one(number ? `v${number}` : "(others)", [number, 1]));
    const shown = stacks(many);
    expect(shown).toHaveLength(7);
    expect(shown[6]).toMatchObject({ name: "(others)", isRest: true, value: null, nodes: 240 });
    expect(shown.reduce((total, each) => total + each.total, 0)).toBe(many.reduce((total, { times }) => total + times[0]! + times[1]!, 0));
  });

  test("are found where they are", () => {
    const shown = stacks(series);
    expect(stackAt(shown, 0, 4.5)?.name).toBe("without it");
    expect(stackAt(shown, 0, 5.5)?.name).toBe("a");
    expect(stackAt(shown, 1, 3)).toBe(null);
  });

  test("end at a round number", () => {
    expect([0, 3, 7, 11, 23, 26, 99, 101].map(ceiling)).toEqual([1, 3, 10, 20, 25, 50, 100, 200]);
  });

  test("of nothing are none", () => {
    expect(stacks([])).toEqual([]);
    expect(tallest([])).toBe(0);
  });
});

describe("nodes as squares", () => {
  const groups = [{ nodes: 73, affected: 17 }, { nodes: 127, affected: 2 }];

  test("are as large as fits", () => {
    const wide = waffle(groups, 900, 100)!;
    const narrow = waffle(groups, 200, 100)!;
    expect(wide.cell_px).toBe(15);
    expect(narrow.cell_px).toBeLessThan(15);
    for (const picture of [wide, narrow]) {
      for (const box of picture.boxes) expect(box.columns * picture.rows).toBeGreaterThanOrEqual(box.nodes);
    }
    expect(narrow.width).toBeLessThanOrEqual(200);
  });

  test("that would be too small are not drawn", () => expect(waffle([{ nodes: 50_000, affected: 1 }], 900, 100)).toBe(null));
});
