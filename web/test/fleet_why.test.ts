import { describe, expect, test } from "vitest";
import type { Leader, Table } from "../src/fleet/logic/answers";
import { chanceText, deciding, moreText, partingText, percentText, rateText, relationText, strata, timesMore, titleOf, withIt, withoutIt } from "../src/fleet/logic/why";

const table = (affected_with: number, well_with: number, affected_without: number, well_without: number): Table => ({ affected_with, well_with, affected_without, well_without });
const predicate = (kind: string, name: string, value: string) => ({ kind, name, value, is_negated: false, text: `${name} is ${value}` });

// Zone a beside the unit that most of its nodes run.
const ZONE: Leader = {
  name: "sysctl vm.swappiness is 10", facts: [predicate("sysctl", "vm.swappiness", "10")], places: [predicate("label", "zone", "a")],
  table: table(14, 6, 2, 38), chance: 1e-7, relation: "proxy", first_where_it_is: table(14, 3, 0, 3), first_elsewhere: table(2, 0, 0, 38),
  first_only: { affected: ["gpu-27", "gpu-45"], well: [] }, this_only: { affected: [], well: ["gpu-03", "gpu-09", "gpu-16"] }, words: "",
};

describe("the counts of a difference", () => {
  test("are of nodes with it and without", () => {
    expect([withIt(ZONE.table), withoutIt(ZONE.table)]).toEqual([{ affected: 14, nodes: 20 }, { affected: 2, nodes: 40 }]);
    expect(rateText(withIt(ZONE.table))).toBe("14 of 20 affected");
    expect(rateText({ affected: 0, nodes: 0 })).toBe("no such node");
    expect(timesMore(ZONE.table)).toBeCloseTo(14);
    expect(timesMore(table(3, 1, 0, 9))).toBe(null);
    expect([table(14, 6, 8, 32), table(116, 57, 1, 326), table(3, 1, 0, 9)].map(moreText)).toEqual(["nodes with it are affected 3.5 times as often", "of the others 1 of 327 was affected", "no other node was affected"]);
  });

  test("are percent that can be read", () => {
    expect([0, 0.0163, 0.2329, 0.999, 1].map(percentText)).toEqual(["0 %", "1.6 %", "23 %", "100 %", "100 %"]);
    expect([0.2, 0.004, 6.5e-12, 1e-20, 0].map(chanceText)).toEqual(["20 %", "1 in 250", "1 in 150 billion", "less than 1 in a trillion", "less than 1 in a trillion"]);
  });
});

describe("a place beside the first difference", () => {
  test("is told as the place that people ask about", () => {
    expect(titleOf(ZONE)).toBe("zone is a, with 1 fact of the very same nodes");
    expect(titleOf({ ...ZONE, places: [] })).toBe("sysctl vm.swappiness is 10");
  });

  test("is a proxy, and the nodes that decide are in the cells where the two part", () => {
    const [[both, placeOnly], [firstOnly, neither]] = strata(ZONE);
    expect([both, neither].map(({ names }) => names)).toEqual([null, null]);
    expect(placeOnly).toEqual({ affected: 0, nodes: 3, names: { affected: [], well: ["gpu-03", "gpu-09", "gpu-16"] } });
    expect(firstOnly).toEqual({ affected: 2, nodes: 2, names: { affected: ["gpu-27", "gpu-45"], well: [] } });
    expect(both.nodes + placeOnly.nodes + firstOnly.nodes + neither.nodes).toBe(60);
    expect(deciding(ZONE)).toBe(5);
    expect(relationText(ZONE)).toContain("a place by itself breaks nothing");
    expect(relationText({ ...ZONE, places: [] })).toContain("adds nothing");
    expect(partingText(ZONE)).toBe("Nodes with this but without the first: 0 of 3 affected. Nodes with the first but without this: 2 of 2 affected.");
  });

  test("cannot be told apart where no node has one without the other", () => {
    const none = { affected: [], well: [] };
    expect(relationText({ ...ZONE, relation: "inseparable", first_only: none, this_only: none })).toContain("no node has one without the other");
    expect(relationText({ ...ZONE, relation: "inseparable" })).toContain("differ on 5 nodes only");
  });
});
