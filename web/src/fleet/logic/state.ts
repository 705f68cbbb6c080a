// The whole state of the fleet's page, as it stands in a link, and the moves that change it.
import type { Choices } from "./answers";

export const TABS = ["why", "incidents", "nodes", "compare", "flame", "change", "jobs"] as const;
export type Tab = (typeof TABS)[number];
export const TAB_TEXT: Record<Tab, string> = { why: "Why", incidents: "Incidents", nodes: "Nodes", compare: "Compare", flame: "Flame graph", change: "Did it help", jobs: "Jobs" };

export const PERIODS: readonly (readonly [since: string, text: string])[] = [
  ["-1h", "last hour"], ["-6h", "last 6 hours"], ["-24h", "last 24 hours"], ["-3d", "last 3 days"], ["-7d", "last 7 days"], ["-30d", "last 30 days"],
];

/** What is counted and explained: an event by its kind, or the verdicts of a cause by its slug. */
export interface About {
  what: "event" | "cause";
  name: string;
}

export interface State {
  tab: Tab;
  about: About;
  /** As the collector reads moments: `-7d`, or ISO 8601. */
  since: string;
  until: string;
  /** The label by which bars are stacked. */
  by: string;
  /** An expression that chooses nodes; empty: all. */
  where: string;
  /** The column of the list, with `-` before it from the largest down. */
  sort: string;
  /** Two cohorts, for `compare` and `flame`; empty: those with what is asked about, and the others. */
  a: string;
  b: string;
  /** The incident whose verdict is read: `cluster/node/id`. */
  incident: string;
  /** The run of a job whose story is read: `job@end`. */
  job: string;
  /** The fact whose change is judged: `kind:name=value`. */
  fact: string;
  /** The flame graph of the first cohort only. */
  isAlone: boolean;
  /** Incidents of every kind in their list. */
  isAll: boolean;
  search: string;
}

export const FIRST: State = {
  tab: "why",
  about: { what: "event", name: "nic_reset" },
  since: "-7d",
  until: "",
  by: "zone",
  where: "",
  sort: "",
  a: "",
  b: "",
  incident: "",
  job: "",
  fact: "",
  isAlone: false,
  isAll: false,
  search: "",
};
const TEXTS = ["since", "until", "by", "where", "sort", "a", "b", "incident", "job", "fact", "search"] as const;

export function toHash(state: State): string {
  const words = new URLSearchParams({ tab: state.tab });
  words.set(state.about.what, state.about.name);
  for (const name of TEXTS) {
    if (state[name] !== FIRST[name]) words.set(name, state[name]);
  }
  if (state.isAlone) words.set("alone", "1");
  if (state.isAll) words.set("all", "1");
  return `#${words.toString()}`;
}

/** A link may be old, cut or made by hand: what does not make sense is as the page begins. */
export function ofHash(hash: string): State {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const tab = words.get("tab") as Tab;
  const [isAlone, isAll] = ["alone", "all"].map((name) => words.get(name) === "1") as [boolean, boolean];
  const state: State = { ...FIRST, tab: TABS.includes(tab) ? tab : FIRST.tab, about: aboutOf(words), isAlone, isAll };
  for (const name of TEXTS) state[name] = words.get(name) ?? FIRST[name];
  return state;
}

function aboutOf(words: URLSearchParams): About {
  for (const what of ["event", "cause"] as const) {
    const name = words.get(what);
    if (name) return { what, name };
  }
  return FIRST.about;
}

/** A choice of the list, and back. */
export const aboutText = ({ what, name }: About): string => `${what}=${name}`;

export function ofAboutText(text: string): About {
  const [what, ...rest] = text.split("=");
  return { what: what === "cause" ? what : "event", name: rest.join("=") };
}

/** Where nobody chose and the usual one did not happen: an event of the gravest kind there is, else the most frequent cause. */
export function firstAbout(choices: Choices, rank: (kind: string) => number): About | null {
  if (!choices.events.length && !choices.causes.length) return null;
  if (choices.events.some(({ name }) => name === FIRST.about.name)) return FIRST.about;
  const [cause] = choices.causes;
  const [event] = [...choices.events].sort((a, b) => rank(a.name) - rank(b.name));
  if (event && (rank(event.name) === 0 || !cause)) return { what: "event", name: event.name };
  return { what: "cause", name: cause!.name };
}

/** Is it another place, worth a step in the browser's history, or only another look at the same? */
export const isAnotherPlace = (before: State, after: State): boolean => before.search === after.search;

const QUIET = /^[\w.:/@-]+$/;
const RESERVED = new Set(["and", "or", "not"]);

/** A name or value as `where` reads it. Quotes cannot be escaped there: what has both kinds is matched by `?` in their place. */
export function quoted(text: string): string {
  if (QUIET.test(text) && !RESERVED.has(text)) return text;
  if (!text.includes('"')) return `"${text}"`;
  return text.includes("'") ? `"${text.replaceAll('"', "?")}"` : `'${text}'`;
}

export const equals = (name: string, value: string): string => `${quoted(name)}=${quoted(value)}`;

/** Adds a condition, or takes it away where it stands as it is. */
export function toggledWhere(where: string, condition: string): string {
  const parts = where ? where.split(" and ") : [];
  if (parts.includes(condition)) return parts.filter((part) => part !== condition).join(" and ");
  return where.includes(" or ") ? `(${where}) and ${condition}` : [...parts, condition].join(" and ");
}

/** The cohorts that `compare` and `flame` speak of. */
export function cohorts(state: State): { a: string; b: string } {
  const { what, name } = state.about;
  const affected = equals(what, name);
  const within = (expression: string) => (state.where ? `${expression} and (${state.where})` : expression);
  const a = state.a || within(affected);
  return { a, b: state.b || (state.a ? `not (${state.a})` : within(`not ${affected}`)) };
}
