// What all views share: the source, the state, and the one way to change it, which keeps the address and the history in step.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { remember } from "../lib/address";
import { atom, type Atom } from "../lib/atom";
import { same, type Range } from "../lib/range";
import type { GapsAnswer, RecordingAnswer, ReportAnswer, WaitsAnswer } from "../logic/answers";
import type { CoreMap } from "../logic/core_map";
import type { Clock } from "../logic/moment";
import { initialState, isAnotherPlace, ofHash, toHash, withFittingZoom, type State } from "../logic/state";
import type { Source } from "../logic/source";

export interface App {
  source: Source;
  clock: Clock;
  recording: Atom<RecordingAnswer>;
  report: Atom<ReportAnswer | null>;
  reportError: Atom<string | null>;
  /** Of the view; null until they are known. */
  gaps: Atom<GapsAnswer | null>;
  /** Of the view, for who wants to know what filled the cores; null until it is known. */
  coreMap: Atom<CoreMap | null>;
  /** Of the view, for keys that go through them; null until they are known. */
  waits: Atom<WaitsAnswer | null>;
  state: Atom<State>;
  /** Where the pointer is in time, in all lanes. */
  cursor: Atom<number | null>;
  /** The lane to look at, flashed for a moment. */
  lit: Atom<string | null>;
  follows: Atom<boolean>;
  isHelpOpen: Atom<boolean>;
  span(): Range;
  move(wanted: State): void;
  /** How long a lane waits for a view that is turned to rest; what is another place is asked for at once. */
  rest(turned_ms: number): number;
}

export function makeApp(source: Source, clock: Clock, recording: RecordingAnswer): App {
  const known = atom(recording);
  const spanOf = (answer: RecordingAnswer): Range => {
    const from = answer.from === null ? 0 : clock.ofDigits(answer.from);
    const to = answer.to === null ? from : clock.ofDigits(answer.to);
    return [from, Math.max(to, from + 1)];
  };
  const begun = initialState(spanOf(recording));
  const fromAddress = () => ofHash(location.hash, clock, begun, known.get().cpus);
  if (location.hash.length <= 1 && source.firstState) history.replaceState(null, "", `#${source.firstState}`);
  const state = atom(location.hash.length > 1 ? fromAddress() : begun);
  const follows = atom(recording.live && location.hash.length <= 1);
  let isStep = true;
  const app: App = {
    source,
    clock,
    recording: known,
    report: atom<ReportAnswer | null>(null),
    reportError: atom<string | null>(null),
    gaps: atom<GapsAnswer | null>(null),
    coreMap: atom<CoreMap | null>(null),
    waits: atom<WaitsAnswer | null>(null),
    state,
    cursor: atom<number | null>(null),
    lit: atom<string | null>(null),
    follows,
    isHelpOpen: atom(false),
    span: () => spanOf(known.get()),
    move(wanted) {
      const before = state.get();
      if (wanted === before) return;
      const next = withFittingZoom(before, wanted);
      // Who chooses a window wants to look at it, not at the one that comes next.
      if (!same(next.window, before.window)) follows.set(false);
      isStep = isAnotherPlace(before, next);
      state.set(next);
      remember(toHash(next, clock), isStep);
    },
    rest: (turned_ms) => (isStep ? 0 : turned_ms),
  };
  window.addEventListener("popstate", () => {
    follows.set(false);
    isStep = true;
    state.set(fromAddress());
  });
  return app;
}

export const AppContext = createContext<App | null>(null);

export function useApp(): App {
  const app = useContext(AppContext);
  if (!app) throw new Error("a view outside of the page");
  return app;
}

let fading: ReturnType<typeof setTimeout> | undefined;

/** Brings a lane on the screen and lights it up. */
export function showLane(app: App, lane: string): void {
  document.getElementById(`lane-${lane}`)?.scrollIntoView({ block: "nearest", behavior: "smooth" });
  app.lit.set(lane);
  clearTimeout(fading);
  fading = setTimeout(() => app.lit.set(null), 1600);
}
