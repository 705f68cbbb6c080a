import { describe, expect, test } from "vitest";
import type { Gap, WaitRow, WaitsAnswer } from "../src/logic/answers";
import { heaviestPath, layout, leastShare } from "../src/logic/flame";
import { clock } from "../src/logic/moment";
import { initialState } from "../src/logic/state";
import { foldedWaits } from "../src/logic/wait_folding";
import { byLength, emptyText, familyOf, lines, lineText, WAIT_FAMILIES, waitAt, waitId, waitOf, withWait } from "../src/logic/waits";
import type { Range } from "../src/lib/range";

const at = clock("0");
const SPAN: Range = [0, 600_000];
const row = (end_ms: number, waited_ms: number, more: Partial<WaitRow> = {}): WaitRow => ({
  kind: "runnable", time: String(end_ms * 1e6), waited_ms, is_open: false, cpu: 1, pid: 70, tid: 71, comm: "raylet", cgroup: "/ray", policy: "other", priority: 0,
  cores_allowed: 2, what: "for core 1", lock: null, is_given_back: false, stack: null, by_pid: 9, by_tid: 9, by_comm: "spin", by_cgroup: null, by_policy: "fifo",
  by_ran_ms: 900, by_stack: null, ...more,
});
const ETCD = { kind: "blocked", comm: "etcd", pid: 80, tid: 80, cgroup: "/etcd", by_comm: null, by_pid: null, by_tid: null, stack: 0, lock: "i_rwsem" } as const;
const ANSWER: WaitsAnswer = {
  groups: [
    { kind: "runnable", comm: "raylet", by_comm: "spin", count: 1200, total_ms: 9000, worst_ms: 950 },
    { kind: "blocked", comm: "etcd", by_comm: null, count: 1, total_ms: 300, worst_ms: 300 },
  ],
  more_groups: 0,
  waits: [row(5000, 950), row(5100, 100, { tid: 72 }), row(9000, 300, ETCD)],
  stacks: [["down_write", "ext4_write", "ksys_write"]],
  count: 1201,
  left_out: [],
};

describe("the lane of waits", () => {
  test("has a row for waits alike, in words", () => {
    const [first, second] = lines(ANSWER, at);
    expect(lineText(first!)).toBe("raylet wanted a core behind spin · 1,200 times, longest 950 ms");
    expect(lineText(second!)).toBe("etcd slept in the kernel (i_rwsem) · once, longest 300 ms");
    expect(first!.waits.map(({ row: { waited_ms } }) => waited_ms)).toEqual([100, 950]);
  });

  test("has words and a look for every kind that is recorded", () => {
    const kinds = ["runnable", "blocked", "futex", "file_lock", "unread", "stopped", "unanswered"] as const;
    for (const kind of kinds) {
      const groups = [{ kind, comm: "job", by_comm: null, count: 1, total_ms: 300, worst_ms: 300 }];
      const [line] = lines({ ...ANSWER, groups, waits: [row(9000, 300, { kind, comm: "job", by_comm: null })] }, at);
      expect(lineText(line!)).not.toContain("undefined");
      expect(WAIT_FAMILIES).toContain(familyOf(kind));
    }
    expect(familyOf("file_lock")).toBe("futex");
    const held = { kind: "file_lock", comm: "job", by_comm: "installer", is_open: true } as const;
    const [line] = lines({ ...ANSWER, groups: [{ ...held, count: 1, total_ms: 300, worst_ms: 300 }], waits: [row(9000, 300, held)] }, at);
    expect(lineText(line!)).toBe("job lock on a file, held by installer · once, longest 300 ms");
    expect(familyOf("stopped")).toBe("blocked");
  });

  test("finds the longest wait under the pointer, and one that is thinner than it", () => {
    const [first] = lines(ANSWER, at);
    expect(waitAt(first, 5000, 0.5)!.row.waited_ms).toBe(950);
    expect(waitAt(first, 5050, 0.5)!.row.waited_ms).toBe(100);
    expect(waitAt(first, 5110, 0.5)).toBe(null);
    expect(waitAt(first, 5110, 20)!.row.waited_ms).toBe(100);
    expect(waitAt(undefined, 5000, 1)).toBe(null);
  });

  test("a click shows its time and its core, and a link leads to the same wait", () => {
    const [longest] = byLength(ANSWER, at);
    const next = withWait(initialState(SPAN), longest!, at, SPAN);
    expect([next.window, next.cpu, next.wait]).toEqual([[4050, 5000], 1, "71-5000000"]);
    expect(next.view[1] - next.view[0]).toBe(10_000);
    expect(waitOf(ANSWER, next.wait, at)!.row).toBe(longest!.row);
    expect(waitOf(ANSWER, "71-4500000", at)!.row).toBe(longest!.row);
    expect(waitOf(ANSWER, "71-9000000", at)).toBe(null);
    expect(waitId(longest!, at)).toBe("71-5000000");
  });

  test("says why it is empty", () => {
    const gap: Gap = { table: "waits", from: "0", to: "1", cause: "BPF is not permitted", cpu: null };
    expect(emptyText({}, [])).toContain("Waits were not recorded");
    expect(emptyText({ run_delay: 9 }, [])).toContain("threshold");
    expect(emptyText({ run_delay: 9 }, [gap])).toContain("BPF is not permitted");
  });
});

describe("the flame graph of waits in a file", () => {
  const paths = (answer: ReturnType<typeof foldedWaits>) => {
    const flame = layout(answer);
    return Object.fromEntries([...flame.name].map((name, node) => [flame.names[name], Math.round((flame.right[node]! - flame.left[node]!) * flame.total)]));
  };
  const ALL = { cpu: null, pid: null, comm: "", cgroup: "" };

  test("has programs, kinds, and who was in the way or where it slept", () => {
    const found = foldedWaits(ANSWER, [4500, 8900], null, ALL, at);
    // The part of a wait that lies outside of the window is not of it.
    expect(paths(found)).toMatchObject({ raylet: 600, "[behind spin]": 600, etcd: 200, "[sleeps in the kernel]": 200, ksys_write: 200, down_write: 200 });
    expect(heaviestPath(layout(found))).toEqual(["raylet", "[waits for a core]", "[behind spin]"]);
    expect(found.header.left_out).toEqual(["of the longest 3 of 1201 waits"]);
  });

  test("is of one core, program or cgroup, and of two windows", () => {
    expect(foldedWaits(ANSWER, [0, 10_000], null, { ...ALL, comm: "etcd" }, at).header.samples).toBe(300);
    expect(foldedWaits(ANSWER, [0, 10_000], null, { ...ALL, cgroup: "/ray" }, at).header.samples).toBe(1050);
    const compared = layout(foldedWaits(ANSWER, [5050, 10_000], [0, 5050], ALL, at));
    expect(compared.shares).not.toBe(null);
  });
});

test("frames are asked for as narrow as the zoom can show, and all of them for a search", () => {
  expect(leastShare(1, true)).toBe(0);
  expect(leastShare(1, false)).toBe(1 / 2400);
  expect(leastShare(0.9, false)).toBe(1 / 19_200);
  expect(leastShare(0.001, false)).toBeLessThan(0.001 / 2400);
});
