import { describe, expect, test } from "vitest";
import { cohortFlame, type FoldedRow } from "../src/fleet/logic/cohort_flame";
import { layout, path } from "../src/logic/flame";

const ROWS: FoldedRow[] = [
  ["sh", "main;read;entry_SYSCALL_64;vfs_read", 30, 0], ["sh", "main;run", 10, 100], ["<b>", "main;run", 10, 0], ["sh", "main;sleep", 0, 100],
  ["", "(left out)", 7000, 9],
];

describe("the flame graph of a cohort", () => {
  const graph = (hasBaseline: boolean, group: "" | "name" = "", isTurned = false) => layout(cohortFlame(ROWS, hasBaseline, group, isTurned, []));
  const named = (flame: ReturnType<typeof graph>, name: string) => [...flame.name].findIndex((number) => flame.names[number] === name);

  test("is as wide as its samples", () => {
    const flame = graph(false);
    expect(flame.samples).toBe(50);
    expect(path(flame, named(flame, "vfs_read"))).toEqual(["main", "read", "entry_SYSCALL_64", "vfs_read"]);
    expect(flame.right[named(flame, "run")]! - flame.left[named(flame, "run")]!).toBeCloseTo(0.4);
  });

  test("knows the kernel by its entries", () => {
    const flame = graph(false);
    expect(["main", "read", "entry_SYSCALL_64", "vfs_read"].map((name) => flame.kind[named(flame, name)])).toEqual([1, 1, 0, 0]);
  });

  test("compares shares and not sums: cohorts differ in size", () => {
    const flame = graph(true);
    expect(flame.change![named(flame, "run")]).toBeCloseTo(0.4 - 0.5);
    expect(flame.change![named(flame, "vfs_read")]).toBeCloseTo(0.6);
    expect(flame.change![named(flame, "sleep")]).toBeCloseTo(-0.5);
  });

  test("groups and turns", () => {
    expect(graph(false, "name").names).toContain("<b>");
    const turned = graph(false, "", true);
    expect([...turned.name].filter((_, node) => turned.depth[node] === 0).map((name) => turned.names[name])).toEqual(["run", "vfs_read"]);
  });

  test("of nothing is empty", () => expect(layout(cohortFlame([], false, "", false, [])).samples).toBe(0));
});
