// An answer for the state as it stands: asked anew when what it depends on changes, or when somebody asks for a new look.
import { useAtom } from "../../lib/atom";
import { useLatest, type Answered } from "../../lib/latest";
import type { State } from "../logic/state";
import { useApp } from "./app";

/** `name` tells questions apart. `salt` is what the answer depends on beside time, choice and what is asked about. */
export function useAnswer<T>(name: string, ask: (state: State, signal: AbortSignal) => Promise<T>, salt = ""): Answered<T> {
  const app = useApp();
  const state = useAtom(app.state);
  const round = useAtom(app.round);
  const key = [name, state.about.what, state.about.name, state.since, state.until, state.where, salt, round].join("\n");
  return useLatest(key, (signal) => ask(state, signal));
}
