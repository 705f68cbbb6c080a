import { describe, expect, test } from "vitest";
import { aboutText, cohorts, equals, FIRST, firstAbout, ofAboutText, ofHash, quoted, toggledWhere, toHash, type State } from "../src/fleet/logic/state";

describe("the address of the fleet's page", () => {
  const full: State = {
    tab: "compare", about: { what: "cause", name: "zombie-memcg-walk" }, since: "2026-11-01", until: "2026-11-02T03:04:05Z", by: "image",
    where: 'zone=a and image!="x y"', sort: "-incidents", a: "node=gpu-17", b: "zone=b & <b>", incident: "c/n/2026-core1", job: "slurm/1@2026", fact: "unit_file:x=masked", isAlone: true, isAll: true, search: "mem",
  };

  test("holds the whole state", () => expect(ofHash(toHash(full))).toEqual(full));

  test("is short where nothing was chosen", () => expect(toHash(FIRST)).toBe("#tab=why&event=nic_reset"));

  test("that makes no sense is as the page begins", () => {
    expect(ofHash("#tab=evil&event=&alone=2")).toEqual(FIRST);
    expect(ofHash("")).toEqual(FIRST);
  });

  test("holds what is asked about", () => {
    for (const text of ["event=nic_reset", "cause=a=b"]) expect(aboutText(ofAboutText(text))).toBe(text);
  });
});

test("what is asked about first is the gravest thing that happened", () => {
  const rank = (kind: string) => (kind === "soft_lockup" ? 0 : 2);
  const named = (...names: string[]) => names.map((name) => ({ name, nodes: 3 }));
  const first = (events: string[], causes: string[]) => firstAbout({ clusters: [], events: named(...events), causes: named(...causes), labels: [] }, rank);
  expect(first([], [])).toBe(null);
  expect(first(["unit_restart", "nic_reset"], ["x"])).toEqual(FIRST.about);
  expect(first(["unit_restart", "soft_lockup"], ["x"])).toEqual({ what: "event", name: "soft_lockup" });
  expect(first(["unit_restart"], ["x"])).toEqual({ what: "cause", name: "x" });
  expect(first(["unit_restart"], [])).toEqual({ what: "event", name: "unit_restart" });
});

describe("expressions", () => {
  test("quote what is no plain word", () => {
    expect(quoted("us-east-1a")).toBe("us-east-1a");
    expect(quoted("not")).toBe('"not"');
    expect(quoted("a b")).toBe('"a b"');
    expect(quoted('say "x"')).toBe(`'say "x"'`);
    expect(quoted(`"it's"`)).toBe(`"?it's?"`);
    expect(quoted("")).toBe('""');
    expect(equals("zone", "")).toBe('zone=""');
  });

  test("gain and lose a condition", () => {
    expect(toggledWhere("", "zone=a")).toBe("zone=a");
    expect(toggledWhere("zone=a and image=x", "zone=a")).toBe("image=x");
    expect(toggledWhere("zone=a or zone=b", "image=x")).toBe("(zone=a or zone=b) and image=x");
  });

  test("of two cohorts are the affected and the others, unless somebody chose", () => {
    expect(cohorts(FIRST)).toEqual({ a: "event=nic_reset", b: "not event=nic_reset" });
    expect(cohorts({ ...FIRST, where: "zone=a" }).b).toBe("not event=nic_reset and (zone=a)");
    expect(cohorts({ ...FIRST, a: "zone=a" })).toEqual({ a: "zone=a", b: "not (zone=a)" });
  });
});
