// Two groups of nodes to compare: expressions, or what the page is about and the others.
import type { ComponentChildren } from "preact";
import { useAtom } from "../../lib/atom";
import { cohorts } from "../logic/state";
import { useApp } from "./app";
import { WhereInput } from "./toolbar";

export function Cohorts({ between, children }: { between: string; children?: ComponentChildren }) {
  const app = useApp();
  const state = useAtom(app.state);
  const chosen = cohorts(state);
  return (
    <div class="cohorts">
      <WhereInput id="cohort-a" label="nodes" placeholder={chosen.a} value={state.a || chosen.a} set={(a) => app.move({ a: a === cohorts({ ...state, a: "" }).a ? "" : a })} />
      <WhereInput id="cohort-b" label={between} placeholder={chosen.b} value={state.b || chosen.b} set={(b) => app.move({ b: b === cohorts({ ...state, b: "" }).b ? "" : b })} />
      <button type="button" disabled={!state.a && !state.b} onClick={() => app.move({ a: "", b: "" })} title="the affected nodes and the others">
        affected and others
      </button>
      {children}
    </div>
  );
}
