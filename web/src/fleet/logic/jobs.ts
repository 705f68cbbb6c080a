// Jobs in words and in the address: an id may be used again, so a run is named by its id and its end.
import type { EndedJob } from "./answers";

export const jobKey = ({ job, to }: Pick<EndedJob, "job" | "to">): string => `${job}@${to}`;

export function ofJobKey(key: string): { job: string; at: string } {
  const place = key.lastIndexOf("@");
  return place < 0 ? { job: key, at: "" } : { job: key.slice(0, place), at: key.slice(place + 1) };
}

const BLAMES: Record<string, string> = {
  machine: "the machine",
  program: "the program",
  memory_limit: "its memory limit",
  killed: "killed",
  stopped: "told to end",
  preempted: "the scheduler",
  node_silent: "a silent node",
  unknown: "not known",
};

export const blameText = (blame: string | null): string => (blame === null ? "–" : (BLAMES[blame] ?? blame));
