// What can be asked of the flame graph: search, filter, group, turn, compare, look deeper.
import { useEffect, useMemo, useState } from "preact/hooks";
import { useAtom } from "../lib/atom";
import { useLatest } from "../lib/latest";
import { groups, layout, leastShare, type Flame } from "../logic/flame";
import { address } from "../logic/server_source";
import { baselineBefore, FLAMES, GROUPS, processText, withProcess, type FlameOf, type Group } from "../logic/state";
import { useApp, type App } from "./app";

const MOST_OFFERED = 100;

export function FlameTools({ flame }: { flame: Flame | null }) {
  const app = useApp();
  const state = useAtom(app.state);
  // Waits are grouped by program and kind already.
  const isOfWaits = state.of === "waits";
  return (
    <>
      <input
        id="search" type="search" placeholder="search  /" aria-label="search frames; /expression/ for a regular one" value={state.search}
        onInput={(event) => app.move({ ...state, search: event.currentTarget.value })}
      />
      <ProcessFilter />
      <Filter id="cgroup" name="cgroup" value={state.cgroup} set={(cgroup) => app.move({ ...app.state.get(), cgroup })} />
      <label>
        of{" "}
        <select id="of" value={state.of} onChange={(event) => app.move({ ...state, of: event.currentTarget.value as FlameOf })}>
          {FLAMES.map((of) => (
            <option key={of} value={of}>
              {of === "waits" ? "who waited" : "who ran"}
            </option>
          ))}
        </select>
      </label>
      <label>
        by{" "}
        <select id="group" value={isOfWaits ? "" : state.group} disabled={isOfWaits} onChange={(event) => app.move({ ...state, group: event.currentTarget.value })}>
          {[...new Set<Group>([...GROUPS, state.group])].map((group) => (
            <option key={group} value={group}>
              {group.replaceAll(",", ", then ") || "nothing"}
            </option>
          ))}
        </select>
      </label>
      <button type="button" id="turned" aria-pressed={state.isTurned && !isOfWaits} disabled={isOfWaits} onClick={() => app.move({ ...state, isTurned: !state.isTurned })} title="from the innermost frame to its callers (i)">
        callers
      </button>
      <button type="button" id="compare" aria-pressed={state.baseline !== null} disabled={!state.window} onClick={() => toggleBaseline(app)} title="against the stretch before (b); Shift and drag over a lane chooses another">
        {state.baseline ? "stop comparing" : "compare"}
      </button>
      {!app.source.isEmbedded && (
        <button type="button" id="deep" disabled={!state.window || !flame?.samples || isOfWaits} onClick={() => openSpeedscope(app)} title="every sample of the window in speedscope (d)">
          speedscope ↗
        </button>
      )}
    </>
  );
}

/** By name or pid. Those that ran in the window are offered, the busiest first: asked for when somebody wants to choose. */
function ProcessFilter() {
  const app = useApp();
  const state = useAtom(app.state);
  const [isUsed, setUsed] = useState(false);
  const { window: wanted, cpu, cgroup } = state;
  const question = { baseline: null, cpu, pid: null, comm: "", cgroup, group: "process", isTurned: false, of: "samples", least: leastShare(1, false) } as const;
  const answer = useLatest(isUsed && wanted ? `${wanted.join()}/${cpu}/${cgroup}` : null, (signal) =>
    app.source.flame({ window: wanted!, ...question }, signal),
  );
  const offered = useMemo(() => (answer.value ? groups(layout(answer.value)).slice(0, MOST_OFFERED) : []), [answer.value]);
  return (
    <span onFocusIn={() => setUsed(true)}>
      <Filter id="process" name="process or pid" value={processText(state)} list="processes" set={(text) => app.move(withProcess(app.state.get(), text))} />
      <datalist id="processes">
        {offered.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </span>
  );
}

/** Applied when it is left or confirmed: half a name would ask the server for nothing. */
function Filter({ id, name, value, list, set }: { id: string; name: string; value: string; list?: string; set: (value: string) => void }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  return (
    <input
      id={id} class="filter" type="search" placeholder={name} aria-label={`only this ${name}`} value={text} list={list} autocomplete="off"
      onInput={(event) => setText(event.currentTarget.value)}
      onChange={(event) => set(event.currentTarget.value.trim())}
    />
  );
}

export function toggleBaseline(app: App): void {
  const state = app.state.get();
  if (!state.window) return;
  app.move({ ...state, baseline: state.baseline ? null : baselineBefore(state.window, app.span()) });
}

export function toggleWaits(app: App): void {
  const state = app.state.get();
  app.move({ ...state, of: state.of === "waits" ? "samples" : "waits" });
}

export function openSpeedscope(app: App): void {
  const { window: wanted, cpu, pid, comm, cgroup } = app.state.get();
  if (!wanted || app.source.isEmbedded) return;
  const words = { from_ns: app.clock.digits(wanted[0]), to_ns: app.clock.digits(wanted[1]), cpu, pid, comm, cgroup };
  const profile = new URL(address("api/speedscope", words), location.href);
  const target = new URL("speedscope/index.html", location.href);
  target.hash = `profileURL=${encodeURIComponent(profile.href)}&title=${encodeURIComponent("necroscope")}`;
  window.open(target.href, "_blank", "noopener");
}
