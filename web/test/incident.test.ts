import { expect, test } from "vitest";
import { commandApart } from "../src/logic/incident";

test("a command at the end of advice is taken apart, with its times", () => {
  const command = "necroscope flame DIR --from 2026-11-18T13:56:32.636Z --cpu 1 -o incident.html";
  expect(commandApart(`look at the flame graph of it: ${command}`)).toEqual(["look at the flame graph of it:", command]);
});

test("advice without a command at its end stays whole", () => {
  for (const advice of ["keep the recorder running", "purge them: necroscope treat purge (shows it; --yes does it)"]) {
    expect(commandApart(advice)).toEqual([advice, null]);
  }
});
