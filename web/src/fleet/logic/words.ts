// Small texts: how long ago, how bad, how sure.
import { dayText, timeText } from "../../logic/moment";
import type { IncidentRow, Rates, WorstCore } from "./answers";
import { percentText } from "./why";

const LONGEST_WINDOW_MS = 10_000;

const UNITS: [string, number][] = [["d", 86_400_000], ["h", 3_600_000], ["min", 60_000], ["s", 1000]];

/** In whole units: nobody needs the seconds of an hour. */
export function lengthText(ms: number): string {
  const [unit, size] = UNITS.find(([, each]) => ms >= 2 * each) ?? UNITS[3]!;
  return `${Math.round(ms / size)} ${unit}`;
}

export function momentText(iso: string): string {
  const date = new Date(iso);
  return `${dayText(date).slice(5)} ${timeText(date, 1000)}`;
}

export function shareText(worst: WorstCore | undefined): string {
  return worst ? `${Math.round(worst.share * 100)} % ${worst.mode}, core ${worst.core}` : "–";
}

/** `offset_ns` is the collector's clock minus the node's. */
export const clockText = (offset_ns: number): string => `clock off by ${lengthText(Math.abs(offset_ns) / 1e6)} (${offset_ns > 0 ? "behind" : "ahead"})`;

/** The rate after a change in parts of the rate before, as far as it is known. */
export function ratioText({ ratio_low, ratio_high }: Pick<Rates, "ratio_low" | "ratio_high">): string {
  if (ratio_low === null) return "–";
  return `${percentText(ratio_low)} ${ratio_high === null ? "or more" : `to ${percentText(ratio_high)}`} of before`;
}

/** Where the evidence of an incident opens in the time machine, at the incident; null if there is none. */
export function evidenceAddress(row: IncidentRow): string | null {
  if (row.bundle === null) return null;
  const parts = [row.cluster, row.from.slice(0, 10), `${row.node}--${row.bundle}.bundle`].map(encodeURIComponent);
  const [from, to] = [Date.parse(row.from), Date.parse(row.to)];
  const window = [from, Math.max(Math.min(to, from + LONGEST_WINDOW_MS), from + 1000)].map((ms) => Math.round(ms * 1000)).join("-");
  const words = new URLSearchParams({ window, incident: row.id });
  if (row.core !== null) words.set("core", String(row.core));
  if (row.mode !== null) words.set("mode", row.mode);
  return `evidence/${parts.join("/")}/#${words.toString()}`;
}
