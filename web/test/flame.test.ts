import { describe, expect, test } from "vitest";
import { chosen, folded, heat, type Samples, type Wanted } from "../src/logic/folding";
import { changeOf, groups, layout, nodeAt, path, search, visible } from "../src/logic/flame";

// main > read > vfs_read, main > run; of two tasks on two cores.
const SAMPLES: Samples = {
  time: Float64Array.from([0, 100, 1100, 2000, 2100]),
  cpu: Int32Array.from([0, 1, 1, 0, 0]),
  stack: Int32Array.from([2, 3, 3, 2, 1]),
  weight: Int32Array.from([1, 1, 2, 1, 1]),
  task: Int32Array.from([0, 1, 1, 0, 0]),
  parent: Int32Array.from([-1, 0, 1, 0]),
  frame: Int32Array.from([0, 1, 2, 3]),
  kind: Uint8Array.from([1, 1, 0, 1]),
  names: ["main", "read", "vfs_read", "run"],
  who: [[7, "sh", "/a", 7], [8, "worker", "/a/b", 9]],
};
const ALL = { cpu: null, pid: null, comm: "", cgroup: "" };
const flame = (wanted: Wanted = ALL, baseline: [number, number] | null = null, group = "", isTurned = false) =>
  layout(folded(SAMPLES, [0, 10_000], baseline, wanted, group, isTurned, []));
const widths = (graph: ReturnType<typeof flame>) =>
  Object.fromEntries([...graph.name].map((name, node) => [graph.names[name], Math.round((graph.right[node]! - graph.left[node]!) * graph.total)]));

describe("a flame graph", () => {
  test("is as wide as its samples weigh", () => {
    expect(widths(flame())).toEqual({ main: 6, read: 3, run: 3, vfs_read: 2 });
    expect(flame().samples).toBe(6);
  });

  test("is of one core, process, name or cgroup and those below it", () => {
    expect(flame({ ...ALL, pid: 8 }).samples).toBe(3);
    expect(flame({ ...ALL, pid: 9 }).samples).toBe(0);
    expect(flame({ ...ALL, cpu: 1 }).samples).toBe(3);
    expect(flame({ ...ALL, comm: "sh" }).samples).toBe(3);
    expect(flame({ ...ALL, cgroup: "/a/" }).samples).toBe(6);
    expect(flame({ ...ALL, cgroup: "/a/b" }).samples).toBe(3);
    expect(chosen(SAMPLES, [100, 2000], ALL)).toEqual([1, 2]);
  });

  test("turns, and groups", () => {
    const turned = flame(ALL, null, "", true);
    expect([...turned.name].filter((_, node) => turned.depth[node] === 0).map((name) => turned.names[name])).toEqual(["read", "run", "vfs_read"]);
    const grouped = flame(ALL, null, "name");
    expect(grouped.names[grouped.name[0]!]).toBe("sh");
    expect(grouped.kind[0]).toBe(3);
    expect(groups(flame({ ...ALL, cpu: null }, null, "name"))).toEqual(["sh", "worker"]);
    const nested = flame(ALL, null, "core,thread");
    expect(path(nested, nodeAt(nested, 2, 0.99)!)).toEqual(["core 1", "worker (9)", "main"]);
  });

  test("finds what is at a place, and what is visible", () => {
    const graph = flame();
    expect(path(graph, nodeAt(graph, 2, 0.1)!)).toEqual(["main", "read", "vfs_read"]);
    expect(nodeAt(graph, 2, 0.9)).toBe(null);
    expect(nodeAt(graph, 9, 0.1)).toBe(null);
    expect(visible(graph, 1, 0.6, 1)).toEqual([2, 3]);
  });

  test("search counts a sample once although two of its frames match", () => {
    expect(search(flame(), "read")!.share).toBeCloseTo(0.5);
    expect(search(flame(), "/^RUN$/")!.share).toBeCloseTo(0.5);
    expect(search(flame(), "/(/")!.count).toBe(0);
    expect(search(flame(), "")).toBe(null);
  });

  test("against a baseline says what appeared and what vanished", () => {
    const graph = layout(folded(SAMPLES, [2000, 3000], [0, 2000], ALL, "", false, []));
    const change = Object.fromEntries([...graph.name].map((name, node) => [graph.names[name], graph.change![node]]));
    expect(change).toEqual({ main: 0, read: 0.75, run: -0.75, vfs_read: 0.25 });
    const words = Object.fromEntries([...graph.name].map((name, node) => [graph.names[name], changeOf(graph, node)?.word]));
    expect(words).toEqual({ main: undefined, read: "grew", run: "gone", vfs_read: "grew" });
    expect(graph.right[graph.first[1]! + 1]! - graph.left[graph.first[1]! + 1]!).toBeCloseTo(0.375);
  });
});

test("the heat map counts by offset within the second of the day", () => {
  const { arrays, columns, start } = heat(SAMPLES, [[0, 2500]], [0, 3000], ALL, 10, 500);
  expect([start, columns]).toEqual([-500, 4]);
  expect(arrays.weights.reduce((a, b) => a + b)).toBe(6);
  expect(arrays.weights[5 * columns]).toBe(1);
  expect(arrays.known[0]).toBe(0);
  expect(arrays.known[6 * columns]).toBe(1);
});
