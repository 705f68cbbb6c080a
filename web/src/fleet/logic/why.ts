// The answer to `why` as pictures and words: shares, the four groups of nodes that two differences make, and what a relation means.
import type { Leader, Table } from "./answers";

export interface Group {
  affected: number;
  nodes: number;
}

export const withIt = (table: Table): Group => ({ affected: table.affected_with, nodes: table.affected_with + table.well_with });
export const withoutIt = (table: Table): Group => ({ affected: table.affected_without, nodes: table.affected_without + table.well_without });
export const rate = ({ affected, nodes }: Group): number => (nodes ? affected / nodes : 0);

const FEW = 5;

export function rateText(group: Group): string {
  if (!group.nodes) return "no such node";
  return `${group.affected.toLocaleString("en")} of ${group.nodes.toLocaleString("en")} affected`;
}

export function percentText(share: number): string {
  const percent = share * 100;
  if (percent === 0 || percent >= 10) return `${Math.round(percent)} %`;
  return `${Number(percent.toPrecision(2))} %`;
}

/** How much more often nodes with it were affected; null where the others never were. */
export function timesMore(table: Table): number | null {
  const without = rate(withoutIt(table));
  return without ? rate(withIt(table)) / without : null;
}

/** How much more often, in words; a handful of nodes without it makes no figure. */
export function moreText(table: Table): string {
  const [times, few] = [timesMore(table), table.affected_without];
  if (times === null) return "no other node was affected";
  if (few < FEW) return `of the others ${few} of ${few + table.well_without} ${few === 1 ? "was" : "were"} affected`;
  return `nodes with it are affected ${Number(times.toPrecision(2)).toLocaleString("en")} times as often`;
}

/** A place that holds on the very nodes of some facts is what people ask about, so it comes first. */
export function titleOf(leader: Leader): string {
  const [place] = leader.places;
  if (!place) return leader.name;
  const carried = leader.facts.length;
  return carried ? `${place.text}, with ${carried} ${carried === 1 ? "fact" : "facts"} of the very same nodes` : place.text;
}

export interface Cell extends Group {
  /** Nodes that have one of the two differences only: they decide between them. */
  names: { affected: string[]; well: string[] } | null;
}

/** Rows: has this difference, has it not. Columns: has the first one, has it not. */
export function strata(leader: Leader): [[Cell, Cell], [Cell, Cell]] {
  const { first_where_it_is: here, first_elsewhere: elsewhere } = leader;
  return [
    [{ ...withIt(here), names: null }, { ...withoutIt(here), names: leader.this_only }],
    [{ ...withIt(elsewhere), names: leader.first_only }, { ...withoutIt(elsewhere), names: null }],
  ];
}

export const deciding = (leader: Leader): number =>
  [leader.first_only, leader.this_only].reduce((sum, { affected, well }) => sum + affected.length + well.length, 0);

export function relationText(leader: Leader): string {
  const count = deciding(leader);
  switch (leader.relation) {
    case "first":
      return "";
    case "same subject":
      return "says the same of the same thing";
    case "proxy":
      return leader.places.length
        ? "only a proxy: a place by itself breaks nothing. Among nodes alike in the first difference it does not matter which of them are there"
        : "only a proxy: among nodes alike in the first difference it adds nothing";
    case "inseparable":
      return count
        ? `cannot be separated from the first: the two differ on ${count} ${count === 1 ? "node" : "nodes"} only`
        : "cannot be separated from the first: no node has one without the other";
    default:
      return "matters in addition to the first: among nodes alike in the first it still goes with the failures";
  }
}

/** What the nodes say that have one of the two only. */
export function partingText(leader: Leader): string {
  const [[, thisOnly], [firstOnly]] = strata(leader);
  const shown = (group: Group) => (group.nodes ? rateText(group) : "none");
  return `Nodes with this but without the first: ${shown(thisOnly)}. Nodes with the first but without this: ${shown(firstOnly)}.`;
}

export const BADGES: Record<string, string> = {
  first: "first",
  "same subject": "same thing",
  proxy: "proxy",
  inseparable: "not excluded",
  "of its own": "of its own",
};

/** Chance as people say it. */
export function chanceText(chance: number): string {
  if (chance >= 0.01) return percentText(chance);
  if (chance <= 1e-12) return "less than 1 in a trillion";
  const one = 1 / chance;
  const [size, unit] = one >= 1e9 ? [1e9, " billion"] : one >= 1e6 ? [1e6, " million"] : [1, ""];
  return `1 in ${Number((one / size).toPrecision(2)).toLocaleString("en")}${unit}`;
}
