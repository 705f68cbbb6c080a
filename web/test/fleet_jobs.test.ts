// A run of a job in the address, and blames in words.
import { expect, test } from "vitest";
import { blameText, jobKey, ofJobKey } from "../src/fleet/logic/jobs";

test("a run is named by its id and its end, and found again", () => {
  const run = { job: "torch/a@b:29500", to: "2026-04-09T00:00:00.000Z" };
  expect(ofJobKey(jobKey(run))).toEqual({ job: run.job, at: run.to });
  expect(ofJobKey("slurm/4711")).toEqual({ job: "slurm/4711", at: "" });
});

test("what is not the machine is never called so", () => {
  expect(blameText("machine")).toBe("the machine");
  expect(["program", "killed", "preempted", "unknown"].map(blameText)).not.toContain("the machine");
  expect(blameText(null)).toBe("–");
  expect(blameText("something newer")).toBe("something newer");
});
