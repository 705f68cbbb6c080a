// What all views of the fleet's page share: the source, the state, and the one way to change it.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { remember } from "../../lib/address";
import { atom, type Atom } from "../../lib/atom";
import type { Choices } from "../logic/answers";
import type { CollectorSource } from "../logic/source";
import { isAnotherPlace, ofHash, toHash, type State } from "../logic/state";

export interface App {
  source: CollectorSource;
  state: Atom<State>;
  /** What can be chosen: events, causes and labels that the nodes of this time have. */
  choices: Atom<Choices | null>;
  isHelpOpen: Atom<boolean>;
  /** Counts up: who asked before asks again. */
  round: Atom<number>;
  move(next: Partial<State>): void;
}

export function makeApp(source: CollectorSource): App {
  const state = atom(ofHash(location.hash));
  window.addEventListener("popstate", () => state.set(ofHash(location.hash)));
  return {
    source,
    state,
    choices: atom<Choices | null>(null),
    isHelpOpen: atom(false),
    round: atom(0),
    move(change) {
      const before = state.get();
      const next = { ...before, ...change };
      if (toHash(next) === toHash(before)) return;
      state.set(next);
      remember(toHash(next), isAnotherPlace(before, next));
    },
  };
}

export const AppContext = createContext<App | null>(null);

export function useApp(): App {
  const app = useContext(AppContext);
  if (!app) throw new Error("a view outside of the page");
  return app;
}
