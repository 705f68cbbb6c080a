// Counters in words, and which of them the lane shows.
import { describe, expect, it } from "vitest";
import { shownSeries, valueText } from "../src/logic/counters";
import type { CounterSeries } from "../src/logic/answers";

const series = (name: string): CounterSeries => ({ name, meaning: "", unit: "per second", time: [], value: [] });

describe("a value", () => {
  it("has its unit and few digits", () => {
    expect(valueText(123_456, "per second")).toBe("123k/s");
    expect(valueText(0.25, "per second")).toBe("0.3/s");
    expect(valueText(3 * 2 ** 30, "bytes")).toBe("3.0 GiB");
    expect(valueText(0, "bytes")).toBe("0 B");
    expect(valueText(2_500_000, "objects")).toBe("2.5M");
    expect(valueText(0.875, "share")).toBe("88 %");
  });
});

describe("the series that is shown", () => {
  it("is the chosen one while the answer has it, else the one that moved most", () => {
    const found = [series("memory.pgfault"), series("network.listen_drops")];
    expect(shownSeries(found, "network.listen_drops")?.name).toBe("network.listen_drops");
    expect(shownSeries(found, "memory.gone")?.name).toBe("memory.pgfault");
    expect(shownSeries([], null)).toBeNull();
  });
});
