import { expect, test } from "vitest";
import { embeddedSource } from "../src/logic/embedded_source";
import { clock } from "../src/logic/moment";

/** As the server packs it: the header's length, the header, then arrays, all padded to 8 bytes. */
function packed(header: object, values: Record<string, number[]>): ArrayBuffer {
  const arrays = Object.entries(values).map(([name, numbers]) => ({ name, type: "i32", shape: [numbers.length] }));
  const text = new TextEncoder().encode(JSON.stringify({ ...header, arrays }));
  const padded = (size: number) => Math.ceil(size / 8) * 8;
  const data = new ArrayBuffer(padded(4 + text.length) + Object.values(values).reduce((sum, numbers) => sum + padded(4 * numbers.length), 0));
  new DataView(data).setUint32(0, text.length, true);
  new Uint8Array(data).set(text, 4);
  let place = padded(4 + text.length);
  for (const numbers of Object.values(values)) {
    new Int32Array(data, place, numbers.length).set(numbers);
    place = padded(place + 4 * numbers.length);
  }
  return data;
}

const ONE = { time: [], cpu: [], stack: [], weight: [], task: [], parent: [], frame: [], kind: [] };
const QUESTION = { window: [1000, 2000] as [number, number], baseline: null, cpu: null, pid: null, comm: "", cgroup: "", group: "core", isTurned: true, of: "samples" as const, least: 0 };
const header = {
  state: "window=1000000-2000000&group=core&turned=1", recording: { cpus: [0] }, report: null, names: [], who: [],
  samples: { spans: [["0", "1500000000"]], left_out: ["only of comm sh"] },
  flame: { names: ["exact"], samples: 9, from: "0", to: "0", left_out: [] },
};
const source = embeddedSource(packed(header, { ...ONE, flame_total: [9] }), () => clock("0"));

test("the graph that a file opens with is that of all samples", async () => {
  const first = await source.flame(QUESTION);
  expect(first.header.names).toEqual(["exact"]);
  expect([...first.arrays["total"]!]).toEqual([9]);
});

test("any other is of the samples in the file, and says what they lack", async () => {
  const other = await source.flame({ ...QUESTION, group: "" });
  expect(other.header.left_out).toEqual(["only of comm sh", "this file holds samples of a part of this window only"]);
  expect((await source.flame({ ...QUESTION, window: [0, 1000] })).header.left_out).toEqual(["only of comm sh"]);
});

test("a file without a diagnosis says so", async () => {
  await expect(source.report()).rejects.toThrow("without a diagnosis");
});
