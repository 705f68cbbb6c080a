// The keyboard: one table from which the keys act and the help is written.
import { toggleTheme } from "../../lib/theme";
import { PERIODS, TABS, TAB_TEXT } from "../logic/state";
import type { App } from "./app";

interface Key {
  keys: string[];
  help: string;
  act(app: App): void;
}

const focus = (id: string) => () => document.getElementById(id)?.focus();

export const KEYS: Key[] = [
  ...TABS.map((tab, place) => ({ keys: [String(place + 1)], help: TAB_TEXT[tab].toLowerCase(), act: (app: App) => app.move({ tab }) })),
  { keys: ["w"], help: "what is asked about: an event or a cause", act: focus("about") },
  { keys: ["b"], help: "bars by another label", act: focus("by") },
  { keys: ["n"], help: "which nodes: an expression", act: focus("where") },
  { keys: ["+", "="], help: "a shorter time", act: (app) => stepPeriod(app, -1) },
  { keys: ["-"], help: "a longer time", act: (app) => stepPeriod(app, 1) },
  { keys: ["/"], help: "search in the flame graph", act: focus("search") },
  { keys: ["g"], help: "into the flame graph: arrows walk, Esc leaves", act: focus("flame") },
  { keys: ["r"], help: "ask again", act: (app) => app.round.set(app.round.get() + 1) },
  { keys: ["t"], help: "dark or light", act: toggleTheme },
  { keys: ["?"], help: "this help", act: (app) => app.isHelpOpen.set(!app.isHelpOpen.get()) },
  { keys: ["Escape"], help: "close, or clear the search", act: (app) => escape(app) },
];

function stepPeriod(app: App, step: number): void {
  const place = PERIODS.findIndex(([since]) => since === app.state.get().since);
  const next = PERIODS[Math.min(Math.max(place + step, 0), PERIODS.length - 1)]!;
  app.move({ since: next[0], until: "" });
}

function escape(app: App): void {
  if (app.isHelpOpen.get()) app.isHelpOpen.set(false);
  else if (app.state.get().search) app.move({ search: "" });
  (document.activeElement as HTMLElement | null)?.blur();
}

const TYPING = new Set(["INPUT", "SELECT", "TEXTAREA"]);

export function watchKeys(app: App): void {
  window.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isTyping = TYPING.has((event.target as HTMLElement).tagName ?? "");
    if (isTyping && event.key !== "Escape") return;
    const key = KEYS.find(({ keys }) => keys.includes(event.key));
    if (!key) return;
    event.preventDefault();
    key.act(app);
  });
}
