import { describe, expect, test } from "vitest";
import { sorted, turned, type Column } from "../src/fleet/logic/sorting";

interface Row {
  node: string;
  count: number | null;
}
const COLUMNS: Column<Row>[] = [
  { name: "node", title: "node", value: ({ node }) => node },
  { name: "count", title: "count", value: ({ count }) => count, isNumber: true },
];
const ROWS: Row[] = [{ node: "gpu-10", count: 2 }, { node: "gpu-9", count: null }, { node: "<b>", count: 10 }];
const names = (sort: string) => sorted(ROWS, COLUMNS, sort).map(({ node }) => node);

describe("a list", () => {
  test("sorts names as people do", () => expect(names("node")).toEqual(["<b>", "gpu-9", "gpu-10"]));
  test("puts what is missing last, both ways", () => {
    expect(names("count")).toEqual(["gpu-10", "<b>", "gpu-9"]);
    expect(names("-count")).toEqual(["<b>", "gpu-10", "gpu-9"]);
  });
  test("of an unknown order stays as it came", () => expect(names("-evil")).toEqual(["gpu-10", "gpu-9", "<b>"]));
  test("turns round with the second click", () => {
    expect(turned("", COLUMNS[1]!)).toBe("-count");
    expect(turned("-count", COLUMNS[1]!)).toBe("count");
    expect(turned("-count", COLUMNS[0]!)).toBe("node");
    expect(turned("node", COLUMNS[0]!)).toBe("-node");
  });
});
