import { describe, expect, test } from "vitest";
import type { IncidentRow } from "../src/fleet/logic/answers";
import { clockText, evidenceAddress, lengthText, momentText, ratioText, shareText } from "../src/fleet/logic/words";

const INCIDENT: IncidentRow = {
  cluster: "eu-1", node: "gpu-17", id: "2026-11-16T05:01:15.986Z-core1", from: "2026-11-16T00:01:15.500Z", to: "2026-11-16T00:05:00Z", core: 1, mode: "system",
  cause: "rt-hog", confidence: 0.9, title: null, summary: null, culprit_comm: null, culprit_cgroup: null, culprit_unit: null, culprit_container: null,
  origin_kind: null, origin_name: null, events: [], bundle: "20261115T235615Z",
};

describe("evidence", () => {
  test("opens in the time machine at its incident, at most ten seconds of it", () => {
    const address = new URL(evidenceAddress(INCIDENT)!, "https://collector/");
    expect(address.pathname).toBe("/evidence/eu-1/2026-11-16/gpu-17--20261115T235615Z.bundle/");
    const words = new URLSearchParams(address.hash.slice(1));
    expect([words.get("core"), words.get("mode"), words.get("incident")]).toEqual(["1", "system", INCIDENT.id]);
    const [from, to] = words.get("window")!.split("-").map(Number);
    expect(from).toBe(Date.parse(INCIDENT.from) * 1000);
    expect(to! - from!).toBe(10_000_000);
  });

  test("that is not there is no link", () => expect(evidenceAddress({ ...INCIDENT, bundle: null })).toBe(null));

  test("of a hostile name stays below its path", () => {
    const address = new URL(evidenceAddress({ ...INCIDENT, cluster: "../..", node: "a/../b?#" })!, "https://collector/");
    expect(address.pathname.startsWith("/evidence/")).toBe(true);
    expect(address.search).toBe("");
  });
});

describe("texts", () => {
  test("say how long ago, when and how bad", () => {
    expect([500, 90_400, 454_000, 3 * 3_600_000, 50 * 3_600_000].map(lengthText)).toEqual(["1 s", "90 s", "8 min", "3 h", "2 d"]);
    expect(momentText("2026-11-16T05:01:15.986Z")).toBe("11-16 05:01:15");
    expect(shareText(undefined)).toBe("–");
    expect(shareText({ cluster: "c", node: "n", core: 3, mode: "softirq", share: 0.994, at: "" })).toBe("99 % softirq, core 3");
  });

  test("say how far a clock is off, and to which side", () => {
    expect([86_400e9, -5e9].map(clockText)).toEqual(["clock off by 24 h (behind)", "clock off by 5 s (ahead)"]);
  });

  test("say how far a rate fell", () => {
    expect(ratioText({ ratio_low: 0, ratio_high: 0.297 })).toBe("0 % to 30 % of before");
    expect(ratioText({ ratio_low: 0.6, ratio_high: null })).toBe("60 % or more of before");
    expect(ratioText({ ratio_low: null, ratio_high: null })).toBe("–");
  });
});
