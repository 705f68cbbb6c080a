// The keyboard: one table from which the keys act and the help is written.
import { length, middle } from "../lib/range";
import { toggleTheme } from "../lib/theme";
import { ranked } from "../logic/incident";
import { movedWindow, panned, resizedWindow, steppedCpu, steppedMode, withWindow, zoomed } from "../logic/state";
import { showLane, type App } from "./app";
import { openSpeedscope, toggleBaseline, toggleWaits } from "./flame_tools";
import { exportPage } from "./toolbar";
import { chosenIncident, goToIncident } from "./verdict";
import { stepWait } from "./wait_steps";

interface Key {
  keys: string[];
  help: string;
  act(app: App): void;
}

const pan = (share: number) => (app: App) => {
  app.follows.set(false);
  app.move(panned(app.state.get(), share, app.span()));
};
const zoom = (factor: number) => (app: App) => app.move(zoomed(app.state.get(), factor, middle(app.state.get().view), app.span()));

export const KEYS: Key[] = [
  { keys: ["n"], help: "next incident", act: (app) => stepIncident(app, 1) },
  { keys: ["p"], help: "incident before", act: (app) => stepIncident(app, -1) },
  { keys: ["v"], help: "read the verdict", act: () => document.getElementById("verdict")?.focus() },
  { keys: ["ArrowLeft"], help: "earlier", act: pan(-0.2) },
  { keys: ["ArrowRight"], help: "later", act: pan(0.2) },
  { keys: ["+", "="], help: "zoom in", act: zoom(0.5) },
  { keys: ["-"], help: "zoom out", act: zoom(2) },
  { keys: ["0"], help: "the whole recording", act: (app) => app.move({ ...app.state.get(), view: app.span() }) },
  { keys: ["z"], help: "zoom to the window", act: (app) => zoomToWindow(app) },
  { keys: ["w"], help: "choose a window in the middle of the view", act: (app) => windowInTheMiddle(app) },
  { keys: ["Shift+ArrowLeft", ","], help: "move the window earlier", act: (app) => app.move(movedWindow(app.state.get(), -0.5, app.span())) },
  { keys: ["Shift+ArrowRight", "."], help: "move the window later", act: (app) => app.move(movedWindow(app.state.get(), 0.5, app.span())) },
  { keys: ["["], help: "a shorter window", act: (app) => app.move(resizedWindow(app.state.get(), 0.5, app.span())) },
  { keys: ["]"], help: "a longer window", act: (app) => app.move(resizedWindow(app.state.get(), 2, app.span())) },
  { keys: ["j"], help: "next core", act: (app) => app.move(steppedCpu(app.state.get(), app.recording.get().cpus, 1)) },
  { keys: ["k"], help: "core before", act: (app) => app.move(steppedCpu(app.state.get(), app.recording.get().cpus, -1)) },
  { keys: ["a"], help: "all cores", act: (app) => app.move({ ...app.state.get(), cpu: null }) },
  { keys: ["m"], help: "another mode in the core map", act: (app) => app.move(steppedMode(app.state.get())) },
  { keys: ["s"], help: "the longest wait, then the next shorter", act: (app) => stepWait(app, 1) },
  { keys: ["W"], help: "the next longer wait", act: (app) => stepWait(app, -1) },
  { keys: ["x"], help: "flame graph of waits, or of who ran", act: toggleWaits },
  { keys: ["b"], help: "compare with the stretch before, or stop comparing", act: toggleBaseline },
  { keys: ["i"], help: "flame graph from callees to callers", act: (app) => app.move({ ...app.state.get(), isTurned: !app.state.get().isTurned }) },
  { keys: ["g"], help: "into the flame graph: arrows walk, Esc leaves", act: (app) => intoFlame(app) },
  { keys: ["/"], help: "search in the flame graph", act: () => document.getElementById("search")?.focus() },
  { keys: ["o"], help: "only one process: its name or pid", act: () => document.getElementById("process")?.focus() },
  { keys: ["d"], help: "deep look in speedscope", act: openSpeedscope },
  { keys: ["e"], help: "export this view as one HTML file", act: exportPage },
  { keys: ["f"], help: "follow a live recording", act: (app) => app.follows.set(!app.follows.get()) },
  { keys: ["t"], help: "dark or light", act: toggleTheme },
  { keys: ["?"], help: "this help", act: (app) => app.isHelpOpen.set(!app.isHelpOpen.get()) },
  { keys: ["Escape"], help: "close, or clear the search", act: (app) => escape(app) },
];

function stepIncident(app: App, step: number): void {
  const incidents = ranked(app.report.get()?.incidents ?? []);
  const now = chosenIncident(app, app.state.get().incident);
  const place = incidents.findIndex((incident) => incident.id === now?.id);
  const next = incidents[(place + step + incidents.length) % (incidents.length || 1)];
  if (next) goToIncident(app, next);
}

function zoomToWindow(app: App): void {
  const { window: wanted } = app.state.get();
  if (wanted) app.move({ ...app.state.get(), view: wanted });
}

function windowInTheMiddle(app: App): void {
  const state = app.state.get();
  const half = Math.min(length(state.view) / 20, 5000);
  app.move(withWindow(state, [middle(state.view) - half, middle(state.view) + half], app.span()));
}

function intoFlame(app: App): void {
  showLane(app, "flame");
  document.getElementById("flame")?.focus();
}

function escape(app: App): void {
  if (app.isHelpOpen.get()) app.isHelpOpen.set(false);
  else if (app.state.get().search) app.move({ ...app.state.get(), search: "" });
  (document.activeElement as HTMLElement | null)?.blur();
}

const TYPING = new Set(["INPUT", "SELECT", "TEXTAREA"]);

export function watchKeys(app: App): void {
  window.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isTyping = TYPING.has((event.target as HTMLElement).tagName ?? "");
    if (isTyping && event.key !== "Escape") return;
    const name = event.shiftKey && event.key.startsWith("Arrow") ? `Shift+${event.key}` : event.key;
    const key = KEYS.find(({ keys }) => keys.includes(name));
    if (!key) return;
    event.preventDefault();
    key.act(app);
  });
}
