import { describe, expect, test } from "vitest";
import { unpack } from "../src/lib/packed";
import { scale } from "../src/lib/range";
import type { EventRow, Evidence, Incident } from "../src/logic/answers";
import { busiest, cellValue, coreMap, labelledRows, rowHeight, tellingMode } from "../src/logic/core_map";
import { marks } from "../src/logic/events";
import { cellAt, minuteOf, stretch } from "../src/logic/heat";
import { laneOf, ranked, withEvidence, withIncident } from "../src/logic/incident";
import { clock } from "../src/logic/moment";
import { initialState } from "../src/logic/state";
import type { Range } from "../src/lib/range";

const at = clock("1760000000000000000");
const iso = (second: number) => new Date(1_760_000_000_000 + second * 1000).toISOString();

function packed(header: object, values: Uint8Array): ArrayBuffer {
  const text = new TextEncoder().encode(JSON.stringify({ ...header, arrays: [{ name: "busy", type: "u8", shape: [2, values.length / 2] }] }));
  const start = Math.ceil((4 + text.length) / 8) * 8;
  const data = new Uint8Array(start + values.length);
  new DataView(data.buffer).setUint32(0, text.length, true);
  data.set(text, 4);
  data.set(values, start);
  return data.buffer;
}

test("the core map reads shares, holes and what is not read yet", () => {
  const data = packed({ from: "1760000001000000000", column_ns: 5e8, cpus: [0, 3], left_out: [], is_complete: false }, Uint8Array.from([0, 125, 255, 254, 250, 10]));
  const map = coreMap(unpack(data), at);
  expect([map.range, map.columns, map.isComplete]).toEqual([[1000, 2500], 3, false]);
  expect([0, 1, 2].map((column) => cellValue(map, "busy", 0, column))).toEqual([0, 0.5, null]);
  expect(busiest(map, "busy")).toEqual({ moment: 1750, cpu: 3, share: 1 });
  expect(busiest(map, "steal")).toBe(null);
});

test("the core map opens on the mode that has something to show", () => {
  const map = (shares: Record<string, number>) => ({
    range: [0, 1000] as Range, column_ms: 1000, columns: 1, cpus: [0], leftOut: [], isComplete: true,
    arrays: Object.fromEntries(Object.entries(shares).map(([mode, share]) => [mode, Uint8Array.from([share * 250])])),
  });
  expect(tellingMode(map({ system: 0.6, user: 0.9, softirq: 0 }))).toBe("system");
  expect(tellingMode(map({ system: 0.02, user: 0.9, softirq: 0 }))).toBe("user");
  expect(tellingMode(map({ system: 0.02, user: 0.9, steal: 0.7 }))).toBe("steal");
  expect(tellingMode(map({ system: 0, user: 0 }))).toBe("system");
});

test("rows fit two cores and two hundred", () => {
  expect([2, 96, 192].map((cores) => rowHeight(cores, 400))).toEqual([26, 4, 2]);
  expect(labelledRows(192, 2).length).toBe(24);
  expect(labelledRows(2, 26)).toEqual([0, 1]);
});

test("events that would lie on each other become one mark of the gravest kind", () => {
  const event = (kind: string) => ({ kind }) as EventRow;
  const found = marks([event("unit_restart"), event("nic_reset"), event("oom_kill")], [0, 1000, 50_000], scale([0, 100_000], 1000), 17);
  expect(found.map((mark) => [mark.mark, mark.events.length])).toEqual([["R", 2], ["O", 1]]);
});

describe("the minute", () => {
  test("lies around the window, within the recording", () => {
    expect(minuteOf([30_000, 40_000], [0, 600_000])).toEqual([5000, 65_000]);
    expect(minuteOf([0, 1000], [0, 600_000])).toEqual([0, 60_000]);
    expect(minuteOf([0, 1000], [0, 20_000])).toEqual([0, 20_000]);
  });

  test("a drag goes from cell to cell, in either direction", () => {
    const grid = { start: 0, column_ms: 1000, columns: 60, rows: 50 };
    const [a, b] = [cellAt(grid, 15, 75, 600, 150), cellAt(grid, 25, 0, 600, 150)];
    expect(stretch(grid, a, b)).toEqual([1500, 2020]);
    expect(stretch(grid, b, a)).toEqual([1500, 2020]);
  });
});

describe("incidents", () => {
  const incident = (id: string, kinds: string[], confidence: number): Incident => ({
    id, from: iso(60), to: iso(90), core: 1, mode: "system", alternatives: [],
    events: kinds.map((kind) => ({ time: iso(61), kind, core: 1, device: null, message: "" })),
    episodes: [
      { kind: "thread_delayed", core: 1, mode: null, from: iso(60), to: iso(90), text: "", table: "runqueue" },
      { kind: "saturated", core: 1, mode: "system", from: iso(65), to: iso(85), text: "", table: "cores" },
    ],
    verdict: { cause: "rt-hog", confidence, summary: "", culprit: null, origin: null, evidence: [], against: [], fix: [], verify: [], will_not_help: [] },
  });
  const span: Range = [0, 7_200_000];
  const state = initialState(span);

  test("that broke something come first", () => {
    const order = ranked([incident("sure", [], 0.9), incident("reset", ["nic_reset"], 0.4), incident("surer", ["unit_restart"], 0.95)]);
    expect(order.map(({ id }) => id)).toEqual(["reset", "surer", "sure"]);
  });

  test("open at the moment in which the core was held", () => {
    const next = withIncident({ ...state, comm: "x" }, incident("a", [], 0.9), at, span);
    expect(next.window).toEqual([65_000, 75_000]);
    expect([next.cpu, next.mode, next.incident, next.comm]).toEqual([1, "system", "a", ""]);
    expect(next.view[0]).toBeLessThan(60_000);
    expect(next.view[1]).toBeGreaterThan(90_000);
  });

  test("evidence leads to its time, core and lane", () => {
    const evidence: Evidence = { text: "", from: iso(70), to: iso(70), core: 3, table: "events" };
    const next = withEvidence(state, evidence, incident("a", [], 0.9), at, span);
    expect(next.window).toEqual([65_000, 71_000]);
    expect(next.cpu).toBe(3);
    expect(laneOf(evidence)).toBe("events");
    expect(withEvidence(state, { ...evidence, table: "softirq_delay" }, incident("a", [], 0.9), at, span).mode).toBe("delay");
  });
});
