import { describe, expect, test } from "vitest";
import { clock, durationText, timeText } from "../src/logic/moment";
import {
  baselineBefore, followed, initialState, isAnotherPlace, ofHash, panned, processText, steppedCpu, toHash, withFittingZoom, withProcess, withWindow, zoomed, type State,
} from "../src/logic/state";
import type { Range } from "../src/lib/range";

const at = clock("1794795289190373460");
const SPAN: Range = [0, 3_600_000];
const CPUS = [0, 1, 2, 5];
const begun = initialState(SPAN);

describe("the address", () => {
  const full: State = {
    view: [1000, 61_000.5], window: [5000.25, 10_000], baseline: [0, 5000], cpu: 5, mode: "delay", incident: "2026-core0",
    search: "mem & <b>", pid: null, comm: "napi/eth0-7", cgroup: "/a b/ü", group: "core,process", isTurned: true, of: "waits", wait: "71-1794795289190373", zoom: [0.25, 0.5],
  };

  test("holds the whole state to the microsecond", () => {
    const again = ofHash(toHash(full, at), at, begun, CPUS);
    expect(again.view[1]).toBeCloseTo(61_000.5, 2);
    expect(again.window![0]).toBeCloseTo(5000.25, 2);
    expect({ ...again, view: 0, window: 0, baseline: 0 }).toEqual({ ...full, view: 0, window: 0, baseline: 0 });
  });

  test("holds a process instead of a name", () => {
    const one = withProcess(full, "worker (12)");
    expect([one.pid, one.comm, processText(one)]).toEqual([12, "", "pid 12"]);
    expect(ofHash(toHash(one, at), at, begun, CPUS).pid).toBe(12);
    expect(["pid 12", "12"].map((text) => withProcess(full, text).pid)).toEqual([12, 12]);
    expect(withProcess(one, "kworker/0:1 (x)")).toMatchObject({ pid: null, comm: "kworker/0:1 (x)" });
    expect(withProcess(one, "")).toMatchObject({ pid: null, comm: "" });
  });

  test("that makes no sense is left as the page begins", () => {
    const odd = ofHash("#view=9-1&window=a-b&core=77&pid=-1&mode=evil&group=core,x&of=all&wait=x-1&zoom=0.5-1.5", at, begun, CPUS);
    expect(odd).toEqual({ ...begun });
  });

  test("is a new step for another window, and none for another zoom or search", () => {
    expect(isAnotherPlace(begun, { ...begun, window: [1, 2] })).toBe(true);
    expect(isAnotherPlace(begun, { ...begun, view: [1, 2] })).toBe(false);
    expect(isAnotherPlace(begun, { ...begun, search: "x" })).toBe(false);
    expect(isAnotherPlace(begun, { ...begun, zoom: [0, 0.5] })).toBe(false);
  });

  test("forgets the zoom of a flame graph with the graph", () => {
    expect(withFittingZoom(full, { ...full, view: [0, 1], search: "", mode: "busy" }).zoom).toEqual([0.25, 0.5]);
    expect(withFittingZoom(full, { ...full, window: [1, 2] }).zoom).toBe(null);
    expect(withFittingZoom(full, { ...full, group: "core" }).zoom).toBe(null);
    expect(followed({ ...full, window: [0, 1] }, SPAN, [0, 3_602_000]).zoom).toBe(null);
  });
});

describe("moves", () => {
  test("zoom keeps what is under the pointer and stays within the recording", () => {
    const near = zoomed(begun, 0.5, 900_000, SPAN);
    expect(near.view).toEqual([450_000, 2_250_000]);
    expect(zoomed(near, 100, 0, SPAN).view).toEqual(SPAN);
    expect(panned(near, -5, SPAN).view).toEqual([0, 1_800_000]);
  });

  test("a window too small to see in the view draws the view to it", () => {
    const next = withWindow(begun, [1_000_000, 1_001_000], SPAN);
    expect(next.window).toEqual([1_000_000, 1_001_000]);
    expect(next.view[1] - next.view[0]).toBe(10_000);
    const seen = withWindow({ ...begun, view: [995_000, 1_010_000] }, [1_000_000, 1_001_000], SPAN);
    expect(seen.view).toEqual([995_000, 1_010_000]);
  });

  test("cores follow each other although their numbers have holes", () => {
    expect(steppedCpu({ ...begun, cpu: 2 }, CPUS, 1).cpu).toBe(5);
    expect(steppedCpu({ ...begun, cpu: 5 }, CPUS, 1).cpu).toBe(null);
    expect(steppedCpu(begun, CPUS, -1).cpu).toBe(5);
  });

  test("following keeps the view's length and ends where the recording does", () => {
    const seen = followed({ ...begun, view: [100_000, 160_000], window: [150_000, 152_000] }, SPAN, [0, 3_602_000]);
    expect([seen.view, seen.window]).toEqual([[3_542_000, 3_602_000], [3_600_000, 3_602_000]]);
    const first = followed(initialState([0, 4000]), [0, 4000], [0, 6000]);
    expect([first.view, first.window]).toEqual([[0, 6000], [1000, 6000]]);
    expect(followed(first, [0, 6000], [0, 119_000]).view).toEqual([0, 119_000]);
    expect(followed({ ...first, view: [0, 119_000] }, [0, 119_000], [0, 121_000]).view).toEqual([2000, 121_000]);
  });

  test("the baseline lies before the window, or after it at the start", () => {
    expect(baselineBefore([10_000, 15_000], SPAN)).toEqual([5000, 10_000]);
    expect(baselineBefore([0, 5000], SPAN)).toEqual([5000, 10_000]);
    expect(baselineBefore([0, 3_600_000], SPAN)).toBe(null);
  });
});

describe("moments", () => {
  test("survive digits without losing a microsecond", () => {
    expect(at.digits(0)).toBe("1794795289190373460");
    expect(at.ofDigits("1794795289190374460")).toBe(0.001);
    expect(at.ofMicros(at.micros(123.456))).toBeCloseTo(123.456, 2);
  });

  test("are told as short as the step allows", () => {
    const date = new Date("2026-11-16T02:14:57.213Z");
    expect([timeText(date, 60_000), timeText(date, 1000), timeText(date, 1)]).toEqual(["02:14", "02:14:57", "02:14:57.213"]);
    expect([90_000, 150_000, 0.02, 86_400_000, 2500].map(durationText)).toEqual(["90 s", "2.5 min", "20 µs", "1 d", "2.5 s"]);
  });
});
