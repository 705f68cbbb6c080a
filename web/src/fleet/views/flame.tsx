// The flame graph of a group of nodes, alone or against another: shares are compared, because groups differ in size.
import { useMemo, useState } from "preact/hooks";
import { useAtom } from "../../lib/atom";
import { height, layout, search, type Flame, type Found } from "../../logic/flame";
import type { Group } from "../../logic/state";
import { FlameSurface } from "../../views/flame_lane";
import type { FlameRows } from "../logic/answers";
import { cohortFlame } from "../logic/cohort_flame";
import { cohorts } from "../logic/state";
import { useApp } from "./app";
import { Asked } from "./asked";
import { Cohorts } from "./cohorts";
import { useAnswer } from "./use_answer";

const GROUPS: [Group, string][] = [["", "nothing"], ["name", "process name"]];

export function FlameTab() {
  const app = useApp();
  const state = useAtom(app.state);
  const { a, b } = cohorts(state);
  const baseline = state.isAlone ? null : b;
  const answer = useAnswer("flame", (now, signal) => app.source.flame(a, baseline, now, signal), `${a}\n${baseline}`);
  return (
    <>
      <Cohorts between="against">
        <button type="button" id="alone" aria-pressed={state.isAlone} onClick={() => app.move({ isAlone: !state.isAlone })} title="show the first group without comparing it">
          first group alone
        </button>
      </Cohorts>
      <Asked answer={answer} asking="adding up the minutes …">{(value) => <Graph rows={value} search={state.search} setSearch={(search) => app.move({ search })} />}</Asked>
    </>
  );
}

interface GraphProps {
  rows: FlameRows;
  search: string;
  setSearch(text: string): void;
}

export function Graph({ rows, search: wanted, setSearch }: GraphProps) {
  const [group, setGroup] = useState<Group>("");
  const [isTurned, setTurned] = useState(false);
  const flame = useMemo(() => layout(cohortFlame(rows.stacks, rows.baseline_nodes > 0, group, isTurned, rows.left_out)), [rows, group, isTurned]);
  const found = useMemo(() => search(flame, wanted), [flame, wanted]);
  if (!height(flame)) return <p class="empty">These nodes pushed no stacks in this time.</p>;
  return (
    <section class="lane" aria-label="flame graph">
      <header>
        <span class="note" id="flame-note">{noteOf(rows, flame, found, wanted)}</span>
        <span class="tools">
          <input id="search" type="search" placeholder="search  /" aria-label="search frames; /expression/ for a regular one" value={wanted} onInput={(event) => setSearch(event.currentTarget.value)} />
          <label>
            by{" "}
            <select id="group" value={group} onChange={(event) => setGroup(event.currentTarget.value as Group)}>
              {GROUPS.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
            </select>
          </label>
          <button type="button" aria-pressed={isTurned} onClick={() => setTurned(!isTurned)} title="from callees to callers">callers</button>
        </span>
      </header>
      <FlameSurface flame={flame} found={found} />
      {flame.change ? <ChangeKey /> : <p class="key">outermost frame on top, width is time, order is by name</p>}
    </section>
  );
}

function noteOf(rows: FlameRows, flame: Flame, found: Found | null, wanted: string): string {
  const count = (samples: number, nodes: number) => `${samples.toLocaleString("en")} samples of ${nodes.toLocaleString("en")} ${nodes === 1 ? "node" : "nodes"}`;
  const against = rows.baseline_nodes ? ` against ${count(rows.baseline_samples, rows.baseline_nodes)}` : "";
  const whole = count(flame.samples, rows.nodes) + against;
  const matched = found && wanted ? ` · “${wanted}” in ${(found.share * 100).toFixed(1)} % of them` : "";
  return [whole + matched, ...rows.left_out.map((text) => `left out: ${text}`)].join(" · ");
}

const ChangeKey = () => (
  <p class="key">
    <i class="kind grew" /> ▲ more than on the other nodes <i class="kind shrank" /> ▼ less ✚ new ✖ gone <span> · width is the mean of both shares</span>
  </p>
);
